"""A reply of a text family to its finding: which rule applies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pytest_helmbench.benchmarks.packs.families.free_response.free_answers import judge_free
from pytest_helmbench.benchmarks.packs.families.multiple_choice.choices import judge_choice
from pytest_helmbench.benchmarks.packs.families.short_answer.short_answers import judge_short
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding
from pytest_helmbench.benchmarks.packs.families.text.parity import parity_choice, parity_free, parity_short
from pytest_helmbench.benchmarks.packs.families.text.rows import choice_row, free_row, short_row
from pytest_helmbench.benchmarks.packs.task import ConfigError, Family

__all__ = ["ANSWER_RULES_VERSION", "evaluate_answer"]

ANSWER_RULES_VERSION: Final = "1"
"""Enters every rule hash: it changes whenever the verdict of the same reply could."""


def evaluate_answer(
    family: str, given: Mapping[str, Any], wanted: Mapping[str, Any], reply: str, *, parity: bool
) -> AnswerFinding:
    """Hold a reply to a row of a text family. Never raises for a reply, whatever it holds.

    Args:
        family: `multiple_choice`, `short_answer` or `free_response`.
        given: `input` of the row.
        wanted: `eval` of the row.
        reply: As the provider's JSON decodes, lone surrogates included.
        parity: Apply the published rule instead of the default one.

    Raises:
        ConfigError: The row cannot be judged by text: of another family, or incomplete. The message names fields,
            never hidden values.

    Source:
        Benchmark packs, section 4, and its parity rules.
    """
    if family == Family.MULTIPLE_CHOICE:
        choices = choice_row(given, wanted)
        return parity_choice(choices, reply) if parity else judge_choice(choices, reply)
    if family == Family.SHORT_ANSWER:
        short = short_row(given, wanted)
        return parity_short(short, reply) if parity else judge_short(short, reply)
    if family == Family.FREE_RESPONSE:
        free = free_row(given, wanted)
        return parity_free(free, reply) if parity else judge_free(free, reply)
    raise ConfigError(
        f"family: {family!r} is not judged by text\n  hint: text families are multiple_choice, short_answer, "
        "free_response"
    )
