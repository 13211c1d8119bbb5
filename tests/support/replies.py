"""Replies as the gateway reads them: tests of rules and judges see what these see."""

from __future__ import annotations

import json
from typing import Any

from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.gateway.faults import Fault
from pytest_helmbench.gateway.replies import parse_reply


def read_answer(content: Any, finish: str | None = "stop", refusal: Any = None, **more: Any) -> Reply | Fault:
    """Return what a chat completion says; `more`: `usage`, `model`, `most_tokens`, and fields of its message."""
    document = {"model": more.pop("model", "test/m"), "usage": more.pop("usage", None)}
    most_tokens = more.pop("most_tokens", None)
    message = {"role": "assistant", "content": content, "refusal": refusal, **more}
    document["choices"] = [{"index": 0, "finish_reason": finish, "message": message}]
    return parse_reply(200, json.dumps(document).encode(), most_tokens=most_tokens)


def reply_of(content: Any, *more: Any, **fields: Any) -> Reply:
    """Return the reply of an answer that is one; see `read_answer`."""
    found = read_answer(content, *more, **fields)
    assert isinstance(found, Reply)
    return found
