"""Evaluation rules as files spell them: scenario frontmatter and rubrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.category_match import CategoryMatch
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_rule import FieldRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.list_includes import ListIncludes
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.tag_threshold import TagThreshold
from pytest_helmbench.benchmarks.scenario_trees.format.damage import linted_headings
from pytest_helmbench.benchmarks.scenario_trees.format.frontmatter import split_file
from pytest_helmbench.benchmarks.scenario_trees.format.markdown_text import Body, outline
from pytest_helmbench.files.source import Fault, Reader, listed
from pytest_helmbench.files.validation import validate
from pytest_helmbench.files.yaml_text import Document
from pytest_helmbench.judging.rubric import Criterion

__all__ = ["Evaluation", "category_of", "evaluation_of", "field_rule", "load_criterion"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The `evaluation` mapping of a scenario, defaults filled in."""

    type: str
    by_severity: bool
    values: Mapping[str, Any]


def evaluation_of(document: Document | None) -> Evaluation:
    """Return what valid frontmatter says about evaluation; `category_match` where it says nothing."""
    data = document.data if document is not None and isinstance(document.data, dict) else {}
    values = data.get("evaluation") or {}
    return Evaluation(values.get("type", "category_match"), "polarity" in values, values)


def category_of(document: Document | None) -> str | None:
    """Return the frontmatter's `category` as written."""
    data = document.data if document is not None and isinstance(document.data, dict) else {}
    category = data.get("category")
    return category if isinstance(category, str) else None


def field_rule(evaluation: Evaluation, document: Document | None) -> tuple[FieldRule | None, list[Fault]]:
    """Return the rule that reads a field, or None and why there is none.

    Source:
        Scenario trees, section 5.
    """
    values = evaluation.values
    key = "required" if evaluation.type == "list_includes" else "expected"
    expected = values.get(key, category_of(document) if evaluation.type == "category_match" else None)
    line = document.line("evaluation") if document is not None else None
    if expected is None:
        message = "nothing says which reply passes: there is neither 'category' nor 'evaluation'"
        hint = "add 'category: NAME' to the frontmatter, or 'evaluation:' with a type"
        return None, [Fault(line or 1, message, hint)]
    field = values.get("field", "category")
    wanted = (expected,) if isinstance(expected, str) else tuple(expected)
    if evaluation.type != TagThreshold.type:
        plain = CategoryMatch if evaluation.type == CategoryMatch.type else ListIncludes
        return plain(field, wanted, evaluation.by_severity), []
    rule = TagThreshold(
        field,
        wanted,
        evaluation.by_severity,
        _whole(values.get("min_correct")),
        _whole(values.get("max_incorrect")) or 0,
    )
    distinct = len(set(rule.expected))
    if rule.min_correct is not None and rule.min_correct > distinct:
        message = f"min_correct is {rule.min_correct}, but only {distinct} tags are expected"
        where = document.line("evaluation", "min_correct") if document is not None else None
        return rule, [Fault(where, message, f"write a number up to {distinct}")]
    return rule, []


def load_criterion(reader: Reader, path: Path, name: str) -> Criterion | None:
    """Read a rubric, filing what is wrong with it.

    Args:
        reader: Reads and files.
        path: `criteria.md` or `CR1.md`.
        name: `CR1`, …; empty for the only criterion of a scenario.
    """
    text = reader.text(path)
    if text is None:
        return None
    split = split_file(text)
    faults = [*split.faults]
    start = min(split.body_start or 0, len(text))
    body = Body(text, start, len(text), (), outline(text).fences)
    if split.document is None and not faults:
        hint = "start the file with '---', 'options:', 'pass_values:' and '---'"
        faults.append(Fault(1, "the rubric has no frontmatter", hint))
    elif split.document is not None and not faults:
        document = split.document if split.document.data is not None else Document({}, {(): 1})
        faults.extend(split.document.faults or validate(document, "criteria"))
        faults.extend(() if faults else _menu_faults(document))
    if split.body_start is not None:
        faults.extend(linted_headings(body, only_first_lines=True))
        if not body.trimmed():
            faults.append(
                Fault(None, "the rubric is empty", "write below the frontmatter what the judge looks for")
            )
    reader.findings.add(path, *faults)
    if any(not fault.usable for fault in faults) or split.document is None:
        return None
    data = split.document.data
    return Criterion(
        name=name,
        rubric=body.trimmed(),
        options=tuple(data["options"]),
        pass_values=tuple(data["pass_values"]),
        response_field=data.get("response_field", "judgment"),
        response_type=data.get("response_type", "single"),
        credit=data.get("credit", {}),
    )


def _menu_faults(document: Document) -> Iterator[Fault]:
    options = document.data["options"]
    for index, value in enumerate(document.data["pass_values"]):
        if value not in options:
            message = f"pass_values has {value!r}, which is no option"
            yield Fault(document.line("pass_values", index), message, listed(value, options, "options"))
    for option in document.data.get("credit", {}):
        if option not in options:
            message = f"credit has {option!r}, which is no option"
            yield Fault(document.line("credit", option), message, listed(option, options, "options"))


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
