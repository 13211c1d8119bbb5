"""Paraphrases in free replies, and errors that they refute: the side of a rubric that a reply leans to, as a score.

Every word of an entry has a sign: whether its clause says or denies it. A word of the reply, or another one of its
meaning, speaks for the accepted entries where they have it with the same sign, or the rejected ones with the other one,
as in a myth that is called one; against them the other way round. Words of both sides say little, those of the prompt
less than half as much as others. Beside the words it counts whether the reply denies something, where the accepted
entries do and the rejected ones do not. `WEIGHTS` were fitted to labelled replies, by logistic regression in which a
wrong reply that is accepted weighs half as much again as a right one that fails. A reply leans to the accepted entries
when its score is above 0 and nothing of what `_is_ruled_out` names speaks against it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from math import tanh

from pytest_helmbench.benchmarks.packs.families.free_response.claims import Claim, Word, claims
from pytest_helmbench.benchmarks.packs.families.free_response.stance import (
    contrasts,
    declines,
    denies,
    is_denial,
    lead,
    says_too,
)
from pytest_helmbench.benchmarks.packs.families.free_response.tokens import (
    Unit,
    contradicts,
    free_folded,
    tokens,
    unit,
)
from pytest_helmbench.benchmarks.packs.families.text.meanings import is_shared, meaning, root
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import word_set
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["Rubric", "nearest_accepted", "rubric_of", "signs_of"]

_SAME_MEANING = 0.7
_FROM_PROMPT = 0.4
_MOST_WEIGHT = 3.0
_LEAST_FIRST = 0.3
_ONE_SIDED = 0.8
_FEWEST_WORDS = 2
_MOST_OF_IT = 0.6
_FEWEST_BESIDE_ONE = 3
_MOST_BESIDE_ONE = 40
"""A reply of fewer or more words, of which an entry has one, is no paraphrase."""
_QUANTITIES = frozenset(map(root, word_set("all many more most less few fewer only every")))
_FAINT = frozenset(
    map(
        root,
        word_set(
            "second minute hour day week month year while way part place kind type sort amount level case today now",
            "number lot bit look find found see say tell come keep put take",
        ),
    )
)
"""Words that many a sentence has: they count as much as those of the prompt."""

WEIGHTS = {
    "speaks_for": 1.8,
    "balance": 0.3,
    "first": 1.2,
    "covered": 1.1,
    "leads_as_accepted": 2.8,
    "denies_as_accepted": 3.2,
    "contrasts": 1.4,
    "denies_alone": -0.5,
    "number_of_rejected": -0.7,
    "constant": -2.1,
}


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry.

    Args:
        signs: Sign of each of its roots and meanings.
        own: Meanings that the prompt has not.
        unit: All of it as tokens.
        is_short: It has a single word that counts, such as a name.
    """

    signs: dict[str, int]
    own: frozenset[str]
    unit: Unit
    is_short: bool


@dataclass(frozen=True, slots=True)
class Rubric:
    """Entries and prompt, ready for many replies.

    Args:
        accepted: Entries.
        rejected: Entries.
        asked: Roots and meanings of the prompt.
        denial: How much more the accepted entries deny than the rejected ones, from -1 to 1.
        lead: The same by their first words.
        known: Roots and meanings of any entry.
        numbers: Those of rejected entries alone.
        matter: Roots and meanings of prompt and entries.
        may_decline: An accepted entry says that one does not know.
    """

    accepted: tuple[_Entry, ...]
    rejected: tuple[_Entry, ...]
    asked: frozenset[str]
    denial: float
    lead: float
    known: frozenset[str]
    numbers: frozenset[str]
    matter: frozenset[str]
    may_decline: bool


@dataclass(slots=True)
class _Met:
    """What the words of a reply have met.

    Args:
        said: Per entry, accepted ones first: its meanings that the reply says.
        denied: Those that it denies.
        words: Words that count for accepted entries, but those of the prompt.
        weights: For the accepted entries, against them.
        first: The balance of the first clause that says enough.
        denies: A clause denies something of the matter, and no word that the accepted entries alone say.
    """

    said: list[set[str]]
    denied: list[set[str]]
    words: set[str]
    weights: list[float]
    first: float | None = None
    denies: bool = False


@lru_cache(maxsize=1024)
def rubric_of(
    accepted: tuple[tuple[str, str], ...],
    rejected: tuple[tuple[str, str], ...],
    prompt: str,
    wanted: bool | None,
) -> Rubric:
    """Return a rubric.

    Args:
        accepted: Folded entries: without a `no,` that answers the prompt, and whole.
        rejected: Likewise.
        prompt: As the model sees it.
        wanted: What a question for yes or no is answered with; None for other questions.
    """
    asked = frozenset(
        name for token in tokens(free_folded(prompt)) for name in (root(token), meaning(token)[0])
    )
    sides = [[_entry(stated, asked) for stated, _ in side] for side in (accepted, rejected)]
    denial = [
        sum(" " in text and denies(text, claims([stated])) for stated, text in side) / len(side)
        for side in (accepted, rejected)
    ]
    leads = [any(lead(text) < 0 for _, text in side) for side in (accepted, rejected)]
    balance = denial[0] - denial[1] if wanted is None else 1.0 - 2.0 * wanted
    known = frozenset(name for side in sides for entry in side for name in entry.signs)
    numbers = [{number for entry in side for number in entry.unit.numbers} for side in sides]
    return Rubric(
        tuple(sides[0]),
        tuple(sides[1]),
        asked,
        balance,
        1.0 if leads == [True, False] else balance,
        known,
        frozenset(numbers[1] - numbers[0]),
        known | asked,
        any(declines(text) for _, text in accepted),
    )


def nearest_accepted(text: str, sentences: Sequence[str], rubric: Rubric) -> int | None:
    """Return the accepted entry that a reply says most of, where it leans to those; None where it does not.

    Args:
        text: All of the reply, folded.
        sentences: Its sentences, without a `no,` that answers the prompt.
        rubric: What it is held to.
    """
    claimed = [*claims(sentences)]
    met = _met(claimed, rubric)
    found = _signs(text, claimed, met, rubric)
    if found is None or sum(WEIGHTS[name] * value for name, value in found.items()) <= 0:
        return None
    covered = _covered(met, rubric)
    return covered.index(max(covered))


def signs_of(text: str, sentences: Sequence[str], rubric: Rubric) -> dict[str, float] | None:
    """Return what the score of a reply is made of; None where it is ruled out, whatever the score."""
    claimed = [*claims(sentences)]
    return _signs(text, claimed, _met(claimed, rubric), rubric)


def _signs(text: str, claimed: Sequence[Claim], met: _Met, rubric: Rubric) -> dict[str, float] | None:
    if (declines(text) and not rubric.may_decline) or _is_ruled_out(met, rubric):
        return None
    speaks_for, against = met.weights
    covered = _covered(met, rubric)
    first = lead(text)
    denied = first < 0 if first else met.denies or says_too(text)
    if len(met.words) == 1 and max(covered) < 1 and not denied:
        size = sum(len(claim.words) for claim in claimed)
        if not _FEWEST_BESIDE_ONE <= size <= _MOST_BESIDE_ONE:
            return None
    numbers = {number for claim in claimed for number in claim.unit.numbers}
    return {
        "speaks_for": min(speaks_for, _MOST_WEIGHT),
        "balance": tanh(speaks_for - against),
        "first": met.first or 0.0,
        "covered": max(covered),
        "leads_as_accepted": -first * rubric.lead,
        "denies_as_accepted": max(rubric.lead, 0.0) * denied,
        "contrasts": float(contrasts(text)),
        "denies_alone": float(denied and rubric.denial == 0),
        "number_of_rejected": float(not rubric.numbers.isdisjoint(numbers)),
        "constant": 1.0,
    }


def _is_ruled_out(met: _Met, rubric: Rubric) -> bool:
    """Return whether a reply says all of a rejected entry's own words, or denies all of an accepted one's.

    Not where it says most of another accepted entry: that most are harmless is that few are dangerous.
    """
    count, is_said = len(rubric.accepted), max(_covered(met, rubric)) > _MOST_OF_IT
    entries = zip((*rubric.accepted, *rubric.rejected), met.said, met.denied, strict=True)
    for index, (entry, said, denied) in enumerate(entries):
        if index < count and is_said:
            continue
        against = denied if index < count else said
        if len(entry.own) >= _FEWEST_WORDS and entry.own <= against:
            return True
    return False


def _covered(met: _Met, rubric: Rubric) -> list[float]:
    """Return which part of each accepted entry's own words a reply says; nothing of an entry of one word."""
    return [
        len(entry.own & said) / len(entry.own) if entry.own and not entry.is_short else 0.0
        for entry, said in zip(rubric.accepted, met.said, strict=False)
    ]


def _met(claimed: Sequence[Claim], rubric: Rubric) -> _Met:
    entries = (*rubric.accepted, *rubric.rejected)
    met = _Met([set() for _ in entries], [set() for _ in entries], set(), [0.0, 0.0])
    seen = set[tuple[str, int]]()
    sentence: Unit | None = None
    agreeing: list[bool] = []
    for claim in claimed:
        before = tuple(met.weights)
        balances = [0.0]
        if claim.sentence is not sentence:
            sentence = claim.sentence
            agreeing = [
                not entry.is_short and not contradicts(sentence, entry.unit) for entry in rubric.accepted
            ]
        is_open = _open_entries(claim, rubric, agreeing)
        for word in sorted(claim.words, key=_by_root):
            name = word.root if word.root in rubric.known else word.meaning
            if name in rubric.known and (name, word.sign) not in seen:
                seen.add((name, word.sign))
                balances.append(_weigh(met, rubric, word, name, is_open, claim.share))
        gained = [now - then for now, then in zip(met.weights, before, strict=True)]
        is_contrary = min(balances) <= -_ONE_SIDED and max(balances) < _ONE_SIDED
        if not is_contrary and is_denial(claim, rubric.matter):
            met.denies = True
        if met.first is None and sum(gained) > _LEAST_FIRST:
            met.first = tanh(gained[0] - gained[1])
    return met


def _open_entries(claim: Claim, rubric: Rubric, agreeing: Sequence[bool]) -> list[bool]:
    """Return which entries a clause may say something of: none that it contradicts.

    Args:
        claim: The clause.
        rubric: The entries.
        agreeing: Which accepted ones its sentence does not contradict.
    """
    accepted = zip(rubric.accepted, agreeing, strict=True)
    return [agrees and not contradicts(claim.unit, entry.unit) for entry, agrees in accepted] + [
        not contradicts(claim.unit, entry.unit) for entry in rubric.rejected
    ]


def _weigh(
    met: _Met, rubric: Rubric, word: Word, name: str, is_open: Collection[bool], share: float
) -> float:
    """Add what a word of a clause says, and return how one-sided it is, from -1 to 1."""
    count = len(rubric.accepted)
    speaks = [0.0, 0.0]
    for index, (entry, is_free) in enumerate(zip((*rubric.accepted, *rubric.rejected), is_open, strict=True)):
        agrees = entry.signs.get(name, 0) * word.sign
        if not agrees or not is_free:
            continue
        (met.said if agrees > 0 else met.denied)[index].add(word.meaning)
        is_accepted = index < count
        speaks[(agrees > 0) != is_accepted] += 1 / (count if is_accepted else len(rubric.rejected))
    total = sum(speaks)
    if not total:
        return 0.0
    weight = share * (1.0 if name == word.root else _SAME_MEANING)
    if word.root in rubric.asked or word.meaning in rubric.asked or word.root in _FAINT:
        weight *= _FROM_PROMPT
    elif speaks[0] > speaks[1]:
        met.words.add(word.meaning)
    balance = (speaks[0] - speaks[1]) / total
    met.weights[balance < 0] += weight * abs(balance)
    return balance


def _by_root(word: Word) -> str:
    return word.root


@lru_cache(maxsize=2048)
def _entry(text: str, asked: frozenset[str]) -> _Entry:
    words = [word for claim in claims([text]) for word in claim.words]
    signs = dict[str, int]()
    for word in words:
        signs.setdefault(word.root, word.sign)
        signs.setdefault(word.meaning, word.sign)
    own = frozenset(
        word.meaning
        for word in words
        if word.meaning not in asked and word.root not in asked and word.root not in _QUANTITIES
    )
    names = {word.meaning for word in words}
    is_told = " " in text and any(map(is_shared, names))
    return _Entry(signs, own, unit(text), len(names) < _FEWEST_WORDS and not is_told)
