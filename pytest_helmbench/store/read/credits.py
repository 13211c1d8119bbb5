"""The credits of a run by case, repetition and criterion: scores, comparisons, gates and baselines read them here."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby
from sys import intern
from typing import NamedTuple

_RULE_DIGITS = 16

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
    """The credit of one judged case × repetition × criterion.

    Args:
        code: Of the case.
        repetition: From 1.
        criterion: Its name; empty where the case has one row.
        passed: Whether the rule passed.
        value: 0 to 1.
        rule_hash: Of the rule, or of all rules of a conversation; None where one is unknown.
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


def _whole(parts: tuple[Credit, ...]) -> Credit:
    """Return the credit of a conversation."""
    least = min(parts, key=lambda part: (part.passed, part.value))
    return least._replace(criterion="", rule_hash=_hash_of_all(parts))


def _hash_of_all(parts: Iterable[Credit]) -> str | None:
    named = sorted((part.criterion, part.rule_hash or "") for part in parts)
    if not all(rule_hash for _, rule_hash in named):
        return None
    return hashlib.sha256(repr(named).encode()).hexdigest()[:_RULE_DIGITS]
