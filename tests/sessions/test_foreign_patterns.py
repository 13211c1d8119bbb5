"""Patterns that a benchmark brings: they find what `re.search` finds, and in bounded time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_helmbench.core.bounded_calls import NoTimeToWait, RuleTimeoutError, TakesTimeError
from pytest_helmbench.core.foreign_patterns import PatternError, check_pattern, found

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
# Without U+001C: it is white space to `re` alone.
_TEXTS = st.text(alphabet="abA1_ .-é\n\v٣ ", max_size=12)


@given(_PATTERNS, _TEXTS)
@settings(max_examples=200, deadline=None)
def test_it_finds_what_python_finds(pattern: str, text: str) -> None:
    match = re.search(pattern, text)
    assert found(pattern, text) == (None if match is None else match.start())


@pytest.mark.parametrize("pattern", [r"(a|aa)+$", r"(.*?,){25}x", r"(?=(a|aa)+$)."])
def test_a_search_without_end_is_ended_after_its_time(pattern: str) -> None:
    text = "a," * 40 + "a" * 60 + "!"
    with NoTimeToWait(), pytest.raises(TakesTimeError):
        found(pattern, text)
    if pattern.endswith("x"):  # two seconds are enough for one of them
        said = r"(?s)141 characters.* took more than 2 s\n  hint: repetitions"
        with pytest.raises(RuleTimeoutError, match=said):
            found(pattern, text)


def test_a_lone_surrogate_is_a_character() -> None:
    assert found("^a.b$", "a\ud800b") == 0


@pytest.mark.parametrize("pattern", ["(", "a**", "[z-a]", "(" * 20_001])
def test_a_pattern_that_cannot_be_read_is_said(pattern: str) -> None:
    with pytest.raises(PatternError, match="pattern"):
        check_pattern(pattern)
