"""The record as commands find it: which file, which run."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.cli.output import (
    CommandError,
)
from pytest_helmbench.cli.project import Project
from pytest_helmbench.reports.session_texts import unstated_lines
from pytest_helmbench.results.run_counts import recorded_counts
from pytest_helmbench.store.result_queries import recorded_outcomes
from pytest_helmbench.store.run_queries import RunDetail, run_detail, runs


def database_of(db: Path | None) -> Path:
    """Return the results file that a command is to read.

    Raises:
        CommandError: It is a folder.
    """
    path = Project.at(Path.cwd()).database(db)
    if path.is_dir():
        raise CommandError(
            f"{path} is a folder\n  hint: name the file in it, for example {path / 'helmbench.db'}"
        )
    return path


def run_of(path: Path, named: str) -> RunDetail:
    """Return a run by its number, or the newest one for `last`.

    Raises:
        CommandError: There is no such run.
        StoreError: The file is missing or no results file.
    """
    digits = named.isascii() and named.isdigit() and len(named) < 19  # SQLite's integers end there
    if not digits and named != "last":
        raise CommandError(
            f"{named!r} is no run\n  hint: a number, as `helmbench runs` lists them, or `last`"
        )
    detail = run_detail(path, int(named) if digits else None)
    if detail is not None:
        return detail
    numbers = [str(run.id) for run in runs(path)]
    if not numbers:
        raise CommandError(
            f"{path} holds no run yet\n  hint: pytest benchmark --helmbench-model=baseline/lexical makes one"
        )
    span = numbers[0] if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    raise CommandError(f"{path} has no run {named}\n  hint: it has {span}; `helmbench runs` lists them")


def recorded_unstated_lines(path: Path, run_id: int, name: str) -> list[str]:
    """Return what must be said of replies of a run that state no answer.

    Args:
        path: Results file.
        run_id: Of the run.
        name: What lines about it begin with.

    Raises:
        StoreError: The file is missing or no results file.
    """
    return unstated_lines({name: recorded_counts(recorded_outcomes(path, run_id), (), {})})
