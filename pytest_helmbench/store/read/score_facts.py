"""The plan of a run with its verdicts: everything a score is made of."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from pytest_helmbench.core.case import BrokenCase
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outline import Scoring
from pytest_helmbench.core.sample import Sample
from pytest_helmbench.store.plan_rows import IS_CASE, broken_cases, defined_cases, planned_codes, sample_of
from pytest_helmbench.store.read.connection import reading
from pytest_helmbench.store.read.judged_replies import credits_of

_ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class CriterionVerdict:
    """One evaluation row: passed or not, and its credit in [0, 1]."""

    passed: bool
    credit: float


@dataclass(frozen=True, slots=True)
class FlatRow:
    """A scenario that belongs to no behaviour: its family, and what it shares with others.

    A row of a pack shares metadata, a scenario of a Bench Pack its category. Rows of one `cluster` (a passage) stand
    or fall together.
    """

    family: str
    groups: Mapping[str, str]
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run as a score sees it.

    Args:
        scope: `whole`, `selected`, `shard` or `by_outcome`.
        codes: Planned cases; without those that have turned out to be none (`IS_CASE`).
        repeat: Repetitions per case.
        scoring: Weights, floors and cap of the benchmark when it ran; None without scoring.yaml.
        weights: Severity of every perturbation and user context, difficulty of every condition of the whole
            benchmark, by full code.
        criteria: Names of the criteria by scenario code; one empty name where there is only one.
        contexts: Full codes of the user contexts by scenario code.
        conditions: Full codes of the conditions by scenario code.
        perturbations: Full codes of the perturbations by scenario code.
        labels: The label that each scenario expects, by its code; absent where it expects no single one.
        titles: Names of pillars and titles of behaviours by code, as their READMEs say; absent without one.
        verdicts: By case code, repetition and criterion; absent where unjudged.
        rows: Family and groups by scenario of a benchmark without behaviours; None for one that has some.
        broken: Cases that could not run: planned and never judged, beside `codes`.
        sample: What the planned cases were drawn as; None for all that were selected.
    """

    scope: str
    codes: tuple[str, ...]
    repeat: int
    scoring: Scoring | None
    weights: Mapping[str, int]
    criteria: Mapping[str, tuple[str, ...]]
    contexts: Mapping[str, tuple[str, ...]]
    conditions: Mapping[str, tuple[str, ...]]
    perturbations: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, str]
    titles: Mapping[str, str]
    verdicts: Mapping[tuple[str, int, str], CriterionVerdict]
    rows: Mapping[str, FlatRow] | None = None
    broken: tuple[BrokenCase, ...] = ()
    sample: Sample | None = None

    def weight_of(self, code: str) -> Fraction:
        """Return what the points of a planned case are multiplied by, since a sample has left others out."""
        return _ONE if self.sample is None else self.sample.weights.get(code, _ONE)

    @property
    def complete(self) -> bool:
        """Whether every planned case has been judged in every repetition: none of a broken file has."""
        if self.broken:
            return False
        judged = {(code, repetition) for code, repetition, _ in self.verdicts}
        return all((code, number) in judged for code in self.codes for number in range(1, self.repeat + 1))


def defined_codes(path: Path, run_id: int) -> frozenset[str]:
    """Return the cases that the files of a run's benchmark defined, read whole; none where that is not known."""
    with reading(path) as conn:
        return defined_cases(conn, run_id)


def load_facts(path: Path, run_id: int) -> RunFacts | None:
    """Return what the score of a run is made of; None when there is no such run."""
    with reading(path) as conn:
        return _facts(conn, run_id)


def _facts(conn: sqlite3.Connection, run_id: int) -> RunFacts | None:
    run = conn.execute(
        "SELECT scope, benchmark_id, settings FROM evaluation_runs WHERE id = ?", (run_id,)
    ).fetchone()
    if run is None:
        return None
    scope, benchmark_id, settings_json = run
    settings: Mapping[str, Any] = json.loads(settings_json)
    none = {code for (code,) in conn.execute(_NO_CASES, (run_id,))}
    codes = [code for code in planned_codes(conn, run_id) if code not in none]
    contexts = _by_scenario(conn, _CONTEXTS, benchmark_id)
    perturbations = _by_scenario(conn, _PERTURBATIONS, benchmark_id)
    conditions = _by_scenario(conn, _CONDITIONS, benchmark_id)
    weights = {
        code: weight
        for components in (contexts, perturbations, conditions)
        for parts in components.values()
        for code, weight in parts
    }
    return RunFacts(
        scope=scope,
        codes=tuple(codes),
        repeat=int(settings.get("repeat") or 1),
        scoring=_scoring(settings.get("scoring")),
        weights=weights,
        criteria=_criteria(conn, benchmark_id),
        contexts=_codes(contexts),
        conditions=_codes(conditions),
        perturbations=_codes(perturbations),
        labels=dict(conn.execute(_LABELS, (benchmark_id,)).fetchall()),
        titles={code: title for code, title in conn.execute(_TITLES, {"id": benchmark_id}) if title},
        verdicts=_verdicts(conn, run_id),
        rows=_flat_rows(conn, benchmark_id, settings.get("cluster")),
        broken=broken_cases(conn, run_id),
        sample=sample_of(conn, run_id),
    )


def _verdicts(conn: sqlite3.Connection, run_id: int) -> dict[tuple[str, int, str], CriterionVerdict]:
    """Return the verdicts of a run; equal ones are one object, since a run may have a million."""
    shared: dict[tuple[bool, float], CriterionVerdict] = {}
    found: dict[tuple[str, int, str], CriterionVerdict] = {}
    for code, repetition, criterion, passed, credit, _ in credits_of(conn, run_id):
        verdict = shared.get((passed, credit))
        if verdict is None:
            verdict = shared[passed, credit] = CriterionVerdict(passed, credit)
        found[code, repetition, criterion] = verdict
    return found


def _flat_rows(
    conn: sqlite3.Connection, benchmark_id: str, cluster: str | None
) -> Mapping[str, FlatRow] | None:
    if conn.execute("SELECT 1 FROM pillars WHERE benchmark_id = ?", (benchmark_id,)).fetchone() is not None:
        return None
    found = conn.execute(
        "SELECT code, family, evaluation FROM scenarios WHERE benchmark_id = ?", (benchmark_id,)
    )
    return {code: _flat_row(family, json.loads(about), cluster) for code, family, about in found}


def _flat_row(family: str, about: Mapping[str, Any], key: str | None) -> FlatRow:
    key = key or about.get("cluster")
    value = about.get("clusters", {}).get(key)
    return FlatRow(family, about["groups"], None if value is None else f"{key} {value}")


_PARTS = (
    "SELECT scenarios.full_code, part.full_code, part.{weight} FROM {table} AS part"
    " JOIN scenarios ON scenarios.id = part.scenario_id WHERE scenarios.benchmark_id = ? ORDER BY part.rowid"
)
_CONTEXTS = _PARTS.format(table="user_contexts", weight="severity")
_CONDITIONS = _PARTS.format(table="conditions", weight="difficulty")
_PERTURBATIONS = _PARTS.format(table="perturbations", weight="severity")
_SCENARIOS = (
    "SELECT full_code, evaluation FROM scenarios WHERE benchmark_id = ? AND behaviour_id IS NOT NULL"
    " ORDER BY rowid"
)
_LABELS = "SELECT full_code, expected_category FROM scenarios WHERE benchmark_id = ? AND expected_category IS NOT NULL"
_TITLES = (
    "SELECT code, name FROM pillars WHERE benchmark_id = :id UNION ALL"
    " SELECT pillars.code || '-' || behaviours.code, behaviours.title FROM behaviours"
    " JOIN pillars ON pillars.id = behaviours.pillar_id WHERE pillars.benchmark_id = :id"
)
_NO_CASES = f"SELECT code FROM results WHERE run_id = ? GROUP BY code HAVING NOT max({IS_CASE})"


def _by_scenario(conn: sqlite3.Connection, query: str, benchmark_id: str) -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for scenario, code, weight in conn.execute(query, (benchmark_id,)):
        found.setdefault(scenario, []).append((code, weight))
    return found


def _codes(components: Mapping[str, list[tuple[str, int]]]) -> dict[str, tuple[str, ...]]:
    return {scenario: tuple(code for code, _ in parts) for scenario, parts in components.items()}


def _criteria(conn: sqlite3.Connection, benchmark_id: str) -> dict[str, tuple[str, ...]]:
    found = {}
    for scenario, evaluation in conn.execute(_SCENARIOS, (benchmark_id,)):
        criteria = json.loads(evaluation).get("criteria") or [{"name": ""}]
        found[scenario] = tuple(str(criterion["name"]) for criterion in criteria)
    return found


def _scoring(value: Any) -> Scoring | None:
    if not isinstance(value, dict):
        return None
    return Scoring(value.get("weights") or {}, value.get("floors") or {}, value.get("cap"))
