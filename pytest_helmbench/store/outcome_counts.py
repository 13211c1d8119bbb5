"""Outcomes of a run, counted by SQL: a report needs no result of which it shows nothing but that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import NO_MODEL_CALL
from pytest_helmbench.store.reading import reading

IS_CASE = f"NOT (outcome = 'skipped' AND reason IS '{NO_MODEL_CALL}')"
"""Condition on a row of `results`: it is a case of its run, and no test that asked no model."""


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    """Results of a run that came out alike.

    Args:
        outcome: `passed`, `failed`, `error` or `skipped`.
        reason: Why; None for most that were judged.
        neutral: Scores ignore them.
        rows: How many.
    """

    outcome: str
    reason: str | None
    neutral: bool
    rows: int


@dataclass(frozen=True, slots=True)
class RecordedOutcomes:
    """Results and evaluations of a run, counted.

    Args:
        results: By outcome and reason.
        parses: Evaluations by how their reply was read; those that read no JSON are left out.
        rules: Evaluations by rule.
        in_process: Results whose verdict what was judged might have forged.
    """

    results: tuple[OutcomeCount, ...]
    parses: Mapping[str, int]
    rules: Mapping[str, int]
    in_process: int


_OUTCOMES = (
    f"SELECT outcome, reason, neutral, count(*) FROM results WHERE run_id = ? AND {IS_CASE} GROUP BY 1, 2, 3"
)
_EVALUATIONS = """
    SELECT evaluations.parse, evaluations.rule, count(*) FROM evaluations
    JOIN results ON results.id = evaluations.result_id
    WHERE results.run_id = ? GROUP BY 1, 2
"""
_IN_PROCESS = """
    SELECT count(DISTINCT evaluations.result_id) FROM evaluations JOIN results ON results.id = evaluations.result_id
    WHERE results.run_id = ? AND evaluations.in_process
"""


def recorded_outcomes(path: Path, run_id: int) -> RecordedOutcomes:
    """Return what came of the cases of a run.

    Raises:
        StoreError: The file is missing or no results file.
    """
    parses: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    with reading(path) as conn:
        results = tuple(
            OutcomeCount(outcome, reason, bool(neutral), rows)
            for outcome, reason, neutral, rows in conn.execute(_OUTCOMES, (run_id,))
        )
        for parse, rule, rows in conn.execute(_EVALUATIONS, (run_id,)):
            rules[rule] += rows
            if parse is not None:
                parses[parse] += rows
        (in_process,) = conn.execute(_IN_PROCESS, (run_id,)).fetchone()
    return RecordedOutcomes(results, parses, rules, in_process)
