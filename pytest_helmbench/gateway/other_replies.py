"""Answers to what is no chat completion: responses and embeddings, with the usage that they state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.streamed_replies import is_stream, stream_events

__all__ = ["CHAT", "EMBEDDINGS", "PATHS", "RESPONSES", "OtherReply", "other_reply", "streamed_response"]

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
