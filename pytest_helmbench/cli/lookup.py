"""Benchmarks at hand, found from the current folder, and the record: which file, which run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import click

from pytest_helmbench.benchmarks.authoring import Listing, ReadBenchmark
from pytest_helmbench.benchmarks.kind import SessionValues
from pytest_helmbench.benchmarks.registry import authoring_at
from pytest_helmbench.cli.output import CommandError, say
from pytest_helmbench.cli.project import Project
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.reports.run_cautions import unstated_sentence
from pytest_helmbench.reports.tables import table
from pytest_helmbench.results.run_counts import recorded_counts
from pytest_helmbench.store.read.results import recorded_outcomes
from pytest_helmbench.store.read.runs import RunDetail, run_detail, runs

benchmark_option = click.option(
    "--benchmark",
    "path",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Benchmark (default: the one the current folder is in, else helmbench_paths).",
)


@contextmanager
def kept_values(settings: Settings) -> Iterator[SessionValues]:
    """Yield what kinds are given by a command; the event loop that they may have started is ended behind it."""
    with ExitStack() as ending:
        loop = cache(lambda: ending.enter_context(closing(LoopThread())))
        yield SessionValues(settings, os.environ, loop, say)


def readings(project: Project, settings: Settings, path: Path | None) -> list[ReadBenchmark]:
    """Read the benchmarks that a session here would run, of whatever kind.

    Raises:
        UnreadableBenchmarkError: Nothing of one can be used.
    """
    with kept_values(settings) as session:
        return [authoring_at(root).read(root, session) for root in project.benchmarks(path)]


def listing_lines(listing: Listing) -> Iterator[str]:
    """Yield the table of a benchmark."""
    yield listing.title
    yield from table(listing.head, listing.rows, left=listing.left)
    yield from listing.notes


def nearest(code: str, known: Iterable[str]) -> str:
    """Return which codes were probably meant."""
    names = list(known)
    below = [name for name in names if name.startswith(f"{code}-")]
    near = below[:3] or get_close_matches(code, names, n=3, cutoff=0.5) or names[:3]
    return f"did you mean {', '.join(near)}?" if near else "there are none yet"


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
            f"{named!r} is not a run\n  hint: a number, as `helmbench runs` lists them, or `last`"
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
    """Return what must be said about replies of a run that state no answer, each line behind a name.

    Raises:
        StoreError: The file is missing or no results file.
    """
    counts = recorded_counts(path, run_id, recorded_outcomes(path, run_id))
    return [f"{name}: {sentence}" for sentence in unstated_sentence(counts, least=0)]
