"""Files and folders that nobody would read though they look meant: each is an error or a warning that names it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.places import bare_name, is_prompt_file
from pytest_helmbench.core.codes import natural_key, scenario_code_of
from pytest_helmbench.files.source import Fault, Findings

_COMPONENT = re.compile(
    r"(?:P\d+-B\d+-S\d+[A-Z]?-(?:C\d+-)?(?:U\d+-)?)?"
    r"(?:(?P<axis>C|U|PT)[-_ ]?\d|P[-_ ]?\d+[a-z]?(?:--.*)?(?:\.(?:md|markdown|txt))+\Z)",
    re.IGNORECASE,
)
_AXES = {"c": "conditions", "u": "user-contexts", "pt": "perturbations"}
_WHOLE = re.compile(r"(conditions|user[-_ ]contexts|perturbations)(?![a-z])", re.IGNORECASE)
_TEXTS = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx", ".txt", ".text", ".yaml", ".yml", ".json"})
_SUFFIX = re.compile(r"\.[a-z]\w*~?\Z", re.IGNORECASE)


def is_text(path: Path) -> bool:
    """Return whether a file could be meant as text by its last suffix, or has none.

    Pictures and backups of editors (`PT3.md~`, `PT3.md.bak`) are not; `PT3 v1.2` has no suffix.
    """
    suffix = _SUFFIX.search(path.name.rstrip())
    return suffix is None or suffix[0].lower() in _TEXTS


def axis_of(path: Path) -> str | None:
    """Return the axis whose component a file seems to mean: by how its name begins, as in `PT3_rude.md.txt`."""
    found = _COMPONENT.match(path.name) if is_text(path) else None
    return None if found is None else _AXES[(found["axis"] or "pt").lower()]


def looks_like_component(path: Path) -> bool:
    """Return whether a file has the name of a condition, user context or perturbation, or nearly."""
    return axis_of(path) is not None


def whole_axis_of(path: Path) -> str | None:
    """Return the axis whose consolidated file a file seems to mean, as in `conditions.yaml`."""
    found = _WHOLE.match(bare_name(path.name)) if is_text(path) else None
    return None if found is None else re.sub("[_ ]", "-", found[1].lower())


LEADS_NOWHERE = Fault(
    None, "the link leads nowhere, so nobody can tell what it stands for", "mend or remove the link"
)


def leads_nowhere(path: Path) -> bool:
    """Return whether a path is a link to what is not there, or to itself; hidden ones are locks of editors."""
    return path.is_symlink() and not path.name.startswith(".") and not _is_there(path)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, RuntimeError):
        return False


_SCENARIOS = "scenarios"
_NAMED = re.compile(r"[PBS]\d", re.IGNORECASE)
_PROMPT = re.compile(r"S\d+[A-Z]?\Z")
_MARKDOWN = (".md", ".markdown", ".txt")
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
        if path.suffix.lower() in _MARKDOWN and (code or _PROMPT.match(stem)):
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


_FILES = ("conditions", "user-contexts", "perturbations", "criteria")
_OTHERS = ("MCSQE.md", "criteria.md")


def file_order(path: Path) -> tuple[object, ...]:
    """Return a sort key: by code, a name without readability suffix first."""
    return natural_key(bare_name(path.stem)), len(path.name), path.name


def refuse_loose(folder: Path, findings: Findings) -> None:
    """File scenario files that lie beside the scenario folders, where nobody reads them."""
    for path in sorted((item for item in folder.iterdir() if item.is_file()), key=file_order):
        stem = bare_name(path.stem)
        code = scenario_code_of(stem)
        to = "the folder of its scenario"
        if is_text(path) and (code or _PROMPT.match(stem)):
            to = f"{code}/{code.rpartition('-')[2]}{path.suffix}" if code else f"a folder like P1-B1-{stem}"
        elif not (looks_like_component(path) or whole_axis_of(path)) and path.name not in _OTHERS:
            continue
        message = f"{path.name} is read by nobody: it lies beside the scenario folders"
        findings.add(path, Fault(None, message, f"move it to {to}"))
    for path in filter(leads_nowhere, sorted(folder.iterdir(), key=file_order)):
        findings.add(path, LEADS_NOWHERE)


def refuse_name(path: Path, example: str, scenarios: Path, findings: Findings) -> None:
    """File a folder that is read by nobody, though it looks meant or holds what a scenario holds, or those below it."""
    if _NAMED.match(path.name) or any(
        (path / name).exists() for name in ("perturbations.md", "perturbations")
    ):
        message = f"the folder is read by nobody: {path.name!r} is no code"
        findings.add(path, Fault(None, message, f"name it like {example}"))
    else:
        refuse_below(path, scenarios, findings)


def strays(files: list[Path], local: str) -> Iterator[tuple[Path, Fault]]:
    """File what looks meant but is read by nobody: components are errors, since their cases would be missed."""
    for path in files:
        code = bare_name(path.stem)
        if path.stem.lower() == "readme" or code == local:
            continue
        if (axis := axis_of(path)) is not None:
            message = f"{path.name} is read by nobody: files of their own stand in a folder of their axis"
            yield path, Fault(None, message, f"move it to {axis}/")
        elif path.suffix in (".md", ".json") and _PROMPT.match(code):
            message = f"the file is ignored: the scenario of this folder is {local}"
            hint = f"rename it to {local}{path.suffix}, or remove it"
            yield path, Fault(None, message, hint, usable=True)
        elif is_text(path) and path.name not in (f"{name}.md" for name in _FILES):
            yield from _misnamed(path, code, local)


def buried(folder: Path) -> Iterator[tuple[Path, Fault]]:
    """File components in folders that nobody reads: `user_contexts/U1.md`, `perturbations/more/PT7.md`."""
    read = {str(folder), *(str(folder / axis) for axis in _AXES.values())}
    for place, subfolders, names in os.walk(folder):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        if place in read:
            continue
        for path in sorted((Path(place, name) for name in names), key=file_order):
            axis, whole = axis_of(path), whole_axis_of(path)
            if axis or whole:
                to = f"{axis}/" if axis else f"{whole}.md"
                message = f"{path.name} is read by nobody: its folder is none of the format"
                yield path, Fault(None, message, f"move it to {folder.name}/{to}")


def _misnamed(path: Path, code: str, local: str) -> Iterator[tuple[Path, Fault]]:
    """File a name that is nearly one of the format."""
    known = (*_FILES, local.lower(), "mcsqe")
    whole = whole_axis_of(path)
    near = [whole] if whole else get_close_matches(code.lower(), known, n=1, cutoff=0.75)
    if not near or code == "MCSQE":
        return
    names = {local.lower(): local, "mcsqe": "MCSQE"}
    message = f"the file is ignored: {path.name!r} is no name of the format"
    hint = f"did you mean {names.get(near[0], near[0])}.md?"
    yield path, Fault(None, message, hint, usable=near[0] not in _AXES.values())
