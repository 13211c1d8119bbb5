"""What is a benchmark: told by folder and file names alone, so that a session that does not ask pays nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.places import MANIFEST, is_bench_pack
from pytest_helmbench.benchmarks.packs.places import MANIFEST_NAMES, is_pack
from pytest_helmbench.core.codes import natural_key, scenario_code_of

__all__ = [
    "bare_name",
    "benchmark_root",
    "benchmarks_below",
    "is_benchmark",
    "is_closed",
    "is_prompt_file",
    "is_tree",
    "words_of_suffix",
]

_PILLAR = re.compile(r"P\d+\Z")
_SCENARIO = re.compile(r"S\d+[A-Z]?\Z")
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "env"})


def bare_name(name: str) -> str:
    """Return a folder name or file stem without its readability suffix (`S1--calm` is `S1`)."""
    return name.split("--", 1)[0]


def words_of_suffix(name: str) -> str:
    """Return the readability suffix in words (`S1--basic-threat` gives `basic threat`), or empty."""
    return " ".join(re.split(r"[-_\s]+", name.partition("--")[2])).strip()


def is_benchmark(path: Path) -> bool:
    """Return whether a folder is a scenario tree, a benchmark pack or a Bench Pack."""
    return is_tree(path) or is_closed(path)


def is_closed(path: Path) -> bool:
    """Return whether a folder is a benchmark in which nothing else is looked for: a pack or a Bench Pack."""
    return is_bench_pack(path) or is_pack(path)


def is_tree(path: Path) -> bool:
    """Return whether a folder holds `scenarios/` with a folder named by the code grammar."""
    try:
        with os.scandir(path / "scenarios") as entries:
            return any(_is_scenario_folder(entry) for entry in entries)
    except OSError:
        return False


def benchmark_root(path: Path) -> Path | None:
    """Return the benchmark that a path is, or lies inside of; the innermost one where they nest.

    Whatever lies inside of a Bench Pack is part of it.

    Args:
        path: Any path; it need not exist.
    """
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute() keeps `..`
    places = (absolute, *absolute.parents)
    around = [place for place in places if is_bench_pack(place)]
    return around[-1] if around else next((place for place in places if is_benchmark(place)), None)


def benchmarks_below(path: Path) -> list[Path]:
    """Return the benchmarks at or below a folder, in natural order.

    Hidden folders, `node_modules` and virtual environments are skipped, and so are the scenarios of a tree and
    the inside of a pack or Bench Pack.
    """
    return sorted(_walk(path), key=lambda place: natural_key(place.as_posix()))


def is_prompt_file(path: Path) -> bool:
    """Return whether a file is named as a prompt file in a scenario folder (`S2/S2.md`, `S2/MCSQE.md`)."""
    if path.suffix != ".md":
        return False
    stem = bare_name(path.stem)
    folder = bare_name(path.parent.name)
    code = scenario_code_of(folder) or folder
    local = code.rpartition("-")[2]
    return _SCENARIO.match(local) is not None and stem in (local, "MCSQE")


def _is_scenario_folder(entry: os.DirEntry[str]) -> bool:
    named = scenario_code_of(entry.name) is not None or _PILLAR.match(bare_name(entry.name)) is not None
    return named and entry.is_dir()


def _walk(path: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(path):
        place = Path(folder)
        if MANIFEST in files and is_bench_pack(place):
            yield place
            folders.clear()
            continue
        if not set(files).isdisjoint(MANIFEST_NAMES) and is_pack(place):
            yield place
            folders.clear()
            continue
        if "scenarios" in folders and is_tree(place):
            yield place
            folders.remove("scenarios")
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED
            and not (place / name / "pyvenv.cfg").exists()
        ]
