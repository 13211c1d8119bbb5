"""A Python process of our own that is spoken with over two pipes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

__all__ = ["PipedProcess"]


class PipedProcess:
    """This Python in a process that Ctrl-C does not reach and that prints nothing.

    Args:
        arguments: Of Python.
        environment: All variables that it has.
        folder: That it runs in; None for ours.
    """

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: str | None = None
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the process has no pipes")
        self.questions = self._process.stdin
        self.answers = self._process.stdout

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def kill(self) -> None:
        """End it at once. From any thread."""
        self._process.kill()

    def killed(self) -> int:
        """End it at once and return how it ended; below 0 it was by that signal."""
        self._process.kill()
        return self._process.wait()

    def end(self, patience_s: float = 0.0) -> None:
        """Close the pipes, and kill it when it has not ended of itself by then."""
        if not patience_s:
            self.killed()
        for pipe in (self.questions, self.answers):
            with suppress(OSError):
                pipe.close()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.killed()
