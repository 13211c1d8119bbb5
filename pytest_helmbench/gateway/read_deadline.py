"""A timeout that fires only when nothing more lies in the socket: a process that stood still reads before it judges."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

__all__ = ["ReadDeadline"]

_IDLE_TURNS = 10  # of the loop: a read, the task that waited for it, and some to spare
_TURN_S = 0.001  # so that a sender whose buffer was full can go on
_LONGEST_S = 1.0  # a server that never stops sending has no longer


class ReadDeadline:
    """Raises `TimeoutError` in the task that entered it, once time is over and turns of the loop bring nothing.

    The loop runs what is due in the turn in which it reads, so after a standstill (a container that was paused)
    a plain timeout throws away what has just been read.

    Args:
        timeout_s: From entering it.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.Handle | None = None
        self._over_at: float | None = None
        self._idle_turns = 0

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self._is_over)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def received(self) -> None:
        """Say that something has arrived."""
        self._idle_turns = 0

    def _is_over(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._over_at is None:
            self._over_at = now
        if self._idle_turns >= _IDLE_TURNS or now - self._over_at >= _LONGEST_S:
            self._timeout.reschedule(now)
            return
        self._idle_turns += 1
        self._timer = loop.call_later(_TURN_S, self._is_over)
