"""A session of tests begins: it gets its key, and pytest or unittest is made to report."""

from __future__ import annotations

import gc
import importlib.util
import sys

from pytest_helmbench.benchmarks.packs.evidence.inside.channel import opened
from pytest_helmbench.benchmarks.packs.evidence.inside.pytest_witness import install as install_in_pytest
from pytest_helmbench.benchmarks.packs.evidence.inside.unittest_witness import install as install_in_unittest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from pytest_helmbench.benchmarks.packs.evidence.inside.channel import Say

    class Guard(Protocol):
        """What knows the workspace."""

        def is_inside(self, path: str) -> bool:
            """Return whether a path leads into the workspace."""


__all__ = ["begin", "note_mixing"]

_STARTS = frozenset(
    (
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.fork",
        "os.forkpty",
        "pty.spawn",
        "ctypes.dlopen",
    )
)


def begin(runner: str, settings: dict[str, Any], own: str, guard: Guard) -> Say | None:
    """Open a session and install what reports it.

    Args:
        runner: `pytest`, `unittest`, or `functions` for one that reports by itself.
        settings: Of the checker.
        own: Our folder.
        guard: What knows the workspace.
    """
    if runner == "pytest" and importlib.util.find_spec("pytest") is None:
        return None
    say = opened(own, runner)
    if say is not None:
        note_mixing(say, guard)
        if runner == "pytest":
            install_in_pytest(say, settings, own, guard.is_inside)
        elif runner == "unittest":
            install_in_unittest(say, settings, own)
        if hasattr(gc, "freeze"):
            gc.freeze()  # nothing of this is among the objects that can be listed
    return say


def note_mixing(say: Say, guard: Guard) -> None:
    """Say it before the first code that is judged, or any program, runs beside the tests."""
    if not hasattr(sys, "addaudithook"):
        say("mixed", "this Python cannot tell")
        return
    said: list[str] = []

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if said:
            return
        if event in _STARTS:
            said.append(event)
        elif event == "exec":
            name = getattr(args[0], "co_filename", "")
            if name[:1] != "<" and guard.is_inside(name):
                said.append(name)
        elif event == "import" and args[1] and guard.is_inside(str(args[1])):
            said.append(str(args[1]))
        if said:
            say("mixed", said[0])

    sys.addaudithook(hook)
