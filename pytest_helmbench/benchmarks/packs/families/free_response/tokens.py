"""Sentences of free replies as tokens: one spelling of words, one form of numbers and amounts, and what contradicts.

Two sentences are held to each other by token F1. It is 0 where one contradicts the other: it denies what the other
says, has other numbers or periods (`per week`), the opposite of a word (`increases`), or the same words the other way
round (`A beat B`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import denials, keeps_distance
from pytest_helmbench.benchmarks.packs.families.text.number_words import number_words
from pytest_helmbench.benchmarks.packs.families.text.numbers import Number, numbers
from pytest_helmbench.benchmarks.packs.families.text.units import is_convertible, unit_behind
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import UNSPACED_SCRIPTS, any_of, word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import folded
from pytest_helmbench.benchmarks.packs.families.text.yes_no import leading_yes_or_no
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = [
    "NUMBER",
    "Unit",
    "asks_yes_or_no",
    "contradicts",
    "denies_it",
    "f1",
    "free_folded",
    "is_numeric",
    "joined",
    "polarity",
    "tokens",
    "unit",
]

_STOP_WORDS = word_set(
    "a an and are as at be because been before being by did do does due for from how if in into is it its of on or",
    "over that the their this through to was were what when where which who whom whose why with you your",
    "about approximately roughly around nearly approx",
)
_SAME_NEGATION = {"no": "not", "never": "not", "none": "not", "without": "not", "nothing": "not"}
_PERIOD = r"(?P<period>second|minute|hour|day|night|week|month|year)(?!\w)"
_FORMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<!\w)won't(?!\w)"), "will not"),
    (re.compile(r"(?<!\w)can(?:'t|not)(?!\w)"), "can not"),
    (re.compile(r"(?<=\w)n't(?!\w)"), " not"),
    (re.compile(r"(?<!\w)(?:50|fifty)[/ -](?:50|fifty)(?!\w)"), "50 percent"),
    (re.compile(r"(?<=\d)-(?=[a-z]{3})"), " "),
    (re.compile(r"(?<!\w)u\.s\.(?:a\.)?|(?<!\w)usa(?!\w)"), "united states"),
    (re.compile(r"(?<!\w)u\.k\.|(?<!\w)uk(?!\w)"), "united kingdom"),
    (re.compile(r"(?<!\w)daily(?!\w)"), "per_day"),
    (re.compile(r"(?<!\w)(?P<period>hour|week|month|year)ly(?!\w)|(?<!\w)annual(?:ly)?(?!\w)"), "per_"),
    (re.compile(rf"(?<=\w\s)(?:an?|per|each|every|/)\s{_PERIOD}"), "per_"),
)
_BRITISH = re.compile(  # at the end of a word; a group's name is the American form
    r"(?<=\wt)(?P<er>re)(?=s?$)|(?<=\w\w)(?P<or>our)(?=s?$|ed$|ing$)|(?<=\w\w)(?P<iz>is)(?=(?:e[sd]?|ing|ation)$)"
)
_TOKEN = re.compile(rf"[{UNSPACED_SCRIPTS}]|[^\W{UNSPACED_SCRIPTS}]+(?:\.\d+)?(?:/\d+)?")
NUMBER = r"\d+(?:\.\d+|/0*[1-9]\d*)?"
"""What `Fraction` reads: nothing is divided by zero."""
_NUMERIC = re.compile(NUMBER)
_PAIR = re.compile(r"(?<!\w)(\w+) (?:and|or) (\w+)(?!\w)")
_ADVISED_AGAINST = re.compile(
    rf"(?<!\w){any_of('avoid avoids avoiding refrain_from rule_out rules_out ruled_out ruling_out')}(?!\w)"
)
_PASSIVE = re.compile(r"(?<!\w)(?:by|from|under)(?!\w)")
_YES_OR_NO = re.compile(
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|must)\s(?!.*\sor\s)"
)
_LEAST_SHARED = 0.4
_EXCEPTING = re.compile(r"(?<!\w)(?:no|none|nothing|nobody)\s(?:\w+\s){0,3}(?:but|except|other than)\s")
_MOST_NUMBERS = 200
_NOT_SO = re.compile(r"(?:un|il|im(?=[mp])|ir(?=r))(\w{4,})")
_LONGEST_SWAP = 40

_OPPOSITES: dict[str, frozenset[str]] = {}
for _ones, _others in (
    ("more most", "less fewer least fewest"),
    ("higher greater larger bigger high", "lower smaller low"),
    (
        "increase increases increased rise rises rose grow grows",
        "decrease decreases decreased fall falls fell drop drops",
    ),
    ("faster quicker fast", "slower slow"),
    ("hotter warmer warm hot", "colder cooler cold cool"),
    ("open opens opened opening", "close closes closed closing"),
    ("found finds find", "lost loses lose"),
    ("won wins win", "lost loses lose"),
    ("before", "after"),
    ("inside", "outside"),
    ("above", "below"),
    ("always", "sometimes rarely"),
    ("all every", "some few"),
    ("first", "last"),
    ("true", "false"),
    ("safe", "unsafe dangerous"),
    ("legal", "illegal"),
    ("possible", "impossible"),
    ("completely entirely fully", "partly partially"),
    ("left", "right"),
    ("north northern", "south southern"),
    ("east eastern", "west western"),
):
    for _one, _other in ((word_set(_ones), word_set(_others)), (word_set(_others), word_set(_ones))):
        for _word in _one:
            _OPPOSITES[_word] = _OPPOSITES.get(_word, frozenset()) | _other


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, or several, as tokens.

    Args:
        order: The tokens as they follow each other.
        tokens: How often each occurs.
        denials: Negations, words of distance and of advice against it.
        passive: Something is said to be done by something.
    """

    order: tuple[str, ...]
    tokens: Counter[str]
    denials: int
    passive: bool = False

    @property
    def numbers(self) -> tuple[str, ...]:
        """Its numbers in order."""
        return tuple(filter(is_numeric, self.order))


def joined(units: Sequence[Unit]) -> Unit:
    """Return several sentences as one."""
    order = tuple(token for one in units for token in one.order)
    return Unit(order, Counter(order), sum(one.denials for one in units), any(one.passive for one in units))


def is_numeric(token: str) -> bool:
    """Return whether a token is a number."""
    return _NUMERIC.fullmatch(token) is not None


def free_folded(text: str) -> str:
    """Return a text in the form that entries and replies are compared in."""
    text = lowered(text)
    for pattern, written in _FORMS:
        text = pattern.sub(lambda found, form=written: _formed(found, form), text)  # type: ignore[misc]
    return folded(_with_plain_numbers(text))


def unit(text: str) -> Unit:
    """Return a folded sentence as tokens."""
    against = len(_ADVISED_AGAINST.findall(text)) - len(_EXCEPTING.findall(text))
    order = tuple(tokens(text))
    return Unit(
        order,
        Counter(order),
        denials(text) + int(keeps_distance(text)) + against,
        _PASSIVE.search(text) is not None,
    )


def tokens(text: str) -> list[str]:
    """Return the tokens of a folded text: no stop words, one word for every negation, `b and a` as `a and b`."""
    text = _PAIR.sub(lambda found: " ".join(sorted(found.groups())), text)
    found = (token.strip("_") for token in _TOKEN.findall(text))
    return [
        _spelled(_SAME_NEGATION.get(token, token)) for token in found if token and token not in _STOP_WORDS
    ]


def f1(said: Unit, wanted: Unit) -> float:
    """Return the token F1 of two units; 0 when one contradicts the other."""
    mine, theirs = said.tokens, wanted.tokens
    common = sum(min(count, mine[token]) for token, count in theirs.items())
    if not common or said.denials % 2 != wanted.denials % 2 or contradicts(said, wanted):
        return 0.0
    precision, recall = common / mine.total(), common / theirs.total()
    return 2 * precision * recall / (precision + recall)


def contradicts(said: Unit, wanted: Unit) -> bool:
    """Return whether a unit has another number, another period or an opposite word in place of a wanted one."""
    mine, theirs = said.numbers, wanted.numbers
    if mine and theirs and not _follow(theirs, mine):
        return True
    words, others = {*said.order}, {*wanted.order}
    periods = [{word for word in one if word.startswith("per_")} for one in (words, others)]
    if all(periods) and not periods[0] & periods[1]:
        return True
    if said.denials % 2 == wanted.denials % 2:
        missing = (word for word in others & _OPPOSITES.keys() if wanted.tokens[word] > said.tokens[word])
        opposites = {opposite for word in missing for opposite in _OPPOSITES[word]}
        if any(said.tokens[word] > wanted.tokens[word] for word in opposites & words):
            return True
    return said.passive == wanted.passive and _is_turned(said.order, wanted.order)


def denies_it(said: Sequence[Unit], wanted: Unit) -> bool:
    """Return whether of the sentences that deny something, if there are any, one has a word of a unit that denies."""
    words = {*wanted.order} - {"not"}
    denying = [part for part in said if part.denials]
    return not denying or any(not words.isdisjoint(part.order) for part in denying)


def _opposites(word: str) -> frozenset[str]:
    """Return opposites of a word: `legal` of `illegal`, `open` of `closed`."""
    found = _NOT_SO.fullmatch(word)
    return _OPPOSITES.get(word, frozenset()) | (frozenset({found[1]}) if found is not None else frozenset())


def asks_yes_or_no(prompt: str) -> bool:
    """Return whether a prompt ends in a question for yes or no."""
    return bool(_asked(prompt))


def polarity(text: str, parts: Sequence[Unit], prompt: str) -> bool | None:
    """Return whether a text says yes or no to a prompt that asks for one of them; None where it says neither.

    Args:
        text: Folded.
        parts: Its sentences and clauses. The one that has most of the prompt's words, and one of its predicate, counts.
        prompt: As the model sees it.
    """
    asked = _asked(prompt)
    if not asked:
        return None
    lead = leading_yes_or_no(text)
    if lead is not None:
        return lead
    turned = {word for one in asked for word in _opposites(one)} - {*asked}
    wanted = {*asked} | turned
    about = [part for part in parts if not ({*asked[1:]} | turned).isdisjoint(part.order)]
    shared = [len(wanted.intersection(part.order)) for part in about]
    if not shared or max(shared) < _LEAST_SHARED * len(asked):
        return None
    best = about[shared.index(max(shared))]
    return (best.denials + (not turned.isdisjoint(best.order))) % 2 == 0


@lru_cache(maxsize=512)
def _asked(prompt: str) -> tuple[str, ...]:
    """Return the tokens of a question for yes or no that ends a prompt, its subject first; none for other prompts."""
    question = prompt.rstrip().rpartition("\n")[2].strip().rpartition(". ")[2]
    if not question.endswith("?") or _YES_OR_NO.match(question.lower()) is None:
        return ()
    found = tokens(free_folded(question))
    return tuple(found[1:] if found[:1] in (["can"], ["will"]) else found)


def _follow(wanted: tuple[str, ...], said: tuple[str, ...]) -> bool:
    """Return whether wanted numbers are all said, in their order."""
    rest = iter(said)
    return all(number in rest for number in wanted)


def _is_turned(said: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Return whether the same words stand in another order, two parts exchanged around a third: `A beat B`."""
    if len(said) != len(wanted) or said == wanted or len(said) > _LONGEST_SWAP:
        return False
    while said[0] == wanted[0]:
        said, wanted = said[1:], wanted[1:]
    while said[-1] == wanted[-1]:
        said, wanted = said[:-1], wanted[:-1]
    for first in range(1, len(said) - 1):
        for last in range(1, len(said) - first):
            middle = said[first : len(said) - last]
            if wanted == said[len(said) - last :] + middle + said[:first]:
                return not any(is_numeric(word) for word in (*said[:first], *said[len(said) - last :]))
    return False


def _formed(found: re.Match[str], form: str) -> str:
    if form != "per_":
        return form
    return f"per_{found['period'] or 'year'}"


def _spelled(token: str) -> str:
    return _BRITISH.sub(lambda found: found.lastgroup or "", token)


def _with_plain_numbers(low: str) -> str:
    """Return a text whose numbers are digits, amounts in the first unit of their kind: `2,000 ml` is `2 volume`."""
    found = sorted(
        [*islice(numbers(low), _MOST_NUMBERS), *islice(number_words(low), _MOST_NUMBERS)], key=_start
    )
    parts: list[str] = []
    position = 0
    for number in found:
        if number.start < position:
            continue
        behind = unit_behind(low, number)
        value, end, name = number.values[0], number.end, ""
        if behind is not None and is_convertible(behind[0]):
            value, end, name = value * behind[0].factor, behind[1], f" {behind[0].kind}"
        elif low[number.start : number.end].rstrip().endswith(("%", "percent", "per cent")):
            name = " percent"
        parts += [low[position : number.start], _written(value), name]
        position = end
    return "".join(parts) + low[position:]


def _start(number: Number) -> int:
    return number.start


def _written(value: Fraction) -> str:
    whole = value.numerator if value.denominator == 1 else None
    sign = "minus " if value < 0 else ""
    return f"{sign}{abs(whole)}" if whole is not None else f"{sign}{abs(value)}"
