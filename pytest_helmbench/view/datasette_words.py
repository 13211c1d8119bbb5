"""Results files as Datasette shows them: labels, facets, descriptions and ready queries."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.store.views import PROMPTS_VIEW

__all__ = ["QUERIES", "described", "settings"]

_LABELS = {
    "benchmarks": "name",
    "pillars": "name",
    "behaviours": "title",
    "scenarios": "full_code",
    "conditions": "full_code",
    "user_contexts": "full_code",
    "perturbations": "full_code",
    "llms": "name",
    "results": "code",
}
_FACETS = {
    "evaluation_runs": ("status", "benchmark_id", "llm_id"),
    "results": ("run_id", "outcome", "reason", "family"),
    "evaluations": ("rule", "passed", "parse"),
    "calls": ("run_id", "purpose", "status_code", "finish_reason"),
    "v_results": ("run_id", "model", "behaviour", "outcome", "rule"),
    "v_prompts": ("run_id", "model", "purpose", "outcome"),
    "v_costs": ("model", "purpose"),
}
_NEWEST_FIRST = {"evaluation_runs": "id"}
_HIDDEN = (
    "_sqlite_migrations",
    "plans",
    "leases",
    "sent_calls",
    "benchmark_sizes",
    "samples",
    "requests",
    "texts",
)
_DESCRIPTIONS = {
    "evaluation_runs": "One row per run: a benchmark, a model, a session.",
    "results": "One row per case and repetition of a run.",
    "evaluations": "One row per criterion of a result.",
    "calls": "One row per attempt that was sent, and one per answer taken from the record.",
    "responses": "One row per reply ever received.",
    "v_results": "Results with their evaluations, joined and readable.",
    "v_prompts": "What was sent in each call, as text, with its reply. Empty unless started with --text.",
    "v_costs": "Calls, tokens and USD by run and purpose.",
}
_LAST = "coalesce(nullif(:run, ''), (SELECT max(id) FROM evaluation_runs))"

QUERIES: Mapping[str, tuple[str, str]] = {
    "runs": (
        "Runs, the newest first",
        """SELECT evaluation_runs.id AS run, benchmarks.name AS benchmark, llms.name AS model, status,
    total_tests AS cases, passed_tests AS passed, failed_tests AS failed, error_tests AS errors,
    score, score_low, score_high, cost_usd
FROM evaluation_runs JOIN benchmarks ON benchmarks.id = benchmark_id JOIN llms ON llms.id = llm_id
ORDER BY evaluation_runs.id DESC""",
    ),
    "worst_failures": (
        "Failures of a run, the worst first (run: a number; empty for the newest)",
        f"""SELECT code, repetition, severity, rule, expected, observed FROM v_results
WHERE run_id = {_LAST} AND outcome = 'failed' AND passed = 0 ORDER BY severity DESC, code LIMIT 500""",
    ),
    "share_passed": (
        "Share passed by behaviour (run: a number; empty for the newest)",
        f"""SELECT behaviour, count(DISTINCT result_id) AS judged,
    count(DISTINCT CASE WHEN outcome = 'passed' THEN result_id END) * 1.0 / count(DISTINCT result_id) AS passed
FROM v_results WHERE run_id = {_LAST} AND outcome IN ('passed', 'failed') AND neutral = 0
GROUP BY behaviour ORDER BY passed""",
    ),
    "flips": (
        "Cases that two runs judged differently (before and after: numbers)",
        """SELECT old.code, old.repetition, old.outcome AS before, new.outcome AS after, new.severity
FROM results AS old JOIN results AS new ON new.code = old.code AND new.repetition = old.repetition
WHERE old.run_id = :before AND new.run_id = :after AND old.outcome <> new.outcome ORDER BY new.severity DESC""",
    ),
    "errors": (
        "Errors and skips by reason",
        """SELECT run_id AS run, outcome, reason, count(*) AS cases FROM results
WHERE outcome IN ('error', 'skipped') GROUP BY run_id, outcome, reason ORDER BY run_id DESC, cases DESC""",
    ),
    "costs": (
        "What runs have cost, case and judge apart",
        """SELECT run_id AS run, model, purpose, calls, cached_answers, prompt_tokens, completion_tokens, cost_usd,
    known_cost_usd FROM v_costs ORDER BY run_id DESC, purpose""",
    ),
    "slowest_cases": (
        "The slowest cases of a run (run: a number; empty for the newest)",
        f"""SELECT code, repetition, outcome, latency_ms, prompt_tokens, completion_tokens, cost_usd FROM results
WHERE run_id = {_LAST} ORDER BY latency_ms DESC LIMIT 100""",
    ),
    "prompts": (
        "What was sent and answered, as text (run: a number, empty for the newest; code: P1-B1, % for all)",
        f"""SELECT code, repetition, purpose, attempt, outcome, prompt, reply FROM ({PROMPTS_VIEW.partition(" AS")[2]})
WHERE run_id = {_LAST} AND code LIKE :code || '%' LIMIT 200""",
    ),
    "case": (
        "One case in all runs (code: P1-B1-S1-C1-PT1)",
        """SELECT run_id AS run, model, repetition, outcome, reason, criterion, rule, expected, observed, reply
FROM v_results WHERE code = :code ORDER BY run_id DESC, repetition""",
    ),
}
"""Ready queries by name: a title, and SQL."""


def settings(database: str) -> dict[str, JsonValue]:
    """Return what Datasette 1.0 takes as configuration, and 0.65 as metadata.

    Args:
        database: As Datasette calls the file.
    """
    tables: dict[str, dict[str, JsonValue]] = {}
    for table, label in _LABELS.items():
        tables.setdefault(table, {})["label_column"] = label
    for table, facets in _FACETS.items():
        tables.setdefault(table, {})["facets"] = list(facets)
    for table, column in _NEWEST_FIRST.items():
        tables.setdefault(table, {})["sort_desc"] = column
    for table in _HIDDEN:
        tables.setdefault(table, {})["hidden"] = True
    queries: dict[str, JsonValue] = {
        name: {"title": title, "sql": sql} for name, (title, sql) in QUERIES.items()
    }
    return {"databases": {database: {"tables": dict(tables), "queries": queries}}}


def described(database: str) -> dict[str, JsonValue]:
    """Return the words that both take as metadata; see `settings`."""
    tables: dict[str, JsonValue] = {name: {"description": text} for name, text in _DESCRIPTIONS.items()}
    title = "Results of pytest-helmbench"
    return {"title": title, "databases": {database: {"description": "Read only.", "tables": tables}}}
