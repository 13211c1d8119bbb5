"""Frontmatter split by python-frontmatter through our handler: lines, raw scalars, bodies byte for byte."""

from __future__ import annotations

import frontmatter
import pytest

from pytest_helmbench.benchmarks.scenario_trees.format.frontmatter import (
    split_component,
    split_file,
    without_frontmatter,
)

INDENTED = "\n\n---\ncategory: NO\n---\n\n    indented, as code is\n\nend\n"


def test_lines_and_scalars_stay_as_they_are_written() -> None:
    split = split_file(INDENTED)
    assert split.document is not None
    assert split.document.data == {"category": "NO"}
    assert split.document.line("category") == 4
    assert split.body_start is not None
    assert INDENTED[split.body_start :] == "\n    indented, as code is\n\nend\n"


def test_what_the_librarys_own_parse_would_lose() -> None:
    # Why only its handlers are used: parse() strips what is text of a prompt, and an answer that is never closed
    # would be sent to the model.
    assert frontmatter.parse(INDENTED) == ({"category": False}, "indented, as code is\n\nend")
    unclosed = "---\ncategory: NO\n\nSort this.\n"
    assert frontmatter.parse(unclosed) == ({}, unclosed.strip())
    (fault,) = split_file(unclosed).faults
    assert (fault.line, fault.message) == (1, "the frontmatter that '---' opens here never closes")


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("no frontmatter\n", "no frontmatter\n"),
        ("---\na: b\n---\ntext\n", "text\n"),
        ("---\na: b\n---", ""),
        ("\n \n---  \na: b\n---\t\n# T\n---\n", "# T\n---\n"),
        ("---\n---\ntext", "text"),
        ("----\na: b\n----\n", "----\na: b\n----\n"),
        (" ---\na: b\n---\n", " ---\na: b\n---\n"),
        ("---\nnever closed\n", "---\nnever closed\n"),
    ],
)
def test_only_lines_that_are_three_dashes_open_and_close(text: str, body: str) -> None:
    assert without_frontmatter(text) == body


def test_a_component_counts_lines_from_its_place_in_the_file() -> None:
    split = split_component("\n---\nseverity: 5\n---\n\nHi.\n", 11)
    assert split.document is not None
    assert split.document.line("severity") == 13
    assert split.faults == ()
