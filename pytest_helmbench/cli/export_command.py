"""`helmbench export`: the results of a run for other programs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pytest_helmbench.benchmarks.kind_record import own_exports
from pytest_helmbench.cli.output import (
    CommandError,
    complain,
    db_option,
)
from pytest_helmbench.cli.recorded import database_of, run_of
from pytest_helmbench.reports.formats import EXPORTS
from pytest_helmbench.reports.readable_json import readable_json
from pytest_helmbench.session.baseline_file import baseline_text
from pytest_helmbench.session.compared_runs import ComparedRun, RunRef
from pytest_helmbench.session.recorded_results import recorded_run
from pytest_helmbench.store.run_queries import RunDetail, run_summary

__all__ = ["command"]

_BASELINE = "baseline"


@click.command("export")
@click.argument("run", default="last")
@click.option("--format", "form", type=click.Choice([*EXPORTS, _BASELINE, *own_exports()]), required=True)
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Default: stdout.")
@click.option(
    "--with-text",
    is_flag=True,
    help="Also prompts, replies, the judge's words, and the words and logs of Bench Packs.",
)
@db_option
def command(run: str, form: str, output: Path | None, db: Path | None, *, with_text: bool) -> None:
    """Write the results of a run for other programs: codes and hashes, texts only when asked for.

    The format `baseline` is a small file for --helmbench-baseline and `helmbench compare`: the verdicts of all runs of
    the session, to be committed beside the benchmark.

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
    if form == _BASELINE:
        refs = [RunRef.of(path, run, path) for run in run_summary(path, detail.summary.session_id)]
        found = [ComparedRun.stored(ref) for ref in refs]
        return baseline_text([run for run in found if run is not None])
    if form in EXPORTS:
        return EXPORTS[form](recorded_run(path, detail, with_text=with_text), with_text=with_text)
    document = own_exports()[form].export(path, detail.summary.id, with_text=with_text)
    return readable_json(document, indent=2) + "\n"
