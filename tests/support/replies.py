"""Replies as the gateway reads them: tests of rules and judges see what these see."""

from __future__ import annotations

import json
from typing import Any

from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.gateway.faults import Fault
from pytest_helmbench.gateway.replies import parse_reply

__all__ = ["read_answer", "reply_of"]


def read_answer(
    content: Any,
    finish_reason: str | None = "stop",
    refusal: str | None = None,
    *,
    usage: Any = None,
    most_tokens: int | None = None,
    model: str = "test/m",
    **message: Any,
) -> Reply | Fault:
    """Return what a chat completion with this message says; `message` are more of its fields."""
    said = {"role": "assistant", "content": content, "refusal": refusal, **message}
    choice = {"index": 0, "finish_reason": finish_reason, "message": said}
    document = {"model": model, "choices": [choice], "usage": usage}
    return parse_reply(200, json.dumps(document).encode(), most_tokens=most_tokens)


def reply_of(content: Any, *more: Any, **fields: Any) -> Reply:
    """Return the reply of an answer that is one; see `read_answer`."""
    found = read_answer(content, *more, **fields)
    assert isinstance(found, Reply)
    return found
