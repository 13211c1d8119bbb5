"""What a row of a text family asks for: its `input` and `eval`, narrowed. The only reader of both.

Messages name fields, never the values of `eval`: those are hidden.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_helmbench.benchmarks.packs.task import ConfigError

__all__ = [
    "MOST_CHOICES",
    "ChoiceRow",
    "FreeRow",
    "ShortRow",
    "choice_row",
    "free_row",
    "leaves",
    "short_row",
]

MOST_CHOICES = 26
"""One letter each."""

_MOST_BITS = 13_000
"""Of an integer: Python writes no longer ones as digits."""


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """A row of multiple_choice.

    Args:
        question: As the model sees it; empty where a test leaves it out.
        choices: Texts, stripped, none empty.
        answers: As written: indices, letters, texts, or what names no choice.
    """

    question: str
    choices: tuple[str, ...]
    answers: tuple[Any, ...]


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


@dataclass(frozen=True, slots=True)
class FreeRow:
    """A row of free_response with a rubric that text rules can apply.

    Args:
        given: What the model was shown, long texts first: context, prompt.
        prompt: The prompt alone.
        context: The context's own texts; empty for none.
        accepted: Stripped, none empty.
        rejected: Stripped, none empty; often there are none.
        min_token_f1: In [0, 1].
    """

    given: tuple[str, ...]
    prompt: str
    context: tuple[str, ...]
    accepted: tuple[str, ...]
    rejected: tuple[str, ...]
    min_token_f1: float


def choice_row(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> ChoiceRow:
    """Read `input` and `eval` of a multiple_choice row.

    Raises:
        ConfigError: There are no choices, too many, or empty ones.
    """
    choices = given.get("choices")
    if not isinstance(choices, list | tuple) or not choices:
        raise ConfigError("input.choices: not a list of choices\n  hint: list at least one text")
    if not all(isinstance(choice, str) and choice.strip() for choice in choices):
        raise ConfigError(
            "input.choices: holds something that is no text, or blank\n  hint: write every choice as a string"
        )
    if len(choices) > MOST_CHOICES:
        raise ConfigError(
            f"input.choices: {len(choices)} choices\n  hint: at most {MOST_CHOICES}, one letter each"
        )
    answer = wanted.get("answer")
    answers = tuple(answer) if isinstance(answer, list | tuple) else (answer,)
    return ChoiceRow(_text(given.get("question")), tuple(choice.strip() for choice in choices), answers)


def short_row(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> ShortRow:
    """Read `input` and `eval` of a short_answer row.

    Raises:
        ConfigError: There are no accepted answers, or they or the tolerance are of a wrong type.
    """
    accepted = wanted.get("accepted_answers")
    if not isinstance(accepted, list | tuple) or not accepted:
        raise ConfigError("eval.accepted_answers: not a list of answers\n  hint: list at least one answer")
    if not all(isinstance(answer, str) or _is_number(answer) for answer in accepted):
        raise ConfigError(
            "eval.accepted_answers: holds something that is neither text nor number\n"
            "  hint: write every answer as a string or a number"
        )
    if any(isinstance(answer, int) and answer.bit_length() > _MOST_BITS for answer in accepted):
        raise ConfigError(
            "eval.accepted_answers: holds a number of thousands of digits\n  hint: write it as a string"
        )
    tolerance = wanted.get("tolerance")
    if tolerance is not None and not (_is_number(tolerance) and tolerance >= 0):
        raise ConfigError(
            "eval.tolerance: not a number of at least 0\n  hint: leave it out for exact answers"
        )
    question = _text(given.get("question"))
    context = tuple(leaves(given.get("context")))
    return ShortRow(
        given=_given(given.get("context"), question, _text(given.get("answer_format"))),
        question=question,
        context=context,
        accepted=tuple(accepted),
        tolerance=None if tolerance is None else _float(tolerance),
    )


def free_row(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> FreeRow:
    """Read `input` and `eval` of a free_response row.

    Raises:
        ConfigError: The rubric is a text (the marking model judges those), of another type, or incomplete.
    """
    rubric = wanted.get("rubric")
    if not isinstance(rubric, Mapping):
        raise ConfigError(
            "eval.rubric: not an object\n  hint: a rubric in words is judged by the marking model"
            if isinstance(rubric, str)
            else "eval.rubric: not an object\n  hint: write {'type': 'contains_any', 'accepted_answers': [...]}"
        )
    if rubric.get("type", "contains_any") != "contains_any":
        raise ConfigError("eval.rubric.type: not a known type\n  hint: the only one is 'contains_any'")
    least = rubric.get("min_token_f1", 1.0)
    if not (_is_number(least) and 0 <= least <= 1):
        raise ConfigError("eval.rubric.min_token_f1: not a number from 0 to 1\n  hint: leave it out for 1.0")
    rejected = rubric.get("rejected_answers")
    prompt = _text(given.get("prompt"))
    return FreeRow(
        given=_given(given.get("context"), prompt),
        prompt=prompt,
        context=tuple(leaves(given.get("context"))),
        accepted=_texts(rubric.get("accepted_answers"), "accepted_answers"),
        rejected=() if rejected is None else _texts(rejected, "rejected_answers"),
        min_token_f1=float(least),
    )


def leaves(context: Any) -> Iterator[str]:
    """Yield the texts and numbers of a context (a text, or an object of any depth), in order."""
    pending = [context]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            pending.extend(reversed([*value.values()]))
        elif isinstance(value, list | tuple):
            pending.extend(reversed(value))
        elif isinstance(value, str):
            if value.strip():
                yield value.strip()
        elif _is_number(value):
            yield str(value)


def _given(context: Any, *texts: str) -> tuple[str, ...]:
    given = [*texts, *leaves(context)]
    if isinstance(context, Mapping):
        given.append("\n".join(f"{key}: {_inline(value)}" for key, value in context.items()))
    elif isinstance(context, list | tuple):
        given.append("\n".join(f"- {_inline(value)}" for value in context))
    if not isinstance(context, str):
        given += [_json(context), _json(context, indent=2)]
    return tuple(sorted((text for text in given if text), key=len, reverse=True))


def _inline(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)


def _texts(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ConfigError(f"eval.rubric.{name}: not a list of texts\n  hint: list at least one text")
    if not all(isinstance(item, str) and item.strip() for item in value):
        raise ConfigError(
            f"eval.rubric.{name}: holds something that is no text, or blank\n  hint: write every entry as a string"
        )
    return tuple(item.strip() for item in value)


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return float("inf")
