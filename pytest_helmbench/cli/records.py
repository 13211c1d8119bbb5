"""Commands about what was recorded: `runs`, `show`, `costs` and `export`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from pytest_helmbench.benchmarks.kind_record import own_exports, record_of
from pytest_helmbench.cli.output import (
    CommandError,
    as_json_option,
    complain,
    db_option,
    say,
    say_json,
)
from pytest_helmbench.cli.project import Project
from pytest_helmbench.cli.trees import nearest
from pytest_helmbench.core.codes import CaseCode, Selection
from pytest_helmbench.reports.cards import case_card, case_record, run_card, run_record
from pytest_helmbench.reports.formats import EXPORTS
from pytest_helmbench.reports.readable_json import readable_json
from pytest_helmbench.reports.session_texts import cost_text
from pytest_helmbench.reports.tables import number, share, table
from pytest_helmbench.session.recorded_results import recorded_results, recorded_run
from pytest_helmbench.store.cost_queries import CostRow, costs
from pytest_helmbench.store.result_queries import ResultRow, calls_of_case, result_codes, results
from pytest_helmbench.store.run_queries import RunDetail, RunSummary, run_detail, runs

__all__ = ["database_of", "export", "list_runs", "run_of", "show", "show_costs"]


def database_of(db: Path | None) -> Path:
    """Return the results file that a command is to read.

    Raises:
        CommandError: It is a folder.
    """
    path = Project.at(Path.cwd()).database(db)
    if path.is_dir():
        raise CommandError(
            f"{path} is a folder\n  hint: name the file in it, for example {path / 'helmbench.db'}"
        )
    return path


def run_of(path: Path, named: str) -> RunDetail:
    """Return a run by its number, or the newest one for `last`.

    Raises:
        CommandError: There is no such run.
        StoreError: The file is missing or no results file.
    """
    digits = named.isascii() and named.isdigit() and len(named) < 19  # SQLite's integers end there
    if not digits and named != "last":
        raise CommandError(
            f"{named!r} is no run\n  hint: a number, as `helmbench runs` lists them, or `last`"
        )
    detail = run_detail(path, int(named) if digits else None)
    if detail is not None:
        return detail
    numbers = [str(run.id) for run in runs(path)]
    if not numbers:
        raise CommandError(
            f"{path} holds no run yet\n  hint: pytest benchmark --helmbench-model=baseline/lexical makes one"
        )
    span = numbers[0] if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    raise CommandError(f"{path} has no run {named}\n  hint: it has {span}; `helmbench runs` lists them")


@click.command("runs")
@db_option
@as_json_option
def list_runs(db: Path | None, *, as_json: bool) -> None:
    """List the recorded runs, oldest first."""
    path = database_of(db)
    found = runs(path)
    if as_json:
        say_json([asdict(run) for run in found])
    elif not found:
        say(f"{path} holds no run yet")
    else:
        head = ("run", "started", "benchmark", "model", "status", "scope", *_COUNTS, "score", "cost USD")
        left = ("started", "benchmark", "model", "status", "scope")
        say(*table(head, map(_run_cells, found), left=left))


_COUNTS = ("cases", "passed", "failed", "errors", "skipped")


def _run_cells(run: RunSummary) -> tuple[str, ...]:
    counts = (run.passed_tests, run.failed_tests, run.error_tests, run.skipped_tests)
    return (
        str(run.id),
        run.started_at[:19].replace("T", " "),
        f"{run.benchmark} {run.version}",
        run.model,
        run.status,
        run.scope,
        str(run.total_tests),
        *("-" if count is None else str(count) for count in counts),
        share(run.score),
        "-" if run.completed_at is None else _cost(run.cost_usd, run.known_cost_usd),
    )


def _cost(cost_usd: float | None, known_usd: float | None) -> str:
    if cost_usd is not None:
        return cost_text(cost_usd, 0)
    return f"unknown, over {cost_text(known_usd, 0)}" if known_usd else "unknown"


@click.command()
@click.argument("run", default="last")
@click.argument("code", required=False)
@db_option
@as_json_option
def show(run: str, code: str | None, db: Path | None, *, as_json: bool) -> None:
    """Show a run (its number, or `last`), or one case of it with its verdict, prompt and reply.

    A case of a Bench Pack also with all that its pack says: summary, log, detail cards, events.

    CODE may also be the start of a code (P1-B2): then the cases below it are listed with their verdicts.
    """
    if code is None and CaseCode.parse(run) is not None:
        run, code = "last", run
    path = database_of(db)
    detail = run_of(path, run)
    if code is None:
        _show_run(path, detail, as_json=as_json)
        return
    found = recorded_results(path, detail, code, with_text=True)
    if found:
        _show_case(path, detail, found, as_json=as_json)
    else:
        _show_below(path, detail, code, as_json=as_json)


def _show_run(path: Path, detail: RunDetail, *, as_json: bool) -> None:
    record = record_of(detail.kind)
    words = record.run(path, detail.summary.id)
    if as_json:
        outcomes = [
            {"outcome": outcome, "reason": reason, "results": count}
            for (outcome, reason), count in detail.outcomes.items()
        ]
        own = {} if words is None or words.score is None else {"pack_score": words.score_with_text}
        say_json({**run_record(detail), **own, "outcomes": outcomes})
    else:
        say(*run_card(detail, words, record.failures))


def _show_case(path: Path, detail: RunDetail, found: Sequence[ResultRow], *, as_json: bool) -> None:
    calls = calls_of_case(path, detail.summary.id, found[0].code)
    words = record_of(detail.kind).case(path, detail.summary.id, found[0].code)
    cases = [
        (
            row,
            [call for call in calls if call.repetition == row.repetition],
            words.get(row.repetition),
        )
        for row in found
    ]
    if as_json:
        say_json([case_record(row, own, said) for row, own, said in cases])
        return
    for place, (row, own, said) in enumerate(cases):
        say(*([""] if place else []), *case_card(row, own, detail.summary.model, said))


def _show_below(path: Path, detail: RunDetail, code: str, *, as_json: bool) -> None:
    """List the cases whose codes start with the components of another."""
    known = result_codes(path, detail.summary.id)
    parts = CaseCode.parse(code)
    selection = Selection.parse(code) if parts is not None else None
    chosen = {
        name
        for name in known
        if selection is not None
        and (own := CaseCode.parse(name)) is not None
        and selection.matches(own.parts())
    }
    if not chosen:
        raise CommandError(f"run {detail.summary.id} has no result of {code}\n  hint: {nearest(code, known)}")
    rows = [row for row in results(path, detail.summary.id) if row.code in chosen]
    if as_json:
        say_json([_verdict(row) for row in rows])
        return
    head = ("code", "rep", "outcome", "reason", "severity", "expected", "observed")
    say(*table(head, map(_verdict_cells, rows), left=("code", "outcome", "reason", "expected", "observed")))


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
    evaluations = [asdict(evaluation) for evaluation in row.evaluations]
    return {**{name: getattr(row, name) for name in names}, "evaluations": evaluations}


def _verdict_cells(row: ResultRow) -> tuple[str, ...]:
    wrong = [item for item in row.evaluations if not item.passed] or row.evaluations
    first = wrong[0] if wrong else None
    return (
        row.code,
        str(row.repetition),
        row.outcome,
        row.reason or "",
        str(row.severity),
        first.expected if first is not None else "",
        first.observed if first is not None else "",
    )


@click.command("costs")
@click.option("--run-id", type=int, metavar="ID", help="Only this run.")
@click.option("--model", metavar="MODEL", help="Only runs of this model under test.")
@db_option
@as_json_option
def show_costs(run_id: int | None, model: str | None, db: Path | None, *, as_json: bool) -> None:
    """Show what runs have cost, by run, behaviour and purpose; judges apart."""
    path = database_of(db)
    if run_id is not None:
        run_of(path, str(run_id))
    found = costs(path, run_id, model)
    if not found and model is not None:
        models = sorted({run.model for run in runs(path)})
        if model not in models:
            raise CommandError(f"{path} has no run of {model}\n  hint: {nearest(model, models)}")
    if as_json:
        say_json([{**asdict(row), "cost_usd": row.cost_usd} for row in found])
    elif not found:
        say("no call was recorded")
    else:
        head = (
            "run",
            "model",
            "behaviour",
            "purpose",
            "calls",
            "from record",
            "tokens in",
            "out",
            "cost USD",
        )
        cells = [*map(_cost_cells, found), _total_cells(found)]
        say(*table(head, cells, left=("model", "behaviour", "purpose")))


def _cost_cells(row: CostRow) -> tuple[str, ...]:
    return (
        str(row.run_id),
        row.model,
        row.behaviour or "-",
        row.purpose,
        str(row.calls),
        str(row.cached_answers),
        # What only came from the record has no tokens, which is not the same as unknown ones.
        number(row.prompt_tokens) if row.calls else "-",
        number(row.completion_tokens) if row.calls else "-",
        cost_text(row.known_cost_usd, row.unknown_costs),
    )


def _total_cells(rows: Sequence[CostRow]) -> tuple[str, ...]:
    return (
        "",
        "total",
        "",
        "",
        str(sum(row.calls for row in rows)),
        str(sum(row.cached_answers for row in rows)),
        str(sum(row.prompt_tokens or 0 for row in rows)),
        str(sum(row.completion_tokens or 0 for row in rows)),
        cost_text(sum(row.known_cost_usd for row in rows), sum(row.unknown_costs for row in rows)),
    )


@click.command()
@click.argument("run", default="last")
@click.option("--format", "form", type=click.Choice([*EXPORTS, *own_exports()]), required=True)
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Default: stdout.")
@click.option(
    "--with-text",
    is_flag=True,
    help="Also prompts, replies, the judge's words, and the words and logs of Bench Packs.",
)
@db_option
def export(run: str, form: str, output: Path | None, db: Path | None, *, with_text: bool) -> None:
    """Write the results of a run for other programs: codes and hashes, texts only when asked for.

    The format `benchlocal` is the summary.json that the BenchLocal app keeps of a run: the runs of the same Bench
    Pack in the same session are one. Without --with-text its summaries, notes, raw logs, outputs and progress are
    empty.
    """
    path = database_of(db)
    detail = run_of(path, run)
    text = _exported(path, detail, form, with_text=with_text)
    if output is None:
        sys.stdout.write(text)
        return
    try:
        with output.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
    except OSError as error:
        raise CommandError(
            f"{output}: cannot be written: {error.strerror}\n  hint: name another file"
        ) from error
    count = sum(detail.outcomes.values())
    complain(f"{count} results of run {detail.summary.id} in {output}")


def _exported(path: Path, detail: RunDetail, form: str, *, with_text: bool) -> str:
    if form in EXPORTS:
        return EXPORTS[form](recorded_run(path, detail, with_text=with_text), with_text=with_text)
    document = own_exports()[form].export(path, detail.summary.id, with_text=with_text)
    return readable_json(document, indent=2) + "\n"
