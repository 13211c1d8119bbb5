"""Folders that were meant as benchmarks and cannot be read as ones: what keeps them from it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from pytest_helmbench.benchmarks.kind import SessionValues
from pytest_helmbench.benchmarks.places import benchmark_root, benchmarks_below
from pytest_helmbench.benchmarks.registry import authoring_at, meant_places
from pytest_helmbench.core.problem import UnreadableBenchmarkError
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.run.library import Library

__all__ = ["meant_folder", "told_of_meant"]


def meant_folder(path: Path) -> Path | None:
    """Return the folder at a path, or around a file, that was meant as a benchmark but is none, nor holds any."""
    place = Path(os.path.abspath(path))  # noqa: PTH100 - keeps links
    folder = place.parent if place.is_file() else place
    if not folder.is_dir() or benchmark_root(folder) is not None or meant_places(folder) is None:
        return None
    return None if any(benchmarks_below(folder)) else folder


def told_of_meant(name: str, folder: Path, settings: Settings) -> str:
    """Return what keeps a folder from being the benchmark that it was meant as, line by line.

    Args:
        name: As the user has named it.
        folder: Of `meant_folder`.
        settings: Of the session or command.
    """
    library = Library(settings, os.environ, lambda _sentence: None)
    session = SessionValues(settings, os.environ, lambda: library.loop, lambda _sentence: None)
    try:
        found = authoring_at(folder).check(folder, session).errors
    except UnreadableBenchmarkError as error:
        found = error.problems
    problems = [problem.text() for problem in found] or [
        f"  hint: `helmbench check {shlex.quote(name)}` says what is wrong"
    ]
    what = "what stands there was meant as a benchmark, but cannot be read as one"
    return "\n".join((f"{name}: {what}", *problems))
