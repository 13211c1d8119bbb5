"""Comparisons in JSON types: what commands print and what the table `comparisons` keeps."""

from __future__ import annotations

from fractions import Fraction

from pytest_helmbench.results.comparing import RunComparison
from pytest_helmbench.scoring.changes import Conclusion
from pytest_helmbench.scoring.comparison import BehaviourChange, ScopeChange

__all__ = ["comparison_records"]


def comparison_records(found: RunComparison) -> list[dict[str, object]]:
    """Return a comparison in JSON types, one object for the run and each named part; one where there is none."""
    shared: dict[str, object] = {
        "baseline_run": None if found.baseline is None else found.baseline.name,
        "candidate_run": None if found.candidate is None else found.candidate.run_id,
        "model": found.model,
        "benchmark": None if found.candidate is None else found.candidate.benchmark.name,
    }
    counts = {
        "cases_compared": found.cases_compared,
        "cases_left_out": found.cases_left_out,
        "cases_changed": found.cases_changed,
        "rows_by_other_rules": found.rows_by_other_rules,
        "recorded": found.recorded,
        "common": _number(found.common),
    }
    behaviours = [_behaviour(one) for one in found.behaviours]
    compared = {scope.code for scope in found.scopes}
    nothing: dict[str, object] = dict.fromkeys(_SCOPE)
    missing = [
        {
            **shared,
            "scope": limit.code,
            **nothing,
            "max_drop": float(limit.drop),
            **counts,
            "verdict": Conclusion.NOT_COMPARABLE.value,
            "reason": found.reason or f"no case of {limit.code} is in both runs",
            "behaviours": behaviours,
        }
        for limit in found.limits
        if limit.code not in compared
    ]
    return missing + [
        {
            **shared,
            **_scope(scope),
            **counts,
            "verdict": found.verdict_of(scope).value,
            "reason": found.reason_of(scope),
            "behaviours": behaviours,
        }
        for scope in found.scopes
    ]


_SCOPE = (
    "score",
    "baseline_score",
    "change",
    "low",
    "high",
    "level",
    "p",
    "max_drop",
    "unit",
    "units",
    "changed",
    "down",
    "up",
    "least_p",
    "detectable",
)


def _scope(scope: ScopeChange) -> dict[str, object]:
    change = scope.change
    return {
        "scope": scope.code,
        "score": float(scope.score),
        "baseline_score": float(scope.baseline_score),
        "change": float(change.change),
        "low": change.low,
        "high": change.high,
        "level": 0.9,
        "p": change.p,
        "max_drop": float(scope.drop),
        "unit": scope.unit,
        "units": change.units,
        "changed": change.changed,
        "down": change.down,
        "up": change.up,
        "least_p": change.least_p,
        "detectable": scope.detectable,
    }


def _behaviour(one: BehaviourChange) -> dict[str, object]:
    return {
        "code": one.code,
        "score": float(one.score),
        "baseline_score": float(one.baseline_score),
        "change": float(one.change),
        "pairs": one.pairs,
        "changed": one.changed,
        "p": one.p,
        "p_adjusted": one.p_adjusted,
        "word": one.word,
    }


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
