"""`helmbench export`: the results of runs for other programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from pytest_helmbench.cli.output import CommandError, complain, db_option, say_whole, write_file
from pytest_helmbench.cli.recorded import database_of, run_of
from pytest_helmbench.reports.exports.exported import MAIN, Exported, ExportError, ExportWish
from pytest_helmbench.reports.formats import EXPORTS
from pytest_helmbench.results.baseline_file import baseline_text
from pytest_helmbench.results.compared_runs import ComparedRun, RunRef
from pytest_helmbench.results.recorded_results import recorded_run
from pytest_helmbench.store.run_queries import RunDetail, run_summary

__all__ = ["command"]

_BASELINE = "baseline"


@click.command("export")
@click.argument("named", nargs=-1, metavar="[RUN]...")
@click.option("--format", "form", type=click.Choice([*EXPORTS, _BASELINE]), required=True)
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Default: stdout.")
@click.option(
    "--with-text",
    is_flag=True,
    help="Also prompts, replies, the judge's words, and the words and logs of Bench Packs.",
)
@db_option
def command(
    named: tuple[str, ...], form: str, output: Path | None, db: Path | None, *, with_text: bool
) -> None:
    """Write the results of runs for other programs: codes and hashes, texts only when asked for.

    csv is one table, with a row per evaluation; json has a document per run. Both take several runs.

    inspect is a log that Inspect View opens (FILE.eval or FILE.json; needs the extra `inspect`), eee a folder in the
    form of Every Eval Ever.

    baseline is a small file for --helmbench-baseline and `helmbench compare`: the verdicts of all runs of the session,
    to be committed beside the benchmark.
    """
    path = database_of(db)
    details = _named(path, named, form)
    wish = ExportWish(with_text=with_text, name="" if output is None else output.name)
    try:
        found = _exported(path, details, form, wish)
    except ExportError as error:
        raise CommandError(str(error)) from error
    if output is None:
        _print(found)
        return
    for name, content in found.items():
        write_file(output / name if name else output, content)
    count = sum(count for detail in details for count in detail.outcomes.values())
    runs = ", ".join(str(detail.summary.id) for detail in details)
    complain(f"{count} results of run {runs} in {output}")


def _named(path: Path, named: tuple[str, ...], form: str) -> Sequence[RunDetail]:
    """Return the runs that were named; for a baseline, which stands for a session, all runs of that."""
    details = [run_of(path, name) for name in dict.fromkeys(named or ("last",))]
    if form == _BASELINE and len({detail.summary.session_id for detail in details}) == 1:
        return [run_of(path, str(run.id)) for run in run_summary(path, details[0].summary.session_id)]
    return details


def _exported(path: Path, details: Sequence[RunDetail], form: str, wish: ExportWish) -> Exported:
    if form in EXPORTS:
        runs = [recorded_run(path, detail, with_text=wish.with_text) for detail in details]
        return EXPORTS[form](runs, wish)
    sessions = {detail.summary.session_id for detail in details}
    if len(sessions) != 1:
        raise ExportError("a baseline is of one session\n  hint: export them one by one")
    found = [ComparedRun.stored(RunRef.of(path, detail.summary, path)) for detail in details]
    return {MAIN: baseline_text([run for run in found if run is not None])}


def _print(found: Exported) -> None:
    content = found.get(MAIN)
    if content is None:
        raise CommandError("this takes several files\n  hint: name a folder with -o")
    if isinstance(content, str):
        say_whole(content.removesuffix("\n"))
    elif sys.stdout.isatty():
        raise CommandError("this is no text for a terminal\n  hint: name a file with -o")
    else:
        sys.stdout.buffer.write(content)
