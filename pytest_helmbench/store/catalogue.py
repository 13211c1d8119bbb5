"""The rows that describe a benchmark: written once per content, found again by code."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BenchPackOutline, ScenarioMeta
from pytest_helmbench.benchmarks.scenario_trees.tree import (
    Behaviour,
    Component,
    Pillar,
    Scenario,
    ScenarioTree,
)
from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.row_outline import PackOutline
from pytest_helmbench.store.cells import as_json, safe_text

__all__ = ["CodeIds", "PackIds", "RowIds", "write_benchmark", "write_llm"]


@dataclass(frozen=True, slots=True)
class RowIds:
    """Where a case points; None where it has no such axis or the file does not know it."""

    scenario: int | None = None
    condition: int | None = None
    user_context: int | None = None
    perturbation: int | None = None


@dataclass(frozen=True, slots=True)
class CodeIds:
    """Row ids of one benchmark by full code."""

    benchmark_id: int
    scenarios: dict[str, int]
    conditions: dict[str, int]
    user_contexts: dict[str, int]
    perturbations: dict[str, int]

    def rows(self, code: str) -> RowIds:
        """Return the rows behind a case code; all None for text that is no code."""
        parts = CaseCode.parse(code)
        if parts is None:
            return RowIds()
        scenario = f"{parts.pillar}-{parts.behaviour}-{parts.scenario}"
        return RowIds(
            self.scenarios.get(scenario),
            self.conditions.get(f"{scenario}-{parts.condition}"),
            self.user_contexts.get(f"{scenario}-{parts.user_context}"),
            self.perturbations.get(f"{scenario}-{parts.perturbation}"),
        )


@dataclass(frozen=True, slots=True)
class PackIds:
    """Row ids of one pack by the id of its row, of one Bench Pack by the id of its scenario."""

    benchmark_id: int
    scenarios: dict[str, int]

    def rows(self, code: str) -> RowIds:
        """Return the row behind a row's id."""
        return RowIds(self.scenarios.get(safe_text(code)))


def write_llm(conn: sqlite3.Connection, name: str, provider: str, base_url: str | None) -> int:
    """Return the row of a model, new or not."""
    values = (safe_text(name), safe_text(provider), base_url)
    conn.execute("INSERT OR IGNORE INTO llms (name, provider, base_url) VALUES (?, ?, ?)", values)
    return _only(
        conn.execute("SELECT id FROM llms WHERE name = ? AND provider = ? AND base_url IS ?", values)
    )


def write_benchmark(
    conn: sqlite3.Connection, benchmark: ScenarioTree | PackOutline | BenchPackOutline, codes: Iterable[str]
) -> CodeIds | PackIds:
    """Write what the file does not have yet of a benchmark and return its ids.

    A benchmark of the same name, version and hash is reused.

    Args:
        conn: Inside a write transaction.
        benchmark: As loaded.
        codes: Planned cases: of a pack, only their rows are written.
    """
    benchmark_id = _write_identity(conn, benchmark)
    if isinstance(benchmark, PackOutline):
        return _write_pack(conn, benchmark_id, benchmark, codes)
    if isinstance(benchmark, BenchPackOutline):
        return _write_bench_pack(conn, benchmark_id, benchmark)
    return _write_tree(conn, benchmark_id, benchmark)


def _write_identity(
    conn: sqlite3.Connection, benchmark: ScenarioTree | PackOutline | BenchPackOutline
) -> int:
    identity = (safe_text(benchmark.name), safe_text(benchmark.version), benchmark.hash)
    conn.execute(
        "INSERT INTO benchmarks (name, version, hash, description, kind) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (name, version, hash) DO UPDATE SET description = excluded.description",
        (*identity, safe_text(benchmark.description), benchmark.kind),
    )
    return _only(
        conn.execute("SELECT id FROM benchmarks WHERE name = ? AND version = ? AND hash = ?", identity)
    )


def _write_pack(
    conn: sqlite3.Connection, benchmark_id: int, pack: PackOutline, codes: Iterable[str]
) -> PackIds:
    known = _ids(conn, _PACK_IDS, benchmark_id)
    refs = (pack.rows[code] for code in codes if code in pack.rows and safe_text(code) not in known)
    conn.executemany(
        "INSERT INTO scenarios (benchmark_id, code, full_code, title, family, evaluation)"
        " VALUES (?, ?, ?, '', ?, ?)",
        [
            (
                benchmark_id,
                safe_text(ref.id),
                safe_text(ref.id),
                safe_text(ref.family),
                as_json({"type": "row", "groups": dict(ref.groups)}),
            )
            for ref in refs
        ],
    )
    return PackIds(benchmark_id, _ids(conn, _PACK_IDS, benchmark_id))


def _write_bench_pack(conn: sqlite3.Connection, benchmark_id: int, pack: BenchPackOutline) -> PackIds:
    """All scenarios, planned or not: the order of their ids is the pack's own."""
    known = _ids(conn, _PACK_IDS, benchmark_id)
    for scenario in pack.scenarios.values():
        if safe_text(scenario.id) not in known:
            _write_bench_pack_scenario(conn, benchmark_id, scenario, pack.kind)
    return PackIds(benchmark_id, _ids(conn, _PACK_IDS, benchmark_id))


def _write_bench_pack_scenario(
    conn: sqlite3.Connection, benchmark_id: int, scenario: ScenarioMeta, family: str
) -> None:
    about = {
        "type": "scenario",
        "groups": {"category": scenario.category} if scenario.category else {},
        "tags": scenario.tags,
        "description": scenario.description,
        "cards": [{"title": title, "content": content} for title, content in scenario.cards],
    }
    text_id = _write_text(conn, scenario.prompt_text) if scenario.prompt_text else None
    code = safe_text(scenario.id)
    conn.execute(
        "INSERT INTO scenarios (benchmark_id, code, full_code, title, family, evaluation, text_id)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (benchmark_id, code, code, safe_text(scenario.title), family, as_json(about), text_id),
    )


def _write_tree(conn: sqlite3.Connection, benchmark_id: int, benchmark: ScenarioTree) -> CodeIds:
    """Names and descriptions are taken anew, since they stand in READMEs, which the hash does not cover.

    Scenarios that an earlier, partial load left out are added.
    """
    _write_pillars(conn, benchmark_id, benchmark)
    behaviours = _write_behaviours(conn, benchmark_id, benchmark)
    known = _ids(conn, _SCENARIO_IDS, benchmark_id)
    for scenario in benchmark.scenarios.values():
        if scenario.code not in known:
            _write_scenario(conn, scenario, behaviours[scenario.behaviour])
    return CodeIds(
        benchmark_id,
        _ids(conn, _SCENARIO_IDS, benchmark_id),
        _ids(conn, _CONDITION_IDS, benchmark_id),
        _ids(conn, _USER_CONTEXT_IDS, benchmark_id),
        _ids(conn, _PERTURBATION_IDS, benchmark_id),
    )


def _write_pillars(conn: sqlite3.Connection, benchmark_id: int, benchmark: ScenarioTree) -> None:
    pillars = {scenario.pillar: Pillar(scenario.pillar) for scenario in benchmark.scenarios.values()}
    pillars |= {pillar: Pillar(pillar) for pillar in map(_pillar_of, benchmark.behaviours)}
    pillars |= {pillar.code: pillar for pillar in benchmark.pillars}
    conn.executemany(
        "INSERT INTO pillars (benchmark_id, code, name, description) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (benchmark_id, code)"
        " DO UPDATE SET name = excluded.name, description = excluded.description",
        [
            (benchmark_id, pillar.code, safe_text(pillar.name), safe_text(pillar.description))
            for pillar in pillars.values()
        ],
    )


def _write_behaviours(conn: sqlite3.Connection, benchmark_id: int, benchmark: ScenarioTree) -> dict[str, int]:
    behaviours = {
        scenario.behaviour: Behaviour(scenario.behaviour) for scenario in benchmark.scenarios.values()
    }
    behaviours |= {behaviour.code: behaviour for behaviour in benchmark.behaviours}
    weights = benchmark.scoring.weights if benchmark.scoring is not None else {}
    conn.executemany(
        "INSERT INTO behaviours (pillar_id, code, title, description, compliance_criteria, weight)"
        " SELECT id, ?, ?, ?, ?, ? FROM pillars WHERE benchmark_id = ? AND code = ?"
        " ON CONFLICT (pillar_id, code) DO UPDATE SET title = excluded.title,"
        " description = excluded.description, compliance_criteria = excluded.compliance_criteria",
        [
            (
                code.rpartition("-")[2],
                safe_text(behaviour.title),
                safe_text(behaviour.description),
                safe_text(behaviour.compliance_criteria),
                float(weights.get(code, 1)),
                benchmark_id,
                _pillar_of(behaviour),
            )
            for code, behaviour in behaviours.items()
        ],
    )
    return _ids(conn, _BEHAVIOUR_IDS, benchmark_id)


def _pillar_of(behaviour: Behaviour) -> str:
    return behaviour.code.partition("-")[0]


def _write_scenario(conn: sqlite3.Connection, scenario: Scenario, behaviour_id: int) -> None:
    schema = scenario.response_format
    scenario_id = conn.execute(
        "INSERT INTO scenarios (behaviour_id, code, full_code, title, family, expected_category, schema,"
        " evaluation, text_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            behaviour_id,
            scenario.code.rpartition("-")[2],
            scenario.code,
            safe_text(scenario.title),
            scenario.family,
            None if scenario.category is None else safe_text(scenario.category),
            None if schema is None else as_json(schema),
            as_json(scenario.rule.data()),
            _write_text(conn, scenario.body),
        ),
    ).lastrowid
    conn.executemany(
        "INSERT INTO perturbations (scenario_id, code, full_code, severity, text_id) VALUES (?, ?, ?, ?, ?)",
        [(scenario_id, *row) for row in _component_rows(conn, scenario.perturbations)],
    )
    for row in _component_rows(conn, scenario.conditions):
        condition_id = conn.execute(
            "INSERT INTO conditions (code, full_code, difficulty, text_id) VALUES (?, ?, ?, ?)", row
        ).lastrowid
        conn.execute("INSERT INTO scenario_conditions VALUES (?, ?)", (scenario_id, condition_id))
    for row in _component_rows(conn, scenario.user_contexts):
        context_id = conn.execute(
            "INSERT INTO user_contexts (code, full_code, severity, text_id) VALUES (?, ?, ?, ?)", row
        ).lastrowid
        conn.execute("INSERT INTO scenario_user_contexts VALUES (?, ?)", (scenario_id, context_id))


def _component_rows(
    conn: sqlite3.Connection, components: Iterable[Component]
) -> list[tuple[str, str, int, int]]:
    return [(part.code, part.full_code, part.weight, _write_text(conn, part.body)) for part in components]


def _write_text(conn: sqlite3.Connection, body: str) -> int:
    kept = safe_text(body)
    digest = hashlib.sha256(kept.encode()).hexdigest()
    conn.execute("INSERT OR IGNORE INTO texts (hash, body) VALUES (?, ?)", (digest, kept))
    return _only(conn.execute("SELECT id FROM texts WHERE hash = ?", (digest,)))


_PACK_IDS = "SELECT code, id FROM scenarios WHERE benchmark_id = ?"
_BEHAVIOUR_IDS = (
    "SELECT pillars.code || '-' || behaviours.code, behaviours.id FROM behaviours"
    " JOIN pillars ON pillars.id = behaviours.pillar_id WHERE pillars.benchmark_id = ?"
)
_OF_BENCHMARK = (
    " JOIN behaviours ON behaviours.id = scenarios.behaviour_id"
    " JOIN pillars ON pillars.id = behaviours.pillar_id WHERE pillars.benchmark_id = ?"
)
_SCENARIO_IDS = "SELECT scenarios.full_code, scenarios.id FROM scenarios" + _OF_BENCHMARK
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
    return dict(conn.execute(query, (benchmark_id,)).fetchall())


def _only(cursor: sqlite3.Cursor) -> int:
    (value,) = cursor.fetchone()
    return int(value)
