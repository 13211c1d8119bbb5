"""Scenario folders of a tree, the files of a scenario, and what looks meant but is not read: each by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.places import bare_name, words_of_suffix
from pytest_helmbench.core.codes import natural_key, scenario_code_of
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.source import Fault, Findings

_LEVELS = (re.compile(r"P\d+\Z"), re.compile(r"B\d+\Z"), re.compile(r"S\d+[A-Z]?\Z"))
_EXAMPLES = ("P1-B1-S1 (or P1, with B1 and S1 inside)", "B1", "S1")
_RUBRIC = re.compile(r"CR\d+\Z")
_RETIRED = re.compile(r"(?:MFMCQ|Q\d+)\Z")
_AXES = {"C": "conditions", "U": "user-contexts", "PT": "perturbations"}
_NAMED = re.compile(r"[PBS]\d", re.IGNORECASE)
_COMPONENT = re.compile(
    r"(?:P\d+-B\d+-S\d+[A-Z]?-(?:C\d+-)?(?:U\d+-)?)?(?P<axis>C|U|PT)[-_ ]?\d", re.IGNORECASE
)
_WHOLE = re.compile(r"(condition|user[-_ ]?context|perturbation)s?(?![a-z])", re.IGNORECASE)
_TEXTS = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx", ".txt", ".text", ".yaml", ".yml", ".json"})
_SUFFIX = re.compile(r"\.[a-z]\w*~?\Z", re.IGNORECASE)


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


def meant_as(path: Path) -> str | None:
    """Return where a text belongs that seems to be a component (`perturbations/`) or an axis (`conditions.md`).

    Pictures and backups of editors (`PT3.md~`, `PT3.md.bak`) seem to be neither; `PT3 v1.2` has no suffix.
    """
    suffix = _SUFFIX.search(path.name.rstrip())
    if suffix is not None and suffix[0].lower() not in _TEXTS:
        return None
    if found := _COMPONENT.match(path.name):
        return f"{_AXES[found['axis'].upper()]}/"
    if found := _WHOLE.match(bare_name(path.name)):
        return f"{next(axis for axis in _AXES.values() if axis[0] == found[1][0].lower())}.md"
    return None


def file_order(path: Path) -> tuple[object, ...]:
    """Return a sort key: by code, a name without readability suffix first."""
    return natural_key(bare_name(path.stem)), len(path.name), path.name


def scenario_folders(scenarios: Path, findings: Findings) -> list[ScenarioFolder]:
    """Return the scenario folders of both layouts, in natural order of their codes.

    Raises:
        OSError: The folder cannot be listed.
    """
    found = [*_scenario_folders(scenarios, (), findings)]
    return sorted(found, key=lambda folder: (natural_key(folder.code), natural_key(folder.path.name)))


def _scenario_folders(folder: Path, codes: tuple[str, ...], findings: Findings) -> Iterator[ScenarioFolder]:
    """Yield the scenarios in a folder: `P1-B1-S1`, or `S1` below the folders of these codes."""
    for path in sorted(folder.iterdir(), key=file_order):
        local = bare_name(path.name)
        code = scenario_code_of(path.name) if not codes else None
        if path.name.startswith("."):
            continue
        if not path.is_dir():
            _refuse_loose(path, findings)
        elif code is not None:
            yield ScenarioFolder(path, code)
        elif _LEVELS[len(codes)].match(local) is None:
            if _NAMED.match(path.name) or any(path.rglob("perturbations*")):
                message = f"the folder is not read: {path.name!r} is not a code"
                findings.add(path, Fault(None, message, f"name it like {_EXAMPLES[len(codes)]}"))
        elif len(codes) == 2:
            yield ScenarioFolder(path, "-".join((*codes, local)))
        else:
            yield from _scenario_folders(path, (*codes, local), findings)


def _refuse_loose(path: Path, findings: Findings) -> None:
    """File a scenario's file that lies beside the scenario folders."""
    stem = bare_name(path.stem)
    code = scenario_code_of(stem)
    is_prompt = path.suffix in (".md", "") and (code or _LEVELS[2].match(stem))
    if is_prompt or meant_as(path) or path.name in ("MCSQE.md", "criteria.md"):
        to = code or (f"a folder like P1-B1-{stem}" if is_prompt else "the folder of its scenario")
        message = f"{path.name} is not read: it lies beside the scenario folders"
        findings.add(path, Fault(None, message, f"move it to {to}"))


def files_of(folder: ScenarioFolder) -> ScenarioFiles:
    """Find the files of a scenario by their names.

    Raises:
        OSError: The folder cannot be listed.
    """
    listed = sorted(folder.path.iterdir(), key=file_order)
    files = [item for item in listed if item.is_file() and not item.name.startswith(".")]
    texts = [item for item in files if item.suffix == ".md"]
    own = [item for item in texts if bare_name(item.stem) == folder.local]
    multi = [item for item in texts if bare_name(item.stem) == "MCSQE"]
    schemas = [item for item in files if item.suffix == ".json" and bare_name(item.stem) == folder.local]
    rubrics = [item for item in texts if _RUBRIC.match(bare_name(item.stem))]
    missing = folder.path / f"{folder.local}.md"
    faults = [*_strays(files, folder.local), *_buried(folder.path)]
    for group in (own, multi, schemas, rubrics):
        seen: dict[str, Path] = {}
        for path in group:
            first = seen.setdefault(bare_name(path.stem), path)
            if first is not path:
                message = f"{bare_name(path.stem)} is also in {first.name}"
                faults.append((path, Fault(None, message, "keep one file of each code")))
    if own and multi:
        message = f"the folder has two prompts, {own[0].name} and {multi[0].name}"
        hint = "keep one: a multi-criteria scenario has only MCSQE.md"
        faults.append((multi[0], Fault(None, message, hint)))
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
    for path in texts:
        if _RETIRED.match(bare_name(path.stem)):
            message = f"{path.name} belongs to the retired MFMCQ format, which is not run any more"
            hint = f"write the scenario as {missing.name}, or as MCSQE.md with CR1.md"
            return path, Fault(None, message, hint)
    hint = f"add {missing.name} with the scenario's text"
    return missing, Fault(None, "the scenario has no prompt file", hint)


def _strays(files: list[Path], local: str) -> Iterator[tuple[Path, Fault]]:
    """Yield what looks meant but is not read: components and axes are errors, since their cases would be missed."""
    for path in files:
        code, to = bare_name(path.stem), meant_as(path)
        if to is not None and path.name != to:
            yield path, Fault(None, f"{path.name} is not read", f"it seems to belong into {to}")
        elif path.suffix in (".md", ".json") and code != local and _LEVELS[2].match(code):
            message = f"the file is ignored: the scenario of this folder is {local}"
            hint = f"rename it to {local}{path.suffix}, or remove it"
            yield path, Fault(None, message, hint, usable=True)


def _buried(folder: Path) -> Iterator[tuple[Path, Fault]]:
    """Yield components and axes in folders that are not read: `user_contexts/U1.md`, `perturbations/more/PT7.md`."""
    read = {folder, *(folder / axis for axis in _AXES.values())}
    for path in sorted(folder.rglob("*"), key=file_order):
        to = meant_as(path) if path.parent not in read else None
        is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if to is not None and not is_hidden and path.is_file():
            message = f"{path.name} is not read: its folder is none of the format"
            yield path, Fault(None, message, f"move it to {folder.name}/{to}")
