"""Scenario folders of a tree, and the files of a scenario told apart by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.format.unread_files import (
    LEADS_NOWHERE,
    buried,
    file_order,
    leads_nowhere,
    looks_like_component,
    refuse_loose,
    refuse_name,
    strays,
)
from pytest_helmbench.benchmarks.scenario_trees.places import bare_name, words_of_suffix
from pytest_helmbench.core.codes import natural_key, scenario_code_of
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.source import Fault, Findings

_LEVELS = (re.compile(r"P\d+\Z"), re.compile(r"B\d+\Z"), re.compile(r"S\d+[A-Z]?\Z"))
_PROMPT = re.compile(r"S\d+[A-Z]?\Z")
_RUBRIC = re.compile(r"CR\d+\Z")
_RETIRED = re.compile(r"(?:MFMCQ|Q\d+)\Z")
_FILES = ("conditions", "user-contexts", "perturbations", "criteria")


@dataclass(frozen=True, slots=True)
class ScenarioFolder:
    """A folder with the code that its place gives it."""

    path: Path
    code: str

    @property
    def local(self) -> str:
        """`S1` of `P1-B2-S1`."""
        return self.code.rpartition("-")[2]

    @property
    def title(self) -> str:
        """The readability suffix in words, or empty."""
        return words_of_suffix(self.path.name)


@dataclass(frozen=True, slots=True)
class ScenarioFiles:
    """The files of one scenario.

    Args:
        prompt: `S1.md` or `MCSQE.md`; where the first should be when there is none.
        schema: `S1.json`; None where there is none.
        criteria: `criteria.md`; None where there is none.
        rubrics: `CR1.md`, … in natural order.
        multi: Whether the prompt is that of a multi-criteria scenario.
        faults: What is wrong with the set of files, each with its path.
    """

    prompt: Path
    schema: Path | None
    criteria: Path | None
    rubrics: tuple[Path, ...]
    multi: bool
    faults: tuple[tuple[Path, Fault], ...]


def scenario_folders(scenarios: Path, findings: Findings) -> list[ScenarioFolder]:
    """Return the scenario folders of both layouts, in natural order of their codes.

    Raises:
        OSError: The folder cannot be listed.
    """
    found = [*_flat(scenarios, findings), *_nested(scenarios, (), findings)]
    return sorted(found, key=lambda folder: (natural_key(folder.code), natural_key(folder.path.name)))


def _subfolders(path: Path) -> list[Path]:
    inside = (item for item in path.iterdir() if not item.name.startswith(".") and item.is_dir())
    return sorted(inside, key=lambda item: natural_key(item.name))


def _flat(scenarios: Path, findings: Findings) -> Iterator[ScenarioFolder]:
    refuse_loose(scenarios, findings)
    for path in _subfolders(scenarios):
        code = scenario_code_of(path.name)
        if code is not None:
            yield ScenarioFolder(path, code)
        elif _LEVELS[0].match(bare_name(path.name)) is None:
            refuse_name(path, "P1-B1-S1 (or P1, with B1 and S1 inside)", scenarios, findings)


def _nested(folder: Path, codes: tuple[str, ...], findings: Findings) -> Iterator[ScenarioFolder]:
    level = _LEVELS[len(codes)]
    if codes:
        refuse_loose(folder, findings)
    for path in _subfolders(folder):
        local = bare_name(path.name)
        if level.match(local) is None:
            if codes:
                scenarios = folder.parents[len(codes) - 1]
                refuse_name(path, ("B1", "S1")[len(codes) - 1], scenarios, findings)
        elif len(codes) == 2:
            yield ScenarioFolder(path, "-".join((*codes, local)))
        else:
            yield from _nested(path, (*codes, local), findings)


def files_of(folder: ScenarioFolder) -> ScenarioFiles:
    """Tell the files of a scenario apart by their names.

    Raises:
        OSError: The folder cannot be listed.
    """
    names = sorted(folder.path.iterdir(), key=file_order)
    files = [item for item in names if item.is_file() and not item.name.startswith(".")]
    texts = [item for item in files if item.suffix == ".md"]
    own = [item for item in texts if bare_name(item.stem) == folder.local]
    multi = [item for item in texts if bare_name(item.stem) == "MCSQE"]
    schemas = [item for item in files if item.suffix == ".json" and bare_name(item.stem) == folder.local]
    rubrics = [item for item in texts if _RUBRIC.match(bare_name(item.stem))]
    missing = folder.path / f"{folder.local}.md"
    faults = [(item, LEADS_NOWHERE) for item in names if leads_nowhere(item)]
    faults += [*strays(files, folder.local), *buried(folder.path)]
    faults += [*_doubles(own), *_doubles(multi), *_doubles(schemas), *_doubles(rubrics)]
    if own and multi:
        message = f"the folder has two prompts, {own[0].name} and {multi[0].name}"
        faults.append(
            (multi[0], Fault(None, message, "keep one: a multi-criteria scenario has only MCSQE.md"))
        )
    elif not own and not multi:
        faults.append(_no_prompt(texts, missing))
    criteria = folder.path / "criteria.md"
    return ScenarioFiles(
        prompt=(own or multi or [missing])[0],
        schema=schemas[0] if schemas else None,
        criteria=criteria if criteria in texts else None,
        rubrics=tuple(rubrics),
        multi=bool(multi) and not own,
        faults=tuple(faults),
    )


def _no_prompt(texts: list[Path], missing: Path) -> tuple[Path, Fault]:
    retired = [item for item in texts if _RETIRED.match(bare_name(item.stem))]
    if retired:
        message = f"{retired[0].name} belongs to the retired MFMCQ format, which is not run any more"
        return retired[0], Fault(
            None, message, f"write the scenario as {missing.name}, or as MCSQE.md with CR1.md"
        )
    taken = ("README", "MCSQE", *_FILES)
    others = [item for item in texts if bare_name(item.stem) not in taken and not looks_like_component(item)]
    hint = f"rename {others[0].name} to {missing.name}" if len(others) == 1 else ""
    return missing, Fault(
        None, "the scenario has no prompt file", hint or f"add {missing.name} with the scenario's text"
    )


def _doubles(paths: list[Path]) -> Iterator[tuple[Path, Fault]]:
    seen: dict[str, Path] = {}
    for path in paths:
        code = bare_name(path.stem)
        if code in seen:
            message = f"{code} is also in {seen[code].name}"
            yield path, Fault(None, message, "keep one file of each code")
        seen.setdefault(code, path)
