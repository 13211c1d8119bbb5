"""Patterns that a benchmark brings: they find what `re.search` finds, in linear time or within a second."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_helmbench.core.foreign_patterns import PatternError, check_pattern, found, may_be_slow
from pytest_helmbench.core.pattern_process import SEARCHER, RuleTimeoutError

_PIECES = st.sampled_from(
    [
        *"ab1_ .é\n",
        "^",
        "$",
        "|",
        r"\d",
        r"\w",
        r"\s",
        r"\D",
        r"\W",
        r"\S",
        r"\b",
        r"\B",
        r"\A",
        r"\Z",
        r"\.",
        r"\u00e9",
        r"\x41",
        r"\-",
        "[^ab]",
        r"[\w.-]",
        r"[\s\S]",
        r"[\W1]",
        r"[^\d]",
        "[]a]",
        "a{,2}",
        "b{2}",
        "a?",
        "(?:ab)*",
        "(a|1$)",
        "(?i:A)",
        "(?=a)",
        "(?!b)",
    ]
)
_PATTERNS = st.lists(_PIECES, min_size=1, max_size=6).map("".join)
_TEXTS = st.text(alphabet="abA1_ .-é\n\x1c\v٣ ", max_size=12)


@pytest.fixture(scope="module", autouse=True)
def searcher() -> Iterator[None]:
    yield
    SEARCHER.close()


@given(_PATTERNS, _TEXTS)
@settings(max_examples=200, deadline=None)
def test_it_finds_what_python_finds(pattern: str, text: str) -> None:
    assert found(pattern, text) is (re.search(pattern, text) is not None)


@pytest.mark.parametrize("pattern", ["^(a+)+$", r"^(\w+\s?)*$", "(x+x+)+y", r"^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_repetition_of_repetition_takes_linear_time(pattern: str) -> None:
    began = time.process_time()
    assert not found(pattern, "a" * 300_000 + "!!" + "x" * 300_000)
    assert time.process_time() - began < 2
    assert not may_be_slow(pattern)


def test_what_only_python_can_read_is_ended_after_its_time() -> None:
    assert may_be_slow(r"^(?=(a+)+$).")
    with pytest.raises(
        RuleTimeoutError, match=r"(?s)42 characters.* took more than 1 s\n  hint: without look"
    ):
        found(r"^(?=(a+)+$).", "a" * 41 + "!")
    assert found(r"^(?=a).\w$", "ab")  # the next one has a process again
    assert found("(.)\\1", "xaay")
    assert not found("(.)\\1", "\ud800xay")


def test_a_lone_surrogate_is_a_character() -> None:
    assert found("^a.b$", "a\ud800b")


@pytest.mark.parametrize("pattern", ["(", "a**", "[z-a]", "(" * 20_001])
def test_a_pattern_that_cannot_be_read_is_said(pattern: str) -> None:
    with pytest.raises(PatternError, match="pattern"):
        check_pattern(pattern)
