"""multiple_choice: a question with choices; the reply must state the right one."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from types import MappingProxyType
from typing import ClassVar

from pytest_helmbench.benchmarks.packs.families.multiple_choice.parity import parity_choice
from pytest_helmbench.benchmarks.packs.families.multiple_choice.row import (
    MOST_CHOICES,
    choice_row,
    listing,
    named_choice,
    read_choice,
    right_choices,
)
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding
from pytest_helmbench.benchmarks.packs.families.text.text_family import (
    ENDING_JSON,
    ProofReply,
    TextFamily,
    answer_format,
    right_replies,
)
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate, field_text, inline
from pytest_helmbench.benchmarks.packs.format.row_fields import Field, Fields
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackRule, PackTask
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.field_values import RowFaults, check_text, kind_of
from pytest_helmbench.judging.rubric import Criterion

_RUBRIC = (
    "The prompt lists choices. The reply passes when the one choice that it settles on is a right one, by its letter "
    "or in whatever words. One that settles on none, on another one or on several fails."
)
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
    elif len(value) > MOST_CHOICES:
        faults.error(
            where, f"there are {len(value)} choices", f"a choice is a letter: at most {MOST_CHOICES}"
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


def _check_answer(faults: RowFaults, public: JsonObject, hidden: JsonObject) -> None:
    """File answers that name no choice; both objects are without faults of their own."""
    choices, value = public["choices"], hidden["answer"]
    if not isinstance(choices, list):
        return
    texts = tuple(choice.strip() for choice in choices if isinstance(choice, str))
    last = string.ascii_uppercase[len(texts) - 1]
    for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
        which = f"entry {number}" if isinstance(value, list) else "this"
        if isinstance(item, int | float):
            if not 0 <= item < len(texts):
                hint = f"an index is from 0 to {len(texts) - 1}"
                faults.error("eval.answer", f"{which} is an index out of range", hint)
        elif named_choice(item, texts) is None:
            label = _LABEL.match(item.strip()) if isinstance(item, str) else None
            if label is not None and label[1].upper() > last:
                hint = f"the choices are A to {last}"
                faults.error("eval.answer", f"{which} is a letter out of range", hint)
            else:
                hint = "a letter, the text of a choice, or an index from 0"
                faults.error("eval.answer", f"{which} is no letter and the text of no choice", hint)


def _choices_text(public: JsonObject) -> str:
    choices = public.get("choices")
    choices = choices if isinstance(choices, list) else []
    if len(choices) > MOST_CHOICES:
        raise ConfigError(
            f"input.choices: there are {len(choices)} choices, at most {MOST_CHOICES} have a letter"
        )
    return listing(map(inline, choices))


class MultipleChoice(TextFamily):
    """See `Family`."""

    name = "multiple_choice"
    input_fields: ClassVar[Fields] = {
        "question": Field(check_text, required=True),
        "choices": Field(_choices, required=True),
    }
    eval_fields: ClassVar[Fields] = {"answer": Field(_answer, required=True)}
    answer_field = "answer"
    answer_forms = MappingProxyType(
        {"json": ENDING_JSON.format(what="the letter of the right choice"), "text": ""}
    )
    template = PromptTemplate(
        name,
        __package__,
        version=1,
        values={"question": field_text("question"), "choices": _choices_text},
        needed=("question", "choices"),
    )

    def check_across(self, faults: RowFaults, public: JsonObject, hidden: JsonObject) -> None:
        """See `Family.check_across`."""
        _check_answer(faults, public, hidden)

    def response_format(self, task: PackTask, form: str) -> JsonObject | None:
        """See `Family.response_format`."""
        if form != "json":
            return None
        choices = task.input_value("choices")
        return answer_format(string.ascii_uppercase[: len(choices)] if isinstance(choices, list) else "")

    def finding(self, given: JsonObject, wanted: JsonObject, reply: str, *, parity: bool) -> AnswerFinding:
        """See `TextFamily.finding`."""
        row = choice_row(given, wanted)
        return parity_choice(row, reply) if parity else read_choice(row, reply)

    def reading(self, rule: PackRule) -> Criterion:
        """See `TextFamily.reading`."""
        row = choice_row(rule.task.public(), rule.task.evaluation())
        right = [f"- {string.ascii_uppercase[at]}) {row.choices[at]}" for at in sorted(right_choices(row))]
        return Criterion(
            "", "\n\n".join([_RUBRIC, "\n".join(["Right choices:", *right])]), ("PASS", "FAIL"), ("PASS",)
        )

    def own_proofs(self, given: JsonObject, wanted: JsonObject) -> Iterator[ProofReply]:
        """See `TextFamily.own_proofs`."""
        row = choice_row(given, wanted)
        right, letters = right_choices(row), string.ascii_uppercase[: len(row.choices)]
        for at in sorted(right):
            yield from right_replies("the letter of the answer", letters[at])
            if row.choices[at].upper() not in letters:
                yield from right_replies("the text of the answer", row.choices[at])
        for at, letter in enumerate(letters):
            if at not in right:
                yield ProofReply("the letter of another choice", letter, must_pass=False)
        listed = listing(row.choices)
        yield ProofReply("the question and its choices", f"{row.question}\n\n{listed}", must_pass=False)
        if len(set(row.choices)) > 1:
            yield ProofReply("a list of all choices", listed, must_pass=False)
            yield ProofReply("a list of all letters", ", ".join(letters), must_pass=False)


FAMILY = MultipleChoice()
