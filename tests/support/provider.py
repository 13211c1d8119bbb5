"""A real OpenAI-compatible HTTP server in a thread: tests script its answers and read what it was asked."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Self

__all__ = ["Answer", "Provider", "Request", "build_reply"]

_ORDER = re.compile(r"ANSWER:[ \t]*([^\n<]*)")
_DRIP_S = 0.02
_BLOCK = b" " * 2**20


@dataclass(frozen=True, slots=True)
class Request:
    """One request that came in.

    Args:
        path: With `/v1`.
        headers: Names in lower case.
        body: Decoded JSON; empty without a body.
        raw: As received.
        at: `time.monotonic()`.
    """

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    raw: bytes
    at: float

    @property
    def model(self) -> str:
        """Model on the wire."""
        return str(self.body.get("model", ""))

    @property
    def prompt(self) -> str:
        """All messages, joined."""
        return "\n".join(str(message.get("content")) for message in self.body.get("messages", ()))

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The bare JSON Schema of the wanted reply."""
        wanted = self.body.get("response_format") or {}
        schema: Mapping[str, Any] | None = (wanted.get("json_schema") or {}).get("schema")
        return schema

    @property
    def is_judge(self) -> bool:
        """Whether a justification is asked for, as only judges are."""
        return "justification" in (self.schema or {}).get("properties", {})


@dataclass(frozen=True, slots=True)
class Answer:
    """One scripted answer.

    Args:
        text: Content of the reply; None for the default.
        status: HTTP status.
        body: Whole HTTP body instead of a reply; JSON or bytes.
        headers: More headers.
        retry_after: `Retry-After` header.
        latency_s: Before the first byte; None for the provider's own.
        finish_reason: Of the reply.
        refusal: Of the reply.
        usage: Replaces the usual one.
        hang: Never answer.
        held: Answer when the provider lets go.
        reset: Reset the connection.
        drip: Send one byte of the body every 20 ms, for ever.
        huge: Send that many bytes.
        truncated: Close in the middle of the body.
        events: Send these as a stream of events, one after the other.
        pace_s: Between two events.
        breaks_off: Close the connection behind the last event, without the end of the body.
    """

    text: str | None = None
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    retry_after: str | float | None = None
    latency_s: float | None = None
    finish_reason: str | None = "stop"
    refusal: str | None = None
    usage: Mapping[str, Any] | None = None
    hang: bool = False
    held: bool = False
    reset: bool = False
    drip: bool = False
    huge: int = 0
    truncated: bool = False
    events: Sequence[bytes] = ()
    pace_s: float = 0.0
    breaks_off: bool = False


@dataclass(slots=True)
class _Script:
    answer: Answer
    times: int | None
    when: Callable[[Request], bool]


def build_reply(schema: Mapping[str, Any], answer: str | None) -> Any:
    """Build a value that fits a schema: the ordered answer where it may stand, else the first choice."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        choices = schema["enum"]
        return next((value for value in choices if str(value) == answer), choices[0])
    for name in ("anyOf", "oneOf", "allOf"):
        if name in schema:
            return build_reply(schema[name][0], answer)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    match kind:
        case "array":
            return _build_list(schema.get("items", {}), answer)
        case "integer" | "number":
            return int(answer) if answer is not None and re.fullmatch(r"-?\d+", answer) else 1
        case "boolean":
            return answer != "false"
        case "null":
            return None
        case "string":
            return answer if answer is not None else "ok"
        case _:
            return {key: build_reply(value, answer) for key, value in schema.get("properties", {}).items()}


def _build_list(items: Mapping[str, Any], answer: str | None) -> list[Any]:
    if answer is None:
        return [build_reply(items, None)]
    ordered = [part.strip() for part in answer.split(",") if part.strip()]
    if "enum" in items:
        ordered = [part for part in ordered if part in map(str, items["enum"])]
    return [build_reply(items, part) for part in ordered] or [build_reply(items, None)]


class Provider:
    """The server; a context manager.

    By default it answers what the prompt's last `ANSWER: x` line orders, in JSON when a schema is sent, else
    the first choice of every enum. A judge's call gets `verdict`, else the first option.

    Attributes:
        requests: Every chat request, in order of arrival.
        reply: Called in the server's thread with a request; returns a text, an `Answer`, or None for the default.
        verdict: What judges answer.
        latency_s: Before every answer.
        cost_usd: `usage.cost`; None leaves it out.
        slots: What `/props` says of calls at a time; None where it says nothing.
        lost_gets: How many GETs, the next ones, lose their connection.
        max_in_flight: Most requests that were open at once.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.reply: Callable[[Request], str | Answer | None] | None = None
        self.verdict: str | None = None
        self.latency_s = 0.0
        self.cost_usd: float | None = 0.001
        self.slots: int | None = None
        self.lost_gets = 0
        self.max_in_flight = 0
        self.in_flight = 0
        self._scripts: deque[_Script] = deque()
        self._lock = threading.Lock()
        self._held: list[Callable[[], None]] = []
        self._holds, self._lets_go = False, False
        self._connections: set[_Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="provider", daemon=True)
        self._ready = threading.Event()
        self._port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @property
    def url(self) -> str:
        """Base URL with `/v1`."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def count(self) -> int:
        """Chat requests so far."""
        return len(self.requests)

    def answers(
        self, *, times: int | None = None, when: Callable[[Request], bool] | None = None, **fields: Any
    ) -> None:
        """Script an answer.

        Args:
            times: For how many requests; None for all that follow. Earlier scripts are used up first; a
                script for all that follow replaces one for the same.
            when: Only for requests it holds for.
            fields: Of `Answer`.
        """
        script = _Script(Answer(**fields), times, when or (lambda _request: True))
        with self._lock:
            if when is None and times is None:
                self._scripts = deque(old for old in self._scripts if old.times is not None)
            self._scripts.append(script)

    def reset(self) -> None:
        """Forget scripts, hook and requests."""
        with self._lock:
            self._scripts.clear()
            self.requests.clear()
            self.reply = self.verdict = None
            self.max_in_flight = self.in_flight

    def hold(self) -> None:
        """Keep back every answer to what comes from now on, until `let_go`."""
        self._holds, self._lets_go = True, False

    def let_go(self) -> None:
        """Give all answers that were kept back, and those to what follows."""
        with self._lock:
            self._holds, self._lets_go = False, True
            held, self._held = self._held, []
        for respond in held:
            self._loop.call_soon_threadsafe(respond)

    def keeps(self, answer: Answer, respond: Callable[[], None]) -> bool:
        """Return whether an answer is kept back."""
        with self._lock:
            kept = self._holds or (answer.held and not self._lets_go)
            if kept:
                self._held.append(respond)
            return kept

    def answer_for(self, request: Request) -> Answer:
        """Return what a request gets, and use up its script."""
        hooked = self.reply(request) if self.reply is not None else None
        if hooked is not None:
            return Answer(text=hooked) if isinstance(hooked, str) else hooked
        if not self._scripts:
            return Answer()
        with self._lock:
            for script in self._scripts:
                if not script.when(request):
                    continue
                if script.times is not None:
                    script.times -= 1
                    if script.times <= 0:
                        self._scripts.remove(script)
                return script.answer
        return Answer()

    def body_of(self, request: Request, answer: Answer) -> bytes:
        """Return the HTTP body of an answer."""
        if isinstance(answer.body, bytes):
            return answer.body
        if answer.body is not None:
            return json.dumps(answer.body).encode()
        if answer.status != 200:
            return json.dumps({"error": {"message": f"scripted {answer.status}"}}).encode()
        text = answer.text if answer.text is not None else self._default_text(request)
        message = {"role": "assistant", "content": text, "refusal": answer.refusal}
        return json.dumps(
            {
                "id": f"chatcmpl-{self.count}",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": request.model,
                "choices": [{"index": 0, "finish_reason": answer.finish_reason, "message": message}],
                "usage": answer.usage if answer.usage is not None else self._usage(request, text),
            }
        ).encode()

    def _default_text(self, request: Request) -> str:
        orders = _ORDER.findall(request.prompt)
        ordered = orders[-1].strip() if orders else None
        if request.is_judge:
            # The judge sees the case's prompt, and with it the order that was not given to it.
            ordered = self.verdict
        if request.schema is None:
            return ordered if ordered is not None else "ok"
        return json.dumps(build_reply(request.schema, ordered))

    def _usage(self, request: Request, text: str) -> Mapping[str, Any]:
        prompt, completion = max(1, len(request.prompt) // 4), max(1, len(text) // 4)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": 3},
            "completion_tokens_details": {"reasoning_tokens": min(2, completion)},
            **({} if self.cost_usd is None else {"cost": self.cost_usd}),
        }

    # --- in the server's thread ---

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=2048)
        )
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for connection in list(self._connections):
            connection.abort()
        self._loop.run_until_complete(asyncio.sleep(0.001))
        self._loop.close()

    def opened(self, connection: _Connection) -> None:
        """Keep a connection, to close it at the end."""
        self._connections.add(connection)

    def closed(self, connection: _Connection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)

    def begin(self, request: Request) -> None:
        """Count a request in."""
        self.requests.append(request)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)

    def end(self) -> None:
        """Count a request out."""
        self.in_flight -= 1


class _Connection(asyncio.Protocol):
    """One keep-alive connection; requests one after the other."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._buffer = b""
        self._busy = False
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._provider.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._busy:
            self._busy = False
            self._provider.end()
        self._provider.closed(self)

    def abort(self) -> None:
        """Drop the connection."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._busy:
            self._next()

    def _next(self) -> None:
        if self._buffer.startswith(b"\x16"):  # a client that speaks TLS
            self._send(400, b"", {})
            self._transport.close()
            return
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        raw = rest[:length]
        method, path, _ = first.split(" ", 2)
        if method == "GET":
            if self._provider.lost_gets:
                self._provider.lost_gets -= 1
                self._transport.abort()
            elif path == "/props" and self._provider.slots is not None:
                self._send(200, json.dumps({"total_slots": self._provider.slots}).encode(), {})
            else:
                self._send(200, b'{"object":"list","data":[{"id":"test/good","object":"model"}]}', {})
            return
        self._busy = True
        request = Request(path, headers, json.loads(raw or b"{}"), raw, time.monotonic())
        self._provider.begin(request)
        answer = self._provider.answer_for(request)
        latency_s = self._provider.latency_s if answer.latency_s is None else answer.latency_s
        if answer.hang or self._provider.keeps(answer, partial(self._respond, request, answer)):
            return
        if latency_s:
            self._timer = asyncio.get_running_loop().call_later(latency_s, self._respond, request, answer)
        else:
            self._respond(request, answer)

    def _respond(self, request: Request, answer: Answer) -> None:
        self._timer = None
        if not self._busy:  # it was let go when its client had gone
            return
        headers = dict(answer.headers)
        if answer.retry_after is not None:
            headers["Retry-After"] = str(answer.retry_after)
        if answer.reset:
            self._reset()
        elif answer.events:
            stream = {"Transfer-Encoding": "chunked", "Content-Type": "text/event-stream", **headers}
            self._send(200, b"", stream, length=None)
            self._stream(answer, 0)
        elif answer.drip:
            self._send(200, b"", {"Transfer-Encoding": "chunked", **headers}, length=None)
            self._drip()
        elif answer.huge:
            self._send(200, b"", {"Transfer-Encoding": "chunked", **headers}, length=None)
            self._pour(answer.huge)
        else:
            body = self._provider.body_of(request, answer)
            if answer.truncated:
                self._send(answer.status, body[: len(body) // 2], headers, length=len(body))
                self._transport.close()
                return
            self._send(answer.status, body, headers)
            self._done()

    def _send(self, status: int, body: bytes, headers: Mapping[str, str], length: int | None = -1) -> None:
        fields = {"Content-Type": "application/json", **headers}
        if length is not None:
            fields.setdefault("Content-Length", str(len(body) if length < 0 else length))
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._transport.write(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode("latin-1") + body)

    def _done(self) -> None:
        self._busy = False
        self._provider.end()
        if self._buffer:
            self._next()

    def _reset(self) -> None:
        connected = self._transport.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _stream(self, answer: Answer, number: int) -> None:
        if number == len(answer.events):
            if answer.breaks_off:
                self._transport.close()
                return
            self._transport.write(b"0\r\n\r\n")
            self._timer = None
            self._done()
            return
        event = answer.events[number]
        self._transport.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
        self._timer = asyncio.get_running_loop().call_later(answer.pace_s, self._stream, answer, number + 1)

    def _drip(self) -> None:
        self._transport.write(b"1\r\n \r\n")
        self._timer = asyncio.get_running_loop().call_later(_DRIP_S, self._drip)

    def _pour(self, size: int) -> None:
        while size > 0:
            block = _BLOCK[:size]
            self._transport.write(f"{len(block):x}\r\n".encode() + block + b"\r\n")
            size -= len(block)
        self._transport.write(b"0\r\n\r\n")
        self._done()
