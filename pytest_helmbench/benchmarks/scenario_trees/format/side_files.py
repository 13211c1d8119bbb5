"""The files beside the scenarios: scoring.yaml, benchmark.yml, READMEs, and the JSON Schemas of all files of a tree."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.format.frontmatter import without_frontmatter
from pytest_helmbench.benchmarks.scenario_trees.format.markdown_text import Heading, outline, trimmed
from pytest_helmbench.benchmarks.scenario_trees.places import bare_name
from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outline import BehaviourEntry, PillarEntry, Scoring
from pytest_helmbench.files.source import Fault, Reader, read_plain, suggestion
from pytest_helmbench.files.strict_json import a_number, a_text, numbers
from pytest_helmbench.files.validation import shipped_schema, validate
from pytest_helmbench.files.yaml_text import parse_yaml

BENCHMARK = shipped_schema("benchmark", __name__)
COMPONENT = shipped_schema("component", __name__)
CRITERIA = shipped_schema("criteria", __name__)
SCORING = shipped_schema("scoring", __name__)
PROMPT_FRONTMATTER = shipped_schema("prompt_frontmatter", __name__)
"""Without what the evaluation types say: see `evaluation_types.known_types`."""


def load_scoring(reader: Reader, path: Path, behaviours: Iterable[str]) -> Scoring | None:
    """Read weights, floors and cap, filing what is wrong with them.

    Args:
        reader: Reads and files.
        path: `scoring.yaml`.
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
            message = f"weights has {code}, which is no behaviour of this benchmark"
            line = document.line("weights", code)
            reader.findings.add(path, Fault(line, message, suggestion(code, known), usable=True))
    return scoring


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """What `benchmark.yml` says; None where it says nothing."""

    name: str | None = None
    version: str | None = None
    description: str | None = None


def load_benchmark_file(reader: Reader, path: Path) -> BenchmarkFile:
    """Read name, version and description as written, filing what is wrong with them."""
    text = reader.text(path, counts=False)
    if text is None:
        return BenchmarkFile()
    document = parse_yaml(text)
    faults = validate(document, BENCHMARK)
    reader.findings.add(path, *faults)
    if faults:
        return BenchmarkFile()
    data = document.mapping()
    return BenchmarkFile(
        a_text(data.get("name")), a_text(data.get("version")), a_text(data.get("description"))
    )


_LEADING_CODE = re.compile(r"(?:(?:Pillar|Behaviou?r)\s+\d+|P\d+(?:-B\d+)?|B\d+)\s*[:.–—-]\s*", re.IGNORECASE)


class Readmes:
    """The READMEs of a tree's pillars and behaviours.

    Args:
        scenarios: The folder `scenarios/`.
    """

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
