"""Lines by which what runs on a judge's host asks the session: messages over the connection that judges have anyway.

No port is opened for them, and nobody is trusted who was not before. Only Dask's connection has them.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["HostLines", "Line", "LineAddress", "LineClosedError", "LineService"]


class LineClosedError(Exception):
    """Nobody answers at the other end of a line, now or later."""


class LineService(Protocol):
    """What answers at the session's end of a line."""

    async def answer(self, message: bytes, /) -> bytes:
        """Return the answer to a message.

        Raises:
            LineClosedError: Whoever asks is not to be answered any more.
        """


@dataclass(frozen=True, slots=True)
class LineAddress:
    """Where a line leads to. It travels in a parcel.

    Args:
        session: Name of the session's end.
        key: Of the service there; nobody guesses it.
        silence_s: For how long no answer of a session that lives is waited for.
    """

    session: str
    key: str
    silence_s: float


class HostLines:
    """The session's end of its lines: which key belongs to which service. Used on the event loop only."""

    def __init__(self) -> None:
        self.name = f"helmbench-{secrets.token_urlsafe(16)}"
        self._services: dict[str, LineService] = {}

    @contextmanager
    def opened(self, service: LineService, silence_s: float) -> Iterator[LineAddress]:
        """Answer by a service while inside."""
        key = secrets.token_urlsafe(16)
        self._services[key] = service
        try:
            yield LineAddress(self.name, key, silence_s)
        finally:
            del self._services[key]

    async def answer(self, key: str, message: bytes) -> bytes:
        """Return a service's answer; empty where nobody answers."""
        service = self._services.get(key)
        if service is None:
            return b""
        try:
            return await service.answer(message)
        except LineClosedError:
            return b""


class Line(Protocol):
    """The end of a line on a judge's host."""

    async def ask(self, message: bytes, /) -> bytes:
        """Return the session's answer, however long it takes.

        Raises:
            LineClosedError: Nobody answers there any more.
        """

    def close(self) -> None:
        """Leave the line."""
