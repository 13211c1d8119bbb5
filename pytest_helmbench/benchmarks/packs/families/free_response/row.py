"""free_response: what a row with a rubric that text rules can apply asks for, narrowed. The only reader of both.

Messages name fields, never the values of `eval`: those are hidden.
"""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.text.given import given_texts, is_number, leaves, stripped
from pytest_helmbench.benchmarks.packs.task import ConfigError
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["FreeRow", "free_row"]


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
        context=tuple(leaves(given.get("context"))),
        accepted=_texts(rubric.get("accepted_answers"), "accepted_answers"),
        rejected=() if rejected is None else _texts(rejected, "rejected_answers"),
        min_token_f1=float(least),
    )


def _texts(value: JsonValue, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ConfigError(f"eval.rubric.{name}: not a list of texts\n  hint: list at least one text")
    found = tuple(item.strip() for item in value if isinstance(item, str) and item.strip())
    if len(found) != len(value):
        raise ConfigError(
            f"eval.rubric.{name}: holds something that is no text, or blank\n  hint: write every entry as a string"
        )
    return found
