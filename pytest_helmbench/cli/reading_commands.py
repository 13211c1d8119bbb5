"""`helmbench runs`, `show` and `costs`: what the record holds, to be read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click

from pytest_helmbench.benchmarks.kind_record import record_of
from pytest_helmbench.cli.lookup import database_of, nearest, recorded_unstated_lines, run_of
from pytest_helmbench.cli.output import (
    CommandError,
    as_json_option,
    db_option,
    refuse_unused,
    say,
    say_json,
    terminal_width,
)
from pytest_helmbench.core.codes import CaseCode, SelectError, Selection
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import full_observed
from pytest_helmbench.reports.cards import (
    WORST_SHOWN,
    batch_lines,
    case_card,
    case_record,
    evaluation_cells,
    run_card,
    run_cost_text,
    run_record,
    worst_lines,
)
from pytest_helmbench.reports.panel_tables import panel_record, panel_sentence
from pytest_helmbench.reports.run_cautions import mark_sentences
from pytest_helmbench.reports.score_lines import score_lines
from pytest_helmbench.reports.tables import points_lost, score_cell, table
from pytest_helmbench.results.losses import Losses
from pytest_helmbench.results.run_report import panel_report, recorded_results, run_report
from pytest_helmbench.results.stored_scores import scored_run, stored_score
from pytest_helmbench.store.read.benchmark_places import lost_cases, names_of
from pytest_helmbench.store.read.judgements import judged_criteria
from pytest_helmbench.store.read.results import ResultRow, calls_of_case, result_codes, results
from pytest_helmbench.store.read.runs import RunDetail, RunSummary, runs

_COUNTS = ("cases", "passed", "failed", "not judged")
_RUNS = ("run", "started", "benchmark", "model", "status", *_COUNTS, "score", "cost USD")
_SPARE = (("passed",), ("cost USD",), ("not judged",), ("failed",), ("started",), ("cases",), ("status",))


@click.command("runs")
@db_option
@as_json_option
def runs_command(db: Path | None, *, as_json: bool) -> None:
    """List the stored runs, oldest first."""
    path = database_of(db)
    found = [_with_score(path, run) for run in runs(path)]
    if as_json:
        say_json([asdict(run) for run in found])
    elif not found:
        say(f"{path} holds no run yet")
    else:
        names = names_of(run.key for run in found)
        cells = [_run_cells(run, names[run.key]) for run in found]
        say(*table(_RUNS, cells, left=_RUNS[1:5], width=terminal_width(), spare=_SPARE))
        say(*batch_lines(found, terminal_width()))


def _run_cells(run: RunSummary, benchmark: str) -> tuple[str, ...]:
    counts = (run.passed_tests, run.failed_tests)
    judged = None if run.passed_tests is None else run.passed_tests + (run.failed_tests or 0)
    unjudged = None if judged is None else run.total_tests - judged
    return (
        str(run.id),
        run.started_at[:16].replace("T", " "),
        f"{benchmark} {run.version}",
        run.model,
        run.status if run.scope == "whole" else f"{run.status}, {run.scope}",
        str(run.total_tests),
        *("-" if count is None else str(count) for count in (*counts, unjudged)),
        score_cell(run.score, run.capped),
        run_cost_text(run),
    )


def _with_score(path: Path, run: RunSummary) -> RunSummary:
    """Return a run that has not ended with the score of what it has stored."""
    found = stored_score(path, run.id) if run.completed_at is None and run.score is None else None
    return run if found is None or found.score is None else replace(run, score=float(found.score))


_LISTED: dict[str, Callable[[ResultRow], bool]] = {
    "failed": lambda row: row.outcome == Verdict.FAILED,
    "errors": lambda row: row.outcome in (Verdict.ERROR, Verdict.SKIPPED),
}


@click.command("show")
@click.argument("run", default="last")
@click.argument("code", required=False)
@click.option(
    "--gone", is_flag=True, help="List the cases that the benchmark had in the run before, and has no more."
)
@click.option("--failed", is_flag=True, help="List the cases judged wrong, the most points lost first.")
@click.option("--errors", is_flag=True, help="List the cases that were never judged: errors and skips.")
@db_option
@as_json_option
def show_command(run: str, code: str | None, db: Path | None, *, as_json: bool, **lists: bool) -> None:
    """Show a run, or one case with verdict, prompt and reply.

    RUN is a number or `last`. A case of a Bench Pack has its summary, log, detail cards and events, too.

    If CODE is the start of a code (P1-B2), the command lists the cases below it with their verdicts.
    """
    named = [name for name, is_given in lists.items() if is_given]
    if len(named) > 1:
        options = " and ".join(f"--{name}" for name in sorted(named))
        raise click.UsageError(f"{options} are lists of their own: give one of them")
    listed = named[0] if named else None
    if code is None and CaseCode.parse(run) is not None:
        run, code = "last", run
    path = database_of(db)
    detail = run_of(path, run)
    if listed == "gone":
        refuse_unused("it lists all cases that are gone: leave CODE out", gone=code)
        shrunk = lost_cases(path, detail.id)
        codes = () if shrunk is None else shrunk.gone
        if as_json:
            say_json(list(codes))
        else:
            say(*(codes or ("no case is gone since the run before",)))
    elif listed is not None:
        _show_listed(path, detail, code, _LISTED[listed], as_json=as_json)
    elif code is None:
        _show_run(path, detail, as_json=as_json)
    elif found := recorded_results(path, detail, code, with_text=True):
        _show_case(path, detail, found, as_json=as_json)
    else:
        _show_listed(path, detail, code, None, as_json=as_json)


def _show_run(path: Path, detail: RunDetail, *, as_json: bool) -> None:
    record, run_id = record_of(detail.kind), detail.id
    if as_json:
        words = record.run(path, run_id)
        outcomes = [
            {"outcome": outcome, "reason": reason, "results": count}
            for (outcome, reason), count in detail.outcomes.items()
        ]
        own = {} if words is None or words.score is None else {"pack_score": words.score_with_text}
        judges = panel_record(panel_report(path, run_id))
        say_json({**run_record(detail), **own, "outcomes": outcomes, "judges": judges})
        return
    report, model = run_report(path, run_id), detail.model
    if report is None:
        return
    say(*run_card(detail, report.score, report.words, record.failures))
    say(*batch_lines([detail], terminal_width()))
    if report.score is not None and report.counts.judged:
        say("", *score_lines({model: report.score}, behaviours=True, width=terminal_width()))
    say(*mark_sentences(report.counts))
    say(*recorded_unstated_lines(path, run_id, model))
    if report.words is not None and report.words.line:
        say(f"{model}: {report.words.line}")
    if report.panel is not None:
        say(panel_sentence(report.panel))
    worst = [row for row in report.failures if not row.neutral][:WORST_SHOWN]
    with_text = {
        one.id: one for row in worst for one in recorded_results(path, detail, row.code, with_text=True)
    }
    failures = tuple(with_text.get(row.id, row) for row in report.failures)
    say("", *worst_lines(replace(report, failures=failures), terminal_width()))


def _show_case(path: Path, detail: RunDetail, found: Sequence[ResultRow], *, as_json: bool) -> None:
    calls = calls_of_case(path, detail.id, found[0].code)
    words = record_of(detail.kind).case(path, detail.id, found[0].code)
    judged = judged_criteria(path, detail.id, found[0].code)
    cases = [
        (
            row,
            [call for call in calls if call.repetition == row.repetition],
            words.get(row.repetition),
            [one for one in judged if one.repetition == row.repetition],
        )
        for row in found
    ]
    if as_json:
        say_json([case_record(*parts) for parts in cases])
        return
    for place, (row, own, said, judgements) in enumerate(cases):
        say(*([""] if place else []), *case_card(row, own, detail.model, said, judgements))


def _codes_below(path: Path, detail: RunDetail, code: str | None) -> frozenset[str] | None:
    """Return the code of a case, or those that start with the components of another; None where none is given.

    Raises:
        CommandError: The run has no such case.
    """
    if code is None:
        return None
    known = result_codes(path, detail.id)
    chosen = frozenset([code]).intersection(known) or _selected(code, known)
    if not chosen:
        raise CommandError(f"run {detail.id} has no result of {code}\n  hint: {nearest(code, known)}")
    return chosen


def _selected(code: str, known: Iterable[str]) -> frozenset[str]:
    try:
        selection = Selection.parse(code)
    except SelectError:  # the id of a row that is not there: trees have codes
        return frozenset()
    parsed = ((name, CaseCode.parse(name)) for name in known)
    return frozenset(name for name, own in parsed if own is not None and selection.matches(own.parts()))


def _show_listed(
    path: Path,
    detail: RunDetail,
    code: str | None,
    wanted: Callable[[ResultRow], bool] | None,
    *,
    as_json: bool,
) -> None:
    """List the cases that are wanted, the most points lost first, or all as recorded; with a code, those below it."""
    chosen, scored = _codes_below(path, detail, code), scored_run(path, detail.id)
    lost = Losses() if scored is None else scored.losses
    rows = [row for row in results(path, detail.id) if chosen is None or row.code in chosen]
    if wanted is not None:
        rows = lost.worst_first(filter(wanted, rows))
    if as_json:
        say_json([_verdict(row) | {"points_lost": float(100 * lost.of(row))} for row in rows])
    elif not rows:
        say(f"run {detail.id} has no such case")
    else:
        head = ("code", "rep", "outcome", "reason", "points lost", "severity", "expected", "observed")
        cells = [_verdict_cells(row, points_lost(lost.of(row))) for row in rows]
        left = ("code", "outcome", "reason", "expected", "observed")
        spare = (("rep",), ("severity",), ("outcome",), ("reason",))
        say(*table(head, cells, left=left, width=terminal_width(sys.maxsize), spare=spare))


def _verdict(row: ResultRow) -> dict[str, object]:
    names = (
        "code",
        "repetition",
        "family",
        "outcome",
        "reason",
        "score",
        "severity",
        "difficulty",
        "neutral",
    )
    evaluations = list(map(evaluation_cells, row.evaluations))
    return {**{name: getattr(row, name) for name in names}, "evaluations": evaluations}


def _verdict_cells(row: ResultRow, lost: str) -> tuple[str, ...]:
    wrong = [item for item in row.evaluations if not item.passed] or row.evaluations
    first = wrong[0] if wrong else None
    return (
        row.code,
        str(row.repetition),
        row.outcome,
        row.reason or "",
        lost,
        str(row.severity),
        f"{first.criterion}: {first.expected}".removeprefix(": ") if first is not None else "",
        full_observed(first) if first is not None else "",
    )
