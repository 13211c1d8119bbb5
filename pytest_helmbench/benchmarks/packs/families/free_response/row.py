"""free_response with lists: what a row asks for, and whether a reply is an entry word for word.

All else is for a model that reads meaning. Messages of a row name fields, never the values of `eval`: those are hidden.
"""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, shown
from pytest_helmbench.benchmarks.packs.families.text.given import (
    echoes_given,
    given_texts,
    is_number,
    is_silent,
    stripped,
)
from pytest_helmbench.benchmarks.packs.task import ConfigError
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.judging.comparisons.plain import folded
from pytest_helmbench.judging.comparisons.stated import without_thoughts


@dataclass(frozen=True, slots=True)
class FreeRow:
    """A row of free_response with lists.

    Args:
        given: What the model was shown, long texts first: context, prompt.
        prompt: The prompt alone.
        accepted: Stripped, none empty.
        rejected: Stripped, none empty; often there are none.
        min_token_f1: Of the published rule, in [0, 1].
    """

    given: tuple[str, ...]
    prompt: str
    accepted: tuple[str, ...]
    rejected: tuple[str, ...]
    min_token_f1: float


def free_row(given: JsonObject, wanted: JsonObject) -> FreeRow:
    """Read `input` and `eval` of a free_response row.

    Raises:
        ConfigError: The rubric is a text (the marking model judges those), of another type, or incomplete.
    """
    rubric = wanted.get("rubric")
    if not isinstance(rubric, dict):
        raise ConfigError(
            "eval.rubric: not an object\n  hint: a rubric in words is judged by the marking model"
            if isinstance(rubric, str)
            else "eval.rubric: not an object\n  hint: write {'type': 'contains_any', 'accepted_answers': [...]}"
        )
    if rubric.get("type", "contains_any") != "contains_any":
        raise ConfigError("eval.rubric.type: not a known type\n  hint: the only one is 'contains_any'")
    least = rubric.get("min_token_f1", 1.0)
    if not (is_number(least) and 0 <= least <= 1):
        raise ConfigError("eval.rubric.min_token_f1: not a number from 0 to 1\n  hint: leave it out for 1.0")
    rejected = rubric.get("rejected_answers")
    prompt = stripped(given.get("prompt"))
    return FreeRow(
        given=given_texts(given.get("context"), prompt),
        prompt=prompt,
        accepted=_texts(rubric.get("accepted_answers"), "accepted_answers"),
        rejected=() if rejected is None else _texts(rejected, "rejected_answers"),
        min_token_f1=float(least),
    )


def read_free(row: FreeRow, reply: str) -> AnswerFinding:
    """Judge a free_response reply by its words: it is an entry, it is silent, or only a model can tell."""
    text = without_thoughts(reply)
    low, statement = folded(text), shown(text)
    accepted, rejected = (_word_for_word(text, low, entries) for entries in (row.accepted, row.rejected))
    if accepted is not None:
        return AnswerFinding(True, "word_for_word", accepted, statement=statement)
    if rejected is not None:
        return AnswerFinding(False, "word_for_word", rejected=rejected, statement=statement)
    if not low:
        return AnswerFinding(False, statement=statement, reason="empty")
    if low == folded(row.prompt) or echoes_given(row.given, text):
        return AnswerFinding(False, statement=statement, reason="echo")
    silent = is_silent(low)
    return AnswerFinding(False, "silent" if silent else None, statement=statement, certain=silent)


def _word_for_word(text: str, low: str, entries: tuple[str, ...]) -> int | None:
    """Return the index of the entry that a text is, as written or as texts are compared; None for none."""
    return next((at for at, one in enumerate(entries) if text == one or (low and low == folded(one))), None)


def _texts(value: JsonValue, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ConfigError(f"eval.rubric.{name}: not a list of texts\n  hint: list at least one text")
    found = tuple(item.strip() for item in value if isinstance(item, str) and item.strip())
    if len(found) != len(value):
        raise ConfigError(
            f"eval.rubric.{name}: holds something that is no text, or blank\n  hint: write every entry as a string"
        )
    return found
