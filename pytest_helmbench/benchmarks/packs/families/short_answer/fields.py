"""short_answer: what its `input` and `eval` hold."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.short_answer.row import MOST_BITS
from pytest_helmbench.benchmarks.packs.format.row_fields import Field, Fields, text_or_object
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.files.field_values import RowFaults, check_number, check_text, kind_of

__all__ = ["EVAL_FIELDS", "INPUT_FIELDS"]


def _accepted(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, list):
        faults.error(where, f"this is {kind_of(value)}, not a list")
        return
    if not value:
        faults.error(where, "the list is empty")
    for number, item in enumerate(value, start=1):
        if item is None or isinstance(item, dict | list | bool):
            hint = 'write it as text, as a reply says it: "yes"' if isinstance(item, bool) else ""
            faults.error(where, f"entry {number} is {kind_of(item)}, not text or a number", hint)
        elif isinstance(item, int) and item.bit_length() > MOST_BITS:
            faults.error(where, f"entry {number} is a number of thousands of digits", "write it as text")
        elif isinstance(item, str) and not item.strip():
            faults.error(where, f"entry {number} is blank text", "an empty reply would pass")


def _tolerance(faults: RowFaults, where: str, value: JsonValue) -> None:
    check_number(faults, where, value, low=0)


INPUT_FIELDS: Fields = {
    "question": Field(check_text, required=True),
    "answer_format": Field(text_or_object),
    "context": Field(text_or_object),
}
EVAL_FIELDS: Fields = {
    "accepted_answers": Field(_accepted, required=True),
    "tolerance": Field(_tolerance),
}
