"""Costs of runs, of all calls to a scenario so far, and of calls that were out when their session was killed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey
from pytest_helmbench.store.read.connection import holds_nothing, reading
from pytest_helmbench.store.table_rows import from_row, named_rows


@dataclass(frozen=True, slots=True)
class CostRange:
    """The range of USD per call of one scenario that was answered singly; unknown costs are left out."""

    low: float
    mean: float
    high: float


@dataclass(frozen=True, slots=True)
class CostRow:
    """Calls, tokens and costs of one purpose in one behaviour of one run.

    Args:
        purpose: `case` or `judge`.
        behaviour: `P1-B2`; None where a case belongs to none.
        calls: Sent, retries included.
        cached_answers: Taken from the record.
        prompt_tokens: Known part; None when nothing is known.
        completion_tokens: Known part; None when nothing is known.
        unknown_costs: Calls of unknown cost: answered, or not answered and perhaps billed.
        estimated: Calls whose tokens were counted here.
        upper_bounds: Calls whose tokens the provider counts in two ways; the dearer one stands here.
        judge: Id of the marking model that was asked; None for other calls, and where the record does not say.
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
    estimated: int = 0
    upper_bounds: int = 0
    judge: str | None = None

    @property
    def whose(self) -> str:
        """The purpose, and the judge where it is known."""
        return " ".join(filter(None, (self.purpose, self.judge)))

    @property
    def cost_usd(self) -> float | None:
        """USD, or None when the cost of any call is unknown."""
        return None if self.unknown_costs else self.known_cost_usd


_HISTORY = """
    SELECT scenarios.full_code, min(calls.cost_usd), avg(calls.cost_usd), max(calls.cost_usd) FROM calls
    JOIN results USING (run_id, code, repetition)
    JOIN scenarios ON scenarios.id = results.scenario_id
    JOIN evaluation_runs ON evaluation_runs.id = calls.run_id
    JOIN llms ON llms.id = evaluation_runs.llm_id
    JOIN benchmarks ON benchmarks.id = evaluation_runs.benchmark_id
    WHERE benchmarks.name = :name AND benchmarks.kind = :kind
        AND coalesce(evaluation_runs.benchmark_place, '') = :place AND llms.name = :model AND calls.purpose = :purpose
        AND (:judge IS NULL OR calls.judge = :judge)
        AND calls.from_cache = 0 AND calls.response_id IS NOT NULL AND calls.cost_usd IS NOT NULL
        AND calls.batch IS NULL
    GROUP BY scenarios.full_code
"""
# A run of another tool has no calls: its costs stand with its results.
COSTS = """
    SELECT run_id, model, behaviour, purpose, judge, calls, cached_answers, prompt_tokens, completion_tokens,
        CASE WHEN unknown_costs = 0 THEN known_cost_usd END AS cost_usd, known_cost_usd, unknown_costs, estimated,
        upper_bounds
    FROM (
        SELECT calls.run_id, llms.name AS model, calls.purpose, calls.judge AS judge,
            CASE WHEN calls.code GLOB 'P[0-9]*-B[0-9]*-S[0-9]*'
                THEN substr(calls.code, 1,
                    instr(calls.code, '-') + instr(substr(calls.code, instr(calls.code, '-') + 1), '-') - 1)
            END AS behaviour,
            sum(calls.from_cache = 0) AS calls, sum(calls.from_cache = 1) AS cached_answers,
            sum(CASE WHEN calls.from_cache = 0 THEN calls.prompt_tokens END) AS prompt_tokens,
            sum(CASE WHEN calls.from_cache = 0 THEN calls.completion_tokens END) AS completion_tokens,
            total(calls.cost_usd) AS known_cost_usd,
            sum(calls.from_cache = 0 AND calls.cost_usd IS NULL
                AND (calls.unanswered OR calls.response_id IS NOT NULL)) AS unknown_costs,
            sum(calls.estimated) AS estimated, sum(calls.upper_bound) AS upper_bounds
        FROM calls
        JOIN evaluation_runs ON evaluation_runs.id = calls.run_id
        JOIN llms ON llms.id = evaluation_runs.llm_id
        WHERE (:run_id IS NULL OR calls.run_id = :run_id) AND (:model IS NULL OR llms.name = :model)
        GROUP BY calls.run_id, calls.purpose, calls.judge, behaviour
        UNION ALL
        SELECT results.run_id, llms.name AS model, 'case' AS purpose, NULL AS judge, NULL AS behaviour,
            count(*) AS calls, 0 AS cached_answers,
            sum(results.prompt_tokens) AS prompt_tokens, sum(results.completion_tokens) AS completion_tokens,
            total(results.cost_usd) AS known_cost_usd, sum(results.cost_usd IS NULL) AS unknown_costs, 0 AS estimated,
            0 AS upper_bounds
        FROM results
        JOIN evaluation_runs ON evaluation_runs.id = results.run_id
        JOIN llms ON llms.id = evaluation_runs.llm_id
        WHERE (:run_id IS NULL OR results.run_id = :run_id) AND (:model IS NULL OR llms.name = :model)
            AND json_extract(evaluation_runs.settings, '$.imported_from') IS NOT NULL
        GROUP BY results.run_id
    )
    ORDER BY run_id, length(behaviour), behaviour, purpose, judge
"""
"""Costs by run, behaviour, purpose and judge; `run_id` and `model` filter where they are not NULL."""

_ANSWERED_BY = """
    SELECT calls.judge AS judge, provider_model, count(*) FROM calls
    WHERE run_id = ? AND from_cache = 0 AND provider_model IS NOT NULL
        AND (purpose != 'judge' OR calls.judge IS NOT NULL)
    GROUP BY judge, provider_model
"""
_CUT = """
    SELECT judge, count(*), sum(prompt_characters), sum(prompt_tokens) FROM calls
    WHERE run_id = ? AND prompt_tokens * 16 < prompt_characters GROUP BY judge
"""
_UNJUDGED = """
    SELECT 1 FROM calls LEFT JOIN results USING (run_id, code, repetition)
    WHERE calls.run_id IN (SELECT id FROM evaluation_runs WHERE session_id = ?) AND calls.response_id IS NOT NULL
    AND calls.from_cache = 0 AND ifnull(results.outcome NOT IN ('passed', 'failed'), 1) LIMIT 1
"""
_SPENT = """
    SELECT total(coalesce(cost_usd, reserved_usd)) FROM calls
    WHERE from_cache = 0 AND run_id IN (SELECT id FROM evaluation_runs WHERE session_id = ?)
"""


def costs(path: Path, run_id: int | None = None, model: str | None = None) -> tuple[CostRow, ...]:
    """Return what runs have cost, by run, behaviour in natural order, and purpose: all, one, or those of one model."""
    asked = {"run_id": run_id, "model": model}
    with reading(path) as conn:
        rows = [from_row(CostRow, row) for row in named_rows(conn.execute(COSTS, asked))]
    return tuple(
        sorted(
            rows,
            key=lambda row: (row.run_id, natural_key(row.behaviour or ""), row.purpose, row.judge or ""),
        )
    )


def answering_models(path: Path, run_id: int) -> Mapping[tuple[str | None, str], int]:
    """Return how many calls of a run each model has answered, as the provider names it.

    By the judge that was asked, None for the model under test; a judge's call that does not say which is left out.
    """
    with reading(path) as conn:
        rows = conn.execute(_ANSWERED_BY, (run_id,)).fetchall()
    return {(judge, answered): calls for judge, answered, calls in rows}


def cut_prompts(path: Path, run_id: int) -> Mapping[tuple[str | None, str], int]:
    """Return how many prompts of a run servers have cut, with their characters and the tokens counted in them.

    By the judge that was asked, None for the model under test, and `prompts`, `characters` or `tokens`.
    """
    with reading(path) as conn:
        rows = conn.execute(_CUT, (run_id,)).fetchall()
    names = ("prompts", "characters", "tokens")
    return {(judge, name): n for judge, *counts in rows for name, n in zip(names, counts, strict=True)}


def session_cost(path: Path, session_id: str) -> float:
    """Return the USD that a session has spent so far, with what calls of unknown cost may have cost."""
    with reading(path) as conn:
        (spent,) = conn.execute(_SPENT, (session_id,)).fetchone()
    return float(spent)


def has_unjudged_replies(path: Path, session_id: str) -> bool:
    """Return whether a session was given replies that it has not judged."""
    with reading(path) as conn:
        return conn.execute(_UNJUDGED, (session_id,)).fetchone() is not None


def price_history(
    path: Path, benchmark: BenchmarkKey, model: str, *, purpose: str = "case", judge: str | None = None
) -> Mapping[str, CostRange]:
    """Return what calls have cost so far, by scenario code (`P1-B2-S1`), where that is known; empty without a file.

    All versions of the benchmark count, and all marking models where none is named.
    """
    if holds_nothing(path):
        return {}
    with reading(path) as conn:
        asked = {
            "name": benchmark.name,
            "kind": benchmark.kind,
            "place": benchmark.place or "",
            "model": model,
            "purpose": purpose,
            "judge": judge,
        }
        return {code: CostRange(*cost) for code, *cost in conn.execute(_HISTORY, asked)}


_LEFT_OUT = """
    SELECT count(*), total(reserved_usd) FROM sent_calls
    WHERE run_id IN (SELECT id FROM evaluation_runs WHERE session_id = ?)
"""


def calls_left_out(path: Path, session_id: str) -> tuple[int, float]:
    """Return how many calls of a session never returned, as their process was killed, and what they may cost."""
    with reading(path) as conn:
        calls, usd = conn.execute(_LEFT_OUT, (session_id,)).fetchone()
    return int(calls), float(usd)
