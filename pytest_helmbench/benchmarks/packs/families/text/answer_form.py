"""Answers in a fixed form: a last line `ANSWER: …`, or a JSON object with the key `answer`. What is read is exact."""

from __future__ import annotations

import re
from typing import NamedTuple

from pytest_helmbench.benchmarks.packs.families.text.plain import spoken
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.judging.json_replies import read_reply

__all__ = ["ENDING_JSON", "FormedAnswer", "answer_format", "formed_answer"]

ENDING_JSON = 'Reply with a JSON object and nothing else: {{"answer": "{what}"}}'

_LINE = re.compile(r"[\s*_`#>]*ANSWER[*_`]*\s*:[*_`\s]*(?P<answer>.*?)[\s*_`]*", re.IGNORECASE)
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"answer": {"type": ["string", "number", "boolean"]}},
    "required": ["answer"],
}


class FormedAnswer(NamedTuple):
    """An answer in a fixed form.

    Args:
        text: The answer alone; empty where there is none.
        reason: Why there is none; None where there is one.
    """

    text: str
    reason: str | None = None


def formed_answer(form: str, reply: Reply) -> FormedAnswer:
    """Return the answer of a reply that was asked for in a form."""
    return _line(reply.text) if form == "line" else _json(reply)


def answer_format(choices: list[str] | None = None) -> JsonObject:
    """Return the wire form of a JSON answer; one of some letters, where there are choices."""
    answer: dict[str, JsonValue] = (
        {"type": "string"} if choices is None else {"type": "string", "enum": [*choices]}
    )
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"answer": answer},
        "required": ["answer"],
        "additionalProperties": False,
    }
    envelope: dict[str, JsonValue] = {"name": "answer", "strict": True, "schema": schema}
    return {"type": "json_schema", "json_schema": envelope}


def _line(reply: str) -> FormedAnswer:
    lines = [line for line in spoken(reply).splitlines() if line.strip(" \t*_`")]
    if not lines:
        return FormedAnswer("", "empty")
    found = _LINE.fullmatch(lines[-1])
    if found is None or not found["answer"]:
        return FormedAnswer("", "no_answer_line")
    return FormedAnswer(found["answer"])


def _json(reply: Reply) -> FormedAnswer:
    reading = read_reply(reply.text, reply.finish_reason, reply.refusal, _SCHEMA, strict=False)
    if reading.reason is not None or not isinstance(reading.value, dict):
        return FormedAnswer("", reading.reason or "invalid_json")
    answer = reading.value["answer"]
    text = str(answer).lower() if isinstance(answer, bool) else str(answer)
    return FormedAnswer(text) if text.strip() else FormedAnswer("", "empty")
