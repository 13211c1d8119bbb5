"""First code of every Python that a checker starts, as its `sitecustomize`.

Whatever lies in the workspace, Python's own modules and those of pytest come from elsewhere, and a run of pytest
reports the outcome of its tests.
"""

from __future__ import annotations

import _frozen_importlib_external
import os
import sys
from _frozen_importlib_external import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any

_PR_SET_DUMPABLE = 4
_MACHINERY = frozenset(
    ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "exceptiongroup", "tomli")
)
_MACHINERY |= {"pygments", "typing_extensions", "execnet", "xdist"}
_THEIRS = frozenset(("test", "tests", "sitecustomize", "usercustomize", "__main__"))
"""Names that a repository may well have of its own."""

_PYTEST = ("pytest", "py.test")
_LONGEST_SCRIPT = 1 << 20


class Guard:
    """Finds modules that belong to Python or to pytest, outside of the workspace.

    Args:
        workspace: What lies in it does not count.
        exempt: Names that the untouched workspace has itself.
        everything: What is installed is as sure as Python itself.
    """

    def __init__(self, workspace: str, exempt: Sequence[str], *, everything: bool) -> None:
        self._everything = everything
        self._workspace = os.path.realpath(workspace)
        self._exempt = _THEIRS.union(exempt)
        roots = (os.path.realpath(sys.base_prefix), os.path.realpath(sys.base_exec_prefix))
        self._standard = [
            path
            for path in sys.path
            if os.path.realpath(path).startswith(roots)
            and "-packages" not in path
            and not self.is_inside(path)
        ]

    def is_inside(self, path: str) -> bool:
        """Return whether a path is the workspace or leads into it."""
        real = os.path.realpath(path or os.curdir)
        return real == self._workspace or real.startswith(self._workspace.rstrip("/") + "/")

    def find_spec(self, name: str, path: object = None, _target: object = None) -> ModuleSpec | None:
        """Return where a module of the top is; None leaves it to Python."""
        if path is not None or name in self._exempt:
            return None
        found = PathFinder.find_spec(name, self._standard)
        if found is None and (self._everything or name in _MACHINERY):
            found = PathFinder.find_spec(name, [entry for entry in sys.path if not self.is_inside(entry)])
        return found


def called(words: list[str]) -> tuple[str, str]:
    """Return how Python was called: `m` and a module, `c` and a text, `script` and its path, or nothing."""
    rest = iter(words[1:])
    for word in rest:
        if not word.startswith("-") or word == "-":
            return "script", word
        if word.startswith("--"):
            continue
        for place, letter in enumerate(word[1:], 2):
            if letter in "mc":
                return letter, word[place:] or next(rest, "")
            if letter in "WX":
                if not word[place:]:
                    next(rest, "")
                break
    return "", ""


def runs_pytest(words: list[str]) -> bool:
    """Return whether a Python that is called so runs pytest."""
    how, what = called(words)
    for one, other in zip(words, words[1:]):  # noqa: RUF007 - `pairwise` is newer than 3.7
        if one == "-m" and other in _PYTEST:  # also behind `coverage run`
            return True
    if how == "script" and os.path.basename(what) in _PYTEST:
        return True
    text = what if how == "c" else _text_of(what) if how == "script" else ""
    return (how == "m" and what in _PYTEST) or "pytest.main(" in text


def _text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST_SCRIPT)
    except OSError:
        return ""


def _words() -> list[str]:
    words = getattr(sys, "orig_argv", None)
    if words is not None:
        return list(words)
    try:
        with open("/proc/self/cmdline", encoding="utf-8", errors="surrogateescape") as file:
            return file.read().split("\0")[:-1]
    except OSError:
        return []


def _read_sources_only(guard: Guard) -> None:
    """Have modules of the workspace compiled: what lies beside them as their bytecode may be anybody's."""
    every = _frozen_importlib_external.cache_from_source

    def cache_from_source(path: Any, *args: Any, **kwargs: Any) -> str:
        if "-packages" not in os.fspath(path) and guard.is_inside(
            os.fspath(path)
        ):  # an environment is dear to compile
            raise NotImplementedError
        return every(path, *args, **kwargs)

    _frozen_importlib_external.cache_from_source = cache_from_source


def _close_to_others() -> None:
    """Keep what a checker starts, the same user's, from reading this process and from writing into it."""
    try:
        __import__("ctypes").CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # no Linux, or a Python without `ctypes`


def _chain(own: str, guard: Guard) -> None:
    """Run the `sitecustomize` that would have been found without ours."""
    others = [path for path in sys.path if os.path.realpath(path) != own and not guard.is_inside(path)]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = type(sys)("sitecustomize")
        module.__file__ = spec.origin
        spec.loader.exec_module(module)


def main(settings: dict[str, Any], place: str) -> None:
    """Guard this Python; when it is one that runs tests, have them reported."""
    own = os.path.dirname(os.path.realpath(place))
    guard = Guard(settings["workspace"], settings["exempt"], everything=not settings["tests_inside"])
    words = _words()
    how, what = called(words)
    is_theirs = how == "script" and guard.is_inside(what)
    if is_theirs and not settings["tests_inside"]:
        return
    sys.meta_path.insert(0, guard)
    _read_sources_only(guard)
    _close_to_others()
    _chain(own, guard)
    if runs_pytest(words):
        space: dict[str, Any] = {"__name__": "witness"}
        with open(os.path.join(own, "witness.py"), encoding="utf-8") as file:
            exec(compile(file.read(), "<witness>", "exec", dont_inherit=True), space)
        space["begin"]("pytest", settings, own, guard.is_inside)
