"""`helmbench gate`: the scores of a run held to thresholds."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_helmbench.cli.output import (
    db_option,
    say,
)
from pytest_helmbench.cli.recorded import database_of, run_of, score_of
from pytest_helmbench.reports.score_lines import gate_lines
from pytest_helmbench.results.gates import Gates
from pytest_helmbench.scoring.thresholds import parse_share, parse_thresholds

__all__ = ["command"]


@click.command("gate")
@click.argument("run", default="last")
@click.option("--min-score", required=True, metavar="X", help="Least score: 0.7 or P1=0.7,P1-B2=0.9.")
@click.option("--min-coverage", metavar="X", help="Least share of the planned severity judged (default: 1).")
@db_option
def command(run: str, min_score: str, min_coverage: str | None, db: Path | None) -> int:
    """Hold the scores of a run to thresholds; ends 1 when one of them is not reached."""
    gates = Gates(
        parse_thresholds(min_score, "--min-score"),
        parse_share(min_coverage, "--min-coverage") if min_coverage is not None else None,
    )
    path = database_of(db)
    detail = run_of(path, run)
    verdict = gates.judge({detail.summary.model: score_of(path, detail)})
    say(*gate_lines(verdict))
    return 0 if verdict.holds else 1
