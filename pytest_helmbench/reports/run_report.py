"""What a report says of one run: the value that every form of a report is written from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_helmbench.benchmarks.bench_packs.bench_pack import PackScore
from pytest_helmbench.reports.score_lines import score_notes
from pytest_helmbench.reports.session_texts import ModelRow, judging_lines
from pytest_helmbench.scoring.breakdown import Breakdown, ConstantScores
from pytest_helmbench.scoring.run_score import RunScore
from pytest_helmbench.store.queries import CostRow, ResultRow, RunDetail

__all__ = ["RunReport", "cautions"]

_ENDINGS = {
    "running": "the run was still going when this was written",
    "interrupted": "the run was interrupted",
    "partial": "not every planned case was judged",
}


@dataclass(frozen=True, slots=True)
class RunReport:
    """One stored run.

    Args:
        detail: The run, its settings and its outcomes by reason.
        score: None for a run of cases that were selected by earlier outcomes.
        breakdown: Recall and false escalation by every axis.
        constants: What an answer that never looks at the case scores over the whole loaded tree.
        titles: Names of pillars and titles of behaviours by code.
        failures: Cases judged wrong, neutral ones too, in natural order; with texts where they were asked for.
        row: The counts that a session's summary shows.
        judge: Id of the marking model; empty where no judge has spoken.
        judgements: Evaluation rows that a judge has decided.
        costs: By behaviour and purpose.
        is_pack: The benchmark is a pack of any kind: what rests on severities says nothing.
        pack: What a Bench Pack makes of the run, on its own scale; None for any other run.
        untimed: Cases of a Bench Pack whose times are not the model's.
    """

    detail: RunDetail
    score: RunScore | None
    breakdown: Breakdown
    constants: ConstantScores
    titles: Mapping[str, str]
    failures: tuple[ResultRow, ...]
    row: ModelRow
    judge: str
    judgements: int
    costs: tuple[CostRow, ...]
    is_pack: bool = False
    pack: PackScore | None = None
    untimed: int = 0

    @property
    def not_run(self) -> int:
        """Planned cases without any result."""
        return max(0, self.detail.summary.total_tests - sum(self.detail.outcomes.values()))


def cautions(report: RunReport) -> tuple[str, ...]:
    """Return what must be known before the numbers of a run are believed, one sentence each."""
    return tuple(_cautions(report))


def _cautions(report: RunReport) -> Iterator[str]:
    run = report.detail.summary
    if run.status in _ENDINGS:
        yield _ENDINGS[run.status]
    if report.detail.rescored_from is not None:
        yield f"judged anew from the stored replies of run {report.detail.rescored_from}; nothing was asked"
    if report.judgements and report.judge == run.model:
        yield f"{run.model} judged its own replies"
    if report.judgements and report.judge.startswith("baseline/"):
        yield f"{report.judgements} answers of {report.judge} stand in for a judge: not a judgement"
    if report.pack is not None and report.pack.partial:
        yield "the pack's own total is over a partial selection of its scenarios"
    if report.untimed:
        cases = f"{report.untimed} case{'' if report.untimed == 1 else 's'}"
        yield f"replies of {cases} came from the record: what their pack says of time is not the model's"
    if report.score is None:
        yield "the cases were selected by earlier outcomes (--lf, --sw): no fair sample, so there is no score"
    else:
        total = report.score.total
        if total.interval is not None and total.few_clusters:
            clusters = f"{total.clusters} {total.cluster}{'' if total.clusters == 1 else 's'}"
            yield f"the interval rests on {clusters}: too narrow to lean on"
        yield from score_notes(report.score)
    for line in judging_lines([report.row]):
        yield line.removeprefix(f"{report.row.model}: ")
    if report.row.unknown_costs:
        yield f"the cost of {report.row.unknown_costs} answered calls is unknown"
