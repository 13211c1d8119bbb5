"""Comparisons in JSON types: what commands print and what the table `comparisons` keeps."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.results.comparing import (
    PlannedCase,
    RunComparison,
    RunRef,
)
from pytest_helmbench.results.differences import Beside
from pytest_helmbench.scoring.changes import Change, Conclusion
from pytest_helmbench.scoring.comparison import BehaviourChange, Limit, ScopeChange
from pytest_helmbench.scoring.rows import exact
from pytest_helmbench.store.leases import iso_time
from pytest_helmbench.store.read.runs import RunDetail, run_detail
from pytest_helmbench.store.write.comparison_rows import (
    StoredComparison,
    stored_comparisons,
    write_comparisons,
)

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
        {name: getattr(one, name) for name in _OF_BEHAVIOUR}
        | {name: float(getattr(one, name)) for name in _SCORES}
        for one in found.behaviours
    ]
    shared = {
        "baseline_run": None if found.baseline is None else found.baseline.name,
        "candidate_run": None if found.candidate is None else found.candidate.run_id,
        "model": found.model,
        "benchmark": None if found.candidate is None else found.candidate.benchmark.name,
        **{name: getattr(found, name) for name in _COUNTS},
        **{name: [_flip(case) for case in getattr(found, name)] for name in _FLIPS},
        "gone": list(found.gone),
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
        "level": 0.9,
        "max_drop": float(scope.drop),
        "unit": scope.unit,
        "detectable": scope.detectable,
        "verdict": found.verdict_of(scope).value,
        "reason": found.reason_of(scope),
    }


def _beside(found: Beside | None) -> dict[str, object]:
    if found is None:
        return dict.fromkeys(("before", "after", "differing"))
    differing = [dict(zip(("setting", "before", "after"), one, strict=True)) for one in found.differing]
    return {**asdict(found.changed), "before": found.before, "after": found.after, "differing": differing}


def keep_comparisons(path: Path, comparisons: Mapping[int, RunComparison]) -> None:
    """Write the comparisons of closed runs of a results file.

    Raises:
        StoreError: They cannot be written.
    """
    if not comparisons:
        return
    at = iso_time(time.time())
    rows = [
        {
            **record,
            "session_id": found.candidate.session_id if found.candidate is not None else "",
            "run_id": run_id,
            "at": at,
        }
        for run_id, found in comparisons.items()
        for record in comparison_records(found)
    ]
    write_comparisons(path, rows)


def comparison_of_session(path: Path, detail: RunDetail) -> RunComparison | None:
    """Return the comparison that the session of a run made, as the record has it; None where it made none.

    Raises:
        StoreError: The file cannot be read.
    """
    kept = sorted(stored_comparisons(path, detail.id), key=lambda one: bool(one.scope))
    if not kept:
        return None
    ref = RunRef.of(path, detail, path)
    limits = tuple(Limit(one.scope, exact(one.max_drop or 0)) for one in kept)
    first = kept[0]
    baseline = None
    if first.baseline_run is not None:
        number = first.baseline_run.removeprefix("run ")
        other = run_detail(path, int(number)) if number.isdecimal() else None
        # Where the run of another file stands is not on record: only its name is.
        named = (first.baseline_run, "", detail.key, detail.model, "", "")
        baseline = RunRef(Path("baseline.json"), 0, *named) if other is None else RunRef.of(path, other, path)
    return RunComparison(
        model=first.model,
        candidate=ref,
        baseline=baseline,
        limits=limits,
        scopes=tuple(_scope(one) for one in kept if one.change is not None),
        behaviours=tuple(_behaviour(one) for one in first.behaviours),
        cases_compared=first.cases_compared,
        cases_left_out=first.cases_left_out,
        cases_not_selected=first.cases_not_selected,
        newly_failing=tuple(map(_flipped, first.newly_failing)),
        newly_passing=tuple(map(_flipped, first.newly_passing)),
        gone=first.gone,
        allows_gone=bool(detail.settings.get("allow_gone")),
        common=None if first.common is None else Fraction(first.common),
        reason="" if any(one.change is not None for one in kept) else first.reason,
    ).with_both()


def _scope(one: StoredComparison) -> ScopeChange:
    verdict = Conclusion(one.verdict)
    if verdict in (Conclusion.COLLAPSED, Conclusion.NOT_COMPARABLE):
        verdict = Conclusion.INCONCLUSIVE  # a collapse is said by its behaviours
    return ScopeChange(
        code=one.scope,
        drop=exact(one.max_drop or 0),
        score=Fraction(one.score or 0),
        baseline_score=Fraction(one.baseline_score or 0),
        change=Change(
            change=Fraction(one.change or 0),
            low=one.low,
            high=one.high,
            p=1.0 if one.p is None else one.p,
            units=one.units or 0,
            changed=one.changed or 0,
            down=one.down or 0,
            up=one.up or 0,
            least_p=1.0 if one.least_p is None else one.least_p,
            verdict=verdict,
        ),
        unit=one.unit or "row",
        detectable=one.detectable,
        p_two_sided=1.0 if one.p_two_sided is None else one.p_two_sided,
    )


def _flip(case: PlannedCase) -> dict[str, object]:
    return {"code": case.code, "severity": case.severity}


def _flipped(one: Mapping[str, JsonValue]) -> PlannedCase:
    """Return a case of which the record has code and severity alone."""
    severity = one.get("severity")
    known = severity if isinstance(severity, int) else 0
    return PlannedCase(str(one.get("code")), "", "", "", stake=0, difficulty=0, criteria=0, severity=known)


def _behaviour(one: Mapping[str, JsonValue]) -> BehaviourChange:
    def number(name: str) -> float:
        value = one.get(name)
        return float(value) if isinstance(value, int | float) else 0.0

    return BehaviourChange(
        code=str(one.get("code")),
        score=Fraction(number("score")),
        baseline_score=Fraction(number("baseline_score")),
        units=None,
        pairs=int(number("pairs")),
        changed=int(number("changed")),
        p=number("p"),
        p_adjusted=number("p_adjusted"),
        word=str(one.get("word") or ""),
    )
