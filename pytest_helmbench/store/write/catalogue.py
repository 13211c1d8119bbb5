"""The rows that describe a benchmark of any kind: written once per content, found again by their content."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Cell
from pytest_helmbench.core.outline import Outline, ScenarioEntry
from pytest_helmbench.store.schema import id_of
from pytest_helmbench.store.table_rows import SqlTable, as_json, insert_into, safe_text

AXES = {
    "scenario_id": "scenarios",
    "condition_id": "conditions",
    "user_context_id": "user_contexts",
    "perturbation_id": "perturbations",
}
"""Columns of `results` that refer to a component of the case, and the tables that they refer to."""


@dataclass(frozen=True, slots=True)
class CatalogueIds:
    """The rows of one benchmark; `known` are their ids."""

    benchmark_id: str
    outline: Outline
    known: frozenset[str]

    def cells(self, code: str) -> dict[str, Cell]:
        """Return the ids of the components of a case by the columns of `AXES`; None where the file has no such row."""
        axes = self.outline.axes(code)
        ids = {
            column: id_of(self.benchmark_id, table, getattr(axes, column.removesuffix("_id")))
            for column, table in AXES.items()
        }
        return {column: row_id if row_id in self.known else None for column, row_id in ids.items()}


def write_llm(conn: sqlite3.Connection, name: str, provider: str, base_url: str | None) -> str:
    """Return the row of a model, new or not."""
    llm_id = id_of(name, provider, base_url or "")
    row = (llm_id, safe_text(name), safe_text(provider), base_url)
    conn.execute("INSERT OR IGNORE INTO llms (id, name, provider, base_url) VALUES (?, ?, ?, ?)", row)
    return llm_id


def write_benchmark(conn: sqlite3.Connection, outline: Outline, codes: Iterable[str]) -> CatalogueIds:
    """Write the rows of a benchmark that the file does not have yet, inside a write transaction, and return their ids.

    A benchmark of the same name, version and hash is reused. Names and descriptions are taken anew; scenarios that
    an earlier, partial load left out are added.
    """
    writer = _CatalogueWriter(conn, id_of(outline.name, outline.version, outline.hash))
    names = ("name", "version", "hash", "description", "kind")
    cells = {name: safe_text(getattr(outline, name)) for name in names}
    writer.put("benchmarks", writer.benchmark_id, cells, ("description",))
    catalogue = outline.catalogue(codes)
    for pillar in catalogue.pillars:
        own = SqlTable(conn, "pillars").cells(pillar) | {"benchmark_id": writer.benchmark_id}
        writer.put("pillars", writer.id("pillars", pillar.code), own, ("name", "description"))
    for behaviour in catalogue.behaviours:
        pillar_id, code = writer.id("pillars", behaviour.pillar), behaviour.code.rpartition("-")[2]
        own = SqlTable(conn, "behaviours").cells(behaviour) | {"pillar_id": pillar_id, "code": code}
        anew = ("title", "description", "compliance_criteria")
        writer.put("behaviours", writer.id("behaviours", behaviour.code), own, anew)
    for scenario in catalogue.scenarios:
        writer.scenario(scenario)
    return CatalogueIds(writer.benchmark_id, outline, frozenset(writer.known))


class _CatalogueWriter:
    """Writes the rows of one benchmark and remembers their ids."""

    def __init__(self, conn: sqlite3.Connection, benchmark_id: str) -> None:
        self._conn = conn
        self.benchmark_id = benchmark_id
        self.known: set[str] = set()
        found = conn.execute("SELECT id FROM scenarios WHERE benchmark_id = ?", (benchmark_id,))
        self._scenarios = SqlTable(conn, "scenarios")
        self._stored = {row_id for (row_id,) in found}

    def id(self, table: str, full_code: str) -> str:
        """Return the id of a row of this benchmark."""
        return id_of(self.benchmark_id, table, full_code)

    def put(self, table: str, row_id: str, cells: Mapping[str, Cell], anew: tuple[str, ...] = ()) -> None:
        """Insert a row, or take some columns of one that is there anew."""
        self.known.add(row_id)
        changes = ", ".join(f"{name} = excluded.{name}" for name in anew)
        on_conflict = f"DO UPDATE SET {changes}" if anew else "DO NOTHING"
        row = {"id": row_id, **cells}
        self._conn.execute(f"{insert_into(table, row)} ON CONFLICT (id) {on_conflict}", row)

    def scenario(self, scenario: ScenarioEntry) -> None:
        """Write a scenario with its parts; of one that is there, note its ids."""
        scenario_id = self.id("scenarios", scenario.full_code)
        parts = [
            (table, weight, part)
            for table, weight, parts in (
                ("conditions", "difficulty", scenario.conditions),
                ("user_contexts", "severity", scenario.user_contexts),
                ("perturbations", "severity", scenario.perturbations),
            )
            for part in parts
        ]
        if scenario_id in self._stored:
            self.known |= {scenario_id, *(self.id(table, part.full_code) for table, _, part in parts)}
            if isinstance(scenario.about, dict) and (clusters := scenario.about.get("clusters")):
                # Another session may have counted other clusters of the same rows: those of both are kept.
                self._conn.execute(
                    "UPDATE scenarios SET evaluation = json_patch(evaluation, ?) WHERE id = ?",
                    (as_json({"clusters": clusters}), scenario_id),
                )
            return
        own = self._scenarios.cells(scenario) | {
            "benchmark_id": self.benchmark_id,
            "behaviour_id": self.id("behaviours", scenario.behaviour) if scenario.behaviour else None,
            "expected_category": None if scenario.category is None else safe_text(scenario.category),
            "schema": None if scenario.schema is None else as_json(scenario.schema),
            "evaluation": as_json(scenario.about),
            "text_hash": None if scenario.text is None else self._text(scenario.text),
        }
        self.put("scenarios", scenario_id, own)
        for table, weight, part in parts:
            cells = {"scenario_id": scenario_id, "code": part.code, "full_code": part.full_code}
            cells["text_hash"] = self._text(part.text)
            self.put(table, self.id(table, part.full_code), {**cells, weight: part.weight})

    def _text(self, body: str) -> str:
        kept = safe_text(body)
        digest = hashlib.sha256(kept.encode()).hexdigest()
        self._conn.execute("INSERT OR IGNORE INTO texts (hash, body) VALUES (?, ?)", (digest, kept))
        return digest
