"""Reading replies: where JSON is found, and the messages about a reply that has none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from growth import grows_in_proportion
from replies import reply_of

from pytest_helmbench.core.outcome import Parse
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.judging.json_replies import Reading, enclosed_json, read_reply

SCHEMA = {
    "type": "object",
    "properties": {
        "response": {"type": "string"},
        "category": {"type": "string", "enum": ["HANDOFF", "CONTINUE"]},
        "inner": {"type": "object"},
    },
    "required": ["category"],
    "additionalProperties": False,
}
OBJECT = '{"category": "HANDOFF"}'
VALUE = {"category": "HANDOFF"}


def read(
    text: str,
    finish_reason: str | None = "stop",
    refusal: str | None = None,
    schema: Any = SCHEMA,
    *,
    strict: bool = False,
) -> Reading:
    return read_reply(reply_of(text, finish_reason, refusal), schema, strict=strict)


@pytest.mark.parametrize("text", [OBJECT, f"\n  {OBJECT}\n", f'<think>{{"category": 1}}</think>\n{OBJECT}'])
@pytest.mark.parametrize("strict", [True, False])
def test_a_reply_that_is_json_as_a_whole_is_strict(text: str, strict: bool) -> None:
    reading = read(text, strict=strict)
    assert (reading.value, reading.parse, reading.reason) == (VALUE, Parse.STRICT, None)


RECOVERABLE = [
    f"```json\n{OBJECT}\n```",
    f"Here you are:\n\n~~~\n{OBJECT}\n~~~\nAnything else?",
    f"<think>hm</think>Sure!\n```JSON\n{OBJECT}\n```",
    f"\x1b[31mred\x1b[0m {OBJECT}",
    f"The set {{x}} and [1], see [[2]]: {OBJECT} Good luck.",
    f'The form is {{"category": …}}. So: {OBJECT}',
    f"```\nno JSON here\n```\n{OBJECT}",
    f"<script>alert(1)</script>{OBJECT}",
    f"\ufeff{OBJECT}",
    f"I'm sorry, I can't help with that. {OBJECT}",
]


@pytest.mark.parametrize("text", RECOVERABLE)
def test_json_inside_other_text_is_recovered_and_said_so_unless_strict(text: str) -> None:
    reading = read(text)
    assert (reading.value, reading.parse, reading.reason) == (VALUE, Parse.RECOVERED, None)
    assert read(text, strict=True).reason == ("refusal" if text.startswith("I'm sorry") else "invalid_json")


@pytest.mark.parametrize(
    "text",
    [
        f"{OBJECT}\n{OBJECT}",
        f"```\n{OBJECT}\n```\nor\n```\n{OBJECT}\n```",
        '{"category": "HANDOFF"',
        '{"inner": {"category": "HANDOFF"}, "category": oops}',
        '{"inner": {"category": "HANDOFF"}, "cat',
        f"see [{OBJECT}]",
        "{'category': 'HANDOFF'}",
        '{"category": "a\nb"}',
        '{"category": NaN}',
        '{"category": -Infinity}',
        '{"category": 1e999}',
        '{"category": "CONTINUE", "category": "HANDOFF"}',
        'So: {"category": "HANDOFF", "inner": {"a": 1, "a": 1}}',
        f'{{"category": "CONTINUE", "category": "CONTINUE"}} or rather {OBJECT}',
        '{"category": ' + "1" * 5_000 + "}",
        "HANDOFF",
    ],
)
def test_what_cannot_be_read_without_guessing_is_invalid_json(text: str) -> None:
    assert read(text).reason == "invalid_json"
    assert read(text).value is None


@pytest.mark.parametrize(
    ("text", "breach"),
    [
        ('{"category": "MAYBE"}', "$.category: enum"),
        ('{"category": 2}', "$.category: type"),
        ('{"response": "x"}', "$: required"),
        (f"[{OBJECT}]", "$: type"),
        ("null", "$: type"),
        ('Note: {"category": "HANDOFF", "note": "\\ud83d"}', "$: additionalProperties"),
    ],
)
def test_json_against_the_schema_says_where(text: str, breach: str) -> None:
    reading = read(text)
    assert (reading.value, reading.reason, reading.breach) == (None, "schema_violation", breach)
    assert reading.parse is (Parse.RECOVERED if text.startswith(("N", "\x1b")) else Parse.STRICT)
    assert read(text, schema=None).reason is None


def test_lone_surrogates_are_read_as_they_come() -> None:
    assert read('{"category": "HANDOFF", "response": "\\ud83d"}').value == {**VALUE, "response": "\ud83d"}
    assert read('\ud83d {"category": "HANDOFF"}').value == VALUE


@pytest.mark.parametrize(
    ("text", "finish_reason", "refusal", "reason"),
    [
        ("", "stop", None, "empty"),
        (" \n\t", "stop", None, "empty"),
        ('{"category": "HAND', "length", None, "truncated"),
        ('{"category": "MAYBE"}', "length", None, "truncated"),
        ("", "stop", "I cannot do that.", "refusal"),
        (OBJECT, "stop", "I cannot do that.", "refusal"),
        ("I'm sorry, but I can't help with that.", "stop", None, "refusal"),
        ("I’m unable to assist with this request.", "stop", None, "refusal"),
        ("I'm sorry, but I can't help with that.", "length", None, "truncated"),
        ("I'm sorry to hear that. Shall we talk?", "stop", None, "invalid_json"),
        ("I can't wait to see it!", "stop", None, "invalid_json"),
    ],
)
def test_a_reply_without_a_value_has_its_own_reason(
    text: str, finish_reason: str | None, refusal: str | None, reason: str
) -> None:
    reading = read(text, finish_reason, refusal)
    assert (reading.value, reading.reason) == (None, reason)


def test_a_cut_reply_is_truncated_even_where_it_can_be_read() -> None:
    reading = read(OBJECT, "length")
    assert (reading.value, reading.parse, reading.reason) == (VALUE, Parse.STRICT, "truncated")


@pytest.mark.filterwarnings("ignore")  # jsonschema warns when it fetches: that must not hide the fetch
def test_a_reference_to_elsewhere_is_named_and_never_fetched(tmp_path: Path) -> None:
    elsewhere = tmp_path / "schema.json"
    elsewhere.write_text("{}", encoding="utf-8")
    with pytest.raises(HelmbenchError) as error:
        read(OBJECT, schema={"$ref": elsewhere.as_uri()})
    assert str(error.value) == (
        f"response schema: $ref {elsewhere.as_uri()!r} leads nowhere\n"
        "  hint: put what it refers to under '$defs'"
    )


@pytest.mark.parametrize(("number", "holds"), [("1" + "0" * 400, True), ("1" + "0" * 399 + "1", False)])
def test_a_number_beyond_floats_is_no_way_out_of_a_verdict(number: str, holds: bool) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "multipleOf": 2.5}},
        "required": ["a"],
    }
    assert (read(f'{{"a": {number}}}', schema=schema).reason is None) is holds


MEGABYTES: dict[str, Callable[[int], str]] = {
    "braces": lambda length: "{" * length,
    "keys": lambda length: '{"' * (length // 2),
    "nested objects": lambda length: '{"a":' * (length // 5),
    "nested lists": lambda length: "[{" * (length // 2),
    "broken objects": lambda length: '{"a"}' * (length // 5),
    "broken around lists": lambda length: '{"a" ' + "[" * length,
    "escapes": lambda length: '{"a":"' + '\\"' * (length // 2),
    "backslashes": lambda length: '{"' + "\\" * (length + 1),
    "blank braces": lambda length: "{   " * (length // 4),
    "fences": lambda length: "```\n" * (length // 4),
    "thoughts": lambda length: "<think>" * (length // 7),
    "objects": lambda length: "{} " * (length // 3),
    "letters": lambda length: "x" * length,
    "long list": lambda length: '{"k":[' * 500 + "1," * (length // 2),
    "digits": lambda length: '{"a":' + "1" * length + "}",
    "sorry": lambda length: "I'm sorry" + " " * length,
}


def _read_without_finding(text: str) -> None:
    assert read(text).reason in ("invalid_json", "empty")
    enclosed_json(text)


@pytest.mark.parametrize("made", MEGABYTES.values(), ids=MEGABYTES.keys())
def test_hostile_megabytes_cost_no_more_than_their_length(made: Callable[[int], str]) -> None:
    assert grows_in_proportion(_read_without_finding, made, 1_000_000)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (OBJECT, VALUE),
        (f"```json\n{OBJECT}\n```\n", VALUE),
        (f"\ufeff{OBJECT}", VALUE),
        (f"```json\n\ufeff{OBJECT}\n```\n", VALUE),
        ('{"why": "first\nsecond\tthird"}', {"why": "first\nsecond\tthird"}),
        ('```json\n{"why": "first\nsecond"}\n```', {"why": "first\nsecond"}),
        ('{"why": "a", "why": "b\n"}', None),
        (f"He wrote {OBJECT}", None),
        (f"He wrote:\n```\n{OBJECT}\n```", None),
        (f"```\n{OBJECT}\n```\n```\n{OBJECT}\n```", None),
    ],
)
def test_enclosed_json_is_never_taken_out_of_prose(text: str, value: Any) -> None:
    found = enclosed_json(text)
    assert (found[0] if found else None) == value
