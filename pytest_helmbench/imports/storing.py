"""Runs of other tools put into the record as runs of ours: verdicts, tokens and costs; no prompts or replies."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from pytest_helmbench.core.ids import new_id
from pytest_helmbench.core.outcome import Evaluation, Outcome, ResultRecord, Verdict
from pytest_helmbench.core.outline import CaseAxes, Catalogue, ScenarioEntry
from pytest_helmbench.core.scrub import HIDDEN_TEXT, excerpt
from pytest_helmbench.imports.documents import ForeignCase, ForeignRun
from pytest_helmbench.results.stored_scores import run_totals, scored_run
from pytest_helmbench.store.leases import iso_time
from pytest_helmbench.store.write.run_rows import RunRecord
from pytest_helmbench.store.write.writer import Store

IMPORTED = "imported"
"""`benchmarks.kind` of what another tool has run."""

_SHOWN = 200


class _Outline:
    """The benchmark of a foreign run as the record keeps it: the same cases of the same tool are the same one."""

    def __init__(self, run: ForeignRun) -> None:
        self._cases = {case.code: case for case in run.cases}
        tool = run.tool.partition(" ")[0]
        self.name = run.benchmark
        self.version = run.version
        self.description = f"imported from {run.tool}"
        self.kind = IMPORTED
        identity = "\n".join((tool, run.benchmark, run.version, *sorted(self._cases)))
        self.hash = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()

    def catalogue(self, codes: Iterable[str], /) -> Catalogue:
        return Catalogue(
            [
                ScenarioEntry(code=code, full_code=code, family=IMPORTED, about={"groups": dict(case.groups)})
                for code in codes
                if (case := self._cases.get(code)) is not None
            ]
        )

    def axes(self, code: str) -> CaseAxes:
        return CaseAxes(scenario=code)


def store_runs(path: Path, runs: Sequence[ForeignRun]) -> tuple[int, ...]:
    """Store runs as one session; return their `evaluation_runs.id`.

    Args:
        path: Results file; made where there is none.

    Raises:
        StoreError: The file cannot be read or written.
    """
    store = Store.open(path)
    try:
        ids = store.open_runs(new_id(), [_record(run) for run in runs])
        for run_id, run in zip(ids, runs, strict=True):
            for record in _results(run_id, run):
                store.record_result(record)
        store.flush()
        for run_id, run in zip(ids, runs, strict=True):
            judged = all(case.passed is not None for case in run.cases)
            status = "complete" if judged else "partial"
            store.close_run(run_id, run_totals(status, run.completed_at, scored_run(path, run_id)))
    finally:
        store.close()
    if store.fault is not None:
        raise store.fault
    return ids


def _record(run: ForeignRun) -> RunRecord:
    return RunRecord(
        benchmark=_Outline(run),
        model=run.model,
        provider=run.tool,
        base_url=None,
        scope="whole",
        total_tests=len(run.cases),
        total_evaluations=None,
        settings={
            **run.settings,
            "repeat": max(case.repetition for case in run.cases),
            "imported_from": run.tool,
            "imported_at": iso_time(time.time()),
        },
        plugin_version=version("pytest-helmbench"),
        started_at=run.started_at,
        codes=tuple(dict.fromkeys(case.code for case in run.cases)),
    )


def _results(run_id: int, run: ForeignRun) -> Iterator[ResultRecord]:
    tool = run.tool.partition(" ")[0]
    for case in run.cases:
        yield ResultRecord(
            run_id=run_id,
            code=case.code,
            node_id=f"{tool}::{case.code}",
            family=IMPORTED,
            repetition=case.repetition,
            severity=1,
            difficulty=0,
            neutral=False,
            outcome=_outcome(case, tool),
        )


def _outcome(case: ForeignCase, tool: str) -> Outcome:
    if case.passed is None:
        return Outcome(Verdict.ERROR, case.reason, usage=case.usage, latency_ms=case.latency_ms)
    credit = 1.0 if case.passed else 0.0
    evaluation = Evaluation(
        criterion="",
        rule=excerpt(case.rule, _SHOWN),
        rule_hash=hashlib.sha256(f"{tool} {case.rule}".encode("utf-8", "replace")).hexdigest()[:16],
        passed=case.passed,
        credit=credit,
        reason=None,
        parse=None,
        expected=excerpt(case.expected, _SHOWN),
        observed=HIDDEN_TEXT if case.observed else "",
        observed_text=excerpt(case.observed, _SHOWN) or None,
    )
    return Outcome(
        Verdict.PASSED if case.passed else Verdict.FAILED,
        evaluations=(evaluation,),
        score=credit,
        usage=case.usage,
        latency_ms=case.latency_ms,
    )
