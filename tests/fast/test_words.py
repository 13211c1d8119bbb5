"""The words for people: one word for one thing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import captured
from house_figures import PACKAGE

from pytest_helmbench.options.declarations import OPTIONS

_ROOT = PACKAGE.parent
_WITH_WORDS = {".py", ".js", ".cjs", ".mjs", ".sql", ".css", ".jinja", ".json"}


def test_question_packs_and_bench_packs_have_no_word_in_common_but_pack() -> None:
    said = [(path, path.read_text("utf-8")) for path in _pages()]
    said += [(path, text) for path in PACKAGE.rglob("*.py") for text in _messages(path)]
    said += [(Path("options.py"), option.text) for option in OPTIONS]

    assert [path.name for path, text in said if "benchmark pack" in text.lower()] == []


_STUMBLED_OVER = re.compile(
    r"\btold apart\b|\bnobody\b|\bwhoever\b|\bsomebody\b|\bheld to\b|\bstands? for\b|\bsaid of\b"
    r"|\bfrom record\b|\bmost severe first\b|\bthem to it\b",
    re.IGNORECASE,
)
_OLD_TURNS = re.compile(
    r"\b(?:is|are|was|were|be|been) told\b|\bwhat (?:came|comes|became|becomes) of\b"
    r"|(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|other\b|larger\b|smaller\b|earlier\b)",
    re.IGNORECASE,
)
"""Turns of phrase that package, tests and docs have lost."""
_KEPT = re.compile(
    "nobody answers questions|A short reply stands for the accepted answer|nobody:x:65534:65534:nobody"
)
"""Two prompts whose words decide results, and a user of Unix."""
_FIRST_WORDS = re.compile(r"(?:^|(?<=[.!?] ))(?:What|Of) (?=[^.!?]*(?:[.!]|$))")
"""The beginning of a sentence that is not a question, in docstrings and comments."""
_POINTS_ELSEWHERE = re.compile(r"^See `[^`]+`(?: and `[^`]+`)?\.$")


def test_the_package_and_the_demo_are_in_plain_words() -> None:
    paths = [path for path in PACKAGE.rglob("*") if path.suffix in _WITH_WORDS]
    assert len(paths) > 300
    paths += (_ROOT / "benchmark").rglob("README.md")
    for path in paths:
        lines = _KEPT.sub("", path.read_text("utf-8")).splitlines()
        assert [line for line in lines if _STUMBLED_OVER.search(line)] == [], path


@pytest.mark.parametrize("folder", ["pytest_helmbench", "tests"])
def test_docstrings_say_themselves_what_they_mean(folder: str) -> None:
    patterns = (_POINTS_ELSEWHERE, _STUMBLED_OVER, _OLD_TURNS, _FIRST_WORDS)
    texts = [
        (path.name, _KEPT.sub("", text))
        for path in (_ROOT / folder).rglob("*.py")
        for text in _explanations(path.read_text("utf-8"))
    ]
    assert [text for text in texts if any(pattern.search(text[1]) for pattern in patterns)] == []


def test_messages_are_without_old_turns_too() -> None:
    texts = [(path.name, text) for path in PACKAGE.rglob("*.py") for text in _messages(path)]
    assert len(texts) > 500
    assert [text for text in texts if _OLD_TURNS.search(text[1])] == []


def _explanations(source: str) -> Iterator[str]:
    """Yield the docstrings of a module, and its comments, in one line each."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield " ".join(node.value.value.split())
    for block in re.findall(r"(?:^ *# .*\n)+", source, re.MULTILINE):
        yield " ".join(block.replace("# ", "").split())
    yield from re.findall(r"  # (.*)", source)


@pytest.mark.parametrize("group", [("--help",), ("judge", "--help")])
def test_help_has_the_line_of_each_command_whole(
    capsys: pytest.CaptureFixture[str], group: tuple[str, ...]
) -> None:
    listed = captured(capsys, *group)[1].partition("Commands:")[2].splitlines()[1:]
    assert len(listed) >= 3
    assert [line for line in listed if not line.endswith(".") or line.endswith("..")] == []


def _pages() -> Iterator[Path]:
    yield from (_ROOT / "docs").glob("*.md")
    yield from (_ROOT / "benchmark").rglob("README.md")
    yield from _ROOT.glob("*.md")


def _messages(path: Path) -> Iterator[str]:
    """Yield the texts of a module that are not docstrings."""
    text = path.read_text("utf-8")
    if "benchmark pack" not in re.sub(r'"\s+[rf]?"', "", text).lower():  # to parse all files takes seconds
        return
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value
