"""multiple_choice: a question with choices; the reply must settle on the right one."""

from __future__ import annotations

import string
from collections.abc import Iterator
from types import MappingProxyType

from pytest_helmbench.benchmarks.packs.families.multiple_choice.choice_answers import judge_choice
from pytest_helmbench.benchmarks.packs.families.multiple_choice.fields import (
    EVAL_FIELDS,
    INPUT_FIELDS,
    check_answer_in_choices,
)
from pytest_helmbench.benchmarks.packs.families.multiple_choice.parity import parity_choice
from pytest_helmbench.benchmarks.packs.families.multiple_choice.row import choice_row
from pytest_helmbench.benchmarks.packs.families.multiple_choice.self_check import choice_proofs
from pytest_helmbench.benchmarks.packs.families.text.answer_form import ENDING_JSON, answer_format
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding
from pytest_helmbench.benchmarks.packs.families.text.proofs import ProofReply
from pytest_helmbench.benchmarks.packs.families.text.text_family import TextFamily
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate, field_text, inline
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackTask
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.files.field_values import RowFaults

__all__ = ["FAMILY", "MultipleChoice"]


def _choices(public: JsonObject) -> str:
    choices = public.get("choices")
    choices = choices if isinstance(choices, list) else []
    letters = string.ascii_uppercase
    if len(choices) > len(letters):
        raise ConfigError(
            f"input.choices: there are {len(choices)} choices, at most {len(letters)} have a letter"
        )
    return "\n".join(f"{letter}) {inline(choice)}" for letter, choice in zip(letters, choices, strict=False))


class MultipleChoice(TextFamily):
    """See `Family`."""

    name = "multiple_choice"
    rules_version = 3
    parity_version = 1
    input_fields = INPUT_FIELDS
    eval_fields = EVAL_FIELDS
    answer_field = "answer"
    answer_forms = MappingProxyType(
        {
            "line": "You may think first. End your reply with the line `ANSWER: LETTER`, where LETTER is the "
            "letter of the right choice.",
            "json": ENDING_JSON.format(what="the letter of the right choice"),
        }
    )
    template = PromptTemplate(
        name,
        __package__,
        version=1,
        values={"question": field_text("question"), "choices": _choices},
        needed=("question", "choices"),
    )

    def check_across(self, faults: RowFaults, public: JsonObject, hidden: JsonObject) -> None:
        """See `Family.check_across`."""
        check_answer_in_choices(faults, public, hidden)

    def response_format(self, task: PackTask, form: str) -> JsonObject | None:
        """See `Family.response_format`."""
        if form != "json":
            return None
        choices = task.input_value("choices")
        return answer_format([*string.ascii_uppercase[: len(choices)]] if isinstance(choices, list) else None)

    def finding(self, given: JsonObject, wanted: JsonObject, reply: str, *, parity: bool) -> AnswerFinding:
        """See `TextFamily.finding`."""
        row = choice_row(given, wanted)
        return parity_choice(row, reply) if parity else judge_choice(row, reply)

    def own_proofs(self, given: JsonObject, wanted: JsonObject) -> Iterator[ProofReply]:
        """See `TextFamily.own_proofs`."""
        return choice_proofs(given, wanted)


FAMILY = MultipleChoice()
