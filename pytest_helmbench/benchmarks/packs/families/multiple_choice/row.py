"""multiple_choice: what a row asks for, its `input` and `eval` narrowed. The only reader of both.

Messages name fields, never the values of `eval`: those are hidden.
"""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.text.given import stripped
from pytest_helmbench.benchmarks.packs.task import ConfigError
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["MOST_CHOICES", "ChoiceRow", "choice_row"]

MOST_CHOICES = 26
"""One letter each."""


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
    answers: tuple[JsonValue, ...]


def choice_row(given: JsonObject, wanted: JsonObject) -> ChoiceRow:
    """Read `input` and `eval` of a multiple_choice row.

    Raises:
        ConfigError: There are no choices, too many, or empty ones.
    """
    choices = given.get("choices")
    if not isinstance(choices, list) or not choices:
        raise ConfigError("input.choices: not a list of choices\n  hint: list at least one text")
    texts = tuple(choice.strip() for choice in choices if isinstance(choice, str) and choice.strip())
    if len(texts) != len(choices):
        raise ConfigError(
            "input.choices: holds something that is no text, or blank\n  hint: write every choice as a string"
        )
    if len(choices) > MOST_CHOICES:
        raise ConfigError(
            f"input.choices: {len(choices)} choices\n  hint: at most {MOST_CHOICES}, one letter each"
        )
    answer = wanted.get("answer")
    answers = tuple(answer) if isinstance(answer, list) else (answer,)
    return ChoiceRow(stripped(given.get("question")), texts, answers)
