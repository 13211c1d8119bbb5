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
_OWN_SHARE = 0.5
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
    "says_accepted": 1.9,
    "says_rejected": -0.7,
    "first": 0.7,
    "covered": 1.2,
    "crux": 0.3,
    "rejected_together": -0.9,
    "leads_as_accepted": 1.6,
    "denies_as_accepted": 3.2,
    "contrasts": 2.1,
    "number_of_rejected": -0.4,
    "constant": -1.7,
}


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry.

    Args:
        signs: Sign of each of its roots and meanings.
        own: Meanings that the prompt has not.
        names: All of its meanings.
        unit: All of it as tokens.
        is_short: It has a single word that counts, such as a name.
    """

    signs: dict[str, int]
    own: frozenset[str]
    names: frozenset[str]
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
        crux: Sign that the accepted entries give to meanings that the rejected ones give the other one.
        telling: Per entry: meanings that are its own, or that the other side denies or does not say.
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
    crux: dict[str, int]
    telling: tuple[frozenset[str], ...]


@dataclass(slots=True)
class _Met:
    """What the words of a reply have met.

    Args:
        said: Per entry, accepted ones first: its meanings that the reply says.
        denied: Those that it denies.
        words: Words that count for accepted entries, but those of the prompt.
        weights: Of words that say accepted entries, deny rejected ones, say rejected ones, deny accepted ones.
        together: Per entry: the largest part of what tells it from the other side that one sentence says.
        crux: For the accepted entries, by words that one side says and the other denies.
        first: The balance of the first clause that says enough.
        denies: A clause denies something of the matter, and no word that the accepted entries alone say.
    """

    said: list[set[str]]
    denied: list[set[str]]
    words: set[str]
    weights: list[float]
    together: list[float]
    crux: float = 0.0
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
        _crux(*sides),
        tuple(_telling(entry, sides[1 - side]) for side in (0, 1) for entry in sides[side]),
    )


def _crux(accepted: Sequence[_Entry], rejected: Sequence[_Entry]) -> dict[str, int]:
    """Return the meanings that one side says and the other denies, with the sign of the accepted entries."""
    names = {name for entry in accepted for name in entry.names}
    found: dict[str, int] = {}
    for name in names:
        signs = [
            {entry.signs[name] for entry in side if name in entry.signs} for side in (accepted, rejected)
        ]
        if len(signs[0]) == len(signs[1]) == 1 and signs[0] != signs[1]:
            found[name] = signs[0].pop()
    return found


def _telling(entry: _Entry, others: Sequence[_Entry]) -> frozenset[str]:
    """Return the meanings that tell an entry from those of the other side."""
    return entry.own | {
        name
        for name in entry.names
        if any(other.signs.get(name, 0) == -entry.signs[name] for other in others)
        or not any(name in other.signs for other in others)
    }


def nearest_accepted(text: str, sentences: Sequence[str], rubric: Rubric) -> tuple[int, float] | None:
    """Return the accepted entry that a reply says most of, and its score, where it leans to those; else None.

    Args:
        text: All of the reply, folded.
        sentences: Its sentences, without a `no,` that answers the prompt.
        rubric: What it is held to.
    """
    claimed = [*claims(sentences)]
    met = _met(claimed, rubric)
    found = _signs(text, claimed, met, rubric)
    score = 0.0 if found is None else sum(WEIGHTS[name] * value for name, value in found.items())
    if score <= 0:
        return None
    covered = _covered(met, rubric)
    return covered.index(max(covered)), score


def signs_of(text: str, sentences: Sequence[str], rubric: Rubric) -> dict[str, float] | None:
    """Return what the score of a reply is made of; None where it is ruled out, whatever the score."""
    claimed = [*claims(sentences)]
    return _signs(text, claimed, _met(claimed, rubric), rubric)


def _signs(text: str, claimed: Sequence[Claim], met: _Met, rubric: Rubric) -> dict[str, float] | None:
    if (declines(text) and not rubric.may_decline) or _is_ruled_out(met, rubric):
        return None
    covered = _covered(met, rubric)
    first = lead(text)
    denied = first < 0 if first else met.denies or says_too(text)
    if len(met.words) == 1 and max(covered) < 1 and not denied:
        size = sum(len(claim.words) for claim in claimed)
        if not _FEWEST_BESIDE_ONE <= size <= _MOST_BESIDE_ONE:
            return None
    numbers = {number for claim in claimed for number in claim.unit.numbers}
    return {
        "says_accepted": min(met.weights[0], _MOST_WEIGHT),
        "says_rejected": min(met.weights[2], _MOST_WEIGHT),
        "first": met.first or 0.0,
        "covered": max(covered),
        "crux": tanh(met.crux),
        "rejected_together": max(met.together[len(rubric.accepted) :]),
        "leads_as_accepted": -first * rubric.lead,
        "denies_as_accepted": max(rubric.lead, 0.0) * denied,
        "contrasts": float(contrasts(text)),
        "number_of_rejected": float(not rubric.numbers.isdisjoint(numbers)),
        "constant": 1.0,
    }


def _is_ruled_out(met: _Met, rubric: Rubric) -> bool:
    """Return whether one sentence says all that tells a rejected entry, or a reply denies all of an accepted one.

    Not where it says most of another accepted entry: that most are harmless is that few are dangerous.
    """
    count = len(rubric.accepted)
    for part, telling in zip(met.together[count:], rubric.telling[count:], strict=True):
        if part == 1 and (len(telling) >= _FEWEST_WORDS or not telling.isdisjoint(rubric.crux)):
            return True
    if max(_covered(met, rubric)) > _MOST_OF_IT:
        return False
    return any(
        len(entry.own) >= _FEWEST_WORDS and entry.own <= denied
        for entry, denied in zip(rubric.accepted, met.denied, strict=False)
    )


def _covered(met: _Met, rubric: Rubric) -> list[float]:
    """Return which part of each accepted entry's own words a reply says; nothing of an entry of one word."""
    return [
        len(entry.own & said) / len(entry.own) if entry.own and not entry.is_short else 0.0
        for entry, said in zip(rubric.accepted, met.said, strict=False)
    ]


def _met(claimed: Sequence[Claim], rubric: Rubric) -> _Met:
    entries = (*rubric.accepted, *rubric.rejected)
    met = _Met([set() for _ in entries], [set() for _ in entries], set(), [0.0] * 4, [0.0] * len(entries))
    seen = set[tuple[str, int]]()
    sentence: Unit | None = None
    agreeing: list[bool] = []
    said: list[set[str]] = []
    for claim in claimed:
        before = tuple(met.weights)
        balances = [0.0]
        if claim.sentence is not sentence:
            sentence = claim.sentence
            said = [set() for _ in entries]
            agreeing = [
                not entry.is_short and not contradicts(sentence, entry.unit) for entry in rubric.accepted
            ]
        is_open = _open_entries(claim, rubric, agreeing)
        for word in sorted(claim.words, key=_by_root):
            for one, entry, is_free in zip(said, entries, is_open, strict=True):
                if is_free and claim.share >= _OWN_SHARE and _sign(entry, word)[0] * word.sign > 0:
                    one.add(word.meaning)
            name = word.root if word.root in rubric.known else word.meaning
            if name in rubric.known and (name, word.sign) not in seen:
                seen.add((name, word.sign))
                met.crux += claim.share * rubric.crux.get(word.meaning, 0) * word.sign
                balances.append(_weigh(met, rubric, word, is_open, claim.share))
        for index, (one, telling) in enumerate(zip(said, rubric.telling, strict=True)):
            if len(telling) >= _FEWEST_WORDS or (telling and index >= len(rubric.accepted)):
                met.together[index] = max(met.together[index], len(one & telling) / len(telling))
        gained = [now - then for now, then in zip(met.weights, before, strict=True)]
        is_contrary = min(balances) <= -_ONE_SIDED and max(balances) < _ONE_SIDED
        if not is_contrary and is_denial(claim, rubric.matter):
            met.denies = True
        if met.first is None and sum(gained) > _LEAST_FIRST:
            met.first = tanh(sum(gained[:2]) - sum(gained[2:]))
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


def _weigh(met: _Met, rubric: Rubric, word: Word, is_open: Collection[bool], share: float) -> float:
    """Add what a word of a clause says, and return how one-sided it is, from -1 to 1."""
    count = len(rubric.accepted)
    speaks = [0.0] * 4
    for index, (entry, is_free) in enumerate(zip((*rubric.accepted, *rubric.rejected), is_open, strict=True)):
        sign, closeness = _sign(entry, word)
        agrees = sign * word.sign
        if not agrees or not is_free:
            continue
        is_accepted = index < count
        (met.said if agrees > 0 else met.denied)[index].add(word.meaning)
        kind = (0 if agrees > 0 else 3) if is_accepted else (2 if agrees > 0 else 1)
        speaks[kind] += closeness / (count if is_accepted else len(rubric.rejected))
    total = sum(speaks)
    if not total:
        return 0.0
    balance = (speaks[0] + speaks[1] - speaks[2] - speaks[3]) / total
    weight = share * abs(balance) * (1.0 if word.root in rubric.known else _SAME_MEANING)
    if word.root in rubric.asked or word.meaning in rubric.asked or word.root in _FAINT:
        weight *= _FROM_PROMPT
    elif balance > 0:
        met.words.add(word.meaning)
    kinds = (2, 3) if balance < 0 else (0, 1)
    both = speaks[kinds[0]] + speaks[kinds[1]]
    for kind in kinds:
        met.weights[kind] += weight * speaks[kind] / both if both else 0.0
    return balance


def _sign(entry: _Entry, word: Word) -> tuple[int, float]:
    """Return the sign that a word has in an entry, 0 where it has none, and how close the entry's word is to it."""
    sign = entry.signs.get(word.root, 0)
    return (sign, 1.0) if sign else (entry.signs.get(word.meaning, 0), _SAME_MEANING)


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
    return _Entry(signs, own, frozenset(names), unit(text), len(names) < _FEWEST_WORDS and not is_told)
