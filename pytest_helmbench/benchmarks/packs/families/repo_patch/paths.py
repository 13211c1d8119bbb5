"""The path policy of repo_patch: the paths that a candidate's patch may touch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PatchPolicy
from pytest_helmbench.benchmarks.packs.families.repo_patch.sensitive import DEFAULT, PARITY
from pytest_helmbench.benchmarks.packs.task import PathPolicyError
from pytest_helmbench.core.scrub import excerpt

_NEVER = "securebench"
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
# What file systems that ignore case, dots or blanks at the end, or that know short names take for `.git`.
_GIT_FOLDER = re.compile(r"\.git[. ]*|git~[0-9]+|\.git:.*", re.IGNORECASE)
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u2060\u206a-\u206f\ufeff]")
_MOST_SHOWN = 5


def denial(path: str, policy: PatchPolicy, *, parity: bool = False) -> str | None:
    """Return why a patch must not touch a path, for people; None when it may.

    Args:
        path: Relative to the repository.
        policy: The row's.
        parity: Apply the published rule, which knows fewer sensitive paths.

    Source:
        Benchmark packs, parity rules, repo_patch paths.
    """
    fault = hard_fault(path, parity=parity)
    if fault is not None:
        return fault
    if policy.allow_paths and not any(_matches(path, pattern) for pattern in policy.allow_paths):
        return "it is not among the paths that the task allows"
    if any(_matches(path, pattern) for pattern in policy.allow_sensitive_paths):
        return None
    return (PARITY if parity else DEFAULT).why(path)


def check_paths(paths: Iterable[str], policy: PatchPolicy, *, parity: bool = False) -> None:
    """Hold paths to a policy.

    Raises:
        PathPolicyError: With the paths that must not be touched and why, five at most.
    """
    lines = [
        f"{excerpt(path, 200)!r}: {why}"
        for path in sorted(paths)
        if (why := denial(path, policy, parity=parity)) is not None
    ]
    _refuse(lines)


def check_special(paths: Iterable[str], policy: PatchPolicy) -> None:
    """Hold paths that are, or become, symbolic links or submodules to a policy.

    Raises:
        PathPolicyError: As `check_paths`.
    """
    _refuse(
        [
            f"{excerpt(path, 200)!r}: symbolic links and submodules are sensitive"
            for path in sorted(paths)
            if not any(_matches(path, pattern) for pattern in policy.allow_sensitive_paths)
        ]
    )


def _refuse(lines: list[str]) -> None:
    if lines:
        more = f"\nand {len(lines) - _MOST_SHOWN} more" if len(lines) > _MOST_SHOWN else ""
        raise PathPolicyError("\n".join(lines[:_MOST_SHOWN]) + more)


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
        return "it is no plain path"
    if "\\" in path or _CONTROL.search(path):
        return "it holds a backslash or a control character"
    if any(_GIT_FOLDER.fullmatch(_IGNORED.sub("", part)) for part in parts):
        return "it lies in git's own folder"
    return None


def _matches(path: str, pattern: str) -> bool:
    """Return whether a pattern covers a path: as a glob whose `*` crosses `/`, as the path, or as a folder."""
    folder = pattern.removesuffix("/**").removesuffix("/")
    return (
        path in (pattern, folder)
        or fnmatchcase(path, pattern)
        or bool(folder and path.startswith(f"{folder}/"))
    )
