"""A port of this machine that leads to one inside of the fence."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

__all__ = ["Forward", "pump"]

_LOOPBACK = "127.0.0.1"
_CHUNK = 64 * 2**10


class Forward:
    """Passes on what connects to it.

    Args:
        connect: Returns a connected socket of the other network.
    """

    def __init__(self, connect: Callable[[], Awaitable[socket.socket]]) -> None:
        self._connect = connect
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def listen(self) -> int:
        """Listen on a free port and return it.

        Raises:
            OSError: There is none.
        """
        self._server = await asyncio.start_server(self._connected, _LOOPBACK, 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def close(self) -> None:
        """Stop listening and drop every connection."""
        if self._server is not None:
            self._server.close()
        for writer in self._open:
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            there, back = await asyncio.open_connection(sock=await self._connect())
        except (OSError, TimeoutError):
            writer.transport.abort()
            self._open.discard(writer)
            return
        self._open.add(back)
        try:
            await asyncio.gather(pump(reader, back), pump(there, writer))
        finally:
            for one in (back, writer):
                one.close()
                self._open.discard(one)


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Pass on what comes from one side, and its end; where it breaks off, the other is broken off too."""
    try:
        while chunk := await source.read(_CHUNK):
            sink.write(chunk)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()
    except OSError:
        sink.transport.abort()
