"""The channel to whoever judges: a key that is given once, and lines that nobody can take back."""

from __future__ import annotations

import fcntl
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Say = Callable[..., None]
    """Sends one record: a word, then texts, numbers or lists of them."""

__all__ = ["forgotten_by_children", "opened"]

_PR_SET_DUMPABLE = 4
_KEY_BYTES = 64
_LONGEST = 4000  # of a line: what a pipe takes at once
_LONGEST_PART = 1500


def _close_to_others() -> None:
    """Keep what the tests start, the same user's, from reading this process, its key, and from writing into it."""
    try:
        __import__("ctypes").CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # no Linux, or a Python without `ctypes`


def opened(own: str, runner: str) -> Say | None:
    """Open a session; return what sends its records, None where there is nobody to send them to.

    Args:
        own: The folder of the channel.
        runner: What runs the tests here.
    """
    _close_to_others()
    try:
        keys = os.open(own + "/keys", os.O_RDONLY | os.O_NONBLOCK)
        try:
            key = os.read(keys, _KEY_BYTES).decode("ascii")
        finally:
            os.close(keys)
        target = os.open(own + "/records", os.O_WRONLY)
    except OSError:
        return None
    descriptor = fcntl.fcntl(target, fcntl.F_DUPFD_CLOEXEC, 100 + int(key[:2], 16) * 3)
    os.close(target)
    process, process_of, write, encoded = os.getpid(), os.getpid, os.write, json.dumps

    def say(*parts: object) -> None:
        if process_of() != process:
            return  # a child that was forked is none of ours
        line = key + " " + encoded([_cut(part) for part in parts])
        write(descriptor, (line if len(line) < _LONGEST else key + ' ["flood"]').encode("ascii") + b"\n")

    say("open", runner)
    return say


def _cut(part: object) -> object:
    return part[:_LONGEST_PART] if isinstance(part, str) else part


def forgotten_by_children(own: str) -> None:
    """Take this folder out of the environment: what the tests start is a matter of their own."""
    rest = [
        path
        for path in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if path and os.path.realpath(path) != own
    ]
    os.environ.pop("PYTHONPATH", None)
    if rest:
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
