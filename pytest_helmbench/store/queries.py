"""Questions to a results file, asked without the right to write, while a session may be writing it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_helmbench.store.fault import StoreError, store_error

__all__ = ["CallHistory", "RunSummary", "Spread", "price_history", "run_summary", "runs"]


@dataclass(frozen=True, slots=True)
class Spread:
    """What was seen of a quantity; unknown values are left out."""

    low: float
    mean: float
    high: float


@dataclass(frozen=True, slots=True)
class CallHistory:
    """Answered calls of one scenario by one model, those taken from the record apart.

    Args:
        calls: How many.
        cost_usd: Per call; None when no cost is known.
        prompt_tokens: Per call; None when unknown.
        completion_tokens: Per call; None when unknown.
    """

    calls: int
    cost_usd: Spread | None
    prompt_tokens: Spread | None
    completion_tokens: Spread | None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One row of `evaluation_runs` with the names behind its ids; counts are None while it runs."""

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


_RUNS = """
    SELECT evaluation_runs.id, session_id, benchmarks.name, benchmarks.version, llms.name, status, scope,
        started_at, completed_at, total_tests, passed_tests, failed_tests, error_tests, skipped_tests,
        neutral_tests, total_evaluations, score, score_low, score_high, score_raw, coverage, cost_usd,
        known_cost_usd
    FROM evaluation_runs
    JOIN benchmarks ON benchmarks.id = evaluation_runs.benchmark_id
    JOIN llms ON llms.id = evaluation_runs.llm_id
"""
_HISTORY = """
    SELECT scenarios.full_code, count(*),
        min(calls.cost_usd), avg(calls.cost_usd), max(calls.cost_usd),
        min(calls.prompt_tokens), avg(calls.prompt_tokens), max(calls.prompt_tokens),
        min(calls.completion_tokens), avg(calls.completion_tokens), max(calls.completion_tokens)
    FROM calls
    JOIN results ON results.id = calls.result_id
    JOIN scenarios ON scenarios.id = results.scenario_id
    JOIN evaluation_runs ON evaluation_runs.id = calls.run_id
    JOIN benchmarks ON benchmarks.id = evaluation_runs.benchmark_id
    JOIN llms ON llms.id = evaluation_runs.llm_id
    WHERE benchmarks.name = ? AND llms.name = ? AND calls.purpose = ?
        AND calls.from_cache = 0 AND calls.response_id IS NOT NULL
    GROUP BY scenarios.full_code
"""


def runs(path: Path) -> tuple[RunSummary, ...]:
    """Return every run of a file, oldest first.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with _reading(path) as conn:
        return tuple(RunSummary(*row) for row in conn.execute(_RUNS + " ORDER BY evaluation_runs.id"))


def run_summary(path: Path, session_id: str) -> tuple[RunSummary, ...]:
    """Return the runs of one session, in the order they were opened.

    Raises:
        StoreError: The file is missing or no results file.
    """
    query = _RUNS + " WHERE session_id = ? ORDER BY evaluation_runs.id"
    with _reading(path) as conn:
        return tuple(RunSummary(*row) for row in conn.execute(query, (session_id,)))


def price_history(
    path: Path, benchmark: str, model: str, *, purpose: str = "case"
) -> Mapping[str, CallHistory]:
    """Return what calls have cost so far, by scenario code (`P1-B2-S1`); empty without a file.

    Args:
        path: Results file.
        benchmark: Name, all versions of it.
        model: Model under test.
        purpose: `case` or `judge`.

    Raises:
        StoreError: The file is no results file.
    """
    if not path.exists():
        return {}
    with _reading(path) as conn:
        rows = conn.execute(_HISTORY, (benchmark, model, purpose)).fetchall()
    return {
        code: CallHistory(calls, _spread(*numbers[0:3]), _spread(*numbers[3:6]), _spread(*numbers[6:9]))
        for code, calls, *numbers in rows
    }


def _spread(low: float | None, mean: float | None, high: float | None) -> Spread | None:
    return None if low is None or mean is None or high is None else Spread(low, mean, high)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.exists():
        raise StoreError(path, "there is no such database", "name the results file with --helmbench-db=PATH")
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=30)
        ) as conn:
            yield conn
    except sqlite3.Error as error:
        raise store_error(path, error) from error
