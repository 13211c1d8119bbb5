"""Planned cases of a run, and the plan with its verdicts read back: everything a score is made of."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from sys import intern
from typing import Any

from pytest_helmbench.core.case import BrokenCase
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.sample import Sample
from pytest_helmbench.core.weighting import Scoring
from pytest_helmbench.store.broken_cases import read_broken
from pytest_helmbench.store.fault import store_error
from pytest_helmbench.store.outcome_counts import IS_CASE
from pytest_helmbench.store.sample_rows import read_sample

__all__ = ["FlatRow", "RunFacts", "Verdict", "load_facts", "merge_plan", "planned_codes", "write_plan"]

_ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Verdict:
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
    titles: Mapping[str, str]
    verdicts: Mapping[tuple[str, int, str], Verdict]
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


def write_plan(conn: sqlite3.Connection, run_id: int, codes: Iterable[str]) -> None:
    """Keep the planned cases of a run, compressed."""
    packed = zlib.compress("\n".join(codes).encode("utf-8", "replace"))
    conn.execute("INSERT INTO plans (run_id, codes) VALUES (?, ?)", (run_id, packed))


def merge_plan(conn: sqlite3.Connection, run_id: int, codes: Iterable[str]) -> tuple[str, ...]:
    """Add cases to the plan of a run and return all it has planned now."""
    merged = tuple(dict.fromkeys((*filter(None, _planned_codes(conn, run_id)), *codes)))
    conn.execute("DELETE FROM plans WHERE run_id = ?", (run_id,))
    write_plan(conn, run_id, merged)
    return merged


def planned_codes(path: Path, run_id: int) -> frozenset[str]:
    """Return the planned cases of a run; none where there is no such run.

    Raises:
        StoreError: The file cannot be read.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as conn:
            return frozenset(filter(None, _planned_codes(conn, run_id)))
    except sqlite3.Error as error:
        raise store_error(path, error) from error


def load_facts(path: Path, run_id: int) -> RunFacts | None:
    """Return what the score of a run is made of; None when there is no such run.

    Raises:
        StoreError: The file cannot be read.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as conn:
            return _facts(conn, run_id)
    except sqlite3.Error as error:
        raise store_error(path, error) from error


def _facts(conn: sqlite3.Connection, run_id: int) -> RunFacts | None:
    run = conn.execute(
        "SELECT scope, benchmark_id, settings FROM evaluation_runs WHERE id = ?", (run_id,)
    ).fetchone()
    if run is None:
        return None
    scope, benchmark_id, settings_json = run
    settings: Mapping[str, Any] = json.loads(settings_json)
    none = {code for (code,) in conn.execute(_NO_CASES, (run_id,))}
    codes = [code for code in _planned_codes(conn, run_id) if code not in none]
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
        codes=tuple(code for code in codes if code),
        repeat=int(settings.get("repeat") or 1),
        scoring=_scoring(settings.get("scoring")),
        weights=weights,
        criteria=_criteria(conn, benchmark_id),
        contexts=_codes(contexts),
        conditions=_codes(conditions),
        perturbations=_codes(perturbations),
        titles={code: title for code, title in conn.execute(_TITLES, {"id": benchmark_id}) if title},
        verdicts=_verdicts(conn, run_id),
        rows=_flat_rows(conn, benchmark_id, settings.get("cluster")),
        broken=read_broken(conn, run_id),
        sample=read_sample(conn, run_id),
    )


def _verdicts(conn: sqlite3.Connection, run_id: int) -> dict[tuple[str, int, str], Verdict]:
    """Return the verdicts of a run; equal ones are one object, since a run may have a million."""
    shared: dict[tuple[int, float], Verdict] = {}
    found = {}
    for code, repetition, criterion, passed, credit in conn.execute(_VERDICTS, (run_id,)):
        verdict = shared.get((passed, credit))
        if verdict is None:
            verdict = shared[passed, credit] = Verdict(bool(passed), credit)
        found[code, repetition, intern(criterion)] = verdict
    return found


def _flat_rows(
    conn: sqlite3.Connection, benchmark_id: int, cluster: str | None
) -> Mapping[str, FlatRow] | None:
    # Asked first, since an older file, which has trees only, lacks the column of what belongs to no behaviour.
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


_OF_BENCHMARK = (
    " JOIN behaviours ON behaviours.id = scenarios.behaviour_id"
    " JOIN pillars ON pillars.id = behaviours.pillar_id WHERE pillars.benchmark_id = ?"
)
_CONTEXTS = (
    "SELECT scenarios.full_code, part.full_code, part.severity FROM user_contexts AS part"
    " JOIN scenario_user_contexts AS link ON link.user_context_id = part.id"
    " JOIN scenarios ON scenarios.id = link.scenario_id" + _OF_BENCHMARK
)
_CONDITIONS = (
    "SELECT scenarios.full_code, part.full_code, part.difficulty FROM conditions AS part"
    " JOIN scenario_conditions AS link ON link.condition_id = part.id"
    " JOIN scenarios ON scenarios.id = link.scenario_id" + _OF_BENCHMARK
)
_PERTURBATIONS = (
    "SELECT scenarios.full_code, part.full_code, part.severity FROM perturbations AS part"
    " JOIN scenarios ON scenarios.id = part.scenario_id" + _OF_BENCHMARK
)
_SCENARIOS = "SELECT scenarios.full_code, scenarios.evaluation FROM scenarios" + _OF_BENCHMARK
_TITLES = (
    "SELECT code, name FROM pillars WHERE benchmark_id = :id UNION ALL"
    " SELECT pillars.code || '-' || behaviours.code, behaviours.title FROM behaviours"
    " JOIN pillars ON pillars.id = behaviours.pillar_id WHERE pillars.benchmark_id = :id"
)
_NO_CASES = f"SELECT code FROM results WHERE run_id = ? GROUP BY code HAVING NOT max({IS_CASE})"
_VERDICTS = (
    "SELECT results.code, results.repetition, evaluations.criterion, evaluations.passed, evaluations.credit"
    " FROM results JOIN evaluations ON evaluations.result_id = results.id"
    " WHERE results.run_id = ? AND results.outcome IN ('passed', 'failed')"
)


def _by_scenario(conn: sqlite3.Connection, query: str, benchmark_id: int) -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for scenario, code, weight in conn.execute(query, (benchmark_id,)):
        found.setdefault(scenario, []).append((code, weight))
    return found


def _codes(components: Mapping[str, list[tuple[str, int]]]) -> dict[str, tuple[str, ...]]:
    return {scenario: tuple(code for code, _ in parts) for scenario, parts in components.items()}


def _criteria(conn: sqlite3.Connection, benchmark_id: int) -> dict[str, tuple[str, ...]]:
    found = {}
    for scenario, evaluation in conn.execute(_SCENARIOS, (benchmark_id,)):
        criteria = json.loads(evaluation).get("criteria") or [{"name": ""}]
        found[scenario] = tuple(str(criterion["name"]) for criterion in criteria)
    return found


def _planned_codes(conn: sqlite3.Connection, run_id: int) -> list[str]:
    """Return the planned cases; those with a result for a run from before plans were kept."""
    # Readers have no right to migrate: an older file may lack the table.
    table = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'plans'"
    if conn.execute(table).fetchone() is not None:
        plan = conn.execute("SELECT codes FROM plans WHERE run_id = ?", (run_id,)).fetchone()
        if plan is not None:
            return zlib.decompress(plan[0]).decode().split("\n")
    return [code for (code,) in conn.execute("SELECT DISTINCT code FROM results WHERE run_id = ?", (run_id,))]


def _scoring(value: Any) -> Scoring | None:
    if not isinstance(value, dict):
        return None
    return Scoring(value.get("weights") or {}, value.get("floors") or {}, value.get("cap"))
