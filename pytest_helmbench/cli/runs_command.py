"""`helmbench runs`: the recorded runs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from pytest_helmbench.cli.output import (
    as_json_option,
    db_option,
    say,
    say_json,
)
from pytest_helmbench.cli.recorded import database_of
from pytest_helmbench.reports.session_texts import cost_text
from pytest_helmbench.reports.tables import share, table
from pytest_helmbench.store.benchmark_places import names_of
from pytest_helmbench.store.run_queries import RunSummary, runs

__all__ = ["command"]


@click.command("runs")
@db_option
@as_json_option
def command(db: Path | None, *, as_json: bool) -> None:
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
        names = names_of(run.key for run in found)
        say(*table(head, [_run_cells(run, names[run.key]) for run in found], left=left))


_COUNTS = ("cases", "passed", "failed", "errors", "skipped")


def _run_cells(run: RunSummary, benchmark: str) -> tuple[str, ...]:
    counts = (run.passed_tests, run.failed_tests, run.error_tests, run.skipped_tests)
    return (
        str(run.id),
        run.started_at[:19].replace("T", " "),
        f"{benchmark} {run.version}",
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
