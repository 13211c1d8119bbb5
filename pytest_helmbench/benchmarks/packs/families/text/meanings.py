"""Meanings of English words, coarsely: `harmless` and `safe` are both no danger, `globe` and `sphere` are one thing.

Only for hints: two words of one meaning need not be the same in a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType

from pytest_helmbench.benchmarks.packs.families.text.stems import stem

__all__ = ["is_shared", "meaning", "root"]

_TABLE = Path(__file__).with_name("meanings.txt")
"""A line holds words of one meaning; behind a bar those of the opposite one."""

_DERIVED = re.compile(
    r"(?:iti|ity|es|ical|ic|ally|al|ously|ous|iousness|ness|ment|ation|ion|iv|ish|abl|ibl|ly|er|or|ist|ism|enc|anc|"
    r"ant|ent|ful|i)$"
)
_SHORTEST_ROOT = 4
_LESS = re.compile(r"(?!regardless|unless|nevertheless|nonetheless)(\w{3,})less")
_UN = re.compile(r"(?!under|unit|univers|union|unique|until|uncle|unless)un(\w{4,})")


@lru_cache(maxsize=8192)
def root(word: str) -> str:
    """Return a word without the endings that make another kind of word of it: `toxicity` and `toxic` are `toxic`."""
    cut = stem(word)
    for _ in range(2):
        shorter = _DERIVED.sub("", cut)
        if len(shorter) < _SHORTEST_ROOT or shorter == cut:
            break
        cut = shorter
    return cut


@cache
def _table() -> Mapping[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        ones, _, others = line.partition("|")
        name = ones.split()[0]
        for words, sign in ((ones, 1), (others, -1)):
            for word in words.split():
                found.setdefault(root(word), (f"={name}", sign))
    return MappingProxyType(found)


@lru_cache(maxsize=8192)
def meaning(word: str) -> tuple[str, int]:
    """Return the meaning of a word in small letters, and -1 where the word is its opposite; else its root and 1."""
    own = root(word)
    shared = _table().get(own)
    if shared is not None:
        return shared
    lacking = _LESS.fullmatch(word) or _UN.fullmatch(word)
    if lacking is not None:
        name, sign = meaning(lacking[1])
        return name, -sign
    return own, 1


def is_shared(name: str) -> bool:
    """Return whether a meaning is one that several words have."""
    return name.startswith("=")
