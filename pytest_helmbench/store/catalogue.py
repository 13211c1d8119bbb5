"""The rows that describe a benchmark of any kind: written once per content, found again by code."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outline import (
    BehaviourEntry,
    CaseAxes,
    Outline,
    PartEntry,
    PillarEntry,
    ScenarioEntry,
)
from pytest_helmbench.store.cells import as_json, safe_text
from pytest_helmbench.store.named_rows import insert_into

__all__ = ["CatalogueIds", "RowIds", "write_benchmark", "write_llm"]


@dataclass(frozen=True, slots=True)
class RowIds:
    """Where a case points, by column of `results`; None where it has no such axis or the file does not know it."""

    scenario_id: int | None = None
    condition_id: int | None = None
    user_context_id: int | None = None
    perturbation_id: int | None = None


@dataclass(frozen=True, slots=True)
class CatalogueIds:
    """Row ids of one benchmark by full code."""

    benchmark_id: int
    outline: Outline
    scenarios: dict[str, int]
    conditions: dict[str, int]
    user_contexts: dict[str, int]
    perturbations: dict[str, int]

    def rows(self, code: str) -> RowIds:
        """Return the rows behind a case."""
        axes: CaseAxes = self.outline.axes(code)
        return RowIds(
            self.scenarios.get(safe_text(axes.scenario)),
            self.conditions.get(axes.condition),
            self.user_contexts.get(axes.user_context),
            self.perturbations.get(axes.perturbation),
        )


def write_llm(conn: sqlite3.Connection, name: str, provider: str, base_url: str | None) -> int:
    """Return the row of a model, new or not."""
    values = (safe_text(name), safe_text(provider), base_url)
    conn.execute("INSERT OR IGNORE INTO llms (name, provider, base_url) VALUES (?, ?, ?)", values)
    return _only(
        conn.execute("SELECT id FROM llms WHERE name = ? AND provider = ? AND base_url IS ?", values)
    )


def write_benchmark(conn: sqlite3.Connection, outline: Outline, codes: Iterable[str]) -> CatalogueIds:
    """Write what the file does not have yet of a benchmark and return its ids.

    A benchmark of the same name, version and hash is reused. Names and descriptions are taken anew; scenarios that
    an earlier, partial load left out are added.

    Args:
        conn: Inside a write transaction.
        outline: As loaded.
        codes: Planned cases.
    """
    benchmark_id = _write_identity(conn, outline)
    catalogue = outline.catalogue(codes)
    _write_pillars(conn, benchmark_id, catalogue.pillars)
    behaviours = _write_behaviours(conn, benchmark_id, catalogue.behaviours)
    known = _ids(conn, _SCENARIO_IDS, benchmark_id)
    for scenario in catalogue.scenarios:
        if safe_text(scenario.full_code) not in known:
            _write_scenario(conn, scenario, benchmark_id, behaviours)
        elif isinstance(scenario.about, dict) and (clusters := scenario.about.get("clusters")):
            # Another session may have counted other clusters of the same rows: those of both are kept.
            conn.execute(
                _ADD_CLUSTERS, (as_json({"clusters": clusters}), known[safe_text(scenario.full_code)])
            )
    return CatalogueIds(
        benchmark_id,
        outline,
        _ids(conn, _SCENARIO_IDS, benchmark_id),
        _ids(conn, _CONDITION_IDS, benchmark_id),
        _ids(conn, _USER_CONTEXT_IDS, benchmark_id),
        _ids(conn, _PERTURBATION_IDS, benchmark_id),
    )


def _write_identity(conn: sqlite3.Connection, outline: Outline) -> int:
    identity = (safe_text(outline.name), safe_text(outline.version), outline.hash)
    conn.execute(
        "INSERT INTO benchmarks (name, version, hash, description, kind) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (name, version, hash) DO UPDATE SET description = excluded.description",
        (*identity, safe_text(outline.description), outline.kind),
    )
    return _only(
        conn.execute("SELECT id FROM benchmarks WHERE name = ? AND version = ? AND hash = ?", identity)
    )


def _write_pillars(conn: sqlite3.Connection, benchmark_id: int, pillars: Iterable[PillarEntry]) -> None:
    conn.executemany(
        "INSERT INTO pillars (benchmark_id, code, name, description)"
        " VALUES (:benchmark_id, :code, :name, :description)"
        " ON CONFLICT (benchmark_id, code)"
        " DO UPDATE SET name = excluded.name, description = excluded.description",
        [
            {
                "benchmark_id": benchmark_id,
                "code": pillar.code,
                "name": safe_text(pillar.name),
                "description": safe_text(pillar.description),
            }
            for pillar in pillars
        ],
    )


def _write_behaviours(
    conn: sqlite3.Connection, benchmark_id: int, behaviours: Iterable[BehaviourEntry]
) -> dict[str, int]:
    conn.executemany(
        "INSERT INTO behaviours (pillar_id, code, title, description, compliance_criteria, weight)"
        " SELECT id, :code, :title, :description, :compliance_criteria, :weight FROM pillars"
        " WHERE benchmark_id = :benchmark_id AND code = :pillar"
        " ON CONFLICT (pillar_id, code) DO UPDATE SET title = excluded.title,"
        " description = excluded.description, compliance_criteria = excluded.compliance_criteria",
        [
            {
                "benchmark_id": benchmark_id,
                "pillar": behaviour.pillar,
                "code": behaviour.code.rpartition("-")[2],
                "title": safe_text(behaviour.title),
                "description": safe_text(behaviour.description),
                "compliance_criteria": safe_text(behaviour.compliance_criteria),
                "weight": behaviour.weight,
            }
            for behaviour in behaviours
        ],
    )
    return _ids(conn, _BEHAVIOUR_IDS, benchmark_id)


def _write_scenario(
    conn: sqlite3.Connection, scenario: ScenarioEntry, benchmark_id: int, behaviours: dict[str, int]
) -> None:
    """A scenario belongs to its behaviour, or where it has none to the benchmark itself."""
    scenario_id = _insert(
        conn,
        "scenarios",
        benchmark_id=None if scenario.behaviour else benchmark_id,
        behaviour_id=behaviours[scenario.behaviour] if scenario.behaviour else None,
        code=safe_text(scenario.code),
        full_code=safe_text(scenario.full_code),
        title=safe_text(scenario.title),
        family=safe_text(scenario.family),
        expected_category=None if scenario.category is None else safe_text(scenario.category),
        schema=None if scenario.schema is None else as_json(scenario.schema),
        evaluation=as_json(scenario.about),
        text_id=None if scenario.text is None else _write_text(conn, scenario.text),
    )
    for part in scenario.perturbations:
        _insert(
            conn, "perturbations", scenario_id=scenario_id, severity=part.weight, **_part_cells(conn, part)
        )
    for part in scenario.conditions:
        condition_id = _insert(conn, "conditions", difficulty=part.weight, **_part_cells(conn, part))
        _insert(conn, "scenario_conditions", scenario_id=scenario_id, condition_id=condition_id)
    for part in scenario.user_contexts:
        context_id = _insert(conn, "user_contexts", severity=part.weight, **_part_cells(conn, part))
        _insert(conn, "scenario_user_contexts", scenario_id=scenario_id, user_context_id=context_id)


def _part_cells(conn: sqlite3.Connection, part: PartEntry) -> dict[str, str | int]:
    return {"code": part.code, "full_code": part.full_code, "text_id": _write_text(conn, part.text)}


def _insert(conn: sqlite3.Connection, table: str, **cells: str | int | None) -> int:
    row_id = conn.execute(insert_into(table, cells), cells).lastrowid
    assert row_id is not None  # an INSERT always has one
    return row_id


def _write_text(conn: sqlite3.Connection, body: str) -> int:
    kept = safe_text(body)
    digest = hashlib.sha256(kept.encode()).hexdigest()
    conn.execute("INSERT OR IGNORE INTO texts (hash, body) VALUES (?, ?)", (digest, kept))
    return _only(conn.execute("SELECT id FROM texts WHERE hash = ?", (digest,)))


_ADD_CLUSTERS = "UPDATE scenarios SET evaluation = json_patch(evaluation, ?) WHERE id = ?"
_BEHAVIOUR_IDS = (
    "SELECT pillars.code || '-' || behaviours.code, behaviours.id FROM behaviours"
    " JOIN pillars ON pillars.id = behaviours.pillar_id WHERE pillars.benchmark_id = :id"
)
_OF_BENCHMARK = (
    " JOIN behaviours ON behaviours.id = scenarios.behaviour_id"
    " JOIN pillars ON pillars.id = behaviours.pillar_id WHERE pillars.benchmark_id = :id"
)
_SCENARIO_IDS = (
    "SELECT full_code, id FROM scenarios WHERE benchmark_id = :id UNION ALL"
    " SELECT scenarios.full_code, scenarios.id FROM scenarios" + _OF_BENCHMARK
)
_CONDITION_IDS = (
    "SELECT conditions.full_code, conditions.id FROM conditions"
    " JOIN scenario_conditions AS link ON link.condition_id = conditions.id"
    " JOIN scenarios ON scenarios.id = link.scenario_id" + _OF_BENCHMARK
)
_USER_CONTEXT_IDS = (
    "SELECT user_contexts.full_code, user_contexts.id FROM user_contexts"
    " JOIN scenario_user_contexts AS link ON link.user_context_id = user_contexts.id"
    " JOIN scenarios ON scenarios.id = link.scenario_id" + _OF_BENCHMARK
)
_PERTURBATION_IDS = (
    "SELECT perturbations.full_code, perturbations.id FROM perturbations"
    " JOIN scenarios ON scenarios.id = perturbations.scenario_id" + _OF_BENCHMARK
)


def _ids(conn: sqlite3.Connection, query: str, benchmark_id: int) -> dict[str, int]:
    return dict(conn.execute(query, {"id": benchmark_id}).fetchall())


def _only(cursor: sqlite3.Cursor) -> int:
    (value,) = cursor.fetchone()
    return int(value)
