"""Paraphrases in free replies, and errors that they refute: the side of a rubric that their words lean to.

Every word of an entry has a sign: whether its clause says or denies it. A word of the reply speaks for the accepted
entries where they have it with the same sign, or the rejected ones with the other one, as in a myth that is called one;
against them the other way round. Words of both sides say little, those of the prompt half as much as others. A reply
leans to the accepted entries when what speaks for them outweighs the rest, and the words of one of them, or those that
refute a rejected one, are mostly there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache

from pytest_helmbench.benchmarks.packs.families.free_response.tokens import (
    Unit,
    contradicts,
    free_folded,
    is_numeric,
    tokens,
    unit,
)
from pytest_helmbench.benchmarks.packs.families.text.denial import keeps_distance
from pytest_helmbench.benchmarks.packs.families.text.stems import stem
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of, word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import FUNCTION_WORDS
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["calls_false", "nearest_accepted"]

_CLAUSE_END = re.compile(
    r"[,;:()]\s?|\s-\s|\.\s|\s(?:but|while|whereas|although|though|however|yet|because|since|so|and)\s"
)
_CALLED_FALSE = re.compile(
    r"(?<!\w)(?:is|are|was|were|been|has|have)\s(?:(?!not\s)\w+\s){0,3}?"
    + any_of(
        "myth myths legend legends misconception misconceptions debunked disproved disproven refuted false untrue",
        "not_true trope wrong incorrect exaggerated exaggeration fiction nonsense unfounded hoax superstition",
    )
    + r"(?!\w)"
)
_SMALL = FUNCTION_WORDS | word_set(
    "his her hers them us me my our their its one ones such some any all much many more most less few only just also",
    "very really actually simply usually generally often sometimes always quite rather even still too well there here",
    "get gets got getting make makes made making cause causes caused causing go goes going thing things something",
    "anything people person someone somebody anyone need say time length volume mass speed percent up out off per",
    "itself themselves yourself ever",
)
"""Words that any sentence may have, and kinds of units: those of two entries say nothing of what they share."""

_LACKS = re.compile(r"(?!regardless|unless|nevertheless|nonetheless)\w{3,}less")
_PART_ENDS = (";", ":", " - ")

_LEAST_WEIGHT = 0.8
_LEAST_COVERED = 0.5
_SEVERAL_WEIGHT = 2.0
_LEAST_OF_SEVERAL = 0.34
_FROM_PROMPT = 0.5
_FEWEST_WORDS = 2
_MOST_CLAUSES = 400
_LONGEST_MEMBER = 2


@dataclass(frozen=True, slots=True)
class _Claim:
    """A clause.

    Args:
        words: Stems of its words, and whether it says them (1) or denies them (-1).
        unit: Its tokens.
        is_far: It is only reported, or called false.
    """

    words: frozenset[tuple[str, int]]
    unit: Unit
    is_far: bool


@dataclass(frozen=True, slots=True)
class _Stand:
    """An entry.

    Args:
        words: Its stems with their signs.
        unit: All of it as tokens.
        accepted: 1; rejected: -1.
    """

    words: frozenset[tuple[str, int]]
    unit: Unit
    accepted: int


def nearest_accepted(
    sentences: Sequence[str], accepted: Sequence[str], rejected: Sequence[str], prompt: str
) -> int | None:
    """Return the accepted entry that a reply says most of, where its words lean to those; None where they do not.

    Args:
        sentences: Of the reply, folded, without a `no,` that answers the prompt.
        accepted: Folded, likewise.
        rejected: Folded, likewise.
        prompt: As the model sees it.
    """
    if not rejected:
        return None
    stands = [_stand(text, 1) for text in accepted] + [_stand(text, -1) for text in rejected]
    asked, said = _stems(prompt), [*_claims(sentences)]
    met = _weights(said, stands, asked)
    total = sum(met.values())
    if total < _LEAST_WEIGHT:
        return None
    far = frozenset(word for _, claim in said if claim.is_far for word in claim.words)
    is_said = {pair for pair, weight in met.items() if weight > 0}
    covered = [
        _covered(stand, is_said, asked, () if total >= _SEVERAL_WEIGHT else stands, far) for stand in stands
    ]
    against = {pair for pair, weight in met.items() if weight < 0}
    if any(_is_all_said(stand, against, asked) for stand in stands if stand.accepted < 0):
        return None
    if max(covered) < (_LEAST_COVERED if total < _SEVERAL_WEIGHT else _LEAST_OF_SEVERAL):
        return None
    best = covered[: len(accepted)]
    return best.index(max(best))


def calls_false(sentences: Sequence[str], prompt: str) -> bool:
    """Return whether a reply calls false what a prompt asks about: `The ten percent claim is a myth.`

    Args:
        sentences: Of the reply, folded.
        prompt: As the model sees it.
    """
    asked = _stems(prompt)
    for sentence in sentences:
        start, end = _refuted(sentence)
        shared = asked & {stem(token) for token in tokens(sentence[start:end])}
        if len(shared) >= _FEWEST_WORDS or any(map(is_numeric, shared)):
            return True
    return False


def _weights(
    said: Iterable[tuple[Unit, _Claim]], stands: Sequence[_Stand], asked: frozenset[str]
) -> dict[tuple[str, int], float]:
    """Return how much each word of a reply, with its sign, speaks for the accepted entries.

    Nothing is said of an entry by a clause that contradicts it, or for one by a sentence that does.
    """
    met = dict[tuple[str, int], float]()
    held: tuple[Unit | None, list[_Stand]] = None, []
    for sentence, claim in said:
        if held[0] is not sentence:
            open_ones = (one for one in stands if one.accepted < 0 or not contradicts(sentence, one.unit))
            held = sentence, [*open_ones]
        new = [pair for pair in claim.words if pair not in met]
        near = [stand for stand in held[1] if new and not contradicts(claim.unit, stand.unit)]
        for word, sign in new:
            share = _FROM_PROMPT if word in asked else 1.0
            met[word, sign] = share * _evidence(near, word, sign)
    return met


def _evidence(stands: Sequence[_Stand], word: str, sign: int) -> float:
    """Return how much a word speaks for the accepted entries, from -1 to 1."""
    share = dict.fromkeys((1, -1), 0.0)
    for side in (1, -1):
        entries = [stand.words for stand in stands if stand.accepted == side]
        for own in (1, -1):
            held = sum((word, own * sign) in words for words in entries)
            share[side * own] += held / len(entries) if entries else 0.0
    both = share[1] + share[-1]
    return (share[1] - share[-1]) / both if both else 0.0


def _is_all_said(stand: _Stand, said: Collection[tuple[str, int]], asked: frozenset[str]) -> bool:
    """Return whether a reply says all of a rejected entry's own words."""
    own = [pair for pair in stand.words if pair[0] not in asked]
    return len(own) >= _FEWEST_WORDS and all(pair in said for pair in own)


def _covered(
    stand: _Stand,
    said: Collection[tuple[str, int]],
    asked: frozenset[str],
    stands: Sequence[_Stand],
    far: Collection[tuple[str, int]],
) -> float:
    """Return which part of an entry's own words a reply says, or denies of a rejected one; 0 without its numbers.

    One word of several is too little, unless several entries of its side have it, or the reply calls it an error.

    Args:
        stand: The entry.
        said: Words that speak for the accepted entries.
        asked: Words of the prompt.
        stands: All entries; none where one word is enough.
        far: Words that the reply reports without saying them.
    """
    own = [(word, sign) for word, sign in stand.words if word not in asked]
    if len(stand.words) < _FEWEST_WORDS or not own:
        return 0.0
    found = [(word, sign) for word, sign in own if (word, sign * stand.accepted) in said]
    if any(is_numeric(word) and (word, sign) not in found for word, sign in own):
        return 0.0
    if len(found) == 1 < len(own) and stands:
        beside = [other for other in stands if other.accepted == stand.accepted and other is not stand]
        word, sign = found[0]
        is_error = stand.accepted < 0 and (word, -sign) in far
        if not is_error and not any(found[0] in other.words for other in beside):
            return 0.0
    return len(found) / len(own)


@lru_cache(maxsize=2048)
def _stand(entry: str, accepted: int) -> _Stand:
    signed = (word for _, claim in _claims([entry]) for word in claim.words)
    return _Stand(frozenset(signed), unit(entry), accepted)


def _claims(sentences: Sequence[str]) -> Iterator[tuple[Unit, _Claim]]:
    """Yield the clauses of some sentences, each with all of its sentence."""
    left = _MOST_CLAUSES
    for sentence in sentences:
        whole, refuted = unit(sentence), _refuted(sentence)
        before = 1
        for start, clause in _clauses(sentence):
            left -= 1
            if left < 0:
                return
            text = _CALLED_FALSE.sub(" ", clause)
            said, is_far = unit(text), keeps_distance(text)
            denied = said.denials - is_far
            is_far = is_far or refuted[0] <= start < refuted[1]
            own = _own(said.order)
            if len(own) > _LONGEST_MEMBER or denied or is_far:  # else a member: `do not stop, drop and roll`
                before = 1 if (denied + is_far) % 2 == 0 else -1
            signed = frozenset((word, sign * before) for word, sign in own)
            yield whole, _Claim(signed, said, is_far)


def _refuted(sentence: str) -> tuple[int, int]:
    """Return which part of a sentence is called false in it."""
    found = _CALLED_FALSE.search(sentence)
    if found is None:
        return 0, 0
    return max(sentence.rfind(end, 0, found.start()) for end in _PART_ENDS) + 1, found.end()


def _clauses(sentence: str) -> Iterator[tuple[int, str]]:
    """Yield where each clause begins, and the clause."""
    start = 0
    for found in _CLAUSE_END.finditer(sentence):
        if sentence[start : found.start()].strip():
            yield start, sentence[start : found.start()]
        start = found.end()
    if sentence[start:].strip():
        yield start, sentence[start:]


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, tokens(free_folded(text))))


def _own(order: Sequence[str]) -> set[tuple[str, int]]:
    """Return the words that count, with a sign each: `harmless` denies `harm`."""
    words = (token for token in order if token != "not" and token not in _SMALL)
    return {
        (stem(word[:-4]), -1) if _LACKS.fullmatch(word) is not None else (stem(word), 1)
        for word in words
        if len(word) > 1 or word.isdigit()
    }
