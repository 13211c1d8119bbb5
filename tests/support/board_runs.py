"""Runs of rows written through a store: any model, content, settings, verdicts, costs and times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.outcome import AttemptRecord, Evaluation, Outcome, ResultRecord, Usage, Verdict
from pytest_helmbench.core.outline import CaseAxes, Catalogue, ScenarioEntry
from pytest_helmbench.results.stored_scores import run_totals, scored_run
from pytest_helmbench.store.write.run_rows import RunRecord
from pytest_helmbench.store.write.writer import Store

__all__ = ["add_run"]

_AT = "2026-11-22T08:00:00+00:00"


class _Rows:
    """A benchmark of rows, as the store takes one."""

    version = "1"
    description = ""
    kind = "pack"

    def __init__(self, name: str, content: str) -> None:
        self.name = name
        self.hash = content * 32

    def catalogue(self, codes: Iterable[str], /) -> Catalogue:
        entries = (
            ScenarioEntry(
                code=code, full_code=code, family="quiz", about={"groups": {}, "content": self.hash}
            )
            for code in codes
        )
        return Catalogue(list(entries))

    def axes(self, code: str) -> CaseAxes:
        return CaseAxes(scenario=code)


def add_run(
    path: Path,
    model: str,
    said: Sequence[bool | None],
    *,
    benchmark: str = "quiz",
    content: str = "ab",
    settings: Mapping[str, JsonValue] | None = None,
    status: str = "complete",
    scope: str = "whole",
    judged_by: str | None = None,
    cost: float | None = 0.001,
    recorded: int = 0,
) -> int:
    """Store a run of as many rows as it says, right or wrong or an error, and return its id.

    Args:
        path: Results file.
        model: Under test.
        said: Verdicts; None for an error.
        benchmark: Its name.
        content: Two hex digits that its hash is made of.
        settings: Of the run.
        status: How it ended.
        scope: As a run has it.
        judged_by: The marking model that is asked of each row.
        cost: USD of each call; None for unknown.
        recorded: So many replies come from the record.
    """
    codes = tuple(f"R{number}" for number in range(len(said)))
    judging: Mapping[str, JsonValue] = (
        {} if judged_by is None else {"judge": judged_by, "judges": [judged_by]}
    )
    record = RunRecord(
        *(_Rows(benchmark, content), model, "test", None, scope, len(said), None),
        {"repeat": 1, **judging, **(settings or {})},
        *("0.1.0", _AT, codes),
    )
    store = Store.open(path)
    (run_id,) = store.open_runs(f"session of {model}", [record])
    for number, (code, passed) in enumerate(zip(codes, said, strict=True)):
        purposes = ("case",) if judged_by is None else ("case", "judge")
        for purpose in purposes:
            store.record_attempt(_call(run_id, code, purpose, cost, from_record=number < recorded))
        store.record_result(
            ResultRecord(
                run_id,
                code,
                code,
                "quiz",
                1,
                1,
                0,
                False,
                _outcome(passed, number, is_timed=number >= recorded),
            )
        )
    store.flush()
    store.close_run(run_id, run_totals(status, _AT, scored_run(path, run_id)))
    store.close()
    return run_id


def _call(run_id: int, code: str, purpose: str, cost: float | None, *, from_record: bool) -> AttemptRecord:
    key = f"{run_id}-{code}-{purpose}"
    usage = Usage(10, 20, cost_usd=0.0 if from_record else cost)
    return AttemptRecord(
        *(run_id, code, 1, "", purpose, 1, 0 if from_record else 1, 200, "stop", None, 100.0, usage, "good"),
        *(key, key.encode(), b"reply", "reply", key, from_record, _AT, _AT),
    )


def _outcome(passed: bool | None, number: int, *, is_timed: bool) -> Outcome:
    usage = Usage(10, 20, cost_usd=0.001)
    latency = 100.0 + number if is_timed else 0.0
    if passed is None:
        return Outcome(Verdict.ERROR, "timeout")
    credit = float(passed)
    evaluation = Evaluation("", "quiz", "ab", passed, credit, None, None, "A", "A" if passed else "B")
    verdict = Verdict.PASSED if passed else Verdict.FAILED
    return Outcome(verdict, evaluations=(evaluation,), score=credit, usage=usage, latency_ms=latency)
