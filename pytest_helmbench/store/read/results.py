"""Results with their evaluations, steps and calls, read from a results file while a session may be writing it."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from hashlib import sha256
from pathlib import Path

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.kind_words import ResultWords
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import BOX_EVENT, FORM_REASONS, Beside, Cell, Evaluation, Event, Parse
from pytest_helmbench.core.tools import MadeCall
from pytest_helmbench.store.plan_rows import IS_CASE
from pytest_helmbench.store.read.connection import reading
from pytest_helmbench.store.table_rows import from_row, named_rows

_RESULTS = """
    SELECT found.*, CASE WHEN :with_text THEN (SELECT body FROM requests WHERE hash = request_hash) END AS request
    FROM (
        SELECT results.*, scenarios.full_code AS scenario, scenarios.title AS title, responses.body AS response_body,
            CASE WHEN :with_text THEN responses.text END AS reply,
            CASE WHEN :with_text THEN responses.thoughts END AS thoughts,
            coalesce(responses.request_hash, (
                SELECT calls.request_hash FROM calls
                WHERE calls.run_id = results.run_id AND calls.code = results.code
                    AND calls.repetition = results.repetition AND calls.purpose <> 'judge'
                ORDER BY calls.rowid DESC LIMIT 1
            )) AS request_hash
        FROM results
        LEFT JOIN scenarios ON scenarios.id = results.scenario_id
        LEFT JOIN responses ON responses.id = results.response_id
        WHERE results.run_id = :run_id AND (:code IS NULL OR results.code = :code)
            AND (:outcome IS NULL OR results.outcome = :outcome)
    ) AS found
"""
_EVALUATIONS = """
    SELECT evaluations.*, results.reason AS result_reason
    FROM evaluations JOIN results ON results.id = evaluations.result_id
    WHERE results.run_id = :run_id AND (:code IS NULL OR results.code = :code)
        AND (:outcome IS NULL OR results.outcome = :outcome)
    ORDER BY evaluations.id
"""
_CALLS = "SELECT * FROM calls WHERE run_id = ? AND code = ? ORDER BY rowid"
_NOTABLE_CALLS = """
    SELECT calls.* FROM calls JOIN (
        SELECT code, repetition FROM calls WHERE run_id = :run_id GROUP BY code, repetition
        HAVING count(*) > 1 OR max(purpose <> 'case' OR error IS NOT NULL OR from_cache OR response_id IS NULL)
    ) AS notable ON notable.code = calls.code AND notable.repetition = calls.repetition
    WHERE calls.run_id = :run_id ORDER BY calls.rowid
"""
_ASKED_TURNS = """
    SELECT DISTINCT code, repetition, turn FROM calls
    WHERE run_id = ? AND code = ifnull(?, code) AND turn IS NOT NULL
"""
_PERTURBATIONS = (
    "SELECT DISTINCT results.code, body FROM results JOIN perturbations ON perturbations.id = perturbation_id"
    " JOIN texts ON hash = text_hash WHERE run_id = ? AND results.code IN (SELECT value FROM json_each(?))"
)
_STEPS = """
    SELECT results.code, results.repetition, events.type, events.payload, events.at
    FROM events JOIN results ON results.id = events.result_id
    WHERE results.run_id = :run_id AND (:code IS NULL OR results.code = :code) ORDER BY events.id
"""
_TIMED = """
    SELECT latency_ms, completion_tokens FROM results
    WHERE run_id IN (SELECT value FROM json_each(:runs)) AND latency_ms > 0
    AND (run_id, code, repetition) NOT IN (
        SELECT run_id, code, repetition FROM calls
        WHERE run_id IN (SELECT value FROM json_each(:runs)) AND from_cache = 1 AND purpose <> 'judge'
    )
    ORDER BY rowid
"""
_IN_FLIGHT = """
    WITH ended AS (
        SELECT round((julianday(started_at) - 2440587.5) * 86400000) AS began, latency_ms AS ms FROM calls
        WHERE run_id IN (SELECT value FROM json_each(:runs)) AND from_cache = 0 AND purpose <> 'judge'
            AND latency_ms IS NOT NULL
    ), turns AS (SELECT began AS at, 1 AS change FROM ended UNION ALL SELECT began + ms, -1 FROM ended)
    SELECT max(max(whole), 1), sum(CASE WHEN flying > 0 THEN next - at END) / 1000 FROM (
        SELECT at, lead(at) OVER turn AS next, sum(change) OVER (turn ROWS UNBOUNDED PRECEDING) AS flying,
            -- A call is known to begin at a millisecond, and ended before the one that took its place began.
            sum(change) OVER (ORDER BY CAST(at AS INTEGER), change ROWS UNBOUNDED PRECEDING) AS whole
        FROM turns WINDOW turn AS (ORDER BY at, change)
    )
"""
_OUTCOMES = (
    f"SELECT outcome, reason, neutral, count(*) FROM results WHERE run_id = ? AND {IS_CASE} GROUP BY 1, 2, 3"
)
_COUNTED_EVALUATIONS = """
    SELECT evaluations.parse, evaluations.rule, count(*) FROM evaluations
    JOIN results ON results.id = evaluations.result_id
    WHERE results.run_id = ? GROUP BY 1, 2
"""
_MARKED = """
    SELECT evaluations.beside, count(DISTINCT evaluations.result_id) FROM evaluations
    JOIN results ON results.id = evaluations.result_id
    WHERE results.run_id = ? AND evaluations.beside IS NOT NULL GROUP BY 1
"""
_BOXES = f"""
    SELECT CAST(json_extract(payload, '$.part') AS TEXT), coalesce(json_extract(payload, '$.engine'), '') || '',
        CAST(json_extract(payload, '$.cpus') AS REAL), CAST(json_extract(payload, '$.memory_mb') AS INTEGER),
        coalesce(json_extract(payload, '$.memory_kills'), 0) > 0, count(*)
    FROM results JOIN events ON events.result_id = results.id
    WHERE results.run_id = ? AND events.type = '{BOX_EVENT}' GROUP BY 1, 2, 3, 4, 5
"""
_FINISHES = """
    SELECT finish_reason, count(*), total(inner_thoughts) FROM (
        SELECT DISTINCT calls.code, calls.repetition, calls.finish_reason, responses.id, responses.inner_thoughts
        FROM calls JOIN responses ON responses.id = calls.response_id WHERE calls.run_id = ?
    ) GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One message of a conversation, with the tool calls in it and their answers.

    Args:
        turn: From 1, which a system message belongs to, too.
        role: `system`, `user` or `assistant`.
        text: Scrubbed, like all of its calls; empty where a reply only calls tools.
        is_scripted: The model was not asked for this reply: it is the benchmark's.
    """

    turn: int
    role: str
    text: str
    calls: tuple[MadeCall, ...] = ()
    is_scripted: bool = False


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One result with its evaluations, joined and readable.

    Args:
        scenario: `P1-B2-S1`; None where the result belongs to none.
        points_lost: Of the run's score, in points; None while the run is open, where it has no score, or unjudged.
        request_hash: Of the newest request of the case itself; None when nothing was asked.
        reply_hash: SHA-256 (hex) of the reply's HTTP body; None without a reply.
        request: Body as sent; None unless asked for.
        reply: Scrubbed text; None unless asked for. `thoughts` likewise, None for none.
        words: What its kind says of it; None for most kinds, and where it says nothing.
        conversation: All that was said in it, the reply last; empty for a case of one question, and in `results`.
        title: Of its scenario; of the user's own data the question.
    """

    id: str
    code: str
    repetition: int
    node_id: str
    family: str
    scenario: str | None
    outcome: str
    reason: str | None
    score: float | None
    points_lost: float | None
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
    evaluations: tuple[Evaluation, ...]
    words: ResultWords | None = None
    thoughts: str | None = None
    conversation: tuple[ShownMessage, ...] = ()
    title: str | None = None


@dataclass(frozen=True, slots=True)
class CallRow:
    """One row of `calls`; its turn is None where there is no conversation."""

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
    judge: str | None = None
    turn: int | None = None


def evaluations_of(
    conn: sqlite3.Connection, run_id: int, code: str | None = None, outcome: str | None = None
) -> Mapping[Cell, tuple[Evaluation, ...]]:
    """Return the evaluations of the results of a run by `results.id`; see `results`."""
    found: defaultdict[Cell, list[Evaluation]] = defaultdict(list)
    asked = {"run_id": run_id, "code": code, "outcome": outcome}
    for row in named_rows(conn.execute(_EVALUATIONS, asked)):
        # A judged case has no reason of form, and a field rule has one evaluation: the reason is its own.
        reason = row["result_reason"] if row["result_reason"] in FORM_REASONS else None
        parse = None if row["parse"] is None else Parse(str(row["parse"]))
        beside = None if row["beside"] is None else Beside(str(row["beside"]))
        passed = bool(row["passed"])
        found[row["result_id"]].append(
            from_row(Evaluation, row, reason=reason, parse=parse, passed=passed, beside=beside)
        )
    return {key: tuple(evaluations) for key, evaluations in found.items()}


def results(
    path: Path, run_id: int, code: str | None = None, *, outcome: str | None = None, with_text: bool = False
) -> tuple[ResultRow, ...]:
    """Return the results of a run in natural order of code and repetition: all, of one case, or with one outcome.

    Requests and replies are in them where texts are asked for.
    """
    asked = {"run_id": run_id, "code": code, "outcome": outcome, "with_text": with_text}
    with reading(path) as conn:
        evaluations = evaluations_of(conn, run_id, code, outcome)
        rows = [
            from_row(
                ResultRow,
                row,
                neutral=bool(row["neutral"]),
                reply_hash=sha256(body).hexdigest()
                if isinstance(body := row["response_body"], bytes)
                else None,
                evaluations=evaluations.get(row["id"], ()),
            )
            for row in named_rows(conn.execute(_RESULTS, asked))
        ]
    return tuple(sorted(rows, key=lambda row: (natural_key(row.code), row.repetition)))


def asked_turns(
    path: Path, run_id: int, code: str | None = None
) -> Mapping[tuple[str, int], Collection[int]]:
    """Return the turns at which a model was asked, by code and repetition; cases of one question are left out."""
    found: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    with reading(path) as conn:
        for of_case, repetition, turn in conn.execute(_ASKED_TURNS, (run_id, code)):
            found[of_case, repetition].add(turn)
    return found


def perturbation_texts(path: Path, run_id: int, codes: Sequence[str]) -> dict[str, str]:
    """Return the texts of the perturbations of some cases, by code; a pack has none."""
    with reading(path) as conn:
        return dict(conn.execute(_PERTURBATIONS, (run_id, json.dumps(codes))).fetchall())


def result_codes(path: Path, run_id: int) -> tuple[str, ...]:
    """Return the codes of all results of a run, in natural order."""
    with reading(path) as conn:
        rows = conn.execute("SELECT DISTINCT code FROM results WHERE run_id = ?", (run_id,)).fetchall()
    return tuple(sorted((code for (code,) in rows), key=natural_key))


def calls_of_case(path: Path, run_id: int, code: str) -> tuple[CallRow, ...]:
    """Return every attempt that a case took, judges' too, in the order they were made."""
    with reading(path) as conn:
        rows = named_rows(conn.execute(_CALLS, (run_id, code)))
        return tuple(from_row(CallRow, row, from_cache=bool(row["from_cache"])) for row in rows)


def notable_calls(path: Path, run_id: int) -> Mapping[tuple[str, int], tuple[CallRow, ...]]:
    """Return the calls of a run by code and repetition, where they say more than the result does.

    A case that was answered at once has its time, tokens and cost in its result; the calls of all others are here.
    """
    found: defaultdict[tuple[str, int], list[CallRow]] = defaultdict(list)
    with reading(path) as conn:
        for row in named_rows(conn.execute(_NOTABLE_CALLS, {"run_id": run_id})):
            call = from_row(CallRow, row, from_cache=bool(row["from_cache"]))
            found[str(row["code"]), call.repetition].append(call)
    return {key: tuple(calls) for key, calls in found.items()}


def case_steps(
    path: Path, run_id: int, code: str | None = None
) -> Mapping[tuple[str, int], tuple[Event, ...]]:
    """Return the steps of the cases of a run by code and repetition; cases without any are left out."""
    found: defaultdict[tuple[str, int], list[Event]] = defaultdict(list)
    asked = {"run_id": run_id, "code": code}
    with reading(path) as conn:
        for of_case, repetition, kind, payload, at in conn.execute(_STEPS, asked):
            found[of_case, repetition].append(Event(kind, json.loads(payload), at))
    return {key: tuple(events) for key, events in found.items()}


def timed_cases(path: Path, run_ids: Sequence[int]) -> tuple[tuple[float, int | None], ...]:
    """Return milliseconds and reply tokens of every case that was answered in some runs.

    Cases with a reply from the record are left out: its time is not this run's.
    """
    with reading(path) as conn:
        return tuple(conn.execute(_TIMED, {"runs": json.dumps(run_ids)}).fetchall())


def in_flight(path: Path, run_ids: Sequence[int]) -> tuple[int | None, float | None]:
    """Return how many calls to the models of some runs were out at once at most, and for how many seconds one was."""
    with reading(path) as conn:
        most, busy_s = conn.execute(_IN_FLIGHT, {"runs": json.dumps(run_ids)}).fetchone()
    return most, busy_s


@dataclass(frozen=True, slots=True)
class RecordedOutcomes:
    """Results and evaluations of a run, counted.

    Args:
        results: Outcome, reason (None for a plain verdict), whether scores ignore them, and how many there are.
        parses: Evaluations by how their reply was read; those that read no JSON are left out.
        beside: Results by the mark of their verdict; those without one are left out.
        finishes: Replies by their provider's word for their end, and how many thoughts stood inside of them.
        boxes: By whose they were, engine, processors, MB, and whether memory has killed in them.
    """

    results: tuple[tuple[str, str | None, int, int], ...]
    parses: Mapping[str, int]
    rules: Mapping[str, int]
    beside: Mapping[str, int]
    finishes: tuple[tuple[str | None, int, int], ...] = ()
    boxes: Mapping[tuple[str, str, float, int, bool], int] = field(default_factory=dict)


def recorded_outcomes(path: Path, run_id: int) -> RecordedOutcomes:
    """Count the outcomes of the cases of a run."""
    parses: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    with reading(path) as conn:
        results = tuple(conn.execute(_OUTCOMES, (run_id,)).fetchall())
        for parse, rule, rows in conn.execute(_COUNTED_EVALUATIONS, (run_id,)):
            rules[rule] += rows
            if parse is not None:
                parses[parse] += rows
        beside = dict(conn.execute(_MARKED, (run_id,)).fetchall())
        finishes = tuple(conn.execute(_FINISHES, (run_id,)).fetchall())
        boxes = {row[:-1]: row[-1] for row in conn.execute(_BOXES, (run_id,))}
    return RecordedOutcomes(results, parses, rules, beside, finishes, boxes)
