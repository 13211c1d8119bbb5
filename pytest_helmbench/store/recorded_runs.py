"""What the file remembers: recorded replies, unfinished sessions, and the outcomes of a run that goes on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from pytest_helmbench.benchmarks.bench_packs.bench_pack import PackStatus, ScenarioResult
from pytest_helmbench.core.outcome import FORM_REASONS, Evaluation, Outcome, Parse, Usage, Verdict
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.store.fault import store_error
from pytest_helmbench.store.reading import has_table

__all__ = ["CaseKey", "PaidReply", "RecordedCase", "RecordedRuns", "UnfinishedRun", "unfinished_runs"]


CaseKey = tuple[int, str, int]
"""Run, code, repetition."""


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A judged case on record.

    Args:
        outcome: As it was.
        request_hash: Of the request that the judged reply answers.
        severity: Base severity that the verdict was reached with; `difficulty` and `neutral` likewise.
    """

    outcome: Outcome
    request_hash: str
    severity: int
    difficulty: int
    neutral: bool


@dataclass(frozen=True, slots=True)
class PaidReply:
    """A reply that a run has had.

    Args:
        body: HTTP body as received.
        paid: The run has called for it itself; else it took it from the record.
    """

    body: bytes
    paid: bool


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run that may go on.

    Args:
        run_id: `evaluation_runs.id`.
        session_id: Of its session.
        benchmark: Name.
        model: Id of the model under test.
        status: `running`, `partial`, `interrupted` or `complete`.
        settings: As recorded.
        rescored_from: The run whose replies it judged anew; None for a run that asked.
    """

    run_id: int
    session_id: str
    benchmark: str
    model: str
    status: str
    settings: Mapping[str, Any]
    rescored_from: int | None


class RecordedRuns:
    """Reads recorded replies while the same file is being written. Used on one thread.

    Args:
        path: Results file.

    Raises:
        StoreError: The file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._conn = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise store_error(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._conn.close()

    def reply(self, request_hash: str, repetition: int) -> bytes | None:
        """Return the newest body that answered this request in this repetition, or None."""
        rows = self._rows(
            "SELECT body FROM responses WHERE request_hash = ? AND repetition = ? AND body IS NOT NULL"
            " ORDER BY id DESC LIMIT 1",
            (request_hash, repetition),
        )
        return bytes(rows[0][0]) if rows else None

    def reply_of_run(self, run_id: int, code: str, request_hash: str, repetition: int) -> PaidReply | None:
        """Return the newest reply to this request for this case of this run, or None."""
        rows = self._rows(
            "SELECT responses.body, max(calls.from_cache = 0) OVER () FROM calls"
            " JOIN responses ON responses.id = calls.response_id"
            " WHERE calls.run_id = ? AND calls.code = ? AND calls.repetition = ? AND calls.request_hash = ?"
            " AND responses.body IS NOT NULL ORDER BY calls.id DESC LIMIT 1",
            (run_id, code, repetition, request_hash),
        )
        return PaidReply(bytes(rows[0][0]), bool(rows[0][1])) if rows else None

    def judged_cases(self, run_id: int) -> dict[CaseKey, RecordedCase]:
        """Return the judged cases of a run."""
        evaluations: dict[int, list[Evaluation]] = {}
        for result_id, *columns in self._rows(_EVALUATIONS, (run_id,)):
            evaluations.setdefault(result_id, []).append(_evaluation(*columns))
        hosted = self._hosted(run_id)
        found: dict[CaseKey, RecordedCase] = {}
        for row in self._rows(_RESULTS, (run_id,)):
            result_id, code, repetition, request_hash, severity, difficulty, neutral, *columns = row
            outcome = _outcome(tuple(evaluations.get(result_id, ())), *columns)
            if result_id in hosted:
                outcome = replace(outcome, hosted=hosted[result_id])
            found[run_id, code, repetition] = RecordedCase(
                outcome, request_hash or "", severity, difficulty, bool(neutral)
            )
        return found

    def _hosted(self, run_id: int) -> dict[int, ScenarioResult]:
        """Return what Bench Packs have said of the judged cases of a run, by `results.id`; logs stay where they are."""
        if not has_table(self._conn, "pack_results"):
            return {}
        return {
            result_id: ScenarioResult(
                scenario=code,
                status=PackStatus(status),
                score=score,
                points=points,
                summary=summary or "",
                note=note or "",
                raw_log="",
                stated={},
                timings_valid=timed != 0,
            )
            for result_id, code, status, score, points, summary, note, timed in self._rows(_HOSTED, (run_id,))
        }

    def _rows(self, query: str, values: tuple[object, ...]) -> list[Any]:
        try:
            return self._conn.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise store_error(self._path, error) from error


def unfinished_runs(path: Path, run_id: int | None = None) -> tuple[UnfinishedRun, ...]:
    """Return the runs of the last session that is not complete, or of the session of one run.

    Args:
        path: Results file; it need not exist.
        run_id: A run of the wanted session; None for the last session with an unfinished run.

    Returns:
        Every run of that session, finished ones too; empty when there is none.
    """
    if not path.exists():
        return ()
    with RecordedRuns(path) as recall:
        if run_id is None:
            sessions = recall._rows(
                "SELECT session_id FROM evaluation_runs WHERE status != 'complete' AND rescored_from IS NULL"
                " ORDER BY id DESC LIMIT 1",
                (),
            )
        else:
            sessions = recall._rows("SELECT session_id FROM evaluation_runs WHERE id = ?", (run_id,))
        if not sessions:
            return ()
        rows = recall._rows(_RUNS, sessions[0])
    return tuple(
        UnfinishedRun(number, session_id, benchmark, model, status, json.loads(settings), rescored_from)
        for number, session_id, benchmark, model, status, settings, rescored_from in rows
    )


_RUNS = (
    "SELECT runs.id, runs.session_id, benchmarks.name, llms.name, runs.status, runs.settings, runs.rescored_from"
    " FROM evaluation_runs AS runs JOIN benchmarks ON benchmarks.id = runs.benchmark_id"
    " JOIN llms ON llms.id = runs.llm_id WHERE runs.session_id = ? ORDER BY runs.id"
)
_EVALUATIONS = (
    "SELECT evaluations.result_id, results.reason, criterion, rule, rule_hash, passed, credit, evaluations.parse,"
    " expected, observed, justification FROM evaluations JOIN results ON results.id = evaluations.result_id"
    " WHERE results.run_id = ? ORDER BY evaluations.id"
)
# By the reply that was judged: the newest call of a case may belong to a prompt that nobody has judged yet.
_RESULTS = (
    "SELECT results.id, results.code, results.repetition, responses.request_hash, severity, difficulty, neutral,"
    " outcome, reason, score, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, cost_usd, latency_ms,"
    " started_at, completed_at, CASE outcome WHEN 'failed' THEN substr(responses.text, 1, 1000) END"
    " FROM results LEFT JOIN responses ON responses.id = results.response_id"
    " WHERE run_id = ? AND outcome IN ('passed', 'failed')"
)


_HOSTED = (
    "SELECT result_id, results.code, status, pack_results.score, points, summary, note,"
    " coalesce(json_extract(timings, '$.valid'), 1)"
    " FROM pack_results JOIN results ON results.id = result_id"
    " WHERE results.run_id = ? AND results.outcome IN ('passed', 'failed')"
)


def _evaluation(  # noqa: PLR0913, PLR0917 - one argument per column
    reason: str | None,
    criterion: str,
    rule: str,
    rule_hash: str,
    passed: int,
    credit: float,
    parse: str | None,
    expected: str,
    observed: str,
    justification: str | None,
) -> Evaluation:
    return Evaluation(
        criterion=criterion,
        rule=rule,
        rule_hash=rule_hash,
        passed=bool(passed),
        credit=credit,
        # A judged case has no reason of form, and a field rule has one evaluation: the reason is its own.
        reason=reason if reason in FORM_REASONS else None,
        parse=None if parse is None else Parse(parse),
        expected=expected,
        observed=observed,
        justification=justification,
    )


def _outcome(  # noqa: PLR0913, PLR0917 - one argument per column
    evaluations: tuple[Evaluation, ...],
    verdict: str,
    reason: str | None,
    score: float | None,
    prompt_tokens: int | None,
    completion_tokens: int | None,
    cached_tokens: int | None,
    reasoning_tokens: int | None,
    cost_usd: float | None,
    latency_ms: float | None,
    started_at: str | None,
    completed_at: str | None,
    reply: str | None,
) -> Outcome:
    return Outcome(
        verdict=Verdict(verdict),
        reason=reason,
        evaluations=evaluations,
        score=score,
        usage=Usage(prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, cost_usd),
        latency_ms=latency_ms,
        excerpt=excerpt(reply or ""),
        started_at=started_at,
        completed_at=completed_at,
    )
