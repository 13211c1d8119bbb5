"""The files beside the scenarios: scoring.yaml, benchmark.yml, tools.yml, READMEs, and the schemas of all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.format.frontmatter import without_frontmatter
from pytest_helmbench.benchmarks.scenario_trees.format.markdown_text import Heading, outline, trimmed
from pytest_helmbench.benchmarks.scenario_trees.format.response_schema import arguments_faults
from pytest_helmbench.benchmarks.scenario_trees.places import bare_name
from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.foreign_schemas import schema_violation
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outline import BehaviourEntry, PillarEntry, Scoring
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.tools import CannedAnswer, Tool
from pytest_helmbench.files.source import Fault, Reader, read_plain, resolved, suggestion
from pytest_helmbench.files.strict_json import a_mapping, a_number, a_text, numbers, texts
from pytest_helmbench.files.validation import shipped_schema, validate
from pytest_helmbench.files.yaml_text import Document, Place, parse_yaml

BENCHMARK = shipped_schema("benchmark", __name__)
COMPONENT = shipped_schema("component", __name__)
CRITERIA = shipped_schema("criteria", __name__)
SCORING = shipped_schema("scoring", __name__)
TOOLS = shipped_schema("tools", __name__)
PROMPT_FRONTMATTER = shipped_schema("prompt_frontmatter", __name__)
"""Without what the evaluation types say: see `evaluation_types.known_types`."""

_COMPOSING = re.compile(r"^[\"']?(?:roles|tools)\b", re.MULTILINE | re.IGNORECASE)
_OF_VALUES = ("properties", "patternProperties", "additionalProperties", "$defs", "definitions")
"""Keys of a schema that say which values single arguments may have, and nothing of which arguments there are."""
_LEADING_CODE = re.compile(r"(?:(?:Pillar|Behaviou?r)\s+\d+|P\d+(?:-B\d+)?|B\d+)\s*[:.–—-]\s*", re.IGNORECASE)


def load_scoring(reader: Reader, path: Path, behaviours: Iterable[str]) -> Scoring | None:
    """Read weights, floors and cap, filing what is wrong with them.

    Args:
        behaviours: Codes of the tree's behaviours, in natural order.

    Returns:
        None after an error.

    Source:
        Scenario trees, section 6.
    """
    text = reader.text(path)
    if text is None:
        return None
    document = parse_yaml(text)
    faults = validate(document, SCORING)
    reader.findings.add(path, *faults)
    if faults:
        return None
    data = document.mapping()
    scoring = Scoring(numbers(data.get("weights")), numbers(data.get("floors")), a_number(data.get("cap")))
    known = list(behaviours)
    if scoring.weights:
        line = document.line("weights")
        for code in known:
            if code not in scoring.weights:
                message = f"{code} has no weight, so it weighs 1"
                reader.findings.add(path, Fault(line, message, f"add '{code}: …' to weights", usable=True))
    for code in scoring.weights:
        if code not in known:
            message = f"weights has {code}, which is not a behaviour of this benchmark"
            line = document.line("weights", code)
            reader.findings.add(path, Fault(line, message, suggestion(code, known), usable=True))
    pillars = list(dict.fromkeys(code.partition("-")[0] for code in known))
    for code in scoring.floors:
        if code not in pillars:
            message = f"floors has {code}, which is not a pillar of this benchmark: it can never fail"
            line = document.line("floors", code)
            reader.findings.add(path, Fault(line, message, suggestion(code, pillars), usable=True))
    return scoring


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """The keys of `benchmark.yml`; None for a key that it does not have.

    Args:
        tools_file: The file of the tools of all scenarios that have none of their own.
        unusable: The file whose faults leave open how cases are composed; empty for none.
    """

    name: str | None = None
    version: str | None = None
    description: str | None = None
    system: frozenset[str] = frozenset()
    tools_file: Path | None = None
    tools: tuple[Tool, ...] | None = None
    unusable: str = ""


def load_benchmark_file(reader: Reader, path: Path) -> BenchmarkFile:
    """Read the file, and the tools that it names, filing what is wrong with them."""
    text = reader.text(path, counts=False)
    if text is None:
        return BenchmarkFile()
    document = parse_yaml(text)
    data, faults = document.mapping(), validate(document, BENCHMARK)
    named = a_text(data.get("tools"))
    tools_file = None if named is None else path.parent / named
    if tools_file is not None and not _is_inside(tools_file, path.parent):
        message = f"tools is {named!r}, which is not a file of this benchmark"
        hint = "write a path from the benchmark's folder, such as tools.yml"
        faults.append(Fault(document.line("tools"), message, hint))
    reader.findings.add(path, *faults)
    if faults:
        return BenchmarkFile(unusable=path.name if _COMPOSING.search(text) else "")
    system = frozenset(texts(a_mapping(data.get("roles")).get("system")))
    if system:
        reader.cover(path, json.dumps(sorted(system)))
    tools = None if tools_file is None else load_tools(reader, tools_file)
    return BenchmarkFile(
        a_text(data.get("name")),
        a_text(data.get("version")),
        a_text(data.get("description")),
        system,
        tools_file,
        tools,
        tools_file.name if tools_file is not None and tools is None else "",
    )


def _is_inside(path: Path, root: Path) -> bool:
    try:
        return path.is_file() and resolved(path).is_relative_to(root.resolve())
    except OSError:
        return False


def load_tools(reader: Reader, path: Path) -> tuple[Tool, ...] | None:
    """Read a list of tools, filing what is wrong with it; None after an error."""
    text = reader.text(path)
    if text is None:
        return None
    document = parse_yaml(text, keep_keys=True)
    listed = document.data if isinstance(document.data, list) else []
    faults = [*validate(document, TOOLS), *_tool_faults(document, listed)]
    reader.findings.add(path, *sorted(faults, key=lambda fault: fault.line or 0))
    return None if faults else tuple(_tool(a_mapping(item)) for item in listed)


def _tool(item: JsonObject) -> Tool:
    returns = item["returns"]
    answers = [a_mapping(answer) for answer in returns] if isinstance(returns, list) else []
    return Tool(
        a_text(item["name"]) or "",
        a_text(item.get("description")) or "",
        a_mapping(item["parameters"]),
        tuple(
            CannedAnswer(a_mapping(one["when"]) if "when" in one else None, one["value"]) for one in answers
        ),
    )


def _tool_faults(document: Document, listed: list[JsonValue]) -> Iterator[Fault]:
    """Yield what is wrong with tools beyond the schema of their file, which `validate` reports."""
    first: dict[str | None, int | None] = {}
    for index, item in enumerate(listed):
        tool = a_mapping(item)
        name, line = a_text(tool.get("name")), document.line(index, "name")
        if name in first:
            message = f"the tool {name!r} stands here twice (first in line {first[name]})"
            yield Fault(line, message, "give each tool a name of its own")
        elif name is not None:
            first[name] = line
        parameters = a_mapping(tool.get("parameters"))
        faults = arguments_faults(parameters, document.lines, (index, "parameters"))
        yield from faults
        yield from _answer_faults(document, (index, "returns"), tool, {} if faults else parameters)


def _answer_faults(
    document: Document, place: Place, tool: JsonObject, parameters: JsonObject
) -> Iterator[Fault]:
    """Yield why no call can get an answer that is listed."""
    of_values = {key: parameters[key] for key in _OF_VALUES if key in parameters}
    returns, open_line = tool.get("returns"), None
    for number, answer in enumerate(returns if isinstance(returns, list) else ()):
        if open_line is not None:
            message = f"no call gets this answer: the one in line {open_line} has no 'when'"
            yield Fault(document.line(*place, number), message, "put the answer without 'when' at the end")
        elif isinstance(answer, dict) and "when" not in answer:
            open_line = document.line(*place, number)
        try:
            breach = schema_violation(of_values, dict(a_mapping(a_mapping(answer).get("when"))))
        except HelmbenchError as error:
            breach = str(error)
        if breach:
            message = f"no call gets this answer: 'when' breaks the parameters ({breach})"
            hint = "write arguments that the parameters allow; a text that looks like a number needs quotes"
            yield Fault(document.line(*place, number, "when"), message, hint)


class Readmes:
    """The READMEs of a tree's pillars and behaviours."""

    def __init__(self, scenarios: Path) -> None:
        self._scenarios = scenarios
        self._inside: dict[Path, dict[str, list[Path]]] = {}

    def pillar(self, code: str) -> PillarEntry:
        """Return the pillar `P1` with the texts that a README gives it."""
        folders = self._folders(self._scenarios, code)
        wanted = re.compile(rf"Pillar\s+{code[1:]}\s*[:.–—-]\s*(.+)", re.IGNORECASE)
        for text in _readmes((*folders, self._scenarios, self._scenarios.parent)):
            for heading in outline(text).headings:
                named = wanted.match(heading.title) if heading.level == 3 else None
                if named:
                    return PillarEntry(code, named[1].strip(), _paragraph(text, heading))
        for text in _readmes(folders):
            title = _title(text)
            if title is not None:
                return PillarEntry(code, _LEADING_CODE.sub("", title.title, count=1), _paragraph(text, title))
        return PillarEntry(code)

    def behaviour(self, code: str) -> BehaviourEntry:
        """Return the behaviour `P1-B1` with the texts that its README gives it."""
        pillar, _, local = code.partition("-")
        outer = self._folders(self._scenarios, pillar)
        folders = [inner for folder in outer for inner in self._folders(folder, local)]
        for text in _readmes((*folders, *self._folders(self._scenarios, code))):
            title = _title(text)
            return BehaviourEntry(
                code,
                _LEADING_CODE.sub("", title.title, count=1) if title is not None else "",
                _paragraph(text, title) if title is not None else "",
                _section(text, "compliance criteria"),
            )
        return BehaviourEntry(code)

    def _folders(self, parent: Path, code: str) -> list[Path]:
        """Return the folders of a code, with or without a readability suffix; lists each folder once."""
        if parent not in self._inside:
            named: dict[str, list[Path]] = {}
            for name in sorted(_names(parent), key=natural_key):
                named.setdefault(bare_name(name), []).append(parent / name)
            self._inside[parent] = named
        return self._inside[parent].get(code, [])


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _readmes(folders: Iterable[Path]) -> list[str]:
    texts = []
    for folder in folders:
        try:
            raw = b"" if (folder / "README.md").is_symlink() else read_plain(folder / "README.md")
        except OSError:
            continue
        text = raw.decode("utf-8-sig", "replace").replace("\r\n", "\n")
        texts.append(without_frontmatter(text))
    return texts


def _title(text: str) -> Heading | None:
    return next((heading for heading in outline(text).headings if heading.level == 1), None)


def _paragraph(text: str, heading: Heading) -> str:
    """Return the first paragraph below a heading; empty when another heading comes first."""
    below = text[heading.end :].lstrip()
    return (
        "" if below.startswith("#") else re.split(r"\n[ \t]*(?:\n|(?=#{1,6} ))", below, maxsplit=1)[0].strip()
    )


def _section(text: str, title: str) -> str:
    headings = outline(text).headings
    for index, heading in enumerate(headings):
        if heading.title.strip(" :*_").lower() == title:
            ends = (item.start for item in headings[index + 1 :] if item.level <= heading.level)
            return trimmed(text[heading.end : next(ends, len(text))])
    return ""
