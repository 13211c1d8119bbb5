"""Headings and code fences are those of CommonMark, as markdown-it-py finds them."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from pytest_helmbench.benchmarks.scenario_trees.format.markdown_text import outline

markdown_it = pytest.importorskip("markdown_it")

_PARTS = (
    *("# PT1", "# PT2 ##", "## a b", "### c #", "#PT3", "#", "#\tPT4", "####### x", "# PT5 #\\#", "######"),
    *(
        "    # PT6",
        "   ## in",
        "\t# tab",
        "- # PT7",
        "> # PT8",
        "\\# PT9",
        "# `PT1`",
        "Title\n===",
        "Sub\n---",
    ),
    *("```", "````", "```py", "``` `x", "~~~", "~~~~ x", "    ```", "  ~~~", "- ```", "> ~~~"),
    *("text", "", "  ", "<div>\n# PT1\n</div>", "* * *", "a\r# PT1", "# PT\u00a01"),
)


_Found = tuple[list[tuple[int, str, int]], list[int]]
"""Level, title and line of every heading; the lines where fences open."""


def _by_commonmark(text: str) -> _Found:
    """Lists, quotes and HTML are text here: a heading or fence inside of one is not part of the outline."""
    reader = markdown_it.MarkdownIt("zero").enable(["code", "fence", "heading"])
    reader.core.ruler.enableOnly(["block"])
    tokens = reader.parse(text)
    headings = [
        (int(token.tag[1]), behind.content, token.map[0] + 1)
        for token, behind in pairwise(tokens)
        if token.type == "heading_open"
    ]
    return headings, [token.map[0] + 1 for token in tokens if token.type == "fence"]


def _ours(text: str) -> _Found:
    found = outline(text)
    headings = [(heading.level, heading.title, heading.line) for heading in found.headings]
    return headings, [fence.line for fence in found.fences]


def test_the_outline_of_any_text_is_that_of_commonmark() -> None:
    parts = random.Random(1)
    for _ in range(3_000):
        text = "\n".join(parts.choices(_PARTS, k=parts.randint(1, 8)))
        assert _ours(text) == _by_commonmark(text), repr(text)
