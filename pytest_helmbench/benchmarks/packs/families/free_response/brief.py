"""Brief answers to open prompts: a word or two that the accepted answers have in common, or the amount asked for.

`Steam.` answers why popcorn pops where every accepted answer speaks of steam and no rejected one does. `Some 26 %` is a
quarter. Neither decides where a rejected answer would be met in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.free_response.claims import Word, claims
from pytest_helmbench.benchmarks.packs.families.free_response.tokens import (
    NUMBER,
    asks_yes_or_no,
    free_folded,
    tokens,
)
from pytest_helmbench.benchmarks.packs.families.text.meanings import meaning, root
from pytest_helmbench.benchmarks.packs.families.text.wording import FUNCTION_WORDS
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["brief_answer"]

_MOST_WORDS = 3
_LEAST_ACCEPTED = Fraction(2, 3)
_MOST_REJECTED = Fraction(1, 3)
_CLOSE = Fraction(7, 100)
_MOST_AMOUNTS = 20
_MOST_EXACT = 20
_LONGEST = 600
_REACH = 20
_ASKS_AMOUNT = re.compile(
    r"(?<!\w)(?:how (?:many|much|long|far|old|tall|big|large|fast|high|deep|often|hot|cold|heavy|wide)"
    r"|what (?:is the )?(?:percentage|percent|proportion|fraction|share|number)|odds|chances?|probability)(?!\w)"
)
_ASKS_WHY = re.compile(r"(?<!\w)why(?!\w)")
"""A cause is more than a thing: `because of the soil` says nothing of what is the matter with it."""
_ALTERNATIVES = re.compile(r"(?<!\w)(\w+) or (\w+)(?!\w)")
_OWNER = re.compile(r"(?<!\w)\w+'s(?!\w)")
_AMOUNT = re.compile(
    rf"(?<![\w.])(?:(?P<least>{NUMBER})\s?(?:to|and|-)\s?)?(?P<most>{NUMBER})(?:\s(?P<times>in) (?P<of>\d+))?"
    r"(?P<percent>%)?(?:\s(?P<kind>[a-z]\w*))?|(?<!\w)(?P<half>half)(?!\w)"
)
_COMPARED = re.compile(
    r"(?<!\w)(?:more|less|fewer|greater|over|under|below|above|least|most|only|up|than|beyond|exactly)"
    r"(?:\s(?:than|to|as))*\s?(?:an?\s)?$"
)
_SCALED = ("time", "length", "volume", "mass", "speed")
_COUNTED = (*_SCALED, "percent", "years", "months")
"""Kinds of amounts that are never left out; other words behind a number may be."""


@dataclass(frozen=True, slots=True)
class _Amount:
    """An amount.

    Args:
        least: Its least value.
        most: Its greatest value.
        kind: Of what; empty where that goes without saying.
        period: In which it is reached, such as `per_day`; or empty.
    """

    least: Fraction
    most: Fraction
    kind: str
    period: str

    def is_close(self, other: _Amount) -> bool:
        """Return whether it is about another one, of the same things where both say of what."""
        if self.period != other.period and self.period and other.period:
            return False
        if self.kind != other.kind and (
            self.kind in _COUNTED or other.kind in _COUNTED or (self.kind and other.kind)
        ):
            return False
        if max(abs(other.least), abs(other.most)) <= _MOST_EXACT and self.kind != "percent":
            return other.least <= self.least and self.most <= other.most
        return other.least * (1 - _CLOSE) <= self.least and self.most <= other.most * (1 + _CLOSE)


def brief_answer(
    sentences: Sequence[str], prompt: str, accepted: Sequence[str], rejected: Sequence[str]
) -> int | None:
    """Return the accepted entry that a reply is a brief form of; None for none.

    Args:
        sentences: Of the reply, folded.
        prompt: As the model sees it.
        accepted: Folded entries.
        rejected: Likewise.
    """
    if asks_yes_or_no(prompt) or not sentences:
        return None
    if len(sentences) == 1 and len(accepted) > 1 and _ASKS_WHY.search(prompt.lower()) is None:
        found = _named(sentences[0], prompt, accepted, rejected)
        if found is not None:
            return found
    if _ASKS_AMOUNT.search(prompt.lower()) is None:
        return None
    return _counted(sentences, _asked(prompt), accepted, rejected)


def _named(sentence: str, prompt: str, accepted: Sequence[str], rejected: Sequence[str]) -> int | None:
    """Return the first accepted entry with the words of a fragment that most of the accepted ones share."""
    found = [*claims([sentence])]
    said = {
        (word.meaning, word.sign) for claim in found for word in claim.words if not _is_asked(word, prompt)
    }
    if not 0 < len(said) <= _MOST_WORDS or any(claim.is_denied or claim.is_far for claim in found):
        return None
    if sum(len(claim.words) for claim in found) > _MOST_WORDS:
        return None
    sides = [[_signs(entry) for entry in side] for side in (accepted, rejected)]
    having = [[said <= entry for entry in side] for side in sides]
    shared = [Fraction(sum(side), len(side)) if side else Fraction(0) for side in having]
    if shared[0] >= (_LEAST_ACCEPTED if not shared[1] else 1) and shared[1] <= _MOST_REJECTED:
        return having[0].index(True)
    return None


def _is_asked(word: Word, prompt: str) -> bool:
    return word.root in _asked(prompt) or word.meaning in _asked(prompt)


@lru_cache(maxsize=512)
def _asked(prompt: str) -> frozenset[str]:
    """Return roots and meanings of a prompt's words, but for those that it lets choose between."""
    folded = free_folded(prompt)
    offered = {root(token) for found in _ALTERNATIVES.findall(folded) for token in found}
    return frozenset(
        name
        for token in tokens(folded)
        if root(token) not in offered
        for name in (root(token), meaning(token)[0])
    )


@lru_cache(maxsize=2048)
def _signs(entry: str) -> frozenset[tuple[str, int]]:
    return frozenset(
        (word.meaning, word.sign) for claim in claims([_OWNER.sub(" ", entry)]) for word in claim.words
    )


def _counted(
    sentences: Sequence[str], asked: frozenset[str], accepted: Sequence[str], rejected: Sequence[str]
) -> int | None:
    """Return the accepted entry whose amount a reply gives first, where it gives none of a rejected one."""
    wanted = [(index, amount) for index, entry in enumerate(accepted) for amount in _amounts([entry], asked)]
    if not wanted:
        return None
    others = [amount for entry in rejected for amount in _amounts([entry], asked)]
    kinds = {amount.kind for _, amount in wanted}
    said = [amount for amount in _amounts(sentences, asked) if amount.kind in kinds]
    if not said or any(one.is_close(other) for one in said for other in others):
        return None
    return next((index for index, amount in wanted if said[0].is_close(amount)), None)


def _amounts(sentences: Iterable[str], asked: frozenset[str]) -> list[_Amount]:
    """Return the first amounts that sentences state as their own, none that they compare something to."""
    found = list[_Amount]()
    for sentence in islice(sentences, _MOST_AMOUNTS):
        if len(sentence) > _LONGEST:
            break
        own = (claim for claim in claims([sentence]) if not claim.is_far and not claim.is_denied)
        if any(claim.share == 1 for claim in own):
            found += _amounts_of(sentence, asked)
    return found


def _amounts_of(sentence: str, asked: frozenset[str]) -> Iterator[_Amount]:
    period = next((token for token in tokens(sentence) if token.startswith("per_")), "")
    for found in islice(_AMOUNT.finditer(sentence), _MOST_AMOUNTS):
        if _COMPARED.search(sentence[max(0, found.start() - _REACH) : found.start()]) is not None:
            continue
        most = Fraction(found["most"] or 50)
        least = Fraction(found["least"] or most)
        kind = found["kind"] or ""
        if found["of"] is not None and Fraction(found["of"]):
            most = least = most / Fraction(found["of"]) * 100
            kind = "percent"
        elif found["half"] or found["percent"] or kind == "percent":
            kind = "percent"
        elif "/" in found["most"] and most < 1:
            most = least = most * 100
            kind = "percent"
        elif kind in _SCALED:
            least = most  # `15 to 30 days` has only the second number in seconds
        elif kind not in _COUNTED:
            kind = "" if root(kind) in asked or kind in FUNCTION_WORDS or kind == "of" else root(kind)
        yield _Amount(min(least, most), max(least, most), kind, period)
