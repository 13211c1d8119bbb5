"""multiple_choice: what its `input` and `eval` hold."""

from __future__ import annotations

import re
import string

from pytest_helmbench.benchmarks.packs.families.multiple_choice.choice_answers import expected_choice
from pytest_helmbench.benchmarks.packs.families.multiple_choice.labels import Choices
from pytest_helmbench.benchmarks.packs.format.row_fields import Field, Fields
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.field_values import RowFaults, check_text, kind_of

__all__ = ["EVAL_FIELDS", "INPUT_FIELDS", "check_answer_in_choices"]

_MOST_CHOICES = 26
_LABEL = re.compile(  # possessive: white space without end must not cost time without end
    r"(?:(?:final answer|answer|choice|option)\s*+(?:is\s*+)?+[:\-]?+\s*+)?[(\[]?([A-Za-z])[)\].:]?\Z"
)


def _choices(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, list):
        faults.error(where, f"this is {kind_of(value)}, not a list of texts")
        return
    for number, item in enumerate(value, start=1):
        if not isinstance(item, str):
            hint = 'write numbers as text: "4"' if isinstance(item, int | float) else ""
            faults.error(where, f"entry {number} is {kind_of(item)}, not text", hint)
        elif not item.strip():
            faults.error(where, f"entry {number} is blank text")
    if not value:
        faults.error(where, "the list is empty")
    elif len(value) > _MOST_CHOICES:
        faults.error(
            where, f"there are {len(value)} choices", f"a choice is a letter: at most {_MOST_CHOICES}"
        )


def _answer(faults: RowFaults, where: str, value: JsonValue) -> None:
    answers = value if isinstance(value, list) else [value]
    if not answers:
        faults.error(where, "the list is empty")
    for number, item in enumerate(answers, start=1):
        which = f"entry {number}" if isinstance(value, list) else "this"
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            faults.error(where, f"{which} is {kind_of(item)}, not a letter, a text or an index")
        elif isinstance(item, str) and not item.strip():
            faults.error(where, f"{which} is blank text")
        elif isinstance(item, float) and not item.is_integer():
            faults.error(
                where, f"{which} is a fraction, not an index", "write a whole number from 0, or a letter"
            )


def check_answer_in_choices(faults: RowFaults, public: JsonObject, hidden: JsonObject) -> None:
    """File answers that name no choice; both objects are without faults of their own."""
    choices, value = public["choices"], hidden["answer"]
    if not isinstance(choices, list):
        return
    texts = tuple(choice.strip() for choice in choices if isinstance(choice, str))
    known = Choices.of(texts)
    last = string.ascii_uppercase[len(texts) - 1]
    for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
        which = f"entry {number}" if isinstance(value, list) else "this"
        if isinstance(item, int | float):
            if not 0 <= item < len(texts):
                hint = f"an index is from 0 to {len(texts) - 1}"
                faults.error("eval.answer", f"{which} is an index out of range", hint)
        elif expected_choice(item, known) is None:
            label = _LABEL.match(item.strip()) if isinstance(item, str) else None
            if label is not None and label[1].upper() > last:
                hint = f"the choices are A to {last}"
                faults.error("eval.answer", f"{which} is a letter out of range", hint)
            else:
                hint = "a letter, the text of a choice, or an index from 0"
                faults.error("eval.answer", f"{which} is no letter and the text of no choice", hint)


INPUT_FIELDS: Fields = {
    "question": Field(check_text, required=True),
    "choices": Field(_choices, required=True),
}
EVAL_FIELDS: Fields = {"answer": Field(_answer, required=True)}
