"""The runs of a results file, asked for without the right to write, while a session may be writing it."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Cell
from pytest_helmbench.store.benchmark_places import BenchmarkKey, benchmarks_of_runs
from pytest_helmbench.store.leases import Lease, leases_of, true_status
from pytest_helmbench.store.outcome_counts import IS_CASE
from pytest_helmbench.store.reading import reading
from pytest_helmbench.store.table_rows import made_of, named_rows


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One row of `evaluation_runs` with the names behind its ids; counts are None while it runs.

    `kind` and `benchmark_place` tell its benchmark from others of its name; see `benchmarks_of_runs`.
    """

    id: int
    session_id: str
    benchmark: str
    version: str
    model: str
    status: str
    scope: str
    started_at: str
    completed_at: str | None
    total_tests: int
    passed_tests: int | None
    failed_tests: int | None
    error_tests: int | None
    skipped_tests: int | None
    neutral_tests: int | None
    total_evaluations: int | None
    score: float | None
    score_low: float | None
    score_high: float | None
    score_raw: float | None
    coverage: float | None
    cost_usd: float | None
    known_cost_usd: float | None
    kind: str = ""
    benchmark_place: str | None = None

    @property
    def key(self) -> BenchmarkKey:
        """Which benchmark it is of."""
        return BenchmarkKey(self.benchmark, self.kind, self.benchmark_place)


@dataclass(frozen=True, slots=True)
class RunDetail:
    """A run with what it was made from.

    Args:
        summary: Names, counts, score and cost.
        provider: Who served the model; empty when unknown.
        base_url: Its server; None for the provider's own.
        kind: `scenario_tree`, `pack`, `bench_pack` or `python_tests`.
        benchmark_hash: SHA-256 over everything that can change a case or a score.
        plugin_version: Ours.
        rescored_from: The run whose replies were judged anew; None for a run that asked.
        settings: Everything that can change an answer or a verdict.
        outcomes: Outcome and reason (None for a plain verdict) to the number of results so far.
    """

    summary: RunSummary
    provider: str
    base_url: str | None
    kind: str
    benchmark_hash: str
    plugin_version: str
    rescored_from: int | None
    settings: Mapping[str, JsonValue]
    outcomes: Mapping[tuple[str, str | None], int]

    def count(self, outcome: str) -> int:
        """Return the number of results with an outcome so far."""
        return sum(count for (name, _), count in self.outcomes.items() if name == outcome)


_RUNS = """
    SELECT evaluation_runs.*, benchmarks.name AS benchmark, benchmarks.version, llms.name AS model,
        llms.provider, llms.base_url, benchmarks.kind
    FROM evaluation_runs
    JOIN benchmarks ON benchmarks.id = evaluation_runs.benchmark_id
    JOIN llms ON llms.id = evaluation_runs.llm_id
"""
_OUTCOMES = (
    f"SELECT outcome, reason, count(*) FROM results WHERE run_id = ? AND {IS_CASE} GROUP BY outcome, reason"
)


def runs(path: Path, new: Iterable[BenchmarkKey] = ()) -> tuple[RunSummary, ...]:
    """Return every run of a file, oldest first.

    Args:
        path: Results file.
        new: Benchmarks that are about to be run.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with reading(path) as conn:
        return _summaries(conn, conn.execute(_RUNS + " ORDER BY evaluation_runs.id"), path, new)


def run_summary(path: Path, session_id: str) -> tuple[RunSummary, ...]:
    """Return the runs of one session, in the order they were opened.

    Raises:
        StoreError: The file is missing or no results file.
    """
    query = _RUNS + " WHERE session_id = ? ORDER BY evaluation_runs.id"
    with reading(path) as conn:
        return _summaries(conn, conn.execute(query, (session_id,)), path)


def _summaries(
    conn: sqlite3.Connection, found: sqlite3.Cursor, path: Path, new: Iterable[BenchmarkKey] = ()
) -> tuple[RunSummary, ...]:
    leases, keys = leases_of(conn), benchmarks_of_runs(conn, path, new)
    return tuple(_summary(row, leases, keys) for row in named_rows(found))


def _summary(
    row: Mapping[str, Cell], leases: Mapping[str, Lease], keys: Mapping[int, BenchmarkKey]
) -> RunSummary:
    key = keys.get(int(row["id"] or 0))  # a run may have begun meanwhile
    place = None if key is None else key.place
    status = true_status(str(row["status"]), leases.get(str(row["session_id"])), time.time())
    return made_of(RunSummary, row, status=status, benchmark_place=place)


def run_detail(path: Path, run_id: int | None) -> RunDetail | None:
    """Return one run with its settings, or None when the file has no such run.

    Args:
        path: Results file.
        run_id: None for the newest run.

    Raises:
        StoreError: The file is missing or no results file.
    """
    query = (
        _RUNS
        + " WHERE :run_id IS NULL OR evaluation_runs.id = :run_id ORDER BY evaluation_runs.id DESC LIMIT 1"
    )
    with reading(path) as conn:
        row = next(named_rows(conn.execute(query, {"run_id": run_id})), None)
        if row is None:
            return None
        counts = conn.execute(_OUTCOMES, (row["id"],)).fetchall()
        summary = _summary(row, leases_of(conn), benchmarks_of_runs(conn, path))
        settings: dict[str, JsonValue] = dict(json.loads(str(row["settings"])))
    return made_of(
        RunDetail,
        row,
        summary=summary,
        settings=settings,
        outcomes={(outcome, reason): count for outcome, reason, count in counts},
    )


DECIDING = (
    "judge",
    "judge_sampling",
    "sampling",
    "system_prompt",
    "strict_json",
    "add_no_context",
    "judge_template",
    "scoring",
    "pack_rules",
    "cluster",
    "sample",
)
"""Settings that can change an answer or a verdict, the number of repetitions apart."""

_ALIKE = """
    SELECT other.id, other.settings, own.settings FROM evaluation_runs AS own
    JOIN evaluation_runs AS other ON other.benchmark_hash = own.benchmark_hash AND other.llm_id = own.llm_id
        AND other.benchmark_id = own.benchmark_id AND other.id <> own.id AND other.status = 'complete'
        AND other.scope = own.scope AND other.rescored_from IS NULL
    WHERE own.id = ? ORDER BY other.id DESC
"""


def judges_of(settings: Mapping[str, object]) -> tuple[str, ...]:
    """Return the ids of a run's marking models, in order, from its settings; an older run names one at most."""
    several, one = settings.get("judges"), settings.get("judge")
    return tuple(map(str, several if isinstance(several, list) else [one] if one else []))


def configured_alike(path: Path, run_id: int) -> tuple[tuple[int, int], ...]:
    """Return other complete runs of the same content, model and settings, the newest first, with their repetitions.

    Raises:
        StoreError: The file is missing or no results file.
    """
    found = []
    with reading(path) as conn:
        for other, theirs, ours in conn.execute(_ALIKE, (run_id,)):
            first, second = (json.loads(text) for text in (theirs, ours))
            same = all((first.get(name) or None) == (second.get(name) or None) for name in DECIDING)
            if same and judges_of(first) == judges_of(second):
                found.append((int(other), int(first.get("repeat") or 1)))
    return tuple(found)
