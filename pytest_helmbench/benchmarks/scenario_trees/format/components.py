"""Conditions, user contexts and perturbations, from consolidated files or from files of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.format.folders import file_order, meant_as
from pytest_helmbench.benchmarks.scenario_trees.format.frontmatter import (
    Split,
    leaked_frontmatter,
    linted_headings,
    split_component,
    split_file,
    stray_components,
)
from pytest_helmbench.benchmarks.scenario_trees.format.markdown_text import Body, compose, outline, turns
from pytest_helmbench.benchmarks.scenario_trees.format.side_files import COMPONENT
from pytest_helmbench.benchmarks.scenario_trees.places import bare_name
from pytest_helmbench.benchmarks.scenario_trees.tree import Component
from pytest_helmbench.core.case import Message
from pytest_helmbench.core.codes import BARE_CODE, natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.source import Fault, Reader
from pytest_helmbench.files.strict_json import a_whole_number
from pytest_helmbench.files.validation import validate
from pytest_helmbench.files.yaml_text import Document

_FEW = 2_000  # characters; comments of more are not looked for
_NO_TEXT = re.compile(r"<!--.*?-->|^ {0,3}#{1,6}(?:[ \t][^\n]*)?$", re.MULTILINE | re.DOTALL)
"""Comments and headings."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a scenario.

    Args:
        name: Of the consolidated file and of the folder of individual files.
        code: What its codes look like.
        definition: Its definition in the component schema.
    """

    name: str
    code: re.Pattern[str]
    example: str
    definition: str


CONDITIONS = Axis("conditions", re.compile(r"C\d+\Z"), "C1", "condition")
USER_CONTEXTS = Axis("user-contexts", re.compile(r"U\d+\Z"), "U1", "weighted")
PERTURBATIONS = Axis("perturbations", re.compile(r"PT\d+[a-z]?\Z"), "PT1", "weighted")


def load_components(reader: Reader, folder: Path, scenario: str, axis: Axis) -> tuple[Component, ...]:
    """Read one axis of a scenario in natural order, filing what is wrong with it.

    Returns:
        Those of the consolidated file, else those of files of their own; empty when the scenario has no such axis.
    """
    components = _AxisReader(reader, scenario, axis)
    consolidated, individual = folder / f"{axis.name}.md", folder / axis.name
    if consolidated.is_file() or consolidated.is_symlink():
        components.read_consolidated(consolidated)
        if individual.is_dir():
            fault = Fault(None, f"the folder is ignored beside {consolidated.name}", "keep one", usable=True)
            reader.findings.add(individual, fault)
    elif individual.is_dir():
        components.read_files(individual)
    components.tell_missing_severities()
    return tuple(sorted(components.found.values(), key=lambda component: natural_key(component.code)))


class _AxisReader:
    """One axis of a scenario while it is read; `unweighted` are the codes without severity, by file."""

    def __init__(self, reader: Reader, scenario: str, axis: Axis) -> None:
        self.found: dict[str, Component] = {}
        self.unweighted: dict[Path, list[str]] = {}
        self._findings = reader.findings
        self._reader = reader
        self._scenario = scenario
        self._axis = axis

    def read_consolidated(self, path: Path) -> None:
        """Read a file in which each component starts with its code as an H1."""
        text = self._reader.text(path)
        if text is None:
            return
        axis, outlined = self._axis, outline(text, self._axis.code)
        starts = [item for item in outlined.headings if item.level == 1 and axis.code.match(item.title)]
        lead = outlined.part(0, starts[0].start if starts else len(text))
        self._findings.add(path, *_lead_faults(lead, axis), *_other_titles(lead, axis))
        ends = [*(heading.start for heading in starts[1:]), len(text)]
        for heading, end in zip(starts, ends, strict=False):
            code = heading.title
            if heading.inside_fence is not None:
                message = (
                    f"the code fence that opens here is not closed before '# {code}' in line {heading.line}"
                )
                self._findings.add(path, Fault(heading.inside_fence, message, "close the fence"))
            if code in self.found:
                message = f"{code} stands here twice (first in line {self.found[code].line})"
                hint = "give each component a code of its own"
                self._findings.add(path, Fault(heading.line, message, hint))
            split = split_component(text[heading.end : end], heading.line + 1)
            body = outlined.part(heading.end + (split.body_start or 0), end)
            self._findings.add(path, *_other_titles(body, axis))
            self._add(path, code, heading.line, split, body)

    def read_files(self, folder: Path) -> None:
        """Read the files of a folder, of which each holds one component."""
        for path in sorted(folder.iterdir(), key=file_order):
            code, is_markdown = bare_name(path.stem), path.suffix.lower() == ".md"
            if path.name.startswith(".") or path.stem.lower() == "readme" or path.is_dir():
                continue
            if not is_markdown or self._axis.code.match(code) is None:
                is_meant = meant_as(path) is not None
                message = f"the file is ignored: {path.name!r} is not a name of {self._axis.name}"
                hint = f"name it like {self._axis.example}.md to use it"
                if is_markdown or is_meant:
                    self._findings.add(path, Fault(None, message, hint, usable=not is_meant))
                continue
            text = self._reader.text(path)
            if text is None:
                continue
            if code in self.found:
                message = f"{code} is also in {self.found[code].path.name}"
                self._findings.add(path, Fault(None, message, "keep one file of each code"))
            split = split_file(text)
            body = outline(text).part(split.body_start or 0, len(text))
            self._findings.add(path, *_code_titles(body))
            self._add(path, code, body.first_line(), split, body)

    def _add(self, path: Path, code: str, line: int, split: Split, body: Body) -> None:
        """Keep a component with weight and texts, filing what is wrong with them."""
        weight, block, script, faults = 0, "", tuple[Message, ...](), [*split.faults]
        names = () if split.document is None else split.document.names()
        if split.document is not None:
            document = split.document
            is_mapping = isinstance(document.data, dict)
            faults += validate(document, COMPONENT, self._axis.definition) if is_mapping else document.faults
            if not faults:
                weight, odd = _weight(split.document, self._axis)
                faults += odd
        if split.body_start is not None:
            if self._axis is PERTURBATIONS:
                block, script, found = turns(body)
            else:
                block, found = compose(body)
            faults += [*found, *linted_headings(body), *_without_text(body, code, line)]
            faults += [*leaked_frontmatter(body, names), *stray_components(body)]
        self._findings.add(path, *faults)
        if all(fault.usable for fault in faults) and not {"severity", "difficulty"}.intersection(names):
            self.unweighted.setdefault(path, []).append(code)
        full_code = f"{self._scenario}-{code}"
        component = Component(code, full_code, body.trimmed(), block, weight, path, line, script)
        self.found.setdefault(code, component)

    def tell_missing_severities(self) -> None:
        """Warn once a file of components without a severity, where others have one."""
        missing = sum(map(len, self.unweighted.values()))
        if self._axis is CONDITIONS or missing >= len(self.found):
            return
        for path, codes in self.unweighted.items():
            message = f"no severity, so it counts as 0: {', '.join(codes)}"
            hint = "write 'severity: 0' in the frontmatter if that is meant"
            self._findings.add(path, Fault(self.found[codes[0]].line, message, hint, usable=True))


def _weight(document: Document, axis: Axis) -> tuple[int, list[Fault]]:
    """Return severity or difficulty, and warnings about the old name of the latter."""
    data = document.mapping()
    severity = a_whole_number(data.get("severity")) or 0
    if axis is not CONDITIONS:
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


def _without_text(body: Body, code: str, line: int) -> Iterator[Fault]:
    """Yield that a component says nothing, which is legal: some are the case without an addition."""
    written = body.trimmed()
    if len(written) < _FEW and not _NO_TEXT.sub("", written).strip():
        hint = "write its text below its frontmatter; a case without an addition is fine as it is"
        yield Fault(line, f"{code} has no text", hint, usable=True)


def _lead_faults(lead: Body, axis: Axis) -> Iterator[Fault]:
    end = min((heading.start for heading in lead.headings if heading.level == 1), default=lead.end)
    if lead.text[:end].strip():
        message = f"text stands before the first H1: {lead.text[:end].strip().splitlines()[0]!r}"
        hint = f"start each component with a line such as '# {axis.example}', its frontmatter below"
        yield Fault(lead.first_line(), message, hint)


def _other_titles(body: Body, axis: Axis) -> Iterator[Fault]:
    for heading in body.headings:
        if heading.level == 1:
            message = f"the H1 {heading.title!r} is not a bare code of {axis.name}"
            hint = f"write a code such as '# {axis.example}', or use H2 or H3 inside a component"
            yield Fault(heading.line, message, hint)


def _code_titles(body: Body) -> Iterator[Fault]:
    for heading in body.headings:
        if heading.level == 1 and BARE_CODE.match(heading.title):
            message = f"the H1 {heading.title!r} is only a code and would stand in the prompt"
            yield Fault(heading.line, message, "remove the line: the name of the file gives the code")
