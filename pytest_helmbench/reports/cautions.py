"""Cautions of a run: incomplete coverage, errors, few perturbations; one sentence each, shown before its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_helmbench.reports.score_lines import score_notes
from pytest_helmbench.reports.session_texts import judging_lines, unstated_lines
from pytest_helmbench.results.run_report import RunReport

__all__ = ["cautions", "stand_in_text"]

_ENDINGS = {
    "running": "the run was still going when this was written",
    "interrupted": "the run was interrupted",
    "partial": "not every planned case was judged",
}


def stand_in_text(answers: int, judge: str) -> str:
    """Return that answers of a floor model were taken for a judge's."""
    stand = "answer of {} stands" if answers == 1 else "answers of {} stand"
    return f"{answers} {stand.format(judge)} in for a judge: not a judgement"


def cautions(report: RunReport) -> tuple[str, ...]:
    """Return what must be known before the numbers of a run are believed, one sentence each."""
    return tuple(_cautions(report))


def _cautions(report: RunReport) -> Iterator[str]:
    run = report.detail.summary
    if run.status in _ENDINGS:
        yield _ENDINGS[run.status]
    if report.detail.rescored_from is not None:
        yield f"judged anew from the stored replies of run {report.detail.rescored_from}; nothing was asked"
    if report.judgements and run.model in report.judges:
        yield f"{run.model} judged its own replies"
    if report.judgements and report.judge.startswith("baseline/"):
        yield stand_in_text(report.judgements, report.judge)
    if report.words is not None:
        yield from report.words.cautions
    if report.score is None:
        yield "the cases were selected by earlier outcomes (--lf, --sw): no fair sample, so there is no score"
    else:
        total = report.score.total
        if total.interval is not None and total.few_clusters:
            clusters = f"{total.clusters} {total.cluster}{'' if total.clusters == 1 else 's'}"
            yield f"the score rests on only {clusters}, so its interval is wide"
        yield from score_notes(report.score)
    rows = {run.model: report.counts}
    for line in (*unstated_lines(rows, many=True), *judging_lines(rows)):
        yield line.removeprefix(f"{run.model}: ")
    if report.counts.unknown_costs:
        calls = "1 call" if report.counts.unknown_costs == 1 else f"{report.counts.unknown_costs} calls"
        yield f"the cost of {calls} is unknown"
