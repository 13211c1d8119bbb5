"""Questions to a results file, asked without the right to write, while a session may be writing it."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_helmbench.benchmarks.bench_packs.stored import BenchPackRow, bench_pack_rows
from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.store.reading import reading

__all__ = [
    "CallHistory",
    "CallRow",
    "CostRow",
    "EvaluationRow",
    "ResultRow",
    "RunDetail",
    "RunSummary",
    "Spread",
    "calls_of_case",
    "costs",
    "price_history",
    "result_codes",
    "results",
    "run_detail",
    "run_summary",
    "runs",
]


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
        settings: Everything that can change an answer or a verdict; the process that wrote the run apart.
        outcomes: Outcome and reason (None for a plain verdict) to the number of results so far.
    """

    summary: RunSummary
    provider: str
    base_url: str | None
    kind: str
    benchmark_hash: str
    plugin_version: str
    rescored_from: int | None
    settings: Mapping[str, Any]
    outcomes: Mapping[tuple[str, str | None], int]

    def count(self, outcome: str) -> int:
        """Return the number of results with an outcome so far."""
        return sum(count for (name, _), count in self.outcomes.items() if name == outcome)


@dataclass(frozen=True, slots=True)
class CostRow:
    """What one purpose in one behaviour of one run took.

    Args:
        purpose: `case` or `judge`.
        behaviour: `P1-B2`; None where a case belongs to none.
        calls: Sent, retries included.
        cached_answers: Taken from the record.
        prompt_tokens: Known part; None when nothing is known.
        completion_tokens: Known part; None when nothing is known.
        known_cost_usd: Known part.
        unknown_costs: Answered calls whose cost nobody knows.
    """

    run_id: int
    model: str
    purpose: str
    behaviour: str | None
    calls: int
    cached_answers: int
    prompt_tokens: int | None
    completion_tokens: int | None
    known_cost_usd: float
    unknown_costs: int

    @property
    def cost_usd(self) -> float | None:
        """USD, or None when the cost of any answered call is unknown."""
        return None if self.unknown_costs else self.known_cost_usd


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One row of `evaluations`."""

    criterion: str
    rule: str
    rule_hash: str
    passed: bool
    credit: float
    parse: str | None
    expected: str
    observed: str
    justification: str | None


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One result with its evaluations, joined and readable.

    Args:
        scenario: `P1-B2-S1`; None where the result belongs to none.
        request_hash: Of the newest request of the case itself; None when nothing was asked.
        reply_hash: SHA-256 (hex) of the reply's HTTP body; None without a reply.
        request: Body as sent; None unless asked for.
        reply: Scrubbed text; None unless asked for.
        hosted: What a Bench Pack has said of it; None for any other result, and where it has said nothing.
    """

    id: int
    code: str
    repetition: int
    node_id: str
    family: str
    scenario: str | None
    outcome: str
    reason: str | None
    score: float | None
    severity: int
    difficulty: int
    neutral: bool
    latency_ms: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    started_at: str | None
    completed_at: str | None
    request_hash: str | None
    reply_hash: str | None
    request: bytes | None
    reply: str | None
    evaluations: tuple[EvaluationRow, ...]
    hosted: BenchPackRow | None = None


@dataclass(frozen=True, slots=True)
class CallRow:
    """One row of `calls`."""

    repetition: int
    purpose: str
    criterion: str
    attempt: int
    status_code: int | None
    finish_reason: str | None
    error: str | None
    latency_ms: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None
    provider_model: str | None
    from_cache: bool
    started_at: str


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
_DETAIL = """
    SELECT llms.provider, llms.base_url, benchmarks.kind, benchmark_hash, plugin_version, rescored_from, settings
    FROM evaluation_runs JOIN llms ON llms.id = evaluation_runs.llm_id
    JOIN benchmarks ON benchmarks.id = evaluation_runs.benchmark_id
    WHERE evaluation_runs.id = ?
"""
_OUTCOMES = "SELECT outcome, reason, count(*) FROM results WHERE run_id = ? GROUP BY outcome, reason"
_COSTS = """
    SELECT calls.run_id, llms.name, calls.purpose,
        CASE WHEN calls.code GLOB 'P[0-9]*-B[0-9]*-S[0-9]*'
            THEN substr(calls.code, 1,
                instr(calls.code, '-') + instr(substr(calls.code, instr(calls.code, '-') + 1), '-') - 1)
        END AS behaviour,
        sum(calls.from_cache = 0), sum(calls.from_cache = 1),
        sum(CASE WHEN calls.from_cache = 0 THEN calls.prompt_tokens END),
        sum(CASE WHEN calls.from_cache = 0 THEN calls.completion_tokens END),
        total(calls.cost_usd),
        sum(calls.from_cache = 0 AND calls.response_id IS NOT NULL AND calls.cost_usd IS NULL)
    FROM calls
    JOIN evaluation_runs ON evaluation_runs.id = calls.run_id
    JOIN llms ON llms.id = evaluation_runs.llm_id
    WHERE (?1 IS NULL OR calls.run_id = ?1) AND (?2 IS NULL OR llms.name = ?2)
    GROUP BY calls.run_id, calls.purpose, behaviour
"""
_RESULTS = """
    SELECT id, code, repetition, node_id, family, scenario, outcome, reason, score, severity, difficulty,
        neutral, latency_ms, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, cost_usd,
        started_at, completed_at, request_hash, response_body,
        CASE WHEN ?3 THEN (SELECT body FROM requests WHERE hash = request_hash) END,
        CASE WHEN ?3 THEN text END
    FROM (
        SELECT results.*, scenarios.full_code AS scenario, responses.body AS response_body, responses.text,
            coalesce(responses.request_hash, (
                SELECT calls.request_hash FROM calls
                WHERE calls.run_id = results.run_id AND calls.code = results.code
                    AND calls.repetition = results.repetition AND calls.purpose <> 'judge'
                ORDER BY calls.id DESC LIMIT 1
            )) AS request_hash
        FROM results
        LEFT JOIN scenarios ON scenarios.id = results.scenario_id
        LEFT JOIN responses ON responses.id = results.response_id
        WHERE results.run_id = ?1 AND (?2 IS NULL OR results.code = ?2)
    )
"""
_EVALUATIONS = """
    SELECT result_id, criterion, rule, rule_hash, passed, credit, parse, expected, observed, justification
    FROM evaluations JOIN results ON results.id = evaluations.result_id
    WHERE results.run_id = ?1 AND (?2 IS NULL OR results.code = ?2)
    ORDER BY evaluations.id
"""
_CALLS = """
    SELECT repetition, purpose, criterion, attempt, status_code, finish_reason, error, latency_ms,
        prompt_tokens, completion_tokens, cost_usd, provider_model, from_cache, started_at
    FROM calls WHERE run_id = ? AND code = ? ORDER BY id
"""


def runs(path: Path) -> tuple[RunSummary, ...]:
    """Return every run of a file, oldest first.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with reading(path) as conn:
        return tuple(RunSummary(*row) for row in conn.execute(_RUNS + " ORDER BY evaluation_runs.id"))


def run_summary(path: Path, session_id: str) -> tuple[RunSummary, ...]:
    """Return the runs of one session, in the order they were opened.

    Raises:
        StoreError: The file is missing or no results file.
    """
    query = _RUNS + " WHERE session_id = ? ORDER BY evaluation_runs.id"
    with reading(path) as conn:
        return tuple(RunSummary(*row) for row in conn.execute(query, (session_id,)))


def run_detail(path: Path, run_id: int | None) -> RunDetail | None:
    """Return one run with its settings, or None when the file has no such run.

    Args:
        path: Results file.
        run_id: None for the newest run.

    Raises:
        StoreError: The file is missing or no results file.
    """
    query = _RUNS + " WHERE ?1 IS NULL OR evaluation_runs.id = ?1 ORDER BY evaluation_runs.id DESC LIMIT 1"
    with reading(path) as conn:
        row = conn.execute(query, (run_id,)).fetchone()
        if row is None:
            return None
        summary = RunSummary(*row)
        *facts, settings = conn.execute(_DETAIL, (summary.id,)).fetchone()
        counts = conn.execute(_OUTCOMES, (summary.id,)).fetchall()
    known = {name: value for name, value in json.loads(settings).items() if name != "process"}
    outcomes = {(outcome, reason): count for outcome, reason, count in counts}
    return RunDetail(*(summary, *facts, known, outcomes))


def costs(path: Path, run_id: int | None = None, model: str | None = None) -> tuple[CostRow, ...]:
    """Return what runs have cost, by run, behaviour in natural order, and purpose.

    Args:
        path: Results file.
        run_id: Only this run.
        model: Only runs of this model under test.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with reading(path) as conn:
        rows = [CostRow(*row) for row in conn.execute(_COSTS, (run_id, model))]
    return tuple(sorted(rows, key=lambda row: (row.run_id, natural_key(row.behaviour or ""), row.purpose)))


def results(
    path: Path, run_id: int, code: str | None = None, *, with_text: bool = False
) -> tuple[ResultRow, ...]:
    """Return the results of a run in natural order of code and repetition.

    Args:
        path: Results file.
        run_id: `evaluation_runs.id`.
        code: Only this case.
        with_text: Also requests and replies.

    Raises:
        StoreError: The file is missing or no results file.
    """
    evaluations: defaultdict[int, list[EvaluationRow]] = defaultdict(list)
    with reading(path) as conn:
        for result_id, criterion, rule, rule_hash, passed, *rest in conn.execute(
            _EVALUATIONS, (run_id, code)
        ):
            row = EvaluationRow(criterion, rule, rule_hash, bool(passed), *rest)
            evaluations[result_id].append(row)
        hosted = bench_pack_rows(conn, run_id, code, with_text=with_text)
        found = [
            _result(row, tuple(evaluations[row[0]]), hosted.get(row[0]))
            for row in conn.execute(_RESULTS, (run_id, code, with_text))
        ]
    return tuple(sorted(found, key=lambda row: (natural_key(row.code), row.repetition)))


def result_codes(path: Path, run_id: int) -> tuple[str, ...]:
    """Return the codes of all results of a run, in natural order.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with reading(path) as conn:
        rows = conn.execute("SELECT DISTINCT code FROM results WHERE run_id = ?", (run_id,)).fetchall()
    return tuple(sorted((code for (code,) in rows), key=natural_key))


def calls_of_case(path: Path, run_id: int, code: str) -> tuple[CallRow, ...]:
    """Return every attempt that a case took, judges' too, in the order they were made.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with reading(path) as conn:
        rows = conn.execute(_CALLS, (run_id, code)).fetchall()
    return tuple(CallRow(*(*row[:12], bool(row[12]), row[13])) for row in rows)


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
    with reading(path) as conn:
        rows = conn.execute(_HISTORY, (benchmark, model, purpose)).fetchall()
    return {
        code: CallHistory(calls, _spread(*numbers[0:3]), _spread(*numbers[3:6]), _spread(*numbers[6:9]))
        for code, calls, *numbers in rows
    }


def _result(
    row: tuple[Any, ...], evaluations: tuple[EvaluationRow, ...], hosted: BenchPackRow | None
) -> ResultRow:
    request_hash, body, request, reply = row[20:]
    reply_hash = None if body is None else hashlib.sha256(body).hexdigest()
    texts = (request_hash, reply_hash, request, reply)
    return ResultRow(*(*row[:11], bool(row[11]), *row[12:20], *texts, evaluations, hosted))


def _spread(low: float | None, mean: float | None, high: float | None) -> Spread | None:
    return None if low is None or mean is None or high is None else Spread(low, mean, high)
