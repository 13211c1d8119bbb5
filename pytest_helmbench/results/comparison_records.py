"""Comparisons in JSON types, as `compare --json` and the JSON report have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from pytest_helmbench.results.comparing import RunComparison
from pytest_helmbench.results.differences import Difference, SideBySide
from pytest_helmbench.scoring.changes import Conclusion
from pytest_helmbench.scoring.comparison import ScopeChange

_COUNTS = (
    "cases_compared",
    "cases_left_out",
    "cases_changed",
    "cases_not_selected",
    "rows_by_other_rules",
    "recorded",
)
_FLIPS = ("newly_failing", "newly_passing")
_SCORES = ("score", "baseline_score", "change")
_OF_CHANGE = ("low", "high", "p", "units", "changed", "down", "up", "least_p")
_OF_BEHAVIOUR = ("code", "pairs", "changed", "p", "p_adjusted", "word")


def comparison_records(found: RunComparison) -> list[dict[str, object]]:
    """Return a comparison in JSON types, one object for the run and each named part; one where there is none."""
    scopes = {scope.code: scope for scope in found.scopes}
    missing = [limit for limit in found.limits if limit.code not in scopes]
    behaviours = [
        {name: getattr(behaviour, name) for name in _OF_BEHAVIOUR}
        | {name: float(getattr(behaviour, name)) for name in _SCORES}
        for behaviour in found.behaviours
    ]
    shared = {
        "baseline_run": None if found.baseline is None else found.baseline.name,
        "candidate_run": None if found.candidate is None else found.candidate.run_id,
        "model": found.model,
        "benchmark": None if found.candidate is None else found.candidate.benchmark.name,
        **{name: getattr(found, name) for name in _COUNTS},
        **{
            name: [{"code": case.code, "severity": case.severity} for case in getattr(found, name)]
            for name in _FLIPS
        },
        "gone": list(found.gone),
        "uncounted": list(found.uncounted),
        "rules_changed": _changes(found.rules_changed),
        "common": None if found.common is None else float(found.common),
        **_beside(found.beside),
        "behaviours": behaviours,
    }
    nothing = dict.fromkeys(
        (*_SCORES, *_OF_CHANGE, "p_two_sided", "direction", "level", "unit", "detectable")
    )
    records: list[dict[str, object]] = [
        {
            **nothing,
            "scope": limit.code,
            "max_drop": float(limit.drop),
            "verdict": Conclusion.NOT_COMPARABLE.value,
            "reason": found.reason or f"no case of {limit.code} is in both runs",
        }
        for limit in missing
    ]
    records += [_scope_record(found, scope) for scope in found.scopes]
    return [shared | record for record in records]


def _scope_record(found: RunComparison, scope: ScopeChange) -> dict[str, object]:
    return {
        "scope": scope.code,
        "score": float(scope.score),
        "baseline_score": float(scope.baseline_score),
        "change": float(scope.change.change),
        **{name: getattr(scope.change, name) for name in _OF_CHANGE},
        "p_two_sided": scope.p_two_sided,
        "direction": scope.direction,
        "low": scope.low,
        "high": scope.high,
        "level": 0.95,
        "max_drop": float(scope.drop),
        "unit": scope.unit,
        "detectable": scope.detectable,
        "verdict": found.verdict_of(scope).value,
        "reason": found.reason_of(scope),
    }


def _beside(found: SideBySide | None) -> dict[str, object]:
    if found is None:
        return dict.fromkeys(("before", "after", "differing"))
    differing = _changes(found.differing)
    return {**asdict(found.changed), "before": found.before, "after": found.after, "differing": differing}


def _changes(found: Sequence[Difference]) -> list[dict[str, object]]:
    return [dict(zip(("setting", "before", "after"), setting, strict=True)) for setting in found]
