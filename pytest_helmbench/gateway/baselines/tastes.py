"""The three embedded models: the options that each takes, and the words that it says in free text."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Protocol, TypeVar

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError

__all__ = ["BASELINE_IDS", "Taste", "taste_of"]

BASELINE_IDS = ("baseline/lexical", "baseline/random", "baseline/first")

_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_SUFFIXES = ("ingly", "edly", "ation", "ness", "ment", "ing", "ies", "ed", "ly", "es", "s", "e", "y")
_SHORTEST_STEM = 3
_LONGEST_SENTENCE = 300

_Option = TypeVar("_Option")


class Taste(Protocol):
    """Chooses where a request leaves a choice. Options are texts, or values that JSON can hold."""

    def ranked(self, options: Sequence[_Option]) -> list[_Option]:
        """Return all the options, the preferred one first."""
        ...

    def tags(self, options: Sequence[_Option]) -> list[_Option]:
        """Return the options to put into a list, at least one."""
        ...

    def words(self) -> str:
        """Return free text."""
        ...


def taste_of(model_id: str, seed: str, text: str) -> Taste:
    """Return the taste of a baseline.

    Args:
        model_id: One of `BASELINE_IDS`.
        seed: Decides what `random` draws.
        text: Decides what `lexical` takes.

    Raises:
        HelmbenchError: No such baseline.
    """
    match model_id:
        case "baseline/first":
            return _First()
        case "baseline/lexical":
            return _Lexical(text, frozenset(_stems(text)))
        case "baseline/random":
            return _Random(random.Random(seed))
    nearest = get_close_matches(model_id, BASELINE_IDS, n=1)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    raise HelmbenchError(
        f"{model_id}: there is no such baseline\n  hint: {hint}known baselines: {', '.join(BASELINE_IDS)}"
    )


@dataclass(frozen=True, slots=True)
class _First:
    """The first of everything."""

    def ranked(self, options: Sequence[_Option]) -> list[_Option]:
        return list(options)

    def tags(self, options: Sequence[_Option]) -> list[_Option]:
        return [options[0]]

    def words(self) -> str:
        return "ok"


@dataclass(frozen=True, slots=True)
class _Random:
    """Any, from a seeded source."""

    source: random.Random

    def ranked(self, options: Sequence[_Option]) -> list[_Option]:
        return self.source.sample(list(options), len(options))

    def tags(self, options: Sequence[_Option]) -> list[_Option]:
        chosen = set(self.source.sample(range(len(options)), self.source.randint(1, len(options))))
        return [option for index, option in enumerate(options) if index in chosen]

    def words(self) -> str:
        return "ok"


@dataclass(frozen=True, slots=True)
class _Lexical:
    """What shares most word stems with a text."""

    text: str
    stems: frozenset[str]

    def ranked(self, options: Sequence[_Option]) -> list[_Option]:
        return sorted(options, key=self._shared, reverse=True)  # stable: ties stay in order

    def tags(self, options: Sequence[_Option]) -> list[_Option]:
        return [option for option in options if self._shared(option)] or [options[0]]

    def words(self) -> str:
        return _first_sentence(self.text) or "ok"

    def _shared(self, option: object) -> int:
        text = option if isinstance(option, str) else json.dumps(option)
        return len(self.stems.intersection(_stems(text)))


def _first_sentence(text: str) -> str:
    start = text.strip()[:_LONGEST_SENTENCE]
    end = _SENTENCE_END.search(start)
    return start if end is None else start[: end.end()].strip()


def _stems(text: str) -> Iterator[str]:
    return (_stem(word) for word in _WORD.findall(text.lower()))


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word.removesuffix(suffix)
    return word
