"""Chat completions as bytes: what is sent, and what an answer says. It alone knows the wire format."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from pytest_helmbench.core.case import Message
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import Sampling
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.gateway.error_answers import classify, error_fault
from pytest_helmbench.gateway.faults import Fault, FaultKind, excerpt
from pytest_helmbench.gateway.other_replies import (
    CHAT,
    EMBEDDINGS,
    RESPONSES,
    OtherReply,
    other_reply,
    streamed_response,
)
from pytest_helmbench.gateway.providers.any_server import ANY_SERVER
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.providers.provider import Lack
from pytest_helmbench.gateway.stated_usage import stated_usage
from pytest_helmbench.gateway.streamed_replies import is_stream, streamed_document

__all__ = [
    "ParsedReply",
    "encode",
    "first_choice",
    "parse_reply",
    "passed_body",
    "reply_document",
    "request_body",
    "request_hash",
    "whole_body",
]

_NO_HEADERS: Mapping[str, str] = {}
_OUR_BLOCKS = ("provider", "usage")
_STREAM = ("stream", "stream_options")
_TOKEN_BOUNDS = ("max_tokens", "max_completion_tokens")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_ASCII_ENCODER = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))

_ANSWERED_WITH: Mapping[str, str] = {RESPONSES: "output", EMBEDDINGS: "data"}


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A reply as the provider's JSON decodes.

    Args:
        text: Content of the message (lone surrogates included); empty for none.
        refusal: The provider's own `refusal` text, when it sent one.
        finish_reason: `stop`, `length`, …; None for servers that do not say.
        usage: Tokens, and the cost where the provider names it; no price list is asked here.
        provider_model: The model id that the provider says has answered.
        message: As decoded.
    """

    text: str
    refusal: str | None
    finish_reason: str | None
    usage: Usage
    provider_model: str | None
    message: JsonObject = field(default_factory=dict, repr=False, compare=False)

    @property
    def provider_cost(self) -> float | None:
        """USD as the provider says; None when it does not."""
        return self.usage.cost_usd


def request_body(
    endpoint: Endpoint,
    sampling: Sampling,
    messages: Sequence[Message],
    response_format: JsonObject | None,
    *,
    repetition: int,
) -> dict[str, JsonValue]:
    """Return the JSON object to send; never a stream.

    Args:
        endpoint: Who is asked.
        sampling: Only what is set goes out; a seed becomes seed + repetition − 1. `extra_body` goes over
            everything, key by key; in `provider` and `usage` it goes over ours one level deeper.
        messages: In order.
        response_format: Wire form of the wanted reply; None for plain text.
        repetition: From 1.
    """
    body: dict[str, JsonValue] = {
        "model": endpoint.wire_model,
        "messages": [{"role": message.role, "content": message.content} for message in messages],
    }
    if response_format is not None:
        body["response_format"] = dict(response_format)
    options = _options(endpoint, sampling, repetition)
    body.update((name, value) for name, value in options.items() if value is not None)
    endpoint.server.complete_request(body, with_schema=response_format is not None)
    _extend(body, sampling.extra_body or {})
    return body


def passed_body(
    endpoint: Endpoint, sampling: Sampling, stated: JsonObject, *, repetition: int, path: str = CHAT
) -> dict[str, JsonValue]:
    """Return the JSON object to send for a request that is not ours.

    One that asks for a stream gets one, with the token counts at its end.

    Args:
        endpoint: Who is asked, whatever model is stated.
        sampling: What is set wins over what is stated; what is unset passes as stated.
        stated: Body of the request as its client wrote it.
        repetition: From 1.
        path: `chat/completions`, `responses` or `embeddings`.
    """
    body = dict(stated)
    body["model"] = endpoint.wire_model
    if path == EMBEDDINGS:
        return body
    if path == RESPONSES:
        _set_response_options(body, sampling)
    else:
        _set_chat_options(body, endpoint, sampling, repetition)
    _extend(body, sampling.extra_body or {})
    if stated.get("stream") is True:
        body["stream"] = True
        if path == CHAT:
            body["stream_options"] = {**_block(stated, "stream_options"), "include_usage": True}
    return body


def _set_response_options(body: dict[str, JsonValue], sampling: Sampling) -> None:
    """Set what the user has set, as far as responses know it; a seed they do not."""
    options = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_output_tokens": sampling.max_tokens,
    }
    body.update((name, value) for name, value in options.items() if value is not None)
    if sampling.reasoning_effort is not None:
        body["reasoning"] = {**_block(body, "reasoning"), "effort": sampling.reasoning_effort}


def _set_chat_options(
    body: dict[str, JsonValue], endpoint: Endpoint, sampling: Sampling, repetition: int
) -> None:
    if sampling.max_tokens is not None:
        for name in _TOKEN_BOUNDS:
            body.pop(name, None)
    elif "max_tokens" in body and endpoint.max_tokens_key != "max_tokens":
        bound = body.pop("max_tokens")
        body.setdefault(endpoint.max_tokens_key, bound)
    if sampling.reasoning_effort is not None:
        # The router's own block says the same, and would contradict.
        body.pop("reasoning", None)
    options = _options(endpoint, sampling, repetition)
    body.update((name, value) for name, value in options.items() if value is not None)
    with_schema = _block(body, "response_format").get("type", "text") != "text"
    endpoint.server.complete_request(body, with_schema=with_schema)


def _block(body: JsonObject, name: str) -> JsonObject:
    value = body.get(name)
    return value if isinstance(value, Mapping) else {}


def _extend(body: dict[str, JsonValue], extra: JsonObject) -> None:
    """Let `extra_body` go over everything but what would make a stream of the reply."""
    for name, value in extra.items():
        ours = body.get(name) if name in _OUR_BLOCKS else None
        body[name] = {**ours, **value} if isinstance(ours, dict) and isinstance(value, Mapping) else value
    for name in _STREAM:
        body.pop(name, None)


def _options(endpoint: Endpoint, sampling: Sampling, repetition: int) -> dict[str, JsonValue]:
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "repetition_penalty": sampling.repetition_penalty,
        "seed": None if sampling.seed is None else sampling.seed + repetition - 1,
        endpoint.max_tokens_key: sampling.max_tokens,
        "reasoning_effort": sampling.reasoning_effort,
    }


def encode(body: JsonObject) -> bytes:
    """Return compact JSON in UTF-8; a body with lone surrogates in ASCII with escapes."""
    try:
        return _ENCODER.encode(body).encode()
    except UnicodeEncodeError:
        return _ASCII_ENCODER.encode(body).encode()


def request_hash(encoded: bytes, number: int = 1, path: str = CHAT) -> str:
    """Return the SHA-256 (hex) of a body: it covers all that can change the answer, no key, no base URL.

    Args:
        encoded: As sent.
        number: Which of several identical requests of one item it is, from 1; the first is like any other.
        path: Where it goes.
    """
    digest = hashlib.sha256(encoded)
    if path != CHAT:
        digest.update(b"\n/" + path.encode())
    if number > 1:
        digest.update(b"\n%d" % number)  # no body ends like this
    return digest.hexdigest()


def parse_reply(
    status: int,
    body: bytes,
    *,
    headers: Mapping[str, str] = _NO_HEADERS,
    endpoint: Endpoint | None = None,
    sent_schema: bool = False,
    path: str = CHAT,
    clock: Callable[[], float] = time.time,
) -> ParsedReply | Fault:
    """Return the reply in an HTTP answer, or the fault that stands in its place.

    Args:
        status: HTTP status; 200 for a stored reply.
        body: As received.
        headers: Names in lower case.
        endpoint: Who was asked; None for a stored reply.
        sent_schema: The request had a response schema.
        path: `chat/completions`, `responses` or `embeddings`.
        clock: Seconds since 1970, for dates in headers.
    """
    if not 200 <= status < 300:
        return classify(status, headers, body, endpoint, sent_schema=sent_schema, clock=clock)
    document = _decoded(body, path)
    if not isinstance(document, dict):
        what = "a stream that breaks off" if is_stream(body) else "something that is no JSON object"
        start = excerpt(body[:1000].decode("utf-8", "replace"), endpoint)
        return _malformed(status, "not_json", f"{what}: {start!r}")
    other = other_reply(path, document) if path != CHAT else None
    stated = document.get("usage") if other is None else dict(other.usage)
    server = endpoint.server if endpoint is not None else ANY_SERVER
    usage = stated_usage(stated, server)
    choice = first_choice(document) if other is None else _as_choice(other)
    # Routers put the error of a server that broke off into the choice.
    error = document.get("error") or choice.get("error")
    if error:
        fault = error_fault(status, headers, error, endpoint, sent_schema=sent_schema, clock=clock)
        return replace(fault, usage=usage)
    if not choice or (path != CHAT and other is None):
        elsewhere = _ANSWERED_WITH.get(path)
        lack = Lack("no_choices", f"without {elsewhere}") if elsewhere else server.lack(document)
        return replace(_without_reply(status, lack, endpoint), usage=usage)
    return _reply(status, document, choice, usage)


def _as_choice(other: OtherReply) -> JsonObject:
    """Return what is no chat completion as if it were one."""
    message = {"role": "assistant", "content": other.text, "refusal": other.refusal, **other.message}
    return {"message": message, "finish_reason": other.finish_reason}


def _decoded(body: bytes, path: str = CHAT) -> JsonValue:
    """Return the decoded JSON, or None; a stream is put together, a broken byte spoils only its own character."""
    document: JsonValue
    if is_stream(body):
        return streamed_document(body) if path == CHAT else streamed_response(body)
    try:
        document = json.loads(body)
    except UnicodeDecodeError:
        text = body.decode("utf-8", "replace")
    except (ValueError, RecursionError):
        return None
    else:
        return document
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document


def reply_document(body: bytes) -> JsonObject:
    """Return the JSON object that a reply is; empty for what is none."""
    document = _decoded(body)
    return document if isinstance(document, dict) else {}


def whole_body(body: bytes, path: str = CHAT) -> bytes:
    """Return a reply as one JSON object, where it came as a stream; anything else as it is."""
    document = _decoded(body, path) if is_stream(body) else None
    if not isinstance(document, dict):
        return body
    return encode(document)


def first_choice(document: JsonObject) -> JsonObject:
    """Return the first choice of a chat completion; empty where there is none."""
    choices = document.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _reply(status: int, document: JsonObject, choice: JsonObject, usage: Usage) -> ParsedReply | Fault:
    message = choice.get("message")
    stated = choice.get("finish_reason") or _reason_of_tools(message)
    finish_reason = excerpt(stated) if isinstance(stated, str) and stated else None
    if finish_reason == "error":
        fault = Fault(
            FaultKind.TRANSIENT,
            status,
            "provider_error",
            "the provider broke off its reply (finish reason error)",
        )
        return replace(fault, usage=usage, finish_reason=finish_reason)
    if finish_reason == "content_filter":
        fault = Fault(
            FaultKind.BLOCKED,
            status,
            "moderation",
            "the provider's moderation cut the reply (finish reason content_filter)",
        )
        return replace(fault, usage=usage, finish_reason=finish_reason)
    content = _content(message) if isinstance(message, dict) else None
    if content is None or not isinstance(message, dict):
        fault = _malformed(status, "no_message", "without a message that can be read")
        return replace(fault, usage=usage, finish_reason=finish_reason)
    if finish_reason is None and not any(content):
        # Nothing was said, and not even that it was all.
        return replace(_malformed(status, "no_finish_reason", "without text and finish reason"), usage=usage)
    model = document.get("model")
    return ParsedReply(
        text=content[0],
        refusal=content[1],
        finish_reason=finish_reason,
        usage=usage,
        provider_model=excerpt(model) if isinstance(model, str) and model else None,
        message=message,
    )


def _reason_of_tools(message: JsonValue) -> str | None:
    """Return why a reply that calls tools has ended, for servers that do not say."""
    return "tool_calls" if isinstance(message, dict) and _has_tool_calls(message) else None


def _has_tool_calls(message: JsonObject) -> bool:
    calls = message.get("tool_calls")
    return isinstance(calls, list) and bool(calls)


def _content(message: JsonObject) -> tuple[str, str | None] | None:
    """Return text and refusal of a message; None when its content is of no known form."""
    stated = message.get("refusal")
    refusal = stated if isinstance(stated, str) and stated else None
    content = message.get("content")
    if content is None:
        return "", refusal
    if isinstance(content, str):
        return content, refusal
    if not isinstance(content, list):
        return ("", refusal) if _has_tool_calls(message) else None
    texts: list[str] = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(text := part.get("text"), str):
            texts.append(text)
        elif isinstance(part, dict) and isinstance(text := part.get("refusal"), str):
            refusal = refusal or text
    return "".join(texts), refusal


def _without_reply(status: int, lack: Lack, endpoint: Endpoint | None) -> Fault:
    fault = replace(_malformed(status, lack.reason, lack.what), hint=excerpt(lack.hint, endpoint))
    return replace(fault, kind=FaultKind.REJECTED) if lack.is_final else fault


def _malformed(status: int, reason: str, what: str) -> Fault:
    joint = "" if what.startswith("without") else "with "
    return Fault(FaultKind.MALFORMED, status, reason, f"the provider answered {status} {joint}{what}")
