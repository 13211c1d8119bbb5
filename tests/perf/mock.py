"""A fast OpenAI-compatible provider in one process: `mock.py LATENCY_MS` prints its port.

A GET returns how many requests came since the last one and how many were open at once.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import re
import statistics
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

__all__ = ["latency_s"]

_ANSWER = '{"category": "HANDOFF"}'
_CASE = re.compile(rb"Condition (\d+)\..*?Message (\d+)\.", re.DOTALL)
_NORMAL = statistics.NormalDist()


def latency_s(condition: int, message: int, median_s: float, sigma: float) -> float:
    """Return the log-normal latency of a case: the same in every run, whoever asks and in whatever order."""
    share = (zlib.crc32(b"%d %d" % (condition, message)) + 0.5) / 2**32
    return median_s * math.exp(sigma * _NORMAL.inv_cdf(share))


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
    """What all connections share."""

    def __init__(self, answer: bytes, latency_of: Callable[[bytes], float]) -> None:
        self.answer = answer
        self.latency_of = latency_of
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
            body = bytes(self._buffer[end + 4 : end + 4 + length])
            del self._buffer[: end + 4 + length]
            if head.startswith(b"get"):
                counts = self._mock.counts()
                self._write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(counts), counts))
            else:
                self._accept(body)

    def _accept(self, body: bytes) -> None:
        mock = self._mock
        mock.requests += 1
        mock.in_flight += 1
        mock.most_in_flight = max(mock.most_in_flight, mock.in_flight)
        asyncio.get_running_loop().call_later(mock.latency_of(body), self._answer)

    def _answer(self) -> None:
        self._mock.in_flight -= 1
        self._write(self._mock.answer)

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


def _latency_of(median_s: float, sigma: float) -> Callable[[bytes], float]:
    if not sigma:
        return lambda _body: median_s

    def by_case(body: bytes) -> float:
        found = _CASE.search(body)
        return latency_s(int(found[1]), int(found[2]), median_s, sigma) if found else median_s

    return by_case


async def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("latency_ms", type=float, help="of every answer; the median with --sigma")
    parser.add_argument("--sigma", type=float, default=0.0, help="of a log-normal latency by case")
    parser.add_argument("--answer", type=Path, help="file with the text of every reply")
    given = parser.parse_args()
    text = given.answer.read_text(encoding="utf-8") if given.answer else _ANSWER
    mock = _Mock(_http_answer(text), _latency_of(given.latency_ms / 1000, given.sigma))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(mock), "127.0.0.1", 0, backlog=2048)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
