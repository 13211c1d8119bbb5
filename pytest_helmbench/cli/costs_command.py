"""`helmbench costs`: what runs have cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from pytest_helmbench.cli.at_hand import nearest
from pytest_helmbench.cli.output import (
    CommandError,
    as_json_option,
    db_option,
    say,
    say_json,
)
from pytest_helmbench.cli.recorded import database_of, run_of
from pytest_helmbench.reports.cost_rows import COST_HEAD, cost_cells
from pytest_helmbench.reports.session_texts import cost_text
from pytest_helmbench.reports.tables import table
from pytest_helmbench.store.cost_queries import CostRow, costs
from pytest_helmbench.store.run_queries import runs

__all__ = ["command"]


@click.command("costs")
@click.option("--run-id", type=int, metavar="ID", help="Only this run.")
@click.option("--model", metavar="MODEL", help="Only runs of this model under test.")
@db_option
@as_json_option
def command(run_id: int | None, model: str | None, db: Path | None, *, as_json: bool) -> None:
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
        head = ("run", "model", *COST_HEAD)
        cells = [(str(row.run_id), row.model, *cost_cells(row)) for row in found]
        cells.append(_total_cells(found))
        say(*table(head, cells, left=("model", "behaviour", "purpose")))


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
