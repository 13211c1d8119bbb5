"""The end of what a program writes, kept while it runs."""

from __future__ import annotations

import os
import threading

from pytest_helmbench.core.scrub import scrub

__all__ = ["OutputTail"]

_KEPT = 16 * 1024
_CHUNK = 64 * 1024
_GRACE_S = 5.0


class OutputTail:
    """The end of what is written to a pipe.

    Read in a thread: asyncio's own pipes would have us wait for everybody who holds the other end.
    """

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read, name="helmbench-agent-output", daemon=True)
        self._thread.start()

    def close_writing(self) -> None:
        """Close our copy of the end that the agent writes to."""
        os.close(self.write_end)

    def join(self) -> None:
        """Wait for the end, but not for a process that has left its group and holds the pipe open."""
        self._thread.join(_GRACE_S)

    def text(self) -> str:
        """Return what is kept, scrubbed."""
        return scrub(bytes(self._kept).decode("utf-8", "replace")).strip()

    def _read(self) -> None:
        while chunk := os.read(self._read_end, _CHUNK):
            self._kept += chunk
            del self._kept[:-_KEPT]
        os.close(self._read_end)
