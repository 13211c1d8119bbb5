"""The judge's verdicts of a run, and the table `judge_labels`: what a person has said of some of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.rule import JUDGED_RULE
from pytest_helmbench.store.database_file import open_database
from pytest_helmbench.store.fault import store_error
from pytest_helmbench.store.reading import has_table, reading

__all__ = ["JudgedRow", "LabelCounts", "RowKey", "criteria_of", "judged_rows", "label_counts", "write_labels"]

_TIMEOUT_S = 30.0

RowKey = tuple[str, int, str]
"""Case code, repetition, criterion."""


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """One verdict of the judge."""

    key: RowKey
    passed: bool
    severity: int


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Verdicts of the judge in a run, and what a person says of those that were labelled.

    Args:
        passes: Judged to pass.
        judged: All that were judged.
        labelled_passes: Labelled among the passes.
        right_passes: Of them, those that a person lets pass too.
        labelled_fails: Labelled among the fails.
        wrong_fails: Of them, those that a person lets pass.
    """

    passes: int
    judged: int
    labelled_passes: int
    right_passes: int
    labelled_fails: int
    wrong_fails: int


_JUDGED = (
    " FROM results JOIN evaluations ON evaluations.result_id = results.id WHERE results.run_id = :run_id"
    " AND results.outcome IN ('passed', 'failed') AND results.neutral = 0 AND evaluations.rule = :rule"
)
_COUNTS = """
    SELECT coalesce(sum(evaluations.passed), 0), count(*),
        coalesce(sum(evaluations.passed = 1 AND labels.passed IS NOT NULL), 0),
        coalesce(sum(evaluations.passed = 1 AND labels.passed = 1), 0),
        coalesce(sum(evaluations.passed = 0 AND labels.passed IS NOT NULL), 0),
        coalesce(sum(evaluations.passed = 0 AND labels.passed = 1), 0)
    FROM results JOIN evaluations ON evaluations.result_id = results.id
    LEFT JOIN judge_labels AS labels ON labels.run_id = results.run_id AND labels.code = results.code
        AND labels.repetition = results.repetition AND labels.criterion = evaluations.criterion
    WHERE results.run_id = :run_id AND results.outcome IN ('passed', 'failed') AND results.neutral = 0
        AND evaluations.rule = :rule
"""
_CRITERIA = """
    SELECT DISTINCT results.code, scenarios.evaluation FROM results
    JOIN scenarios ON scenarios.id = results.scenario_id WHERE results.run_id = ?
"""


def judged_rows(path: Path, run_id: int) -> tuple[JudgedRow, ...]:
    """Return the verdicts of a run's judge, neutral cases apart, in order of code, repetition and criterion.

    Raises:
        StoreError: The file is missing or no results file.
    """
    columns = (
        "SELECT results.code, results.repetition, evaluations.criterion, evaluations.passed, results.severity"
    )
    with reading(path) as conn:
        found = conn.execute(columns + _JUDGED + " ORDER BY 1, 2, 3", {"run_id": run_id, "rule": JUDGED_RULE})
        return tuple(
            JudgedRow((code, repetition, criterion), bool(passed), severity)
            for code, repetition, criterion, passed, severity in found
        )


def criteria_of(path: Path, run_id: int) -> Mapping[str, JsonObject]:
    """Return what the scenario of each case is held to, as it is on record.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with reading(path) as conn:
        return {code: json.loads(about) for code, about in conn.execute(_CRITERIA, (run_id,))}


def label_counts(path: Path, run_id: int) -> LabelCounts | None:
    """Return how the labels of a run stand to its judge; None without a label.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with reading(path) as conn:
        if not has_table(conn, "judge_labels"):
            return None
        if conn.execute("SELECT 1 FROM judge_labels WHERE run_id = ?", (run_id,)).fetchone() is None:
            return None
        return LabelCounts(*conn.execute(_COUNTS, {"run_id": run_id, "rule": JUDGED_RULE}).fetchone())


def write_labels(path: Path, run_id: int, labels: Iterable[tuple[RowKey, bool]], at: str) -> None:
    """Keep what a person has said of verdicts; the last word on each stands.

    Raises:
        StoreError: They cannot be written.
    """
    try:
        with closing(open_database(path, _TIMEOUT_S).conn) as conn:
            conn.execute("BEGIN IMMEDIATE")
            conn.executemany(
                "INSERT OR REPLACE INTO judge_labels (run_id, code, repetition, criterion, passed, labelled_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [(run_id, *key, int(passed), at) for key, passed in labels],
            )
            conn.execute("COMMIT")
    except sqlite3.Error as error:
        raise store_error(path, error) from error
