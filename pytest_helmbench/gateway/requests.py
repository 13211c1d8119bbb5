"""Requests: the bodies that are sent, ours and those of foreign code, with the bounds and counts of their tokens."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from pytest_helmbench.core.case import Message
from pytest_helmbench.core.json_types import JsonObject, JsonValue, json_object
from pytest_helmbench.core.model import Sampling
from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.gateway.faults import Fault, FaultKind
from pytest_helmbench.gateway.http_answers import LiveStream, is_stream
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.replies import client_body, encode

_MERGED_OBJECTS = ("provider", "usage")
_STREAM_FIELDS = ("stream", "stream_options")
TOKEN_BOUNDS = ("max_tokens", "max_completion_tokens")
"""Names of the bound of a completion."""
_CHOICE_COUNTS = ("n", "best_of")
"""How many completions are written, unread ones among them."""
_ASCII_BYTES_PER_TOKEN = 4
_OTHER_BYTES_PER_TOKEN = 2
_DATA_URL = re.compile(rb'"data:[^"\\]*"')  # a picture as a rule: fewer tokens than bytes
_DATA_URL_BYTES_PER_TOKEN = 2
_UNSUPPORTED = re.compile(
    r"unsupported|unrecogni[sz]ed|unknown|unexpected|not (?:supported|permitted|allowed)|instead",
    re.IGNORECASE,
)
_LONG_PROMPT = 8_000


def request_body(
    endpoint: Endpoint,
    sampling: Sampling,
    messages: Sequence[Message],
    response_format: JsonObject | None,
    tools: Sequence[JsonObject] = (),
    *,
    repetition: int,
) -> dict[str, JsonValue]:
    """Return the JSON object to send; never a stream.

    Args:
        sampling: Only what is set goes out; a seed becomes seed + repetition − 1. `extra_body` goes over
            everything, key by key; in `provider` and `usage` it goes over ours one level deeper.
        response_format: Wire form of the wanted reply; None for plain text.
        repetition: From 1.
    """
    body: dict[str, JsonValue] = {
        "model": endpoint.wire_model,
        "messages": [message.wire() for message in messages],
    }
    if tools:
        body["tools"] = [dict(tool) for tool in tools]
    if response_format is not None:
        body["response_format"] = dict(response_format)
    body.update(_options(endpoint, sampling, repetition))
    endpoint.server.complete_request(body, with_schema=response_format is not None)
    _merge_extra_body(body, sampling.extra_body or {})
    return body


def forwarded_body(
    endpoint: Endpoint, sampling: Sampling, stated: JsonObject, *, repetition: int
) -> dict[str, JsonValue]:
    """Return the JSON object to send for a request that is not ours, as its client wrote it, for any stated model.

    One that asks for a stream gets one, with the token counts at its end. Sampling that is set wins over what is
    stated; what is unset passes as stated.
    """
    body = dict(stated)
    body["model"] = endpoint.wire_model
    if sampling.max_tokens is not None:
        for name in TOKEN_BOUNDS:
            body.pop(name, None)
    elif "max_tokens" in body and endpoint.max_tokens_key != "max_tokens":
        bound = body.pop("max_tokens")
        body.setdefault(endpoint.max_tokens_key, bound)
    if sampling.reasoning_effort is not None:
        # The router's own block says the same, and would contradict.
        body.pop("reasoning", None)
    body.update(_options(endpoint, sampling, repetition))
    with_schema = json_object(body.get("response_format")).get("type", "text") != "text"
    endpoint.server.complete_request(body, with_schema=with_schema)
    _merge_extra_body(body, sampling.extra_body or {})
    if stated.get("stream") is True:
        body["stream"] = True
        body["stream_options"] = {**json_object(stated.get("stream_options")), "include_usage": True}
    return body


def _merge_extra_body(body: dict[str, JsonValue], extra: JsonObject) -> None:
    """Let `extra_body` go over everything but what would make a stream of the reply."""
    for name, value in extra.items():
        ours = body.get(name) if name in _MERGED_OBJECTS else None
        body[name] = {**ours, **value} if isinstance(ours, dict) and isinstance(value, Mapping) else value
    for name in _STREAM_FIELDS:
        body.pop(name, None)


def _options(endpoint: Endpoint, sampling: Sampling, repetition: int) -> dict[str, JsonValue]:
    options: dict[str, JsonValue] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "repetition_penalty": sampling.repetition_penalty,
        "seed": None if sampling.seed is None else sampling.seed + repetition - 1,
        endpoint.max_tokens_key: sampling.max_tokens,
        "reasoning_effort": sampling.reasoning_effort,
    }
    return {name: value for name, value in options.items() if value is not None}


def request_hash(encoded: bytes, number: int = 1) -> str:
    """Return the SHA-256 (hex) of a body: it covers all that can change the answer, no key, no base URL.

    Args:
        number: Which of several identical requests of one item it is, from 1; the first is like any other.
    """
    digest = hashlib.sha256(encoded)
    if number > 1:
        digest.update(b"\n%d" % number)  # no body ends like this
    return digest.hexdigest()


def completion_bound(body: JsonObject) -> int | None:
    """Return how many tokens the completions of a request may have; None when it states no bound that counts.

    The largest of several bounds counts, since it is unknown which one the server takes.
    """
    bound = max(_positive_integers(body, TOKEN_BOUNDS), default=None)
    choices = max(_positive_integers(body, _CHOICE_COUNTS), default=1)
    return bound * choices if bound else None


def _positive_integers(body: JsonObject, names: Iterable[str]) -> Iterator[int]:
    """Yield whole numbers above 0 as servers take them: some read `2.0` and `"2"`, too."""
    for value in (body[name] for name in names if name in body):
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            continue
        with suppress(ValueError, OverflowError):
            number = math.ceil(float(value))
            if number > 0:
                yield number


def bound_completion(body: dict[str, JsonValue], endpoint: Endpoint, most_tokens: int | None) -> bool:
    """Bound the completion of a request that states no bound; return whether that was done."""
    if most_tokens is None:
        return False
    stated = max(_positive_integers(body, TOKEN_BOUNDS), default=None)
    for name in (*TOKEN_BOUNDS, "max_output_tokens"):
        body.pop(name, None)
    body[endpoint.max_tokens_key] = stated or most_tokens  # a bound that the server does not read is none
    return stated is None


def accepted_bound_name(fault: Fault, body: JsonObject) -> str | None:
    """Return by which name a server wants the bound of a completion that has refused the one it was sent."""
    if fault.kind is not FaultKind.REJECTED:
        return None
    sent = next((name for name in TOKEN_BOUNDS if name in body), "")
    blamed = sent and (fault.parameter == sent or re.search(rf"\b{sent}\b", fault.message))
    if not blamed or not _UNSUPPORTED.search(f"{fault.code} {fault.message}"):
        return None
    return next(name for name in TOKEN_BOUNDS if name != sent)


def with_bound(body: JsonObject, name: str) -> bytes:
    """Return a request whose bound of the completion goes by a name."""
    return encode({name if key in TOKEN_BOUNDS else key: value for key, value in body.items()})


def prompt_characters(body: JsonObject, encoded: bytes) -> int | None:
    """Return how many characters the texts of a prompt have; None for a short one, of which its tokens say nothing."""
    messages = body.get("messages") if len(encoded) >= _LONG_PROMPT else None
    characters = sum(map(_text_length, messages)) if isinstance(messages, list) else 0
    return characters if characters >= _LONG_PROMPT else None


def _text_length(message: JsonValue) -> int:
    content = message.get("content") if isinstance(message, Mapping) else None
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return sum(len(text) for text in texts if isinstance(text, str))


def estimated_tokens(text: bytes) -> int:
    """Return about how many tokens a text has."""
    others = 0 if text.isascii() else sum(byte > 127 for byte in text)
    return math.ceil((len(text) - others) / _ASCII_BYTES_PER_TOKEN + others / _OTHER_BYTES_PER_TOKEN)


def most_tokens(body: bytes) -> int:
    """Return how many tokens a request has at most: no tokenizer makes more than one of a byte."""
    data = sum(len(found[0]) for found in _DATA_URL.finditer(body))
    return len(body) - data + data // _DATA_URL_BYTES_PER_TOKEN


def with_estimates(usage: Usage, request: bytes, message: JsonValue) -> Usage:
    """Return a usage with tokens of the prompt and of the completion, counted here where the provider did not.

    All that the message of the reply holds was written: text, reasoning, calls of tools.
    """
    if usage.cost_usd is not None:
        return usage
    # No prompt has 0 tokens, and no text that was written: who says so has not counted.
    written = None if usage.completion_tokens else estimated_tokens(_all_text(message))
    prompt = usage.prompt_tokens or estimated_tokens(request)
    completion = usage.completion_tokens or written
    if (prompt, completion) == (usage.prompt_tokens, usage.completion_tokens):
        return usage
    return replace(usage, prompt_tokens=prompt, completion_tokens=completion, estimated=True)


def _all_text(value: JsonValue) -> bytes:
    """Return all texts in a value, but for names of fields and roles."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    if isinstance(value, Mapping):
        return b"".join(_all_text(part) for name, part in value.items() if name not in ("role", "id", "type"))
    return b"".join(map(_all_text, value)) if isinstance(value, list) else b""


class ForwardedRequest:
    """One request of code that is not ours, as its client wrote it, and what came back for it."""

    __slots__ = ("_encoded", "_sent", "answer", "live", "number", "recalled", "stated", "stream")

    def __init__(self, stated: JsonObject) -> None:
        self.stated = stated
        self.number = 1
        """Which of several identical requests of its item it is, from 1."""
        self.answer: bytes | None = None
        """HTTP body of the reply, as received."""
        self.stream: bytes | None = None
        """The same, as a stream; None where it came as a whole."""
        self.live = LiveStream() if stated.get("stream") is True else None
        """The stream that was asked for, as far as it has come; None where none was."""
        self.recalled = False
        """The reply was taken from the record."""
        self._sent: tuple[Endpoint, int | None, JsonObject, bool] | None = None
        self._encoded = b""

    def sent(
        self, endpoint: Endpoint, sampling: Sampling, repetition: int, most_tokens: int | None = None
    ) -> tuple[JsonObject, bytes, bool]:
        """Return what goes out to an endpoint, decoded and encoded, and whether it was bounded; made once.

        Args:
            most_tokens: Bound of the completion where none is stated; None for none.
        """
        if self._sent is None or self._sent[0] is not endpoint or self._sent[1] != most_tokens:
            body = forwarded_body(endpoint, sampling, self.stated, repetition=repetition)
            bounded = bound_completion(body, endpoint, most_tokens)
            self._encoded = encode(body)
            self._sent = (endpoint, most_tokens, body, bounded)
        return self._sent[2], self._encoded, self._sent[3]

    @property
    def begun(self) -> bool:
        """Whether the client has had a part of the reply: it cannot be asked for again."""
        return self.live is not None and self.live.begun

    def receive(self, answer: bytes, reply: Reply) -> None:
        """Take the HTTP body of the reply, which may be one that was on record, and what it says."""
        self.answer = client_body(answer, reply)
        self.stream = answer if is_stream(answer) else None
        self.recalled = reply.recorded
