"""Lists of words as sets and patterns: how the rules write down the languages that models answer in."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["UNSPACED_SCRIPTS", "any_of", "one_of", "word_set"]

UNSPACED_SCRIPTS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""For a character class: scripts that write words without spaces, or glue endings to them."""


def word_set(*lines: str) -> frozenset[str]:
    """Return the words of some lines; a low line within a word is a space."""
    return frozenset(word.replace("_", " ") for line in lines for word in line.split())


def any_of(*lines: str) -> str:
    """Return a pattern for any of the words of some lines, the longest that fits."""
    return one_of(word_set(*lines))


def one_of(words: Iterable[str]) -> str:
    """Return a pattern for any of some words, the longest that fits."""
    return f"(?:{'|'.join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))})"
