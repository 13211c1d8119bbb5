"""Contents of a results file without ids, times and latencies: equal for two runs of the same."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

__all__ = ["answered_hashes", "calls_by_error", "final_state", "integrity", "judged_rows"]

_RUNS = """
    SELECT benchmarks.name, llms.name, status, scope, total_tests, passed_tests, failed_tests, error_tests,
        skipped_tests, neutral_tests, total_evaluations, score, score_low, score_high, score_raw, coverage, pass_rate,
        round(cost_usd, 9), round(known_cost_usd, 9), benchmark_hash, completed_at IS NULL
    FROM evaluation_runs JOIN benchmarks ON benchmarks.id = benchmark_id JOIN llms ON llms.id = llm_id
    ORDER BY evaluation_runs.id
"""
_RESULTS = """
    SELECT v_results.code, v_results.repetition, v_results.node_id, v_results.family, pillar, behaviour, scenario,
        condition, user_context, perturbation, v_results.outcome, v_results.reason, v_results.score,
        v_results.points_lost, v_results.severity, v_results.difficulty, v_results.neutral, v_results.criterion,
        evaluations.rule_hash, v_results.passed, v_results.credit, v_results.parse, v_results.expected,
        v_results.observed, v_results.justification, v_results.prompt_tokens, v_results.completion_tokens,
        v_results.cached_tokens, v_results.reasoning_tokens, v_results.cost_usd, reply, responses.request_hash
    FROM v_results
    LEFT JOIN evaluations ON evaluations.id = evaluation_id
    JOIN results ON results.id = v_results.result_id
    LEFT JOIN responses ON responses.id = results.response_id
    ORDER BY v_results.run_id, v_results.code, v_results.repetition, v_results.criterion
"""
_COSTS = """
    SELECT purpose, calls.run_id, count(DISTINCT code || repetition || criterion), round(total(cost_usd), 9)
    FROM calls WHERE response_id IS NOT NULL GROUP BY purpose, calls.run_id ORDER BY 1, 2
"""


def _rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def final_state(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return runs, results with their evaluations, and costs."""
    return {
        name: _rows(database, query)
        for name, query in (("runs", _RUNS), ("results", _RESULTS), ("costs", _COSTS))
    }


def answered_hashes(database: Path) -> set[str]:
    """Return the hashes of all requests whose reply is on record."""
    return {row[0] for row in _rows(database, "SELECT request_hash FROM responses")}


def judged_rows(database: Path) -> set[tuple[Any, ...]]:
    """Return the judged results as they were written: each with its times."""
    query = (
        "SELECT id, run_id, code, repetition, outcome, response_id, started_at, completed_at FROM results"
        " WHERE outcome IN ('passed', 'failed')"
    )
    return set(_rows(database, query))


def calls_by_error(database: Path) -> dict[str, int]:
    """Return how many calls ended in which fault; `reply` for none."""
    query = (
        "SELECT CASE WHEN error IS NULL THEN 'reply' ELSE substr(error, 1, instr(error || ':', ':') - 1) END"
    )
    return dict(_rows(database, f"{query} AS kind, count(*) FROM calls GROUP BY kind"))


def integrity(database: Path) -> str:
    """Return SQLite's word on the file: `ok`."""
    return str(_rows(database, "PRAGMA integrity_check")[0][0])
