"""`helmbench judge-labels`: a person's labels of a judge's verdicts, checked and stored."""

from __future__ import annotations

import time
from pathlib import Path

import click

from pytest_helmbench.cli.output import CommandError, db_option, say
from pytest_helmbench.cli.recorded import database_of, run_of
from pytest_helmbench.reports.score_lines import corrected_text
from pytest_helmbench.results.judge_labels import LabelError, read_labels
from pytest_helmbench.results.stored_scores import stored_correction
from pytest_helmbench.store.label_rows import judged_rows, write_labels
from pytest_helmbench.store.leases import iso_time

__all__ = ["command"]


@click.command("judge-labels")
@click.argument("run")
@click.argument("file", type=click.Path(path_type=Path))
@db_option
def command(run: str, file: Path, db: Path | None) -> None:
    """Store what a person says of a judge's verdicts, from a file of `helmbench judge-sample`.

    Ends 1, and stores nothing, when a row is unknown or has no label. Scores then show the corrected pass rate.
    """
    path = database_of(db)
    detail = run_of(path, run)
    run_id = detail.summary.id
    try:
        labels = read_labels(file, judged_rows(path, run_id))
    except LabelError as error:
        raise CommandError(str(error), code=1) from error
    write_labels(path, run_id, labels, iso_time(time.time()))
    by_points = any(label.draws is not None for label in labels.values())
    found = stored_correction(path, run_id, by_points=by_points)
    what = "share of points" if by_points else "pass rate"
    say(f"{len(labels)} labels of run {run_id} stored", corrected_text(found, what))
