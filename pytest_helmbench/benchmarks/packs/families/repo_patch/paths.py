"""The path policy of repo_patch: the paths that a candidate's patch may touch, in every common ecosystem."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib.resources import files

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt


@dataclass(frozen=True, slots=True)
class SensitivePaths:
    """One rule's table. Everything but `written` is compared case-folded.

    Args:
        roots: First part of the path.
        parts: Any part of the path, the file name included.
        names: File name.
        starts: Start of the file name.
        ends: End of the file name.
        patterns: Found anywhere in the path.
        written: Found anywhere in the path as written, where capitals tell words apart.
        modules: Python modules that must not be hidden by one at the top of the repository.
    """

    roots: frozenset[str]
    parts: frozenset[str]
    names: frozenset[str]
    starts: tuple[str, ...]
    ends: tuple[str, ...]
    patterns: re.Pattern[str] | None = None
    written: re.Pattern[str] | None = None
    modules: frozenset[str] = frozenset()

    def why(self, path: str) -> str | None:
        """Return what makes a path sensitive, for people; None when nothing does."""
        folded = path.casefold()
        parts = folded.split("/")
        name = parts[-1]
        if parts[0] in self.roots:
            return f"everything under {parts[0]}/ is sensitive"
        for part in parts:
            if part in self.parts:
                return f"everything under {part}/ is sensitive"
        if name in self.names or name.startswith(self.starts) or name.endswith(self.ends):
            return "files of this name are sensitive"
        for pattern, text in ((self.patterns, folded), (self.written, path)):
            if pattern is not None and pattern.search(text):
                return "paths of this form are sensitive"
        module = parts[0].removesuffix(".py") if len(parts) == 1 else parts[0]
        if module in self.modules and (folded == f"{module}.py" or parts[1:] == ["__init__.py"]):
            return "it hides a module that tests import"
        return None


def _table(*parts: Mapping[str, list[str]]) -> SensitivePaths:
    roots, names, inner, starts, ends = (
        " ".join(text for part in parts for text in part[key]).split()
        for key in ("roots", "names", "parts", "starts", "ends")
    )
    return SensitivePaths(frozenset(roots), frozenset(inner), frozenset(names), tuple(starts), tuple(ends))


_WORDS = tomllib.loads(files(__package__).joinpath("sensitive_paths.toml").read_text("utf-8"))
PARITY = _table(_WORDS["parity"])
"""Paths that the published rule calls sensitive.

Source:
    Benchmark packs, parity rules, repo_patch paths.
"""

_CODE = r"\.(?:[cm]?[jt]sx?|py|pyx|vue|svelte|c|cc|cpp|cxx|hpp|mm?|rs|go|rb|php|lua|jl|r|pl|nim|zig|dart|exs|clj[sc]?)$"
_BRACKETED = r"\.(?:java|kts?|scala|groovy|cs|fs|vb|swift|php|mm?|cpp|dart)$"

DEFAULT = replace(
    _table(_WORDS["parity"], _WORDS["default"]),
    patterns=re.compile(
        # Folders of tests, and files beside the code that they test.
        r"(?:^|[-_. /])(?:tests?|e2e|unittests?)(?:[-_. ][^/]*)?/"
        # Hooks of behave and cucumber.
        r"|^features/(?:environment\.py$|(?:support|steps|step_definitions)/)"
        rf"|(?:^|/)tests?{_CODE}|(?:^|/)tests?[-_.][^/]*{_CODE}|[-_.](?:tests?|unittests?|e2e|cy){_CODE}"
        r"|[-_.]specs?\.(?:[cm]?[jt]sx?|vue|svelte|coffee|rb|lua|cr|php|exs|hs)$"
        r"|^specs?/|/specs?/(?:[^/]*/)*[^/]*\.(?:[cm]?[jt]sx?|vue|coffee|rb|lua|cr|php|hs)$"
        # Files that come in variants.
        r"|(?:^|/)(?:requirements|constraints)[\w.-]*\.(?:txt|in|pip)$|(?:^|/)requirements/[^/]*\.(?:txt|in)$"
        r"|(?:^|/)(?:dockerfile|containerfile)(?:[.-](?!py$|go$|rs$|[jt]s$)[\w.-]+)?$"
        r"|(?:^|/)(?:docker-)?compose[\w.-]*\.ya?ml$|(?:^|/)tsconfig[\w.-]*\.json$|(?:^|/)\.env(?:\.[\w.-]+)?$"
    ),
    written=re.compile(
        rf"[a-z0-9](?:UI)?Tests?/|(?:[a-z0-9]|^|/)(?:Tests?|TestCase|TestSuite|IT|ITCase){_BRACKETED}"
        rf"|(?:^|/)Tests?[A-Z][^/]*{_BRACKETED}|[a-z0-9]Specs?\.(?:scala|groovy|hs|php)$"
    ),
    modules=frozenset(name for name in sys.stdlib_module_names if not name.startswith("_"))
    | frozenset(" ".join(_WORDS["default"]["modules"]).split()),
)
"""Paths that the default rule calls sensitive: those of the parity rule, and the same in other ecosystems."""


_NEVER = "securebench"
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
# File systems that ignore case, dots or blanks at the end, or that know short names, take these for `.git`.
_GIT_FOLDER = re.compile(r"\.git[. ]*|git~[0-9]+|\.git:.*", re.IGNORECASE)
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u2060\u206a-\u206f\ufeff]")
_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class PatchPolicy:
    """Which paths a candidate's patch may touch.

    Args:
        allow_paths: A closed list of patterns when not empty.
        allow_sensitive_paths: Patterns of sensitive paths that may be touched.
        preserved: Patterns of files that stay as they are: what a patch does to them is left out.
    """

    allow_paths: tuple[str, ...] = ()
    allow_sensitive_paths: tuple[str, ...] = ()
    preserved: tuple[str, ...] = ()


def denial(path: str, policy: PatchPolicy, *, parity: bool = False) -> str | None:
    """Return why a patch must not touch a path, for people; None when it may.

    Args:
        parity: Apply the published rule, which knows fewer sensitive paths.

    Source:
        Benchmark packs, parity rules, repo_patch paths.
    """
    fault = hard_fault(path, parity=parity)
    if fault is not None:
        return fault
    if any(_matches(path, pattern) for pattern in policy.preserved):
        return "the task keeps it as it is"
    if policy.allow_paths and not any(_matches(path, pattern) for pattern in policy.allow_paths):
        return "it is not among the paths that the task allows"
    if any(_matches(path, pattern) for pattern in policy.allow_sensitive_paths):
        return None
    return (PARITY if parity else DEFAULT).why(path)


def denials(paths: Iterable[str], policy: PatchPolicy, *, parity: bool = False) -> str:
    """Return which paths must not be touched and why, five at most; empty when all may be."""
    reasons = ((path, denial(path, policy, parity=parity)) for path in sorted(paths))
    return _listed([(path, why) for path, why in reasons if why is not None])


def special_denials(paths: Iterable[str], policy: PatchPolicy) -> str:
    """Return which of some paths, that are or become symbolic links or submodules, must not; empty when all may."""
    allowed = policy.allow_sensitive_paths
    why = "symbolic links and submodules are sensitive"
    return _listed(
        [(path, why) for path in sorted(paths) if not any(_matches(path, pattern) for pattern in allowed)]
    )


def _listed(reasons: list[tuple[str, str]]) -> str:
    lines = [f"{excerpt(path, 200)!r}: {why}" for path, why in reasons[:_MOST_SHOWN]]
    more = [f"and {len(reasons) - _MOST_SHOWN} more"] if len(reasons) > _MOST_SHOWN else []
    return "\n".join(lines + more)


def hard_fault(path: str, *, parity: bool = False) -> str | None:
    """Return why no policy can allow a path; None when one can."""
    parts = path.split("/")
    if path.startswith("/") or _DRIVE.match(path):
        return "it is an absolute path"
    if ".." in parts:
        return "it leads out of the repository"
    if parts[0].casefold() == _NEVER:
        return f"it lies under {_NEVER}/, which belongs to the evaluator"
    if parity:
        return None
    if not all(parts) or "." in parts:
        return "it is not a plain path"
    if "\\" in path or _CONTROL.search(path):
        return "it holds a backslash or a control character"
    if any(_GIT_FOLDER.fullmatch(_IGNORED.sub("", part)) for part in parts):
        return "it lies in git's own folder"
    return None


def covering(pattern: str) -> tuple[str, ...]:
    """Return the globs, whose `*` crosses `/`, that represent a pattern: itself, and all in the folder it names."""
    folder = pattern.removesuffix("/**").removesuffix("/")
    return (pattern, folder, f"{folder}/*") if folder else (pattern,)


def _matches(path: str, pattern: str) -> bool:
    """Return whether a pattern covers a path: as a glob whose `*` crosses `/`, as the path, or as a folder."""
    folder = pattern.removesuffix("/**").removesuffix("/")
    return (
        path in (pattern, folder)
        or fnmatchcase(path, pattern)
        or bool(folder and path.startswith(f"{folder}/"))
    )
