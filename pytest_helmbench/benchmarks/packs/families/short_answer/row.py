"""short_answer: what a row asks for, its `input` and `eval` narrowed. The only reader of both.

Messages name fields, never the values of `eval`: those are hidden.
"""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.text.given import given_texts, is_number, leaves, stripped
from pytest_helmbench.benchmarks.packs.task import ConfigError
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["MOST_BITS", "ShortRow", "short_row"]

MOST_BITS = 13_000
"""Of an integer: Python writes no longer ones as digits."""


@dataclass(frozen=True, slots=True)
class ShortRow:
    """A row of short_answer.

    Args:
        given: What the model was shown, long texts first: context, question, answer format.
        question: The question alone.
        context: The context's own texts; empty for none.
        accepted: As written.
        tolerance: At least 0; None for none.
    """

    given: tuple[str, ...]
    question: str
    context: tuple[str, ...]
    accepted: tuple[str | int | float, ...]
    tolerance: float | None


def short_row(given: JsonObject, wanted: JsonObject) -> ShortRow:
    """Read `input` and `eval` of a short_answer row.

    Raises:
        ConfigError: There are no accepted answers, or they or the tolerance are of a wrong type.
    """
    accepted = wanted.get("accepted_answers")
    if not isinstance(accepted, list) or not accepted:
        raise ConfigError("eval.accepted_answers: not a list of answers\n  hint: list at least one answer")
    answers = tuple(answer for answer in accepted if isinstance(answer, str) or is_number(answer))
    if len(answers) != len(accepted):
        raise ConfigError(
            "eval.accepted_answers: holds something that is neither text nor number\n"
            "  hint: write every answer as a string or a number"
        )
    if any(isinstance(answer, int) and answer.bit_length() > MOST_BITS for answer in answers):
        raise ConfigError(
            "eval.accepted_answers: holds a number of thousands of digits\n  hint: write it as a string"
        )
    tolerance = wanted.get("tolerance")
    if tolerance is not None and not (is_number(tolerance) and tolerance >= 0):
        raise ConfigError(
            "eval.tolerance: not a number of at least 0\n  hint: leave it out for exact answers"
        )
    question = stripped(given.get("question"))
    context = tuple(leaves(given.get("context")))
    return ShortRow(
        given=given_texts(given.get("context"), question, stripped(given.get("answer_format"))),
        question=question,
        context=context,
        accepted=answers,
        tolerance=None if tolerance is None else _float(tolerance),
    )


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return float("inf")
