"""short_answer: a question with accepted answers; the answer that the reply states must be one of them."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import ClassVar

from pytest_helmbench.benchmarks.packs.families.short_answer.parity import parity_short
from pytest_helmbench.benchmarks.packs.families.short_answer.row import MOST_BITS, read_short, short_row
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding
from pytest_helmbench.benchmarks.packs.families.text.text_family import (
    ENDING_JSON,
    ProofReply,
    TextFamily,
    answer_format,
    echoes,
    right_replies,
)
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate, field_text
from pytest_helmbench.benchmarks.packs.format.row_fields import Field, Fields, text_or_object
from pytest_helmbench.benchmarks.packs.task import PackRule, PackTask
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.field_values import RowFaults, check_number, check_text, kind_of
from pytest_helmbench.judging.rubric import Criterion

_RUBRIC = (
    "The reply passes when the one answer that it settles on is one of the accepted answers, in whatever words, unit "
    "or way of writing. What it denies, takes back, quotes as an error or says of something else is not its answer. "
    "One that settles on none, on another one or on several fails; so does a number in a unit or a form that the "
    "question does not ask for, where it asks for one."
)


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


class ShortAnswer(TextFamily):
    """See `Family`."""

    name = "short_answer"
    input_fields: ClassVar[Fields] = {
        "question": Field(check_text, required=True),
        "answer_format": Field(text_or_object),
        "context": Field(text_or_object),
    }
    eval_fields: ClassVar[Fields] = {
        "accepted_answers": Field(_accepted, required=True),
        "tolerance": Field(_tolerance),
    }
    answer_field = "accepted_answers"
    answer_forms = MappingProxyType({"json": ENDING_JSON.format(what="the answer alone"), "text": ""})
    template = PromptTemplate(
        name,
        __package__,
        version=1,
        values={field: field_text(field) for field in ("context", "question", "answer_format")},
        needed=("question",),
    )

    def response_format(self, _task: PackTask, form: str) -> JsonObject | None:
        """See `Family.response_format`."""
        return answer_format() if form == "json" else None

    def finding(self, given: JsonObject, wanted: JsonObject, reply: str, *, parity: bool) -> AnswerFinding:
        """See `TextFamily.finding`."""
        row = short_row(given, wanted)
        return parity_short(row, reply) if parity else read_short(row, reply)

    def reading(self, rule: PackRule) -> Criterion:
        """See `TextFamily.reading`."""
        row = short_row(rule.task.public(), rule.task.evaluation())
        lines = [_RUBRIC, "Accepted answers:\n" + "\n".join(f"- {answer}" for answer in row.accepted)]
        if row.tolerance is not None:
            lines.append(f"A number may differ from an accepted one by {row.tolerance}.")
        return Criterion("", "\n\n".join(lines), ("PASS", "FAIL"), ("PASS",))

    def advice(self, hidden: JsonObject) -> str | None:
        """See `Family.advice`."""
        accepted = hidden.get("accepted_answers")
        only = accepted[0] if isinstance(accepted, list) and len(accepted) == 1 else None
        if not isinstance(only, str) or len(only.split()) == 1:
            return None
        return "only one accepted answer, of several words: list the other ways of writing it in accepted_answers"

    def own_proofs(self, given: JsonObject, wanted: JsonObject) -> Iterator[ProofReply]:
        """See `TextFamily.own_proofs`."""
        for number, answer in enumerate(short_row(given, wanted).accepted, 1):
            yield from right_replies(f"accepted answer {number}", str(answer))
        yield from echoes(given, "question")


FAMILY = ShortAnswer()
