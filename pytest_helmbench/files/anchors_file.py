"""`anchors.yml`: replies whose right verdict is known, which `helmbench judge check` holds a judge to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import UnreadableBenchmarkError
from pytest_helmbench.files.source import Fault, Findings, Reader
from pytest_helmbench.files.strict_json import a_text, a_whole_number
from pytest_helmbench.files.validation import shipped_schema, validate
from pytest_helmbench.files.yaml_text import Document, parse_yaml

ANCHORS_SCHEMA = shipped_schema("anchors", __name__)


def anchors_path(root: Path) -> Path | None:
    """Return the anchors of a benchmark; None where it has none."""
    return next((path for name in ("anchors.yml", "anchors.yaml") if (path := root / name).is_file()), None)


def load_anchors(path: Path) -> Anchors:
    """Read a file of anchors, a list or a mapping.

    Raises:
        UnreadableBenchmarkError: With all that is wrong with it.
    """
    findings = Findings()
    text = Reader(findings).text(path)
    document = parse_yaml(text) if text is not None else Document(None)
    findings.add(path, *validate(document, ANCHORS_SCHEMA))
    if not findings.problems:
        findings.add(path, *_faults(document))
    if findings.problems:
        raise UnreadableBenchmarkError(tuple(findings.problems))
    entries = (
        _anchor(number, item, document.line(*place))
        for number, (place, item) in enumerate(document.entries("anchors"), start=1)
    )
    return Anchors(tuple(entries), a_whole_number(document.mapping().get("allowed")) or 0)


def _anchor(number: int, item: JsonObject, line: int | None) -> Anchor:
    return Anchor(
        name=a_text(item.get("id")) or f"anchor {number}",
        prompt=str(item["prompt"]),
        reply=str(item["reply"]),
        passes=item["verdict"] == "pass",
        rubric=a_text(item.get("rubric")) or "",
        scenario=a_text(item.get("scenario")) or "",
        criterion=a_text(item.get("criterion")) or "",
        line=line,
    )


def _faults(document: Document) -> Iterator[Fault]:
    """Yield ids that stand twice, and anchors that name two rubrics."""
    seen: set[str] = set()
    for place, item in document.entries("anchors"):
        name = a_text(item.get("id"))
        if name is not None and name in seen:
            yield Fault(
                document.line(*place, "id"),
                f"the anchor {name!r} stands here twice",
                "each has its own id",
            )
        seen.add(name or "")
        if "rubric" in item and ("scenario" in item or "criterion" in item):
            yield Fault(
                document.line(*place, "rubric"),
                "'rubric' beside the rubric of a scenario",
                "keep the rubric in words, or 'scenario' and 'criterion'",
            )


@dataclass(frozen=True, slots=True)
class Anchor:
    """One entry of `anchors.yml`.

    Args:
        name: Its id; `anchor 1`, … in file order where it has none.
        rubric: In words, of its own; empty for that of a scenario.
        scenario: Code of the scenario, or id of the row, whose rubric it is judged by; empty for the only one.
        criterion: Name of one of several criteria; empty for all.
        line: Where it stands, as an editor counts.
    """

    name: str
    prompt: str
    reply: str
    passes: bool
    rubric: str = ""
    scenario: str = ""
    criterion: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Anchors:
    """A file of anchors.

    Args:
        entries: In file order.
        allowed: How many of them a judge may get wrong.
    """

    entries: tuple[Anchor, ...]
    allowed: int = 0
