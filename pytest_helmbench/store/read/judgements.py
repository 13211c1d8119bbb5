"""Verdicts of judges in a run, and the labels of people on them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_helmbench.core.case import JUDGED_RULE
from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Judgement
from pytest_helmbench.store.database_file import writing
from pytest_helmbench.store.read.connection import reading
from pytest_helmbench.store.table_rows import from_row, named_rows

_JUDGEMENTS = """
    SELECT results.code, results.repetition, judgements.* FROM judgements
    JOIN results ON results.id = judgements.result_id
    WHERE results.run_id = :run_id AND (:code IS NULL OR results.code = :code)
    ORDER BY judgements.id
"""


@dataclass(frozen=True, slots=True)
class JudgedCriterion:
    """One criterion of one result, and what several judges said about it, in their order."""

    code: str
    repetition: int
    criterion: str
    said: tuple[Judgement, ...]

    @property
    def disputed(self) -> bool:
        """Whether they disagree."""
        return self.said[0].passed != self.said[1].passed


def judged_criteria(path: Path, run_id: int, code: str | None = None) -> tuple[JudgedCriterion, ...]:
    """Return what several judges said in a run, by case in natural order; empty where one alone has judged."""
    found: dict[tuple[str, int, str], list[Judgement]] = {}
    with reading(path) as conn:
        for row in named_rows(conn.execute(_JUDGEMENTS, {"run_id": run_id, "code": code})):
            judgement = from_row(Judgement, row, passed=bool(row["passed"]), of_record=bool(row["of_record"]))
            key = (str(row["code"]), int(str(row["repetition"])), judgement.criterion)
            found.setdefault(key, []).append(judgement)
    rows = (JudgedCriterion(*key, tuple(given)) for key, given in found.items() if len(given) > 1)
    return tuple(sorted(rows, key=lambda row: (natural_key(row.code), row.repetition)))


RowKey = tuple[str, int, str]
"""Case code, repetition, criterion."""


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """One verdict of the judge."""

    key: RowKey
    passed: bool
    severity: int

    @property
    def points(self) -> int:
        """Its weight in a severity score: |base|; 1 in a behaviour without severities."""
        return abs(self.severity) or 1


@dataclass(frozen=True, slots=True)
class Label:
    """The word of a person on a verdict.

    Args:
        passed: Whether he lets the reply pass.
        draws: How often a sample by points drew the row; None for a sample of rows.
    """

    passed: bool
    draws: int | None = None


class LabelCounts(NamedTuple):
    """Verdicts of the judge in a run, and what a person says of those that were labelled.

    In a sample by points `passes` and `judged` are points, and a label counts as often as it was drawn.

    Args:
        passes: Judged to pass.
        labelled_passes: Labelled among the passes.
        right_passes: Of them, those that a person lets pass too.
        labelled_fails: Labelled among the fails.
        wrong_fails: Of them, those that a person lets pass.
        rows: How many rows of equal points `judged` is worth; None where each row is one.
    """

    passes: int
    judged: int
    labelled_passes: int
    right_passes: int
    labelled_fails: int
    wrong_fails: int
    rows: float | None = None


_JUDGED = """
    FROM results JOIN evaluations ON evaluations.result_id = results.id
    LEFT JOIN judge_labels AS labels ON labels.run_id = results.run_id AND labels.code = results.code
        AND labels.repetition = results.repetition AND labels.criterion = evaluations.criterion
    WHERE results.run_id = :run_id AND results.outcome IN ('passed', 'failed') AND results.neutral = 0
        AND evaluations.rule = :rule
"""
_LABELLED = """
    SELECT evaluations.passed, iif(:points, max(1, abs(results.severity)), 1), labels.passed,
        coalesce(iif(:points, labels.point_draws, labels.of_rows), 0)
"""
_WRITE = """
    INSERT INTO judge_labels (run_id, code, repetition, criterion, passed, labelled_at, of_rows, point_draws)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET passed = excluded.passed, labelled_at = excluded.labelled_at,
        of_rows = max(of_rows, excluded.of_rows), point_draws = coalesce(excluded.point_draws, point_draws)
"""
_CRITERIA = """
    SELECT DISTINCT results.code, scenarios.evaluation FROM results
    JOIN scenarios ON scenarios.id = results.scenario_id WHERE results.run_id = ?
"""


def judged_rows(path: Path, run_id: int) -> tuple[JudgedRow, ...]:
    """Return the verdicts of a run's judge, neutral cases apart, in order of code, repetition and criterion."""
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
    """Return the rule for the scenario of each case, as it is on record."""
    with reading(path) as conn:
        return {code: json.loads(about) for code, about in conn.execute(_CRITERIA, (run_id,))}


def label_counts(path: Path, run_id: int, *, points: bool) -> LabelCounts | None:
    """Return how the labels of a run's sample stand to its judge; None without a label of one.

    Args:
        points: Of the sample by points; else of the one of rows.
    """
    asked = {"run_id": run_id, "rule": JUDGED_RULE, "points": points}
    with reading(path) as conn:
        if conn.execute("SELECT 1 FROM judge_labels WHERE run_id = ? LIMIT 1", (run_id,)).fetchone() is None:
            return None
        rows = conn.execute(_LABELLED + _JUDGED, asked).fetchall()
    labelled: Counter[tuple[int, int]] = Counter()
    for passed, _, said, draws in rows:
        labelled[passed, said] += draws
    if not labelled.total():
        return None
    judged = sum(weight for _, weight, *_ in rows)
    return LabelCounts(
        passes=sum(weight for passed, weight, *_ in rows if passed),
        judged=judged,
        labelled_passes=labelled[1, 0] + labelled[1, 1],
        right_passes=labelled[1, 1],
        labelled_fails=labelled[0, 0] + labelled[0, 1],
        wrong_fails=labelled[0, 1],
        rows=judged**2 / sum(weight**2 for _, weight, *_ in rows) if points else None,
    )


def write_labels(path: Path, run_id: int, labels: Mapping[RowKey, Label], at: str) -> None:
    """Keep what a person has said about verdicts; the last word on each stands, and the last sample by points.

    Raises:
        StoreError: They cannot be written.
    """
    with writing(path) as conn:
        if any(label.draws is not None for label in labels.values()):
            conn.execute("UPDATE judge_labels SET point_draws = NULL WHERE run_id = ?", (run_id,))
        conn.executemany(
            _WRITE,
            [
                (run_id, *key, int(label.passed), at, int(label.draws is None), label.draws)
                for key, label in labels.items()
            ],
        )
