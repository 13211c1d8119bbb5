"""The docs: their length, their links, and words that readers stumble over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import ROOT
from readme import TASK_PAGES

from pytest_helmbench.benchmarks.packs.format.table_columns import FIELDS
from pytest_helmbench.options.declarations import OPTIONS

_DOCS = ROOT / "docs"
_PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(_DOCS.glob("*.md"))]
_MOST_WORDS = {
    "README.md": 800,
    "CHANGELOG.md": 400,
    "docs/evidence.md": 2_500,
    **{f"docs/{name}.md": 700 for name in TASK_PAGES},
}
_MOST_WORDS_IN_ALL = 23_000
_STUMBLED_OVER = re.compile(
    r"told apart|\bnobody\b|\bwhoever\b|\bsomebody\b|\bheld to\b|\bstands? for\b|\bsaid of\b|\bon record\b"
    r"|\b(?:is|are|was|were|be|been) told\b|\bwhat (?:came|comes|became|becomes) of\b"
    r"|(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b)",
    re.IGNORECASE,
)
_FIRST = re.compile(r"(?:^|[.!?] |\n\n|\n\* )(?:What|Whoever|Of) (?!the number means)[^.!?]*")


def _prose(page: Path) -> str:
    """Return the text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def _words(page: Path) -> int:
    """Return how many words a reader sees."""
    return len(re.sub(r"<!--.*?-->", "", page.read_text("utf-8")).split())


def _anchors(page: Path) -> Iterator[str]:
    for heading in re.findall(r"^#+ (.+)$", _prose(page), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("field", FIELDS)
def test_every_name_of_a_table_column_is_in_the_docs(field: str) -> None:
    (row,) = re.findall(rf"^\| {field} \| (.*) \|$", (_DOCS / "packs.md").read_text("utf-8"), re.MULTILINE)
    named = re.split(r", |; ", row)
    missing = [name for name in filter(None, FIELDS[field].split(", ")) if name not in named]
    assert missing == [], "name it in docs/packs.md, in the table of columns"


@pytest.mark.parametrize("name", _MOST_WORDS)
def test_a_page_keeps_to_its_length(name: str) -> None:
    assert _words(ROOT / name) <= _MOST_WORDS[name]


def test_the_docs_keep_to_their_length() -> None:
    assert sum(map(_words, _PAGES)) <= _MOST_WORDS_IN_ALL


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        if "://" not in link:
            place, _, anchor = link.partition("#")
            target = (page.parent / place).resolve() if place else page
            assert target.exists(), link
            assert not anchor or anchor in _anchors(target), link


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_a_page_is_in_plain_words(page: Path) -> None:
    prose = _prose(page)
    assert [found[0] for found in _STUMBLED_OVER.finditer(prose)] == []
    assert [found[0] for found in _FIRST.finditer(prose)] == []


def test_the_glossary_has_each_term_once() -> None:
    terms = re.findall(r"^\* \*\*(.+?)\*\*: ", (_DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)
    assert len(set(terms)) == len(terms)
    wanted = {
        "run",
        "case",
        "item",
        "verdict",
        "judge",
        "baseline",
        "coverage",
        "neutral",
        "gone",
        "not selected",
    }
    assert wanted <= set(terms)


def test_messages_name_pages_that_exist() -> None:
    named = {
        name
        for path in (ROOT / "pytest_helmbench").rglob("*")
        if path.suffix in {".py", ".jinja", ".json", ".js"}
        for name in re.findall(r"docs/[a-z-]+\.md", path.read_text("utf-8"))
    }
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_docs_name_options_that_exist() -> None:
    known = {name for option in OPTIONS for name in (option.flag, option.key)}
    named = {
        (page.name, name)
        for page in _PAGES
        for name in re.findall(r"--helmbench-[a-z-]*[a-z]|\bhelmbench_[a-z_]*[a-z]", page.read_text("utf-8"))
    }
    fixtures = {"helmbench_openai", "helmbench_async_openai", "helmbench_model", "helmbench_judge"}
    assert sorted((page, name) for page, name in named if name not in known | fixtures) == []
