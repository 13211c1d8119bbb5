"""Replies: what the answer to a chat completion, to a response and to embeddings says."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.gateway.error_answers import classify, error_fault
from pytest_helmbench.gateway.faults import Fault, FaultKind, excerpt
from pytest_helmbench.gateway.http_answers import is_stream, stream_events, streamed_document
from pytest_helmbench.gateway.prices import stated_usage
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.providers.provider import Lack
from pytest_helmbench.gateway.providers.servers import ANY_SERVER

CHAT = "chat/completions"
RESPONSES = "responses"
EMBEDDINGS = "embeddings"
PATHS = (CHAT, RESPONSES, EMBEDDINGS)
"""What is passed on."""

_ENDS = ("response.completed", "response.incomplete", "response.failed")
_REASONS: Mapping[str, str] = {"max_output_tokens": "length", "content_filter": "content_filter"}


@dataclass(frozen=True, slots=True)
class OtherReply:
    """What such an answer says, in the words of a chat completion.

    Args:
        text: All that was written; empty for embeddings.
        refusal: Of the model.
        finish_reason: `stop`, `length`, `tool_calls`, `content_filter`, `error`.
        usage: With the names that chat completions have.
        message: All that was put out.
    """

    text: str
    refusal: str | None
    finish_reason: str
    usage: JsonObject
    message: JsonObject


def other_reply(path: str, document: JsonObject) -> OtherReply | None:
    """Return what an answer says; None when it is none.

    Args:
        path: `responses` or `embeddings`.
        document: As decoded; a stream as `streamed_response` returns it.
    """
    if path == EMBEDDINGS:
        stated = document.get("usage")
        usage: dict[str, JsonValue] = {"completion_tokens": 0, **(stated if isinstance(stated, dict) else {})}
        return OtherReply("", None, "stop", usage, {}) if isinstance(document.get("data"), list) else None
    output = document.get("output")
    if not isinstance(output, list):
        return None
    parts = [part for item in output for part in _parts(item)]
    return OtherReply(
        text="".join(_text(part, "output_text", "text") for part in parts),
        refusal="".join(_text(part, "refusal", "refusal") for part in parts) or None,
        finish_reason=_finish_reason(document, output),
        usage=_usage(document.get("usage")),
        message={"output": output},
    )


def streamed_response(body: bytes) -> dict[str, JsonValue] | None:
    """Return the response that a stream ends with; None when it breaks off before."""
    if not is_stream(body):
        return None
    for data in stream_events(body):
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            continue
        if not isinstance(event, dict):
            continue
        if event.get("type") == "error":
            return {"error": event.get("error") or event}
        response = event.get("response")
        if event.get("type") in _ENDS and isinstance(response, dict):
            return response
    return None


def _parts(item: JsonValue) -> Iterator[JsonObject]:
    content = item.get("content") if isinstance(item, dict) else None
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            yield part


def _text(part: JsonObject, kind: str, name: str) -> str:
    text = part.get(name)
    return text if part.get("type") == kind and isinstance(text, str) else ""


def _finish_reason(document: JsonObject, output: list[JsonValue]) -> str:
    if document.get("status") == "failed":
        return "error"
    details = document.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    if isinstance(reason, str):
        return _REASONS.get(reason, reason)
    called = any(isinstance(item, dict) and str(item.get("type")).endswith("_call") for item in output)
    return "tool_calls" if called else "stop"


def _usage(stated: JsonValue) -> JsonObject:
    if not isinstance(stated, dict):
        return {}
    names = {
        "input_tokens": "prompt_tokens",
        "output_tokens": "completion_tokens",
        "input_tokens_details": "prompt_tokens_details",
        "output_tokens_details": "completion_tokens_details",
    }
    return {names.get(name, name): value for name, value in stated.items()}


_NO_HEADERS: Mapping[str, str] = {}
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


def encode(body: JsonObject) -> bytes:
    """Return compact JSON in UTF-8; a body with lone surrogates in ASCII with escapes."""
    try:
        return _ENCODER.encode(body).encode()
    except UnicodeEncodeError:
        return _ASCII_ENCODER.encode(body).encode()


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
