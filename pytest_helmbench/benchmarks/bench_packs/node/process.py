"""A Node process from outside: its number, the end of what it prints, and how it is killed."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

from pytest_helmbench.core.scrub import scrub, without_tokens

__all__ = ["NodeProcess"]

_LONGEST_TOKEN = 64


class NodeProcess(asyncio.SubprocessProtocol):
    """A process as asyncio knows it, and the end of what it prints.

    Args:
        kept: Bytes of output that are kept.
        exited: Set when it has ended.
    """

    def __init__(self, kept: int, exited: asyncio.Event) -> None:
        self.pid: int | None = None
        self._kept, self._exited = kept, exited
        self._output = bytearray()
        self._transport: asyncio.SubprocessTransport | None = None

    @property
    def returncode(self) -> int | None:
        """How it ended; negative for a signal."""
        return None if self._transport is None else self._transport.get_returncode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the process and its number."""
        assert isinstance(transport, asyncio.SubprocessTransport)  # what a subprocess gets
        self._transport = transport
        self.pid = transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep the end of what is printed."""
        del fd
        self._output += data
        if len(self._output) > 2 * self._kept:
            del self._output[: -self._kept - _LONGEST_TOKEN]

    def process_exited(self) -> None:
        """Set the event that others wait for."""
        self._exited.set()

    def text(self) -> str:
        """Return what is kept, scrubbed and without tokens."""
        kept = bytes(self._output[-self._kept - _LONGEST_TOKEN :]).decode("utf-8", "replace")
        return without_tokens(scrub(kept))[-self._kept :].strip()

    def end(self, *, through_launcher: bool) -> None:
        """Kill it and its group; a launcher does that itself, since it also finds what has left the group."""
        if through_launcher and self.pid is not None and not self._exited.is_set():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
                os.kill(self.pid, signal.SIGCONT)  # the pack can stop it, and it would not hear us
        else:
            self.kill_group()

    def kill_group(self) -> None:
        """Kill what is left of its group, whether it has ended itself or not."""
        if self._transport is None or self.pid is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.pid, signal.SIGKILL)
            else:
                self._transport.kill()

    def close(self) -> None:
        """Stop reading, whoever else still holds the other ends."""
        if self._transport is not None:
            self._transport.close()
