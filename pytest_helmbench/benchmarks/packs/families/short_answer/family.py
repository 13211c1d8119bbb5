"""short_answer: a question with accepted answers; the final statement of the reply must be one of them."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from pytest_helmbench.benchmarks.packs.families.short_answer.fields import EVAL_FIELDS, INPUT_FIELDS
from pytest_helmbench.benchmarks.packs.families.short_answer.parity import parity_short
from pytest_helmbench.benchmarks.packs.families.short_answer.row import short_row
from pytest_helmbench.benchmarks.packs.families.short_answer.self_check import short_proofs
from pytest_helmbench.benchmarks.packs.families.short_answer.short_answers import judge_short
from pytest_helmbench.benchmarks.packs.families.text.answer_form import ENDING_JSON, answer_format
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding
from pytest_helmbench.benchmarks.packs.families.text.proofs import ProofReply
from pytest_helmbench.benchmarks.packs.families.text.text_family import TextFamily
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate, field_text
from pytest_helmbench.benchmarks.packs.task import PackRule, PackTask
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.judging.rubric import Criterion

__all__ = ["FAMILY", "ShortAnswer"]


_RUBRIC = (
    "The reply passes when the one answer that it settles on is one of the accepted answers, in whatever words, unit "
    "or way of writing. What it denies, takes back, quotes as an error or says of something else is not its answer. "
    "One that settles on none, on another one or on several fails; so does a number in a unit or a form that the "
    "question does not ask for, where it asks for one."
)


class ShortAnswer(TextFamily):
    """See `Family`."""

    name = "short_answer"
    rules_version = 10
    parity_version = 1
    read_by_judge = True
    input_fields = INPUT_FIELDS
    eval_fields = EVAL_FIELDS
    answer_field = "accepted_answers"
    answer_forms = MappingProxyType(
        {
            "line": "You may think first. End your reply with the line `ANSWER: …` that holds the answer alone.",
            "json": ENDING_JSON.format(what="the answer alone"),
        }
    )
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
        return parity_short(row, reply) if parity else judge_short(row, reply)

    def reading(self, rule: PackRule) -> Criterion:
        """See `TextFamily.reading`."""
        row = short_row(rule.task.public(), rule.task.evaluation())
        lines = [_RUBRIC, "Accepted answers:\n" + "\n".join(f"- {answer}" for answer in row.accepted)]
        if row.tolerance is not None:
            lines.append(f"A number may differ from an accepted one by {row.tolerance}.")
        return Criterion("", "\n\n".join(lines), ("PASS", "FAIL"), ("PASS",))

    def own_proofs(self, given: JsonObject, wanted: JsonObject) -> Iterator[ProofReply]:
        """See `TextFamily.own_proofs`."""
        return short_proofs(given, wanted)


FAMILY = ShortAnswer()
