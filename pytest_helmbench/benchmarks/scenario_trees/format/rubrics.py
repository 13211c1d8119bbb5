"""Rubrics (`criteria.md`, `CR1.md`, …): what a marking model is asked, and the menu of its answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.format.damage import linted_headings
from pytest_helmbench.benchmarks.scenario_trees.format.frontmatter import split_file
from pytest_helmbench.benchmarks.scenario_trees.format.markdown_text import Body, outline
from pytest_helmbench.benchmarks.scenario_trees.format.tree_schemas import CRITERIA
from pytest_helmbench.files.json_fields import a_mapping, a_text, numbers, texts
from pytest_helmbench.files.source import Fault, Reader, listed
from pytest_helmbench.files.validation import validate
from pytest_helmbench.files.yaml_text import Document
from pytest_helmbench.judging.rubric import Criterion

__all__ = ["load_criterion"]


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
        faults.extend(split.document.faults or validate(document, CRITERIA))
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
    data = split.document.mapping()
    return Criterion(
        name=name,
        rubric=body.trimmed(),
        options=texts(data["options"]),
        pass_values=texts(data["pass_values"]),
        response_field=a_text(data.get("response_field")) or "judgment",
        response_type="multi" if data.get("response_type") == "multi" else "single",
        credit=numbers(data.get("credit")),
    )


def _menu_faults(document: Document) -> Iterator[Fault]:
    data = document.mapping()
    options = texts(data["options"])
    for index, value in enumerate(texts(data["pass_values"])):
        if value not in options:
            message = f"pass_values has {value!r}, which is no option"
            yield Fault(document.line("pass_values", index), message, listed(value, options, "options"))
    for option in a_mapping(data.get("credit")):
        if option not in options:
            message = f"credit has {option!r}, which is no option"
            yield Fault(document.line("credit", option), message, listed(option, options, "options"))
