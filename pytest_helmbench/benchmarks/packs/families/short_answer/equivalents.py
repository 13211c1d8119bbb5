"""Other words for an accepted answer that any reader knows: `garbanzo beans`, `the Germans`, `CO2`.

Whether the question wants that very word cannot be told, so what is found here is a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_helmbench.benchmarks.packs.families.short_answer.common_names import (
    countries_of,
    elements_of,
    formulas_of,
    peoples_of,
    state_code_of,
    symbol_of,
    synonyms_of,
)
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of
from pytest_helmbench.benchmarks.packs.families.text.wording import folded, whole_places

__all__ = ["said_otherwise", "same_names"]

_ASKS_FOR_WORD = re.compile(
    rf"(?<!\w){any_of('symbol formula abbreviation acronym stand_for stands_for spell spelled')}(?!\w)"
    r"|(?<!\w)(?:another|other|common|scientific|chemical|medical|former|old|original|modern|current|technical|latin)"
    r" (?:name|term|word)"
    r"|(?<!\w)(?:formerly|previously|originally|also|now) (?:known|called|named)|(?<!\w)(?:word|term) for",
    re.IGNORECASE,
)
_ASKS_FOR_COUNTRY = re.compile(
    r"(?<!\w)(?:nationality|citizenship|continents?|countr(?:y|ies)|nations?|teams?|from)(?!\w)",
    re.IGNORECASE,
)
"""Whoever asks for a language is not answered by a country."""
_FROM = re.compile(r"(?:(?<!\w)(?:from|citizen of|native of|in)\s(?:the\s)?|\A)$")


def same_names(name: str) -> tuple[str, ...]:
    """Return what else a folded answer may be called beside it: `the femur, or thigh bone`."""
    return (*synonyms_of(name), *formulas_of(name))


def said_otherwise(statement: str, text: str, answer: str, question: str) -> str | None:
    """Return another word for an accepted answer that a statement has, folded; None where it has none.

    A word that the question has itself is none, nor is any where the question asks for a certain name or symbol.

    Args:
        statement: As written.
        text: The statement, folded.
        answer: The accepted answer, as the row has it.
        question: As asked.
    """
    if _ASKS_FOR_WORD.search(question) is not None:
        return None
    known = folded(question)
    for other in _others(statement, text, answer, question):
        for form in (other, f"{other}s"):
            if next(whole_places(text, form), None) is not None:
                return form if next(whole_places(known, other), None) is None else None
    return None


def _others(statement: str, text: str, answer: str, question: str) -> Iterator[str]:
    name = folded(answer)
    yield from synonyms_of(name)
    yield from formulas_of(name)
    symbol = symbol_of(name) or state_code_of(name)
    if symbol is not None and re.match(rf"\W*{re.escape(symbol)}(?:\W*$|\s\()", statement) is not None:
        yield folded(symbol)
    yield from elements_of(answer.strip())
    if _ASKS_FOR_COUNTRY.search(question) is None:
        return
    yield from peoples_of(name)
    for country in countries_of(name):
        place = next(whole_places(text, country), None)
        if place is not None and _FROM.search(text, 0, place[0]) is not None:
            yield country
