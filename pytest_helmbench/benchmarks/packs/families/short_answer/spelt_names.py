"""One spelling for names that people spell in several ways: `Vostok-1`, `Mt. Etna`, `Moh's scale`, `Tarkovskiy`.

What differs is brought into the form that the row's answers have, and only there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial

from pytest_helmbench.benchmarks.packs.families.text.vocabulary import one_of, word_set

__all__ = ["steps_of_spellings"]

_NUMBERED = re.compile(r"[^\W\d_]{2}[\s-]\d")
_HYPHEN = re.compile(r"(?<=[^\W\d_]{2})-(?=\d)")
_SHORT_KINDS = tuple(
    (long, re.compile(rf"(?<!\w)(?:{long}|{short}\.?)\s(?=[A-ZÀ-Þ])"))
    for long, short in (("Mount", "Mt"), ("Saint", "St"), ("Fort", "Ft"))
)
_WORD = re.compile(r"[^\W\d_]+(?:['’]s)?")
_SHORTEST_WITH_S = 4
_ARTICLES = word_set("the a an")
_FEWEST_WORDS = 4
"""Of a name within which an article more or less makes no other one."""
_NAME = re.compile(r"(?<!\w)[A-ZÀ-Þ][^\W\d_]{4,30}(?!\w)")
_SOUNDS = (
    (re.compile(r"tsch|tch"), "ch"),
    (re.compile(r"w|ff(?!\w)"), "v"),
    (re.compile(r"j"), "y"),
    (re.compile(r"y?[iy]y|yi|ii|i(?!\w)"), "y"),
    (re.compile(r"y(?=[eo])"), ""),
    (re.compile(r"y(?=[au])|(?<=[aeou])y(?=[^aeiouy])"), "i"),
)
"""Letters by which one name is written from Cyrillic into several alphabets: `Dostojewski`, `Dostoyevsky`."""


def steps_of_spellings(answers: Sequence[str]) -> Iterator[Callable[[str], str]]:
    """Yield what brings names into the spelling of the answers."""
    if any(_NUMBERED.search(answer) is not None for answer in answers):
        yield partial(_HYPHEN.sub, " ")
    for long, written in _SHORT_KINDS:
        if any(written.search(answer) is not None for answer in answers):
            yield partial(written.sub, f"{long} ")
    if others := _with_other_apostrophes(answers):
        other = re.compile(rf"(?<!\w){one_of(others)}(?!\w)", re.IGNORECASE)
        yield lambda text: other.sub(lambda found: others[found[0].casefold().replace("’", "'")], text)
    for answer in answers:
        if len(answer.split()) >= _FEWEST_WORDS:
            yield _step_of_articles(answer)
    if names := {_sound(name): name for answer in answers for name in _NAME.findall(answer)}:
        yield lambda text: _NAME.sub(lambda found: names.get(_sound(found[0]), found[0]), text)


def _with_other_apostrophes(answers: Sequence[str]) -> dict[str, str]:
    """Return words of the answers by how they are with an apostrophe before their s, or without: `Moh's`, `Levis`."""
    found: dict[str, str] = {}
    for word in (word for answer in answers for word in _WORD.findall(answer)):
        low = word.casefold().replace("’", "'")
        if low.endswith("'s"):
            found[f"{low[:-2]}s"] = word
        elif low.endswith("s") and len(low) >= _SHORTEST_WITH_S and word[0].isupper():
            found[f"{low[:-1]}'s"] = word
            found[f"{low[:-1]}’s"] = word
    return found


def _step_of_articles(answer: str) -> Callable[[str], str]:
    """Return what writes a long name with the articles that the answer has."""
    parts = [re.escape(word) for word in answer.split() if word.lower() not in _ARTICLES]
    article = r"(?:(?:the|an?)\s+)?"
    name = rf"\s+{article}".join(parts)
    pattern = re.compile(rf"(?<!\w){article}{name}(?!\w)", re.IGNORECASE)
    return lambda text: pattern.sub(lambda _: answer, text)


@lru_cache(maxsize=4096)
def _sound(name: str) -> str:
    """Return a name in letters that do not depend on who has written it."""
    plain = unicodedata.normalize("NFD", name.casefold())
    found = "".join(letter for letter in plain if not unicodedata.combining(letter))
    for pattern, written in _SOUNDS:
        found = pattern.sub(written, found)
    return found
