"""Two runs beside each other, apart from the change of the score: settings, cost, speed, verdicts that changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.scoring.breakdown import speed_of
from pytest_helmbench.store.read.costs import costs
from pytest_helmbench.store.read.judged_replies import judged_cases
from pytest_helmbench.store.read.results import timed_cases
from pytest_helmbench.store.read.runs import DECIDING, RunDetail, run_detail

RunPlace: TypeAlias = tuple[Path, int]
"""A results file, and the number of a run in it."""
Difference: TypeAlias = tuple[str, JsonValue, JsonValue]
"""A setting with both values; None where a run has none."""


@dataclass(frozen=True, slots=True)
class ChangedVerdicts:
    """Changes of verdicts and credits in the cases × repetitions that two runs have judged, whatever the rules.

    Args:
        now_pass: Failed in the first run; a case passes with full credit for each criterion.
        now_fail: Passed in the first run.
        credits_changed: Earned another credit, those that changed their verdict among them.
        same: Verdict as before.
    """

    now_pass: int
    now_fail: int
    credits_changed: int
    same: int


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Two stored runs beside each other.

    Args:
        before: `score`, `cost_usd`, `median_ms` of a case, `errors` and `tokens` of the first run; None is unknown.
        after: Likewise of the second run.
        differing: What can change an answer or a verdict.
        is_rescored: One of them holds replies that were judged again.
    """

    before: Mapping[str, float | None]
    after: Mapping[str, float | None]
    differing: tuple[Difference, ...]
    changed: ChangedVerdicts
    is_rescored: bool


def side_by_side(first: RunPlace, second: RunPlace) -> SideBySide | None:
    """Return two runs beside each other; None where a results file is not at hand."""
    if any(path.suffix == ".json" or not path.is_file() for path, _ in (first, second)):
        return None
    before, after = run_detail(*first), run_detail(*second)
    if before is None or after is None:
        return None
    differing = tuple(differing_settings(before, after))
    figures = _figures(first, before), _figures(second, after)
    is_rescored = before.rescored_from is not None or after.rescored_from is not None
    return SideBySide(*figures, differing, changed_verdicts(first, second), is_rescored)


def _figures(place: RunPlace, run: RunDetail) -> dict[str, float | None]:
    tokens = sum((row.prompt_tokens or 0) + (row.completion_tokens or 0) for row in costs(*place))
    median_ms = speed_of(timed_cases(place[0], place[1:])).median_ms
    figures = {"score": run.score, "cost_usd": run.cost_usd, "median_ms": median_ms}
    return {**figures, "errors": run.count("error"), "tokens": tokens}


def changed_verdicts(first: RunPlace, second: RunPlace) -> ChangedVerdicts:
    """Count what differs between the judged cases of two runs."""
    before, after = judged_cases(*first), judged_cases(*second)
    both = [(before[code].replies, case.replies) for code, case in after.items() if code in before]
    pairs = [pair for replies in both for pair in zip(*replies, strict=False)]
    passed = [tuple(all(credit == 1 for credit in reply.values()) for reply in pair) for pair in pairs]
    now_pass, now_fail = passed.count((False, True)), passed.count((True, False))
    credits_changed = sum(before != after for before, after in pairs)
    return ChangedVerdicts(now_pass, now_fail, credits_changed, len(pairs) - now_pass - now_fail)


def differing_settings(first: RunDetail, second: RunDetail) -> Iterator[Difference]:
    """Yield what differs of two runs and can change an answer or a verdict, each option of sampling apart."""
    earlier, later = dict(_deciding(first)), dict(_deciding(second))
    if earlier["model_id"] == first.model and later["model_id"] == second.model:
        del earlier["model_id"], later["model_id"]  # their names say it
    if earlier["server"] != later["server"]:
        del earlier["address"], later["address"]
    for name in dict.fromkeys((*earlier, *later)):
        values = earlier.get(name), later.get(name)
        if values[0] != values[1]:
            yield name, *values


def _deciding(run: RunDetail) -> Iterator[tuple[str, JsonValue]]:
    yield from (("content", run.benchmark_hash), ("pytest-helmbench", run.plugin_version))
    yield "model_id", run.settings.get("variant_of") or run.model
    yield "server", server_name(run.base_url or "") or run.provider or None
    yield "address", hashlib.sha256((run.base_url or "").encode()).hexdigest()
    for name in (*DECIDING, "versions", "repeat"):
        value = run.settings.get(name) or None
        if name.endswith("sampling") and isinstance(value, dict):
            for option, of in value.items():
                own = name.replace("sampling", option)
                if isinstance(of, dict):
                    yield from ((f"{own}.{excerpt(key, 60)}", value) for key, value in of.items())
                else:
                    yield own, of
        else:
            yield name, value


def scoring_rules(
    before: Mapping[str, JsonValue] | None, after: Mapping[str, JsonValue] | None
) -> Iterator[Difference]:
    """Yield floors, weights and cap of two benchmarks; nothing where one is unknown."""
    if before is None or after is None:
        return
    for key, noun, default in (("floors", "floor", None), ("weights", "weight", 1)):
        first, second = by_code(before, key), by_code(after, key)
        for code in sorted({*first, *second}, key=natural_key):
            yield f"{noun} of {code}", first.get(code, default), second.get(code, default)
    yield "cap", before.get("cap"), after.get("cap")


def by_code(scoring: Mapping[str, JsonValue] | None, key: str) -> Mapping[str, JsonValue]:
    """Return the `weights` or `floors` of a benchmark by code; empty for none."""
    found = None if scoring is None else scoring.get(key)
    return found if isinstance(found, dict) else {}


def server_name(base_url: str) -> str:
    """Return host and port of an address: the rest of a private one stays private."""
    try:
        return urlsplit(base_url).netloc.rpartition("@")[2]
    except ValueError:
        return ""
