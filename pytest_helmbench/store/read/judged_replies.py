"""Judged replies of a run, with the credits that scores, comparisons, gates and baselines read here."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from sys import intern
from typing import NamedTuple

from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.read.connection import reading

_DIGITS = 16

_IN_TURNS = """
    SELECT scenarios.full_code FROM scenarios JOIN evaluation_runs USING (benchmark_id)
    WHERE evaluation_runs.id = ?
        AND (json_type(evaluation, '$.turns') = 'object' OR json_type(evaluation, '$.each') = 'object')
"""
_CREDITS = """
    SELECT results.code, results.repetition, evaluations.criterion, evaluations.passed, evaluations.credit,
        evaluations.rule_hash
    FROM results JOIN evaluations ON evaluations.result_id = results.id
    WHERE results.run_id = ? AND results.outcome IN ('passed', 'failed')
    ORDER BY results.code, results.repetition
"""


class Credit(NamedTuple):
    """The credit (0 to 1) of one judged case × repetition (from 1) × criterion (empty where the case has one row).

    The hash is that of the rule, or of all rules of a conversation; None where one is unknown.
    """

    code: str
    repetition: int
    criterion: str
    passed: bool
    value: float
    rule_hash: str | None


def credits_of(conn: sqlite3.Connection, run_id: int) -> Iterator[Credit]:
    """Yield the credits of a run in the order of codes and repetitions.

    A conversation with rules for single turns has one: it passes when all rules pass, and its credit is the least.
    """
    in_turns = {code for (code,) in conn.execute(_IN_TURNS, (run_id,))}
    rows = (
        Credit(code, repetition, intern(criterion), bool(passed), value, rule_hash)
        for code, repetition, criterion, passed, value, rule_hash in conn.execute(_CREDITS, (run_id,))
    )
    if not in_turns:
        yield from rows
        return
    for (code, _), parts in groupby(rows, key=lambda row: row[:2]):
        if "-".join(code.split("-", 3)[:3]) in in_turns:
            yield _whole(tuple(parts))
        else:
            yield from parts


def _whole(parts: Sequence[Credit]) -> Credit:
    """Return the credit of a conversation; its hash is that of all rules, None where one is unknown."""
    least = min(parts, key=lambda part: (part.passed, part.value))
    rules = sorted((part.criterion, part.rule_hash or "") for part in parts)
    is_known = all(rule_hash for _, rule_hash in rules)
    digest = hashlib.sha256(repr(rules).encode()).hexdigest()[:_DIGITS] if is_known else None
    return least._replace(criterion="", rule_hash=digest)


class CasePoints(NamedTuple):
    """The points that a case was judged for: its base severity, the difficulty, and whether scores ignore it."""

    severity: int
    difficulty: int
    is_neutral: bool

    @property
    def counts(self) -> bool:
        """Whether a wrong answer costs points."""
        return not self.is_neutral and self.difficulty < 10


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case with its judged replies.

    Args:
        content: 16 hex digits that change whenever something does that is asked; None where that is not known.
        rules: Hash of the rule by criterion; a criterion that was judged by several rules has None.
        replies: Credits by criterion, in the order of the repetitions.
        recorded: How many of them were taken from the record.
        points: What it was judged for; None where that is not known, and for a row without severities.
    """

    content: str | None
    rules: Mapping[str, str | None]
    replies: tuple[Mapping[str, float], ...]
    recorded: int = 0
    points: CasePoints | None = None


_RECORDED = """
    SELECT code, count(DISTINCT repetition) FROM calls
    WHERE run_id = ? AND from_cache = 1 AND purpose <> 'judge' GROUP BY code
"""

_POINTS = """
    SELECT code, severity, difficulty, neutral FROM results
    WHERE run_id = ? AND perturbation_id IS NOT NULL AND outcome IN ('passed', 'failed') GROUP BY code
"""


def judged_cases(path: Path, run_id: int) -> Mapping[str, JudgedCase]:
    """Return the judged cases of a run by code."""
    replies: defaultdict[str, defaultdict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    rules: defaultdict[str, defaultdict[str, set[str | None]]] = defaultdict(lambda: defaultdict(set))
    with reading(path) as conn:
        for code, repetition, criterion, _, credit, rule_hash in credits_of(conn, run_id):
            replies[code][repetition][criterion] = credit
            rules[code][criterion].add(rule_hash)
        recorded = dict(conn.execute(_RECORDED, (run_id,)).fetchall())
        contents = _contents(conn, run_id, replies)
        points = {code: CasePoints(*found) for code, *found in conn.execute(_POINTS, (run_id,))}
    return {
        code: JudgedCase(
            contents.get(code),
            {name: next(iter(known)) if len(known) == 1 else None for name, known in rules[code].items()},
            tuple(found.values()),
            recorded.get(code, 0),
            points.get(code),
        )
        for code, found in replies.items()
    }


_PART = """
    SELECT part.full_code, part.text_hash FROM {table} AS part JOIN scenarios ON scenarios.id = part.scenario_id
    JOIN evaluation_runs USING (benchmark_id) WHERE evaluation_runs.id = :id
"""
_TEXTS = " UNION ALL ".join(
    _PART.format(table=table) for table in ("conditions", "user_contexts", "perturbations")
)
_SCENARIOS = """
    SELECT full_code, coalesce(text_hash, '') || ' ' || coalesce(schema, '') || coalesce(evaluation ->> '$.sent', '')
    FROM scenarios
    JOIN evaluation_runs USING (benchmark_id) WHERE evaluation_runs.id = :id AND behaviour_id IS NOT NULL
"""
_ROWS = """
    SELECT code, evaluation FROM scenarios
    JOIN evaluation_runs USING (benchmark_id) WHERE evaluation_runs.id = :id AND behaviour_id IS NULL
"""


def _contents(conn: sqlite3.Connection, run_id: int, codes: Iterable[str]) -> dict[str, str]:
    """Return what makes up each case: the texts of its components and its schema, or the row as it stands."""
    asked = {"id": run_id}
    parts = dict(conn.execute(_TEXTS, asked).fetchall()) | dict(conn.execute(_SCENARIOS, asked).fetchall())
    if not parts:
        return {
            code: content
            for code, about in conn.execute(_ROWS, asked)
            if isinstance(content := json.loads(about).get("content"), str)
        }
    found = {}
    for code in codes:
        named = _components(code)
        if all(name in parts for name in named):
            whole = "\n".join(parts[name] for name in named)
            found[code] = hashlib.sha256(whole.encode()).hexdigest()[:_DIGITS]
    return found


def _components(code: str) -> list[str]:
    """Return the full codes of a case's scenario, condition, user context and perturbation."""
    parts = CaseCode.parse(code)
    if parts is None:
        return [code]
    scenario = f"{parts.pillar}-{parts.behaviour}-{parts.scenario}"
    chosen = (parts.condition, parts.user_context, parts.perturbation)
    return [scenario, *(f"{scenario}-{part}" for part in chosen if part is not None)]
