"""The benchmarks at hand, as the commands read them: found from the current folder, each read by its kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import click

from pytest_helmbench.benchmarks.authoring import (
    Listing,
    Reading,
)
from pytest_helmbench.benchmarks.kind import SessionValues
from pytest_helmbench.benchmarks.registry import authoring_at
from pytest_helmbench.cli.output import (
    say,
)
from pytest_helmbench.cli.project import Project
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.reports.tables import table

__all__ = ["benchmark_option", "kept_values", "listing_lines", "nearest", "readings"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def benchmark_option(command: _Command) -> _Command:
    """Add `--benchmark`."""
    text = "Benchmark (default: the one the current folder is in, else helmbench_paths)."
    return click.option("--benchmark", "path", type=click.Path(path_type=Path), metavar="PATH", help=text)(
        command
    )


@contextmanager
def kept_values(settings: Settings) -> Iterator[SessionValues]:
    """Yield what kinds are given by a command; the event loop that they may have started is ended behind it."""
    loops: list[LoopThread] = []

    def loop() -> LoopThread:
        if not loops:
            loops.append(LoopThread())
        return loops[0]

    try:
        yield SessionValues(settings, os.environ, loop, say)
    finally:
        for started in loops:
            started.close()


def readings(project: Project, settings: Settings, path: Path | None) -> list[Reading]:
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
