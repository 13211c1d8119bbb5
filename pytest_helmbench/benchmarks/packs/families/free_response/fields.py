"""free_response: what its `input` and `eval` hold."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.format.row_fields import (
    REFERENCE_HINT,
    Field,
    Fields,
    Names,
    is_reference,
    text_or_object,
)
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.files.field_values import (
    RowFaults,
    check_number,
    check_text,
    check_texts,
    check_unknown,
    kind_of,
)

__all__ = ["EVAL_FIELDS", "INPUT_FIELDS"]

_RUBRIC_KEYS = ("type", "accepted_answers", "rejected_answers", "min_token_f1")


def _rubric(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, dict):
        if isinstance(value, str):
            check_text(faults, where, value)
        else:
            faults.error(where, f"this is {kind_of(value)}, not text or an object")
        return
    check_unknown(faults, where, value, _RUBRIC_KEYS)
    if value.get("type", "contains_any") != "contains_any":
        faults.error(f"{where}.type", "the type is not known", "the only type is 'contains_any'")
    if "accepted_answers" in value:
        check_texts(faults, f"{where}.accepted_answers", value["accepted_answers"])
    else:
        faults.error(f"{where}.accepted_answers", "this is missing", "a rubric needs it")
    if value.get("rejected_answers") is not None:
        check_texts(faults, f"{where}.rejected_answers", value["rejected_answers"])
    if value.get("min_token_f1") is not None:
        check_number(faults, f"{where}.min_token_f1", value["min_token_f1"], low=0, high=1)


def _reference_answer(faults: RowFaults, where: str, value: JsonValue) -> None:
    if isinstance(value, list | dict) and not is_reference(value):
        faults.error(where, f"this is {kind_of(value)}, not text", REFERENCE_HINT)


INPUT_FIELDS: Fields = {
    "prompt": Field(check_text, required=True),
    "context": Field(text_or_object),
}
EVAL_FIELDS: Fields = {
    "rubric": Field(_rubric, required=True),
    "reference_answer": Field(_reference_answer, names=Names.A_FILE),
}
