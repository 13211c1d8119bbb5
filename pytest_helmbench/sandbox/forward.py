"""Ports that lead across the fence: one of this machine to one inside, and a proxy to machines that the user named."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from urllib.parse import urlsplit

_LOOPBACK = "127.0.0.1"
_CHUNK = 64 * 2**10
_PORTS = (80, 443)
_HEAD_BYTES = 64 * 2**10
_CONNECT_S = 30.0
_REFUSAL = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_FAILURE = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_TUNNEL = b"HTTP/1.1 200 Connection established\r\n\r\n"


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


class HostProxy:
    """Passes connections on; what goes through a tunnel is not looked into.

    Args:
        hosts: `NAME` for the ports 80 and 443, or `NAME:PORT`.
    """

    def __init__(self, hosts: tuple[str, ...]) -> None:
        self._server: asyncio.Server | None = None
        self._allowed: set[tuple[str, int]] = set()
        for host in hosts:
            name, _, port = host.rpartition(":") if host.rpartition(":")[2].isdigit() else (host, "", "")
            for number in (int(port),) if port else _PORTS:
                self._allowed.add((name.lower(), number))

    async def serve(self, listening: socket.socket) -> None:
        """Serve what connects to a listening socket."""
        self._server = await asyncio.start_server(self._connected, sock=listening, limit=_HEAD_BYTES)

    def close(self) -> None:
        """Take no more connections; those that there are end with the program at their other end."""
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await self._pass(reader, writer)
        writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, _, rest = head.partition(b"\r\n")
        method, _, target = first.decode("latin-1").partition(" ")
        target = target.rpartition(" ")[0]
        is_tunnel = method == "CONNECT"
        try:
            asked = urlsplit(f"//{target}" if is_tunnel else target)
            place = ((asked.hostname or "").lower(), asked.port or _PORTS[0])
        except ValueError:
            place = ("", 0)
        if place not in self._allowed:
            writer.write(_REFUSAL)
            await writer.drain()
            return
        try:
            async with asyncio.timeout(_CONNECT_S):
                there, back = await asyncio.open_connection(*place)
        except (OSError, TimeoutError):
            writer.write(_FAILURE)
            await writer.drain()
            return
        if is_tunnel:
            writer.write(_TUNNEL)
        else:
            path = asked._replace(scheme="", netloc="").geturl() or "/"
            # One request per connection: a second one could name another machine.
            lines = [
                line
                for line in rest.split(b"\r\n")
                if not line.lower().startswith((b"proxy-", b"connection:"))
            ]
            start = f"{method} {path} HTTP/1.1\r\nConnection: close\r\n".encode("latin-1")
            back.write(start + b"\r\n".join(lines))
        ways = (asyncio.create_task(pump(reader, back)), asyncio.create_task(pump(there, writer)))
        try:
            await asyncio.wait(ways, return_when=asyncio.ALL_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            back.close()
