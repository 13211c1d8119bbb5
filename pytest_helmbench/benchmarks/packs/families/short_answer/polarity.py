"""Statements of short_answer replies without yes or no, held to a yes-or-no question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.short_answer.asked_about import (
    asked_stems,
    clauses,
    content,
    shared_words,
)
from pytest_helmbench.benchmarks.packs.families.short_answer.opposites import (
    says_another,
    says_another_place,
    says_opposite,
)
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import denials
from pytest_helmbench.benchmarks.packs.families.text.stems import stem
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import folded, sentences, words

__all__ = ["polarity"]

_SHORT = re.compile(
    r"(?:\w+ly,?\s)?"
    r"(?:(?:most|all|almost all|nearly all|many|none)(?:\sof\s(?:them|these|it|those))?"
    r"|it|they|he|she|that|this|there)\s(?:is|are|was|were|do|does|did|can|could|has|have|will|would)(?:n't|\snot)?"
    r"(?:\s(?:because|since|as)\s.*)?"
    r"|(?:it|that)'s\snot|(?:[\w'-]+\s){1,3}(?:ca|do|does|did|is|are|was|were|have|has)n't|(?:they|it|that|he|she)\s(?:can't|cannot|won't)(?:\s(?:because|since|as)\s.*)?"
)
_LONG_WORD = 6
_LEAST_ASKED = 3
_QUANTIFIERS = word_set("all every each any most always")
_NON = re.compile(r"(?<!\w)non-?(?=[a-z]{4})")
_COMPARED = re.compile(r"(?<!\w)(?:more|less|[a-z]{3,}er)(?!\w)")
_DOES = word_set("do does did can could will would")
_OTHER_WAY = re.compile(r"(?<!\w)not the other way (?:around|round)|not vice versa")
_MOST_PLACES = 20
_SET_APART = re.compile(
    r"(?<!\w)(?:not|never|rather than|instead of|as opposed to)\s"
    r"(?!only\s|just\s|merely\s|even\s)(?:by|in|from|on|at|of|for|because of|due to|to|as)?\s*"
    r"(?P<what>[^,.;:]{2,80}?)(?=[,.;:]|\sbut\s|$)"
)
"""`not for relativity`, `rather than a planet`."""
_REASON = re.compile(r"\s(?:because|since|as (?:it|they|he|she)|so that|even though|although|though)\s")
_TOO = re.compile(
    r"(?P<denied>(?:(?<!\w)(?:not|never)|n't)\s)?(?<!\w)too\s\w+(?:\s\w+)?\s(?:for\s\w+\s)?to\s(?=\w)"
)
"""`too far south to be seen`: it is not seen."""
_LEAD = re.compile(r"^[^,?]{1,60},\s")
_INFERS = re.compile(r"\s*(?:so|therefore|thus|hence)\s")
_THAN = re.compile(r"\sthan\s")
_AUXILIARY = word_set("is are was were do does did has have had can could will would should may must am")


def _is_yes_or_no(question: str) -> bool:
    """Return whether a sentence without what leads to it asks for yes or no."""
    first = words(lowered(question))[:1]
    return bool(first) and first[0] in _AUXILIARY and " or " not in question


def _asking(question: str) -> str:
    """Return the sentence that asks, without what leads to it: `Botanically speaking, is a tomato a fruit?`"""
    asking = next((one for one in reversed([*sentences(question)])), "")
    rest = _LEAD.sub("", asking, count=1)
    return rest if _is_yes_or_no(rest) else asking


def polarity(statement: str, question: str) -> bool | None:
    """Return what a statement without yes or no says to a yes-or-no question; None where it says neither.

    The clause that repeats the question's words counts: denied it is a no. `It is not.` says no, too.
    """
    asking = _asking(question)
    if not _is_yes_or_no(asking) or denials(lowered(question)):
        return None
    stems = asked_stems(asking)
    asked = [word for word in content(asking) if word not in _QUANTIFIERS]
    if _THAN.search(asking) is None and _sets_apart(statement, asked):
        return False
    best: tuple[int, str] = (0, "")
    concluded: str | None = None
    for part in clauses(statement):
        if _SHORT.fullmatch(lowered(part).strip()) is not None:
            return denials(lowered(part)) == 0
        # What the question is about (`221`) says nothing yet: a word of the predicate has to come back.
        said = words(lowered(part))
        if any(_is_like(word, one) for word in asked[1:] for one in said):
            main = _NON.sub("not ", _TOO.sub(_as_denial, _without_reason(lowered(part), asked)))
            best = max(best, (max(1, shared_words(part, stems)), main))
            concluded = part if _INFERS.match(lowered(part)) is not None else concluded
    if best[0] < 1:
        against = next((part for part in clauses(statement) if says_opposite(part, asked)), None)
        if against is not None:
            return denials(lowered(against)) % 2 == 1
        return False if says_another_place(statement, asking) else None
    if concluded is not None:
        return denials(lowered(concluded)) % 2 == 0
    if says_another(statement, asking):
        return False
    if _is_swapped(best[1], asking):
        return denials(_OTHER_WAY.sub("", lowered(best[1]))) % 2 == 1
    is_other = _is_turned(best[1], asking) is not says_opposite(best[1], asked)
    return (denials(lowered(best[1])) % 2 == 0) is not is_other


def _sets_apart(statement: str, asked: Sequence[str]) -> bool:
    """Return whether a statement says that it is something else than words of the question: `not for relativity`."""
    stems = {stem(word) for word in asked}
    return any(
        said and {stem(word) for word in said} <= stems
        for found in islice(_SET_APART.finditer(lowered(statement)), _MOST_PLACES)
        for said in [content(found["what"])]
    )


def _without_reason(part: str, asked: Sequence[str]) -> str:
    """Return a clause without what says why: a denial there denies nothing else."""
    main = _REASON.split(part, maxsplit=1)[0]
    return main if any(_is_like(word, one) for word in asked[1:] for one in words(lowered(main))) else part


def _as_denial(found: re.Match[str]) -> str:
    return " " if found["denied"] else "not "


def _is_like(one: str, other: str) -> bool:
    """Return whether two words are of one stem, or begin alike: `conductor`, `conduct`."""
    return stem(one) == stem(other) or (len(other) >= _LONG_WORD and one[:_LONG_WORD] == other[:_LONG_WORD])


def _is_swapped(part: str, question: str) -> bool:
    """Return whether a clause says of the question's last word what is asked of its first.

    `The Earth orbits the Sun` where it is asked whether the Sun orbits the Earth.
    """
    first, *rest = words(lowered(question)) or [""]
    asked = content(question)
    if first not in _DOES or not rest or len(asked) < _LEAST_ASKED or " by " in part:
        return False
    said = [stem(word) for word in words(lowered(part))]
    places = [
        said.index(stem(word)) if stem(word) in said else -1 for word in (asked[-1], asked[1], asked[0])
    ]
    return -1 not in places and places == sorted(places)


def _is_turned(statement: str, question: str) -> bool:
    """Return whether what a question compares is compared the other way round: `faster in glass than in water`."""
    sides = [_THAN.split(folded(text), maxsplit=1) for text in (statement, question)]
    if len(sides[0]) == 1 and len(sides[1]) == 2 and (word := _COMPARED.search(sides[0][0])) is not None:
        subject = {*content(sides[0][0][: word.start()])}
        return bool(subject & {*content(sides[1][1])}) and not subject & {*content(sides[1][0])}
    if any(len(side) != 2 for side in sides):
        return False
    (before, after), (asked_before, asked_after) = ([{*content(part)} for part in side] for side in sides)
    return bool(after & asked_before - asked_after) and bool(before & asked_after - asked_before)
