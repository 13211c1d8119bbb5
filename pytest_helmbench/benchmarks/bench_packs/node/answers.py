"""Answers of a Bench Pack, checked against the protocol: scenarios, results and scores, or what is wrong with them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator

from pytest_helmbench.benchmarks.bench_packs.bench_pack import (
    PackScore,
    PackStatus,
    ScenarioMeta,
    ScenarioResult,
)
from pytest_helmbench.core.json_types import JsonObject, JsonValue, is_number
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.files.strict_json import texts

_MOST_SCENARIOS = 100_000
_LONGEST_ID = 500  # characters
_BREAK = re.compile("[\x00\r\n\u2028\u2029\ud800-\udfff]")
_OF_A_SCORE = frozenset(("totalScore", "categories", "summary", "unit", "totalUnit"))
_CUT = "[cut]"
_STATUSES = tuple(status.value for status in PackStatus)


class MalformedAnswerError(HelmbenchError):
    """A Bench Pack answered something that is not an answer; the sentence says what is wrong with which value."""


def scenarios_of(value: JsonValue) -> tuple[ScenarioMeta, ...]:
    """Return the scenarios that a pack lists, in its order.

    A title that is missing is the id. Detail cards are for people only, and packs name their parts in several
    ways: what is not a card is left out here and kept in `stated`.

    Args:
        value: JSON of `listScenarios()`.

    Raises:
        MalformedAnswerError: It is not a list of scenarios with ids of their own.

    Source:
        Bench Packs, section 2.
    """
    if not isinstance(value, list):
        raise MalformedAnswerError(f"listScenarios() returned {_named(value)}, not a list")
    if not 1 <= len(value) <= _MOST_SCENARIOS:
        raise MalformedAnswerError(
            f"listScenarios() returned {len(value):,} scenarios, not 1 to {_MOST_SCENARIOS:,}"
        )
    scenarios = tuple(_scenario(number, entry) for number, entry in enumerate(value, start=1))
    first: dict[str, int] = {}
    for number, scenario in enumerate(scenarios, start=1):
        if first.setdefault(scenario.id, number) != number:
            raise MalformedAnswerError(
                f"scenario {number} has the id of scenario {first[scenario.id]}: {_named(scenario.id)}"
            )
    return scenarios


def result_of(value: JsonValue, scenario: str) -> ScenarioResult:
    """Return what a pack says of a run.

    `summary`, `note` and `rawLog` may be missing, as in the desktop app: the verdict stands without them. Null
    is as good as missing.

    Args:
        value: JSON of what `runScenario()` resolved to.
        scenario: Id of the scenario that ran.

    Raises:
        MalformedAnswerError: With everything that is wrong.

    Source:
        Bench Packs, sections 2 and 3.
    """
    answer = _Answer(_mapping(value, "the pack"))
    stated = answer.stated
    if stated.get("scenarioId") != scenario:
        answer.wrong("scenarioId", f"not {_named(scenario)}")
    status = stated.get("status")
    if status not in _STATUSES:
        answer.wrong("status", f"it is one of {', '.join(_STATUSES)}", join="; ")
    result = ScenarioResult(
        scenario=scenario,
        status=PackStatus(str(status)) if status in _STATUSES else PackStatus.FAIL,
        score=answer.number("score"),
        points=answer.number("points"),
        summary=answer.text("summary"),
        note=answer.text("note"),
        raw_log=answer.text("rawLog"),
        stated=stated,
    )
    answer.check()
    return result


def score_of(value: JsonValue) -> PackScore:
    """Return what a pack makes of all results of a model.

    The score of a category is None when it is not a finite number: packs divide by the number of results in it,
    and in a part of a pack there may be none.

    Args:
        value: JSON of `scoreModelResults()`.

    Raises:
        MalformedAnswerError: With everything that is wrong.

    Source:
        Bench Packs, section 2.
    """
    answer = _Answer(_mapping(value, "scoreModelResults()"))
    total = answer.number("totalScore")
    if total is None and not answer.faults:
        answer.wrong("totalScore", "not a finite number")
    summary, unit = answer.text("summary"), answer.text("totalUnit") or answer.text("unit")
    listed = answer.stated.get("categories")
    if listed is not None and not isinstance(listed, list):
        answer.wrong("categories", "not a list")
        listed = None
    categories = tuple(_categories(answer, listed or []))
    answer.check()
    extra = {name: part for name, part in answer.stated.items() if name not in _OF_A_SCORE}
    return PackScore(total=total or 0.0, categories=categories, summary=summary, unit=unit, extra=extra)


class _Answer:
    """An answer's values, and what is wrong with them."""

    def __init__(self, stated: JsonObject) -> None:
        self.stated = stated
        self.faults: list[str] = []

    def wrong(self, key: str, why: str, join: str = ", ") -> None:
        """File that the value of a key is wrong, and why; or that it is not there."""
        if key in self.stated:
            self.faults.append(f"{key} is {_named(self.stated[key])}{join}{why}")
        else:
            self.faults.append(f"there is no {key}")

    def number(self, key: str) -> float | None:
        """Return a finite number; None for none. The bridge writes NaN, Infinity and a bigint as texts."""
        value = self.stated.get(key)
        number = _finite(value)
        if value is not None and number is None:
            self.wrong(key, "not a finite number")
        return number

    def text(self, key: str) -> str:
        """Return a text; empty for none."""
        value = self.stated.get(key)
        if value is None or isinstance(value, str):
            return value or ""
        self.wrong(key, "not text")
        return ""

    def check(self, where: str = "") -> None:
        """Raise when anything is wrong."""
        if self.faults:
            cut = " (the answer was too large and was cut)" if _CUT in self.stated else ""
            raise MalformedAnswerError(where + "; ".join(self.faults) + cut)


def _scenario(number: int, entry: JsonValue) -> ScenarioMeta:
    if not isinstance(entry, dict):
        raise MalformedAnswerError(f"scenario {number} is {_named(entry)}, not an object")
    answer = _Answer(entry)
    identity = entry.get("id")
    if not isinstance(identity, str) or not identity.strip():
        answer.wrong("id", "not a text with something in it")
    elif _BREAK.search(identity) or len(identity) > _LONGEST_ID:
        answer.wrong("id", f"not one line of at most {_LONGEST_ID} characters")
    title, category = answer.text("title"), answer.text("category")
    description, prompt = answer.text("description"), answer.text("promptText")
    tags = entry.get("tags") or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        answer.wrong("tags", "not a list of texts")
    answer.check(f"scenario {number}: ")
    return ScenarioMeta(
        id=str(identity),
        title=title if title.strip() else str(identity),
        category=category,
        description=description,
        prompt_text=prompt,
        tags=texts(tags),
        cards=tuple(_cards(entry.get("detailCards"))),
        stated=entry,
    )


def _cards(listed: JsonValue) -> Iterator[tuple[str, str]]:
    for card in listed if isinstance(listed, list) else ():
        if isinstance(card, dict):
            title = card.get("title", card.get("label"))
            content = card.get("content")
            if isinstance(title, str) and isinstance(content, str):
                yield title, content


def _categories(answer: _Answer, listed: list[JsonValue]) -> Iterator[JsonObject]:
    for number, entry in enumerate(listed, start=1):
        if not isinstance(entry, dict):
            answer.faults.append(f"category {number} is {_named(entry)}, not an object")
            continue
        names = [entry[key] for key in ("id", "label") if isinstance(entry.get(key), str)]
        if not names:
            answer.faults.append(f"category {number} has neither an id nor a label")
            continue
        yield {**entry, "id": names[0], "label": names[-1], "score": _finite(entry.get("score"))}


def _mapping(value: JsonValue, who: str) -> JsonObject:
    if isinstance(value, dict):
        return value
    what = "nothing (undefined or null)" if value is None else f"{_named(value)}, not an object"
    raise MalformedAnswerError(f"{who} returned {what}")


def _finite(value: JsonValue) -> float | None:
    """Return a number that a float can hold; None for anything else."""
    return float(value) if is_number(value) and abs(value) <= sys.float_info.max else None


def _named(value: JsonValue) -> str:
    """Return a value as sentences name it, cut where it is long."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f"'{excerpt(value, 60)}'" if value.strip() else "blank text"
    return excerpt(json.dumps(value), 60)
