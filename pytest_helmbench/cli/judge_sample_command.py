"""`helmbench judge-sample`: verdicts of a judge for a person to label blind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from pytest_helmbench.cli.output import CommandError, complain, db_option, say_whole, write_file
from pytest_helmbench.cli.recorded import database_of, run_of
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.reports.cards import prompt_lines
from pytest_helmbench.results.judge_labels import LabelRow, drawn, drawn_by_points, label_file, question
from pytest_helmbench.store.label_rows import JudgedRow, criteria_of, judged_rows
from pytest_helmbench.store.result_queries import ResultRow, results

__all__ = ["command"]


@click.command("judge-sample")
@click.argument("run", default="last")
@click.option("--labels", type=click.IntRange(2), default=100, help="How many verdicts (default: 100).")
@click.option(
    "--by",
    type=click.Choice(["rows", "points"]),
    default="rows",
    help="rows: each verdict alike, for the pass rate; points: by severity, for the share of points.",
)
@click.option("--seed", type=int, default=0, help="Another sample of the same size.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="FILE.csv or FILE.jsonl; default: stdout.",
)
@db_option
def command(run: str, labels: int, by: str, seed: int, output: Path | None, db: Path | None) -> None:
    """Write verdicts of the judge, half passes and half fails, for a person to label blind.

    The file holds prompts and replies, and nothing of the verdicts. Write pass or fail into the column `label`, then
    `helmbench judge-labels RUN FILE`.
    """
    path = database_of(db)
    detail = run_of(path, run)
    known = judged_rows(path, detail.summary.id)
    if not known:
        raise CommandError(
            f"run {detail.summary.id} has no verdict of a judge\n  hint: only rubrics in words are judged by a model"
        )
    texts = {(row.code, row.repetition): row for row in results(path, detail.summary.id, with_text=True)}
    criteria = criteria_of(path, detail.summary.id)
    draws: Mapping[JudgedRow, int | None] = (
        drawn_by_points(known, labels, seed) if by == "points" else dict.fromkeys(drawn(known, labels, seed))
    )
    rows = [replace(_row(row, texts[row.key[:2]], criteria), draws=times) for row, times in draws.items()]
    text = label_file(rows, lines_of_json=output is not None and output.suffix == ".jsonl")
    if output is None:
        say_whole(text.removesuffix("\n"))
        return
    write_file(output, text)
    passes = sum(row.passed for row in known)
    complain(
        f"{len(rows)} of {len(known)} verdicts of run {detail.summary.id} in {output}, drawn from {passes} passes and"
        f" {len(known) - passes} fails; write pass or fail into the column label"
    )


def _row(row: JudgedRow, result: ResultRow, criteria: Mapping[str, JsonObject]) -> LabelRow:
    about = criteria.get(result.code, {})
    asked, passes_when = question(about, row.key[2], row.severity)
    prompt = "" if result.request is None else "\n".join(prompt_lines(result.request))
    return LabelRow(row.key, asked, passes_when, prompt, result.reply or "")
