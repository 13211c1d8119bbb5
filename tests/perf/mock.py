"""A fast OpenAI-compatible provider in one process: `mock.py LATENCY_MS` prints its port.

A GET returns how many requests came since the last one and how many were open at once.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from pathlib import Path

_ANSWER = '{"category": "HANDOFF"}'


def _http_answer(text: str) -> bytes:
    message = {"role": "assistant", "content": text, "refusal": None}
    usage = {"prompt_tokens": 312, "completion_tokens": 9, "total_tokens": 321, "cost": 0.0000654}
    reply = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1763700000,
        "model": "mock/mock-1",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": usage,
    }
    body = json.dumps(reply).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


class _Mock:
    """The state that all connections share."""

    def __init__(self, answer: bytes, latency_s: float) -> None:
        self.answer = answer
        self.latency_s = latency_s
        self.requests = 0
        self.in_flight = 0
        self.most_in_flight = 0

    def counts(self) -> bytes:
        """Return the counts and begin anew."""
        counts = b"%d %d" % (self.requests, self.most_in_flight)
        self.requests = self.most_in_flight = 0
        return counts


class _Connection(asyncio.Protocol):
    """Reads requests with a Content-Length and answers each after its latency."""

    def __init__(self, mock: _Mock) -> None:
        self._mock = mock
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
            if head.startswith(b"get"):
                counts = self._mock.counts()
                self._write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(counts), counts))
            else:
                self._accept()

    def _accept(self) -> None:
        mock = self._mock
        mock.requests += 1
        mock.in_flight += 1
        mock.most_in_flight = max(mock.most_in_flight, mock.in_flight)
        asyncio.get_running_loop().call_later(mock.latency_s, self._answer)

    def _answer(self) -> None:
        self._mock.in_flight -= 1
        self._write(self._mock.answer)

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


async def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("latency_ms", type=float, help="of every answer")
    parser.add_argument("--answer", type=Path, help="file with the text of every reply")
    given = parser.parse_args()
    text = given.answer.read_text(encoding="utf-8") if given.answer else _ANSWER
    mock = _Mock(_http_answer(text), given.latency_ms / 1000)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(mock), "127.0.0.1", 0, backlog=2048)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
