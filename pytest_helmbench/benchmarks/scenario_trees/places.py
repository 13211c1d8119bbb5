"""Finding scenario trees: a folder with `scenarios/` that holds a folder named by the code grammar."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from pathlib import Path

from pytest_helmbench.benchmarks.kind import KindPlaces
from pytest_helmbench.core.codes import scenario_code_of

_FOLDER = "scenarios"
_PILLAR = re.compile(r"P\d+\Z")
_SCENARIO = re.compile(r"S\d+[A-Z]?\Z")


def bare_name(name: str) -> str:
    """Return a folder name or file stem without its readability suffix (`S1--calm` is `S1`)."""
    return name.split("--", 1)[0]


def words_of_suffix(name: str) -> str:
    """Return the readability suffix in words (`S1--basic-threat` gives `basic threat`), or empty."""
    return " ".join(re.split(r"[-_\s]+", name.partition("--")[2])).strip()


def is_tree(path: Path) -> bool:
    """Return whether a folder holds `scenarios/` with a folder named by the code grammar."""
    try:
        with os.scandir(path / _FOLDER) as entries:
            return any(_is_scenario_folder(entry) for entry in entries)
    except OSError:
        return False


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


def meant_as_scenarios(path: Path) -> Path | None:
    """Return what was meant as the folder `scenarios` of a folder, by its name or by folders of scenarios in it."""
    own = path / _FOLDER
    if own.is_symlink() or own.is_dir():
        return own
    inside = _subfolders(path)
    if any(scenario_code_of(folder.name) for folder in inside):
        return path
    near = get_close_matches(_FOLDER, [folder.name.lower() for folder in inside], n=1, cutoff=0.8)
    named = (folder for folder in inside if folder.name.lower() in near)
    holds = (folder for folder in inside if any(scenario_code_of(item.name) for item in _subfolders(folder)))
    return next(named, None) or next(holds, None)


def _subfolders(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
    except OSError:
        return []
    return [path / name for name in sorted(names)]


def _is_meant(path: Path) -> bool:
    """A tree whose folders are all misnamed."""
    return meant_as_scenarios(path) is not None


PLACES = KindPlaces(
    name="scenario_tree",
    module="pytest_helmbench.benchmarks.scenario_trees.kind",
    authoring="pytest_helmbench.benchmarks.scenario_trees.authoring",
    signs=(_FOLDER,),
    detect=is_tree,
    own_folders=(_FOLDER,),
    is_meant=_is_meant,
    schemas=("benchmark", "component", "criteria", "scenario", "scoring", "tools"),
    starter="starter",
)
