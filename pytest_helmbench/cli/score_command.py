"""`helmbench score`: the score of a run, computed anew from its verdicts."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_helmbench.benchmarks.kind_record import record_of
from pytest_helmbench.cli.output import (
    as_json_option,
    db_option,
    say,
    say_json,
)
from pytest_helmbench.cli.recorded import database_of, recorded_unstated_lines, run_of, score_of
from pytest_helmbench.reports.json_report import score_record
from pytest_helmbench.reports.score_lines import score_lines
from pytest_helmbench.store.plans import load_facts

__all__ = ["command"]


@click.command("score")
@click.argument("run", default="last")
@db_option
@as_json_option
def command(run: str, db: Path | None, *, as_json: bool) -> None:
    """Show the score of a run with its pillars and behaviours, computed anew from its verdicts.

    Of a Bench Pack: the share passed with its categories, then the pack's own total on its own scale.
    """
    path = database_of(db)
    detail = run_of(path, run)
    found = score_of(path, detail)
    words = record_of(detail.kind).run(path, detail.summary.id)
    model = detail.summary.model
    if as_json:
        facts = load_facts(path, detail.summary.id)
        titles = facts.titles if facts is not None else {}
        record = {"run": detail.summary.id, "model": model, **score_record(found, titles)}
        own = {} if words is None or words.score is None else {"pack_score": words.score_with_text}
        say_json({**record, **own})
        return
    unstated = recorded_unstated_lines(path, detail.summary.id, model)
    say(*score_lines({model: found}, behaviours=True), *unstated)
    if words is not None and words.line:
        say(f"{model}: {words.line}")
