"""Finding benchmarks, by folder and file names alone, so that a session that asks for none pays nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from pytest_helmbench.benchmarks.packs.places import is_table_name
from pytest_helmbench.benchmarks.registry import all_places, places_of
from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.options.trust import BenchmarkFolders

_WORKBOOKS = frozenset({".xlsx", ".xlsm", ".xls", ".ods", ".numbers"})
_NAMED = 3
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "env"})


def absolute(path: Path) -> Path:
    """Return a path from the root without `..`, as it is written: links are not followed."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute() keeps `..`


def is_benchmark(path: Path) -> bool:
    """Return whether a folder is a benchmark of any kind."""
    return places_of(path) is not None


def is_closed(path: Path) -> bool:
    """Return whether a folder is a benchmark in which nothing else is looked for."""
    return any(places.is_closed and places.detect(path) for places in all_places())


def closed_files(path: Path) -> tuple[Path, ...]:
    """Return the files of a closed benchmark that items stand in, or of a folder in one; none for any other folder."""
    places, around = places_of(path), places_of(path.parent)
    if places is None and around is not None and around.files is not None:
        return tuple(file for file in around.files(path.parent) if file.is_relative_to(path))
    return () if places is None or places.files is None else tuple(places.files(path))


def benchmark_root(path: Path) -> Path | None:
    """Return the benchmark that a path is, or lies inside of; the innermost one where they nest.

    Some kinds own whatever lies inside, see `KindPlaces.is_outermost`.

    Args:
        path: Any path; it need not exist.
    """
    place = absolute(path)
    folders = (place, *place.parents)
    outermost = [places for places in all_places() if places.is_outermost]
    around = [folder for folder in folders if any(places.detect(folder) for places in outermost)]
    return around[-1] if around else next((folder for folder in folders if is_benchmark(folder)), None)


def benchmark_folders() -> BenchmarkFolders:
    """Return what tells benchmarks from other folders, for the checks of trust."""
    closed = frozenset(sign for places in all_places() if places.is_closed for sign in places.signs)
    return BenchmarkFolders(benchmark_root, is_closed, closed)


def unnamed_tables(path: Path, shown: str, tests: Sequence[str]) -> str:
    """Return why a path runs nothing though tables are there, and what to name; empty where none is there.

    Args:
        path: Of no benchmark, and with none below.
        shown: As the user has named it.
        tests: Patterns of the files with tests that pytest collects; a folder that has some is not about its tables.
    """
    if path.is_file() and path.suffix.lower() in _WORKBOOKS:
        return f"{shown} is a workbook, which is not read\n  hint: save its sheet as 'CSV UTF-8', and name that file"
    tables: list[str] = []
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        if any(fnmatch(name, pattern) for name in files for pattern in tests):
            return ""
        below = Path(folder).relative_to(path)
        tables += [Path(shown, below, name).as_posix() for name in sorted(files) if _may_be_table(name)]
    if not tables:
        return ""
    more = f" and {len(tables) - _NAMED:,} more" if len(tables) > _NAMED else ""
    return (
        f"{shown} is not a benchmark: a table runs when it is named, and here are {', '.join(tables[:_NAMED])}{more}\n"
        f"  hint: name one in place of the folder: {tables[0]}"
    )


def _may_be_table(name: str) -> bool:
    suffix = Path(name).suffix.lower()
    return suffix in _WORKBOOKS or (is_table_name(name) and suffix != ".json")


def benchmarks_below(path: Path) -> list[Path]:
    """Return the benchmarks at or below a folder, in natural order.

    Hidden folders, `node_modules` and virtual environments are skipped, and so is what a benchmark keeps to itself.
    """
    return sorted(_walk(path), key=lambda place: natural_key(place.as_posix()))


def _walk(path: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(path):
        place = Path(folder)
        names = {*folders, *files}
        found = next(
            (
                places
                for places in all_places()
                if (places.is_signed_below or not names.isdisjoint(places.signs)) and places.detect(place)
            ),
            None,
        )
        if found is not None:
            yield place
            if found.is_closed:
                folders.clear()
                continue
        own = () if found is None else found.own_folders
        folders[:] = [
            name
            for name in folders
            if name not in own
            and not name.startswith(".")
            and name not in _SKIPPED
            and not (place / name / "pyvenv.cfg").exists()
        ]
