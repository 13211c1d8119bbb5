"""`helmbench judge-check`: the judges of a benchmark held to its anchors."""

from __future__ import annotations

import os
from pathlib import Path

import click

from pytest_helmbench.cli.output import CommandError, as_json_option, no_db_option, say, say_json
from pytest_helmbench.cli.project import Project
from pytest_helmbench.core.anchor import AnchorVerdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.files.anchors_file import anchors_path
from pytest_helmbench.reports.panel_tables import held_record
from pytest_helmbench.reports.session_texts import cost_text
from pytest_helmbench.reports.tables import UNKNOWN, table
from pytest_helmbench.results.judge_check import held_sentence
from pytest_helmbench.run.held_judges import AnchorTrial, try_anchors

__all__ = ["command"]

_HEAD = ("judge", "anchor", "right verdict", "its verdict", "its words")
_WORDS = {True: "pass", False: "fail", None: UNKNOWN}


@click.command("judge-check")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option(
    "--marking-model", multiple=True, metavar="ID", help="Judge; repeatable (default: that of models.yml)."
)
@click.option("--marking-base-url", metavar="URL", help="Server of the judges (default: --base-url).")
@click.option(
    "--marking-api-key-env",
    metavar="NAME",
    help="Environment variable that holds their key (default: --api-key-env).",
)
@click.option("--base-url", metavar="URL", help="Server of every model that has none of its own.")
@click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the key of that server.")
@click.option("--models-file", type=click.Path(path_type=Path), metavar="PATH", help="models.yml to use.")
@as_json_option
@no_db_option
def command(
    path: Path | None,
    marking_model: tuple[str, ...],
    models_file: Path | None,
    *,
    as_json: bool,
    **servers: str | None,
) -> int:
    """Have the judges of the benchmark at PATH judge its anchors (anchors.yml), and nothing else; nothing is stored.

    Ends 1 when a judge gets more of them wrong than is allowed, or does not answer. A session does the same before its
    first case.
    """
    project = Project.at(Path.cwd())
    settings = project.settings(
        marking_model=list(marking_model) or None,
        **servers,
        models_file=None if models_file is None else str(models_file),
    )
    try:
        roots = project.benchmarks(path)
        anchored = [root for root in roots if anchors_path(root) is not None]
        found = [try_anchors(root, settings, os.environ) for root in anchored or roots]
    except HelmbenchError as error:
        raise CommandError(str(error)) from error
    if as_json:
        say_json([_record(trial) for trial in found])
    else:
        for trial in found:
            say(*_lines(trial))
    return 0 if all(trial.holds for trial in found) else 1


def _lines(trial: AnchorTrial) -> list[str]:
    rows = [_cells(verdict) for held in trial.judges for verdict in held.verdicts]
    cost = cost_text(trial.cost_usd or 0.0, 0) if trial.cost_usd is not None else UNKNOWN
    return [
        *table(_HEAD, rows, left=_HEAD),
        *(scrub(held_sentence(held)) for held in trial.judges),
        f"{trial.calls} calls, USD {cost}",
    ]


def _cells(one: AnchorVerdict) -> tuple[str, ...]:
    return (
        one.judge,
        one.anchor,
        _WORDS[one.expected],
        _WORDS[one.passed],
        " ".join(scrub(one.message).split()),
    )


def _record(trial: AnchorTrial) -> dict[str, object]:
    judges = [{**held_record(held), "holds": held.holds} for held in trial.judges]
    return {"benchmark": str(trial.root), "judges": judges, "calls": trial.calls, "cost_usd": trial.cost_usd}
