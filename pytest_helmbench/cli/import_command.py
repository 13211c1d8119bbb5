"""`helmbench import`: results of other tools as runs of ours."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_helmbench.cli.output import CommandError, complain, db_option, say
from pytest_helmbench.cli.recorded import database_of
from pytest_helmbench.imports.foreign_run import ForeignRun, ImportFileError
from pytest_helmbench.imports.readers import foreign_runs
from pytest_helmbench.imports.storing import store_runs

__all__ = ["command"]


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@db_option
def command(files: tuple[Path, ...], db: Path | None) -> None:
    """Read results of Inspect AI, promptfoo or lm-eval into the results database, to compare and to report them.

    FILE is a log of Inspect (*.eval, *.json; needs the extra `inspect`), what `promptfoo eval -o FILE.json` writes, or
    results_….json of `lm_eval --log_samples`, with its samples beside it. Verdicts, tokens and costs are kept; prompts
    and replies are not. Nothing is stored unless every file can be read.
    """
    found: list[tuple[Path, ForeignRun]] = []
    wrong = []
    for path in files:
        try:
            found += [(path, run) for run in foreign_runs(path)]
        except ImportFileError as error:
            wrong.append(str(error))
    if wrong:
        raise CommandError("\n".join(wrong))
    database = database_of(db)
    ids = store_runs(database, [run for _, run in found])
    for run_id, (path, run) in zip(ids, found, strict=True):
        unjudged = sum(case.passed is None for case in run.cases)
        left = f", {unjudged} without a verdict" if unjudged else ""
        say(f"run {run_id}: {run.model} on {run.benchmark}: {len(run.cases)} cases{left} (from {path.name})")
    complain(f"{len(ids)} run{'' if len(ids) == 1 else 's'} in {database}")
