"""Clauses that say an answer of the opposite of what a question asks: `they take in oxygen and give off X`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import islice
from types import MappingProxyType

from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import denials
from pytest_helmbench.benchmarks.packs.families.text.number_words import number_words
from pytest_helmbench.benchmarks.packs.families.text.numbers import numbers
from pytest_helmbench.benchmarks.packs.families.text.stems import stem
from pytest_helmbench.benchmarks.packs.families.text.wording import (
    FUNCTION_WORDS,
    folded,
    whole_places,
    words,
)

__all__ = ["is_said_of_opposite", "says_another", "says_another_place", "says_opposite"]

_MOST_CLAUSES = 60
_LONGEST_NAME = 4
_LAST_PLACE = re.compile(r"(?<!\w)(?P<before>in|by|from|native to|close to)\s(?:the\s)?(?P<name>[^\W\d]+)$")
_CLAUSE_END = re.compile(
    r"[;:!?\n]\s*|(?<!\w)\(|\.(?=\s|$)|,\s|\s(?:-|and|but|while|whereas|although|though|however|yet)\s",
    re.IGNORECASE,
)
_BEATEN = re.compile(
    r"(?<!\w)(?:is|was|were|been|being|got)\s(?:\w+ly\s)?(?:beaten|defeated|routed)(?!\w)"
    r"(?!\s(?:\w+\s)?by\s(?:him|her|it|them)(?!\w))(?:\s(?:\w+\s)?by\s(?P<by>\w+))?"
)
"""`He was beaten` is `he lost`."""
_PAIRS = (
    ("absorb take took consume inhale intake", "release give gave emit exhale expel"),
    ("export exporter", "import importer"),
    ("hardest toughest", "softest"),
    ("richest wealthiest", "poorest"),
    ("cause", "prevent cure"),
    ("attack invade", "defend"),
    (
        "largest biggest greatest highest longest tallest most maximum",
        "smallest least lowest shortest minimum fewest",
    ),
    ("first earliest oldest", "last latest final newest youngest"),
    ("win won beat defeat winner victor", "lose lost loser loss"),
    ("begin began start founded", "end ended finish ceased"),
    ("north northern northernmost", "south southern southernmost"),
    ("east eastern easternmost", "west western westernmost"),
    ("larger bigger greater", "smaller"),
    ("longer", "shorter"),
    ("taller higher", "shorter lower"),
    ("heavier", "lighter"),
    ("older earlier", "younger newer later"),
    ("faster quicker", "slower"),
    ("hotter warmer", "colder cooler"),
    ("closer nearer", "farther further"),
    ("stronger", "weaker"),
    ("deeper", "shallower"),
    ("more", "less fewer"),
    ("hottest warmest", "coldest coolest"),
    ("fastest quickest", "slowest"),
    ("heaviest", "lightest"),
    ("closest nearest", "farthest furthest"),
    ("buy bought purchased", "sell sold"),
    ("increase rise", "decrease fall"),
    ("mother wife daughter sister queen", "father husband son brother king"),
    ("before preceded predecessor", "after succeeded successor"),
    ("protagonist hero", "antagonist villain"),
    ("positive", "negative"),
    ("left", "right"),
    ("above", "below"),
    ("born birthplace", "died death buried"),
    ("safe harmless edible", "dangerous unsafe toxic poisonous harmful inedible"),
    ("legal allowed permitted", "illegal unlawful banned prohibited forbidden"),
    ("alive living", "dead extinct"),
    ("same identical", "different"),
    ("possible", "impossible"),
    ("visible", "invisible"),
    ("renewable", "finite nonrenewable"),
    ("rational", "irrational"),
    ("prime", "composite"),
    ("even", "odd"),
    ("true", "false"),
    ("open", "closed shut"),
    ("fly", "flightless"),
    ("see sighted", "blind"),
    ("hear", "deaf"),
    ("finite", "infinite endless"),
    ("flat", "round spherical sphere spheroid"),
    ("vegetarian vegan", "carnivore carnivorous"),
)
_ONE_WAY = (
    ("second", "first third"),
    ("third", "first second"),
    ("worst", "best average"),
    ("best", "worst average"),
    ("average", "best worst"),
    ("median", "mean mode"),
    ("mean", "median mode"),
)
_ALL_PAIRS = (*_PAIRS, *(pair[::-1] for pair in _PAIRS), *_ONE_WAY)
_OPPOSITES: Mapping[str, tuple[frozenset[str], frozenset[str]]] = MappingProxyType(
    {
        word: (own, other)
        for one, another in _ALL_PAIRS
        for own, other in [(frozenset(map(stem, one.split())), frozenset(map(stem, another.split())))]
        for word in own
    }
)


def says_opposite(clause: str, asked: Collection[str]) -> bool:
    """Return whether a clause says the opposite of one of some words of a question: `he lost` of `win`."""
    stems = {stem(word) for word in asked}
    active = _BEATEN.sub(
        lambda found: found[0] if stem(found["by"] or "") in stems else "lost", lowered(clause)
    )
    said = {stem(word) for word in words(active)}
    return any(
        said & other and not said & own and not stems & other
        for own, other in (_OPPOSITES[one] for one in stems & _OPPOSITES.keys())
    )


def says_another(statement: str, question: str) -> bool:
    """Return whether a statement has another number, or name behind the word before the question's last one.

    `They have six legs` and `He was born in Peru` say no to eight legs and to Spain.
    """
    low, asked = lowered(statement), lowered(question)
    if denials(low):
        return False
    given = {one.values[0] for one in (*numbers(asked), *number_words(asked))}
    said = {one.values[0] for one in (*numbers(low), *number_words(low))}
    if given and said:
        return not given & said
    return says_another_place(statement, question)


def says_another_place(statement: str, question: str) -> bool:
    """Return whether a statement has another name behind the word before the question's last one: `born in Peru`."""
    if denials(lowered(statement)):
        return False
    last = _LAST_PLACE.search(question.strip(" ?.!"))
    if last is None or folded(last["name"]) in words(folded(statement)):
        return False
    other = re.search(rf"(?<!\w){last['before']}\s(?:the\s)?(?P<name>[A-ZÀ-Þ]\w+)", statement)
    return other is not None and folded(other["name"]) not in words(folded(question))


def is_said_of_opposite(statement: str, answer: str, question: str) -> bool:
    """Return whether an answer stands only where the opposite of the question's word is said, that word elsewhere.

    Args:
        statement: As written.
        answer: The accepted answer that it holds, folded.
        question: As asked.
    """
    asked = {stem(word) for word in words(lowered(question))}
    sides = [_OPPOSITES[word] for word in asked & _OPPOSITES.keys()]
    sides = [(own, other) for own, other in sides if not asked & other]
    if not sides:
        return False
    clauses = [part for part in islice(_CLAUSE_END.split(statement), _MOST_CLAUSES) if part.strip()]
    said = [{stem(word) for word in words(lowered(part))} for part in clauses]
    holds = [next(whole_places(folded(part), answer), None) is not None for part in clauses]
    if not any(holds) or all(holds):
        return False
    return any(
        all(found & other and not found & own for found, held in zip(said, holds, strict=True) if held)
        and (
            any(found & own for found, held in zip(said, holds, strict=True) if not held)
            or (not holds[0] and _is_name(clauses[0], question))
        )
        for own, other in sides
    )


def _is_name(clause: str, question: str) -> bool:
    """Return whether a clause is nothing but a name that the question does not have."""
    said = words(clause)
    known = words(folded(question))
    return len(said) <= _LONGEST_NAME and all(
        word[0].isupper() and word.lower() not in known and word.lower() not in FUNCTION_WORDS
        for word in said
    )
