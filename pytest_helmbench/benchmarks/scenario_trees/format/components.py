"""Conditions, user contexts and perturbations, from consolidated files or from files of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.format.frontmatter import (
    Split,
    leaked_frontmatter,
    linted_headings,
    split_component,
    split_file,
    stray_components,
)
from pytest_helmbench.benchmarks.scenario_trees.format.markdown_text import Body, Heading, compose, outline
from pytest_helmbench.benchmarks.scenario_trees.format.side_files import COMPONENT
from pytest_helmbench.benchmarks.scenario_trees.format.unread_files import (
    LEADS_NOWHERE,
    file_order,
    leads_nowhere,
    looks_like_component,
    whole_axis_of,
)
from pytest_helmbench.benchmarks.scenario_trees.places import bare_name
from pytest_helmbench.benchmarks.scenario_trees.tree import Component
from pytest_helmbench.core.codes import BARE_CODE, natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.source import Fault, Reader
from pytest_helmbench.files.strict_json import a_whole_number
from pytest_helmbench.files.validation import validate
from pytest_helmbench.files.yaml_text import Document


@dataclass(frozen=True, slots=True)
class Kind:
    """One axis of a scenario.

    Args:
        name: Of the consolidated file and of the folder of individual files.
        code: What its codes look like.
        example: A code.
        definition: Its definition in the component schema.
    """

    name: str
    code: re.Pattern[str]
    example: str
    definition: str


_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
CONDITIONS = Kind("conditions", re.compile(r"C\d+\Z"), "C1", "condition")
USER_CONTEXTS = Kind("user-contexts", re.compile(r"U\d+\Z"), "U1", "weighted")
PERTURBATIONS = Kind("perturbations", re.compile(r"PT\d+[a-z]?\Z"), "PT1", "weighted")


@dataclass(frozen=True, slots=True)
class _Read:
    """A component as it was read.

    Args:
        component: With what could be read of it.
        has_weight: Whether its frontmatter names severity or difficulty.
        has_text: Whether there is text; None where that cannot be told.
    """

    component: Component
    has_weight: bool
    has_text: bool | None


def load_components(reader: Reader, folder: Path, scenario: str, kind: Kind) -> tuple[Component, ...]:
    """Read one axis of a scenario in natural order, filing what is wrong with it.

    Args:
        reader: Reads and files.
        folder: Folder of the scenario.
        scenario: Code of the scenario.
        kind: The axis.

    Returns:
        Those of the consolidated file and those of files of their own; empty when the scenario has no such axis.
    """
    consolidated, individual = folder / f"{kind.name}.md", folder / kind.name
    found: dict[str, _Read] = {}
    if consolidated.is_file():
        _from_consolidated(reader, consolidated, scenario, kind, found)
    if individual.is_dir():
        _from_files(reader, individual, scenario, kind, found)
    for path, fault in _look_alikes(found.values()):
        reader.findings.add(path, fault)
    unknown = _judge_perturbations(reader, found.values()) if kind is PERTURBATIONS else ()
    components = (
        replace(read.component, is_weight_known=False) if read in unknown else read.component
        for read in found.values()
    )
    return tuple(sorted(components, key=lambda component: natural_key(component.code)))


def _judge_perturbations(reader: Reader, found: Iterable[_Read]) -> Sequence[_Read]:
    """File what would make a perturbation count as another than was meant: no text, or no severity among others.

    Returns:
        Those without a severity among others that have one.
    """
    read = list(found)
    weighted = next((one.component for one in read if one.has_weight), None)
    for one in read:
        component = one.component
        if one.has_text is False:
            fault = Fault(
                component.line, f"{component.code} has no text", "write what is added to the prompt"
            )
            reader.findings.add(component.path, fault)
        if weighted is not None and not one.has_weight:
            message = f"{component.code} has no severity, and {weighted.code} has one"
            hint = "write 'severity: 0' in its frontmatter if it is harmless: scores ignore it then"
            reader.findings.add(component.path, Fault(component.line, message, hint))
    return () if weighted is None else [one for one in read if not one.has_weight]


def _from_consolidated(
    reader: Reader, path: Path, scenario: str, kind: Kind, found: dict[str, _Read]
) -> None:
    text = reader.text(path)
    if text is None:
        return
    outlined = outline(text, kind.code)
    starts = [
        index
        for index, heading in enumerate(outlined.headings)
        if heading.level == 1 and kind.code.match(heading.title)
    ]
    before = outlined.headings[: starts[0]] if starts else outlined.headings
    lead = Body(text, 0, outlined.headings[starts[0]].start if starts else len(text), before, outlined.fences)
    reader.findings.add(path, *_lead_faults(lead, kind))
    for index, behind in pairwise([*starts, len(outlined.headings)]):
        heading, inner = outlined.headings[index], outlined.headings[index + 1 : behind]
        end = outlined.headings[behind].start if behind < len(outlined.headings) else len(text)
        reader.findings.add(path, *_start_faults(heading, found))
        split = split_component(text[heading.end : end], heading.line + 1)
        inner = tuple(item for item in inner if item.start >= heading.end + (split.body_start or 0))
        body = Body(text, min(heading.end + (split.body_start or 0), end), end, inner, outlined.fences)
        reader.findings.add(path, *_other_titles(body, kind))
        bare = Component(heading.title, f"{scenario}-{heading.title}", "", "", 0, path, heading.line)
        found.setdefault(heading.title, _filled(reader, bare, split, body, kind))


def _from_files(reader: Reader, folder: Path, scenario: str, kind: Kind, found: dict[str, _Read]) -> None:
    for path in _individual_files(reader, folder, kind):
        text = reader.text(path)
        if text is None:
            continue
        code = bare_name(path.stem)
        if code in found:
            message = f"{code} is also in {found[code].component.path.name}"
            reader.findings.add(path, Fault(None, message, "keep one file of each code"))
        split = split_file(text)
        start = min(split.body_start or 0, len(text))
        outlined = outline(text)
        inner = tuple(heading for heading in outlined.headings if heading.start >= start)
        body = Body(text, start, len(text), inner, outlined.fences)
        reader.findings.add(path, *_code_titles(body))
        bare = Component(code, f"{scenario}-{code}", "", "", 0, path, body.first_line())
        found.setdefault(code, _filled(reader, bare, split, body, kind))


def _individual_files(reader: Reader, folder: Path, kind: Kind) -> list[Path]:
    found = []
    for path in sorted(folder.iterdir(), key=file_order):
        is_markdown = path.suffix.lower() == ".md"
        is_meant = looks_like_component(path) or whole_axis_of(path) is not None
        if path.name.startswith(".") or path.stem.lower() == "readme" or path.is_dir():
            continue
        if leads_nowhere(path):
            reader.findings.add(path, LEADS_NOWHERE)
            continue
        if not is_markdown and not is_meant:
            continue
        if is_markdown and kind.code.match(bare_name(path.stem)):
            found.append(path)
        elif not is_markdown:
            message = f"the file is ignored: {path.name!r} does not end in .md"
            reader.findings.add(path, Fault(None, message, f"name it like {kind.example}.md to use it"))
        else:
            hint = f"name it like {kind.example}.md to use it"
            message = f"the file is ignored: {path.stem!r} is no code of {kind.name}"
            fault = Fault(None, message, hint, usable=not is_meant)
            reader.findings.add(path, fault)
    return found


def _filled(reader: Reader, bare: Component, split: Split, body: Body, kind: Kind) -> _Read:
    """Return a component with weight and texts, filing what is wrong with them."""
    weight = 0
    has_weight = True  # where the frontmatter cannot be read, nobody knows
    is_known = not split.faults
    document = split.document
    faults = [*split.faults]
    if document is not None:
        readable = isinstance(document.data, dict)
        has_weight = not readable or not {"severity", "difficulty"}.isdisjoint(document.mapping())
        found = validate(document, COMPONENT, kind.definition) if readable else [*document.faults]
        faults.extend(found)
        is_known = not faults
        if is_known:
            weight, found = _weight(document, kind)
            faults.extend(found)
    elif not faults:
        has_weight = False
    if split.body_start is None:
        reader.findings.add(bare.path, *faults)
        return _Read(replace(bare, is_weight_known=False), has_weight, None)
    block, found = compose(body)
    own_keys = document.names() if document is not None else ()
    reader.findings.add(bare.path, *faults, *found, *linted_headings(body))
    reader.findings.add(bare.path, *leaked_frontmatter(body, own_keys), *stray_components(body))
    component = replace(bare, body=body.trimmed(), block=block, weight=weight, is_weight_known=is_known)
    return _Read(component, has_weight, _has_text(body))


def _has_text(body: Body) -> bool:
    """Return whether anything is said beside headings and HTML comments."""
    said, position = [], body.start
    for heading in body.headings:
        said.append(body.text[position : heading.start])
        position = max(position, heading.end)
    return bool(_COMMENT.sub("", "".join((*said, body.text[position : body.end]))).strip())


def _look_alikes(found: Iterable[_Read]) -> Iterator[tuple[Path, Fault]]:
    """Warn of codes that differ in zeros alone, as `PT1` and `PT01`."""
    seen: dict[object, Component] = {}
    for component in (read.component for read in found):
        other = seen.setdefault(natural_key(component.code), component)
        if other is not component:
            message = f"{component.code} looks like {other.code}: both count, as two"
            hint = "remove one of them, or number it anew"
            yield component.path, Fault(component.line, message, hint, usable=True)


def _weight(document: Document, kind: Kind) -> tuple[int, list[Fault]]:
    """Return severity or difficulty, and warnings about the old name of the latter."""
    data = document.mapping()
    severity = a_whole_number(data.get("severity")) or 0
    if kind is not CONDITIONS:
        return severity, []
    difficulty = a_whole_number(data.get("difficulty")) or 0
    if "severity" not in data:
        return difficulty, []
    line = document.line("severity")
    if "difficulty" in data:
        message = f"severity {severity} of a condition is ignored beside its difficulty"
        return difficulty, [Fault(line, message, "remove the key 'severity'", usable=True)]
    counted = max(severity, 0)
    message = f"severity {severity} of a condition is read as difficulty {counted}"
    return counted, [Fault(line, message, f"write 'difficulty: {counted}'", usable=True)]


def _lead_faults(lead: Body, kind: Kind) -> Iterator[Fault]:
    end = min((heading.start for heading in lead.headings if heading.level == 1), default=lead.end)
    if lead.text[:end].strip():
        message = f"text stands before the first H1: {lead.text[:end].strip().splitlines()[0]!r}"
        hint = f"start each component with a line such as '# {kind.example}', its frontmatter below"
        yield Fault(lead.first_line(), message, hint)
    yield from _other_titles(lead, kind)


def _other_titles(body: Body, kind: Kind) -> Iterator[Fault]:
    for heading in body.headings:
        if heading.level == 1:
            message = f"the H1 {heading.title!r} is no bare code of {kind.name}"
            hint = f"write a code such as '# {kind.example}', or use H2 or H3 inside a component"
            yield Fault(heading.line, message, hint)


def _code_titles(body: Body) -> Iterator[Fault]:
    for heading in body.headings:
        if heading.level == 1 and BARE_CODE.match(heading.title):
            message = f"the H1 {heading.title!r} is only a code and would stand in the prompt"
            yield Fault(heading.line, message, "remove the line: the name of the file gives the code")


def _start_faults(heading: Heading, found: Mapping[str, _Read]) -> Iterator[Fault]:
    code = heading.title
    if heading.inside_fence is not None:
        message = f"the code fence that opens here is not closed before '# {code}' in line {heading.line}"
        yield Fault(heading.inside_fence, message, "close the fence")
    if code in found:
        message = f"{code} stands here twice (first in line {found[code].component.line})"
        yield Fault(heading.line, message, "give each component a code of its own")
