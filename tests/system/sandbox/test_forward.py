"""A port that leads into the fence, to a program that breaks off."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from pytest_helmbench.sandbox.forward import Forward

_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


@pytest.mark.parametrize("reset", [False, True])
def test_the_end_of_a_program_is_the_end_of_what_asks_it(reset: bool) -> None:
    async def check() -> bytes:
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setblocking(False)
        loop = asyncio.get_running_loop()

        async def connected() -> socket.socket:
            made = socket.socket()
            made.setblocking(False)
            await loop.sock_connect(made, listening.getsockname())
            return made

        forward = Forward(connected)
        port = await forward.listen()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /end")
        program, _ = await loop.sock_accept(listening)
        await loop.sock_recv(program, 100)
        if reset:
            program.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        program.close()
        try:
            async with asyncio.timeout(20):
                return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()
            forward.close()
            listening.close()

    assert asyncio.run(check()) == b""
