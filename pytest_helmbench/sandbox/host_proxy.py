"""A proxy for programs in the fence: to the machines that the user has named, and to no other."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from urllib.parse import urlsplit

from pytest_helmbench.sandbox.forward import pump

__all__ = ["HostProxy"]

_PORTS = (80, 443)
_HEAD_BYTES = 64 * 2**10
_CONNECT_S = 30.0
_REFUSAL = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_FAILURE = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_TUNNEL = b"HTTP/1.1 200 Connection established\r\n\r\n"


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
