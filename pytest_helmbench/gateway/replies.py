"""Replies: what the answer to a chat completion says."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import replace

from pytest_helmbench.core.json_types import JsonObject, JsonValue, decoded_json, json_object
from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.core.reply_text import Finish, finish_of, is_thought, split_reply, stated_thoughts
from pytest_helmbench.gateway.error_answers import classify
from pytest_helmbench.gateway.faults import Fault, FaultKind, excerpt
from pytest_helmbench.gateway.http_answers import RawAnswer, is_stream, streamed_document
from pytest_helmbench.gateway.prices import stated_usage
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.providers.servers import ANY_SERVER

_NO_HEADERS: Mapping[str, str] = {}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_ASCII_ENCODER = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))
_OWN_OUTPUT = "failed_generation"
_NO_JSON = "json_validate_failed"
_FAULTED: Mapping[Finish, tuple[FaultKind, str, str]] = {
    Finish.FAULTED: (FaultKind.TRANSIENT, "provider_error", "the provider broke off its reply"),
    Finish.FILTERED: (FaultKind.BLOCKED, "moderation", "the provider's moderation cut the reply"),
}
"""Ends after which there is no reply: kind, reason and sentence of the fault."""
_JSON_BEGUN = re.compile(r"$|\{\s*(?:\"|$)|\[\s*(?:[\[{\"]|$)")
_FEWEST_BOUND_TOKENS = 16
"""A reply of exactly so many tokens as it may have was cut, whatever the word for its end, above these."""


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
    most_tokens: int | None = None,
) -> Reply | Fault:
    """Return the reply in an HTTP answer, or the fault that stands in its place.

    Key, time, and a cost that no provider names are missing: the caller knows them.

    Args:
        status: HTTP status; 200 for a stored reply.
        headers: Names in lower case.
        endpoint: Who was asked; None for a stored reply.
        sent_schema: The request had a response schema.
        most_tokens: Bound on its completion that the request had; None for none.
    """
    if not 200 <= status < 300:
        return classify(status, headers, body, endpoint, sent_schema=sent_schema)
    server = endpoint.server if endpoint is not None else ANY_SERVER
    document = _decoded(body)
    is_whole = isinstance(document, dict) and not is_stream(body)
    form = "" if is_whole or not server.unread_hint() else _other_form(body)
    if form or not isinstance(document, dict):
        what = "a stream that breaks off" if is_stream(body) else "something that is not a JSON object"
        start = excerpt(body[:1000].decode("utf-8", "replace"), endpoint)
        fault = _malformed(status, "not_json", f"{form or what}: {start!r}")
        return replace(fault, hint=server.unread_hint()) if form else fault
    usage = stated_usage(document, headers, server)
    choice = first_choice(document)
    # Routers put the error of a server that broke off into the choice.
    error = document.get("error") or choice.get("error")
    if error:
        fault = classify(status, headers, body, endpoint, sent_schema=sent_schema, error=error)
        return replace(fault, usage=usage)
    if not choice:
        lack = server.lack(document)
        fault = replace(
            _malformed(status, lack.reason, lack.what), hint=excerpt(lack.hint, endpoint), usage=usage
        )
        return replace(fault, kind=FaultKind.REJECTED) if lack.is_final else fault
    return _reply(status, document, choice, usage, None if server.embedded else most_tokens)


def _decoded(body: bytes) -> JsonValue:
    """Return the decoded JSON, or None; a stream is put together, a broken byte spoils only its own character."""
    if is_stream(body):
        return streamed_document(body)
    return decoded_json(body.removeprefix(BOM_UTF8).decode("utf-8", "replace"))


def _other_form(body: bytes) -> str:
    """Return the form of an answer that was never meant to be one JSON value; empty for JSON, whole or broken off."""
    if is_stream(body):
        return "" if b'"choices"' in body else "a stream of events that are not those of a chat completion"
    text = body.removeprefix(BOM_UTF8).decode("utf-8", "replace").strip()
    if decoded_json(text) is not None:
        return ""
    lines = text.split("\n", 1)
    if len(lines) > 1 and isinstance(decoded_json(lines[0]), dict | list):
        return "several JSON values, one a line"
    return "" if _JSON_BEGUN.match(text) else "text that is not JSON"


def reply_document(body: bytes) -> JsonObject:
    """Return the JSON object that a reply is; empty for what is none."""
    return json_object(_decoded(body))


def whole_body(body: bytes) -> bytes:
    """Return a reply as one JSON object, where it came as a stream; anything else as it is."""
    document = streamed_document(body) if is_stream(body) else None
    return body if document is None else encode(document)


def first_choice(document: JsonObject) -> JsonObject:
    """Return the first choice of a chat completion; empty where there is none."""
    choices = document.get("choices")
    return json_object(choices[0]) if isinstance(choices, list) and choices else {}


def failed_generation(answer: RawAnswer) -> RawAnswer:
    """Return a refusal of what the model itself has written as the reply that it is; any other answer as it is.

    Servers that check a schema themselves answer so (Groq, and routers in front of it); elsewhere the same text is a
    reply that breaks its schema.
    """
    if _OWN_OUTPUT.encode() not in answer.body and _NO_JSON.encode() not in answer.body:
        return answer
    document = _decoded(answer.body)
    found = _written_output(document) if isinstance(document, dict) and "choices" not in document else None
    if found is None:
        return answer
    text, message = found
    cut = "max completion tokens" in message or "max_tokens" in message
    choice: JsonObject = {
        "message": {"role": "assistant", "content": text},
        "finish_reason": "length" if cut else "stop",
    }
    return replace(answer, status=200, body=encode({"choices": [dict(choice)], "answer": document}))


def _written_output(document: JsonObject) -> tuple[str, str] | None:
    """Return what a model has written, as an error quotes it, and the error's message; None where none does."""
    error = document.get("error")
    if not isinstance(error, dict):
        return None
    said, text = str(error.get("message")), error.get(_OWN_OUTPUT)
    if isinstance(text, str):
        return text, said
    for behind in (json_object(error.get("metadata")).get("raw"), said):
        quoted = behind[behind.find("{") : behind.rfind("}") + 1] if isinstance(behind, str) else ""
        if (found := _written_output(reply_document(quoted.encode()))) is not None:
            return found
    return ("", said) if error.get("code") == _NO_JSON else None


def _reply(
    status: int, document: JsonObject, choice: JsonObject, usage: Usage, most_tokens: int | None
) -> Reply | Fault:
    message = choice.get("message")
    message = message if isinstance(message, dict) else None
    has_calls = message is not None and bool(message.get("tool_calls") or message.get("function_call"))
    # Some servers do not say why a reply that calls tools has ended.
    stated = choice.get("finish_reason") or ("tool_calls" if has_calls else None)
    word = excerpt(str(stated)) if stated else None
    finish = finish_of(word)
    if finish in _FAULTED:
        kind, reason, sentence = _FAULTED[finish]
        return Fault(
            kind, status, reason, f"{sentence} (finish reason {word})", usage=usage, finish_reason=word
        )
    content = _content(message, has_calls=has_calls) if message is not None else None
    if content is None or message is None:
        fault = _malformed(status, "no_message", "without a message that can be read")
        return replace(fault, usage=usage, finish_reason=word)
    raw, refusal = content
    thoughts, text, inner = split_reply(raw)
    if word is None and not (raw or refusal):
        # Nothing was said, and not even that it was all.
        return replace(_malformed(status, "no_finish_reason", "without text and finish reason"), usage=usage)
    if finish is Finish.UNKNOWN and not (text.strip() or refusal or has_calls):
        what = f"without text, and with the finish reason {word}, which is not known"
        return replace(_malformed(status, "unknown_finish", what), usage=usage, finish_reason=word)
    model = document.get("model")
    at_bound = most_tokens is not None and _FEWEST_BOUND_TOKENS < most_tokens == usage.completion_tokens
    return Reply(
        text=text,
        refusal=refusal or text or "refused" if finish is Finish.REFUSED else refusal,
        finish_reason=word,
        usage=usage,
        latency_ms=0.0,
        provider_model=excerpt(model) if isinstance(model, str) and model else None,
        key="",
        thoughts="\n\n".join(dict.fromkeys(filter(None, (stated_thoughts(message), thoughts)))),
        inner_thoughts=inner,
        raw="" if raw == text else raw,
        is_cut=finish is Finish.CUT or (at_bound and not has_calls),
        message=message,
    )


def _content(message: JsonObject, *, has_calls: bool) -> tuple[str, str | None] | None:
    """Return text and refusal of a message; None when its content is of no known form."""
    stated = message.get("refusal")
    refusal = stated if isinstance(stated, str) and stated else None
    content = message.get("content")
    if isinstance(content, str):
        return content, refusal
    if content is None or (has_calls and not isinstance(content, list)):
        return "", refusal
    if not isinstance(content, list):
        return None
    texts: list[str] = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and not is_thought(part):
            said = part.get("text")
            refused = part.get("refusal")
            if isinstance(said, str):
                texts.append(said)
            elif isinstance(refused, str):
                refusal = refusal or refused
    return "".join(texts), refusal


def client_body(body: bytes, reply: Reply) -> bytes:
    """Return a reply as one JSON object, for code that is not ours: thoughts in its content stand beside it instead."""
    content = reply.message.get("content")
    holds = any(map(is_thought, content)) if isinstance(content, list) else reply.raw
    if not (holds and reply.thoughts):
        return whole_body(body)
    document = reply_document(body)
    message = {"reasoning_content": reply.thoughts, **reply.message, "content": reply.text}
    choice: JsonValue = {**first_choice(document), "message": message}
    return encode({**document, "choices": [choice]})


def _malformed(status: int, reason: str, what: str) -> Fault:
    joint = "" if what.startswith("without") else "with "
    return Fault(FaultKind.MALFORMED, status, reason, f"the provider answered {status} {joint}{what}")
