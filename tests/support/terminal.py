"""A program on a pseudo-terminal, and what a person sees of it there: an emulated screen after each read."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte
from commands import environment
from waiting import PATIENCE_S

__all__ = ["Terminal"]


class Terminal:
    """A terminal with one program.

    Args:
        command: Program and arguments.
        folder: Where it runs.
        more: Environment variables beside the usual ones.
        size: Columns and rows.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        more: Mapping[str, str] | None = None,
        size: tuple[int, int] = (100, 24),
    ) -> None:
        self.screen = pyte.HistoryScreen(*size, history=2_000)
        self.written = b""
        self._stream = pyte.ByteStream(self.screen)
        self._ours, theirs = pty.openpty()
        self.resize(*size)
        env = environment(TERM="xterm", **(more or {}))
        self.process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)

    @property
    def last_line(self) -> str:
        """The last line of the screen."""
        return self.screen.display[-1].rstrip()

    @property
    def lines(self) -> list[str]:
        """All that has been shown, the lines that have scrolled away among it."""
        above = [
            "".join(row[column].data for column in range(self.screen.columns)).rstrip()
            for row in self.screen.history.top
        ]
        return above + [line.rstrip() for line in self.screen.display]

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size, as a person does by pulling at its corner."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def watch(self, seen: Callable[[], object] = lambda: None) -> int:
        """Read until the program has ended; return its status.

        Args:
            seen: Called after each read.
        """
        try:
            while piece := os.read(self._ours, 4_096):
                self.written += piece
                self._stream.feed(piece)
                seen()
        except OSError:  # the last of those who could write is gone
            pass
        finally:
            os.close(self._ours)
        return self.process.wait(PATIENCE_S)
