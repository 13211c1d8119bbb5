"""A fast OpenAI-compatible provider in one process: `mock.py LATENCY_MS` prints its port."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys

_REPLY = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1763700000,
        "model": "mock/mock-1",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": '{"category": "HANDOFF"}', "refusal": None},
            }
        ],
        "usage": {"prompt_tokens": 312, "completion_tokens": 9, "total_tokens": 321, "cost": 0.0000654},
    }
).encode()
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_REPLY),
    _REPLY,
)


class Connection(asyncio.Protocol):
    """Reads requests with a Content-Length, answers each after the latency; counts what it sees."""

    latency_s = 0.0
    requests = 0
    in_flight = 0
    most_in_flight = 0

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every whole request."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._buffer[:end]).lower()
            length = 0
            for line in head.split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line[15:])
            if len(self._buffer) < end + 4 + length:
                return
            del self._buffer[: end + 4 + length]
            cls = type(self)
            if head.startswith(b"get"):
                self._write(b"%d %d" % (cls.requests, cls.most_in_flight))
                cls.requests = cls.most_in_flight = 0
                continue
            cls.requests += 1
            cls.in_flight += 1
            cls.most_in_flight = max(cls.most_in_flight, cls.in_flight)
            asyncio.get_running_loop().call_later(cls.latency_s, self._answer)

    def _answer(self) -> None:
        type(self).in_flight -= 1
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(_ANSWER)

    def _write(self, body: bytes) -> None:
        if self._transport is not None:
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


async def main() -> None:
    """Serve until killed."""
    Connection.latency_s = float(sys.argv[1]) / 1000
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=2048)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
