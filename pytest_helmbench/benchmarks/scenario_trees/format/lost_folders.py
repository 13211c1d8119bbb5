"""Scenarios that nobody reads: in a folder that is none of the format, and beside `scenarios/`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.places import bare_name, is_prompt_file
from pytest_helmbench.core.codes import natural_key, scenario_code_of
from pytest_helmbench.files.source import Fault, Findings

_SCENARIOS = "scenarios"
_NAMED = re.compile(r"[PBS]\d", re.IGNORECASE)
_PROMPT = re.compile(r"S\d+[A-Z]?\Z")
_TEXTS = (".md", ".markdown", ".txt")
_PERTURBATIONS = ("perturbations.md", "perturbations")
_MOST_LEVELS = 4
_MOST_FOLDERS = 2_000
_FOREIGN = frozenset({"node_modules", "__pycache__"})
_OWN_BENCHMARKS = frozenset({_SCENARIOS, "manifest.yaml", "manifest.yml", "manifest.json", "pyvenv.cfg"})


def refuse_below(folder: Path, scenarios: Path, findings: Findings) -> None:
    """File the scenarios in a folder of `scenarios/` that is none of the format."""
    where = f"it lies in {folder.name!r}, which is no folder of the format"
    for path, files in _walk(folder, frozenset()):
        _refuse_prompts(path, files, where, findings)
        if path != folder and _is_scenario(path, any_name=True):
            findings.add(path, _lost(path, scenarios, where))


def refuse_beside(root: Path, findings: Findings) -> None:
    """File the scenarios that lie beside `scenarios/`, loose or in other folders."""
    where = f"it does not lie in {_SCENARIOS!r}"
    for path, files in _walk(root, frozenset({_SCENARIOS})):
        if path == root:
            _refuse_prompts(path, files, where, findings)
        elif _is_scenario(path, any_name=False):
            findings.add(path, _lost(path, root / _SCENARIOS, where))


def _lost(path: Path, scenarios: Path, where: str) -> Fault:
    code = scenario_code_of(path.name)
    like = "" if code else "a folder like "
    to = f"{like}{scenarios.name}/{path.name if code else f'P1-B1-{bare_name(path.name)}'}"
    return Fault(None, f"the folder is read by nobody: {where}", f"move it to {to}")


def _refuse_prompts(folder: Path, files: list[str], where: str, findings: Findings) -> None:
    if _is_scenario(folder, any_name=True):
        return
    for name in files:
        path = folder / name
        stem = bare_name(path.stem)
        code = scenario_code_of(stem)
        if path.suffix.lower() in _TEXTS and (code or _PROMPT.match(stem)):
            local = stem.rpartition("-")[2]
            to = f"{_SCENARIOS}/{code or f'P1-B1-{local}'}/{local}{path.suffix}"
            findings.add(path, Fault(None, f"{name} is read by nobody: {where}", f"move it to {to}"))


def _is_scenario(path: Path, *, any_name: bool) -> bool:
    """Return whether a folder holds what a scenario holds."""
    named = _NAMED.match(path.name) is not None
    if (named or any_name) and any((path / name).exists() for name in _PERTURBATIONS):
        return True
    return named and any(map(is_prompt_file, path.glob("*.md")))


def _walk(start: Path, left_out: frozenset[str]) -> Iterator[tuple[Path, list[str]]]:
    """Yield folders with the names of their files, the outer ones first: so many, so deep, and no other benchmark.

    Links, hidden folders, packages of other tools and what is inside of a scenario are not looked into.
    """
    waiting = [start]
    for path in waiting:
        folders, files = _inside(path)
        if path != start and not _OWN_BENCHMARKS.isdisjoint({*folders, *files}):
            continue
        yield path, files
        if len(path.parts) - len(start.parts) >= _MOST_LEVELS or (
            path != start and _is_scenario(path, any_name=True)
        ):
            continue
        more = [path / name for name in folders if path != start or name not in left_out]
        waiting.extend(more[: max(0, _MOST_FOLDERS - len(waiting))])


def _inside(path: Path) -> tuple[list[str], list[str]]:
    """Return the names of the folders and of the files in a folder; nothing where it cannot be listed."""
    folders: list[str] = []
    files: list[str] = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.startswith(".") or entry.name in _FOREIGN or entry.is_symlink():
                    continue
                (folders if entry.is_dir() else files).append(entry.name)
    except OSError:
        return [], []
    return sorted(folders, key=natural_key), sorted(files, key=natural_key)
