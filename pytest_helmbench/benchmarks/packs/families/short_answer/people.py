"""Names of people in another form than an accepted answer has: other given names, titles, or the family name alone.

Two people may share what is left of a name (`John Adams`, `John Quincy Adams`), so what is found here is a guess.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.short_answer.common_names import are_one_given_name
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of, word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import FUNCTION_WORDS, folded
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["PARTICLES", "asks_for_person", "differs_by_one", "is_other_of_family", "said_name", "said_names"]

_PEOPLE = (
    "who whom whose author director composer painter inventor scientist president person actor actress singer artist",
    "writer poet novelist philosopher physicist chemist mathematician astronomer biologist explorer astronaut king",
    "queen emperor leader minister captain player founder architect musician sculptor playwright economist general",
    "god goddess pharaoh pope",
)
_ASKS_FOR_PERSON = re.compile(rf"(?<!\w){any_of(*_PEOPLE)}(?!\w)", re.IGNORECASE)
_IN_FAMILY = (
    "throne king queen emperor empress prince princess dynasty family brother sister wife husband son daughter father",
    "mother married heir",
)
_ASKS_FOR_WORDS = re.compile(r"(?<!\w)(?:stands?\sfor|abbreviat\w+|acronym|initials)(?!\w)", re.IGNORECASE)
_ASKS_IN_FAMILY = re.compile(rf"(?<!\w){any_of(*_IN_FAMILY)}(?!\w)", re.IGNORECASE)
_AND = re.compile(r",\s(?:and\s)?|\s(?:and|&)\s")
_LEAST_PEOPLE = 2
_MOST_PARTS = 5
_LONGEST_LOWER = 30
_SUFFIX = re.compile(r",?\s(?:Jr|Sr)\.?$")
_SHARED = word_set(
    "shelley adams bush roosevelt johnson harrison bach strauss bronte curie dumas bernoulli darwin huxley wright",
    "kennedy gandhi rockefeller carnegie brown smith jones williams davis miller wilson moore taylor anderson",
)
"""Families with several members that a middle name tells apart."""
_BY_GIVEN_NAME = word_set(
    "leonardo galileo dante rembrandt napoleon michelangelo raphael titian tycho caravaggio donatello"
)
_MOST_PLACES = 20
_TITLES = word_set(
    "mr mrs ms miss madame mme sir dame lord lady dr prof professor rev reverend king queen president prime minister",
    "general saint emperor captain the pandit mahatma maestro chairman chancellor pope bishop archbishop colonel",
    "admiral marshal count duke baron senator justice judge sergeant major commander lieutenant sultan shah",
    "tsar czar kaiser",
)
_NO_GIVEN_NAME = _TITLES | FUNCTION_WORDS
_HONOURS = word_set("dr prof professor rev reverend sir dame madame")
PARTICLES = word_set("da de del della der di du la le van von ten ter bin ibn al")
"""What may stand in a name in small letters."""
_OF_A_PLACE = word_set("da di")
"""Particles before a place: who is named so goes by the given name (`Leonardo`)."""
_WORD_BEFORE = re.compile(r"(?P<word>[^\W\d_]+(?:['-][^\W\d_]+)*)(?P<dot>\.?)[\s-]+$")
_INITIALS = re.compile(r"(?<=(?<!\w)[A-ZÀ-Þ]\.)(?=[A-ZÀ-Þ]\.)")
_PET_ENDING = re.compile(r"(?:ie|ey|y|i)$")
_LEAST_SHARED = 3


@dataclass(frozen=True, slots=True)
class _Name:
    """A person's name in parts.

    Args:
        given: The first one.
        middle: What stands between.
        family: With its particles.
    """

    given: str
    middle: tuple[str, ...]
    family: str


def asks_for_person(question: str) -> bool:
    """Return whether a question asks who somebody is."""
    return _ASKS_FOR_PERSON.search(question) is not None


def said_name(statement: str, answer: str, accepted: Iterable[str], question: str) -> str | None:
    """Return an accepted person's name as a statement has it in another form, folded; None where it has none.

    The family name alone is enough unless a middle name tells an accepted person from others of the family, or the
    question asks for a ruler or a relative.

    Args:
        statement: As written.
        answer: The accepted answer, as the row has it.
        accepted: All of them.
        question: As asked.
    """
    name = _name(answer)
    if name is None or _ASKS_FOR_WORDS.search(question) is not None:
        return None
    statement = statement.title() if len(statement) <= _LONGEST_LOWER and statement.islower() else statement
    text = _INITIALS.sub(" ", _without_accents(statement))
    family = _without_accents(name.family)
    others = [other for other in map(_name, accepted) if other is not None and other.family == name.family]
    is_shared = folded(family) in _SHARED and any(other.middle for other in others)
    with_title, is_alone = (False, False) if is_shared else _is_enough(answer, family, question)
    if folded(text) == folded(f"{name.family} {name.given}"):
        return folded(text)
    parts = "".join(
        rf"(?:(?i:{part})\s)?" if part.lower() in PARTICLES else re.escape(part) for part in family.split()
    )
    suffix = _SUFFIX.search(answer)
    own_suffix = "" if suffix is None else rf"(?!,?\s{suffix[0].strip(' ,.')}(?!\w))"
    pattern = re.compile(rf"(?<!\w){parts}(?!\w)(?!{own_suffix}\s[A-Z]\w)")
    for found in islice(pattern.finditer(text), _MOST_PLACES):
        start, before = _before(text, found.start())
        own = [word for word in before if word.lower() not in _TITLES]
        if (
            any(_may_be(own[place:], name) or _is_family(own[place:], name) for place in range(len(own)))
            if own
            else (with_title or _HONOURS.issuperset(map(str.lower, before)) if before else is_alone)
        ):
            return folded(text[start : found.end()])
    given = folded(name.given)
    if family.partition(" ")[0] in _OF_A_PLACE and folded(text) == given:
        return given
    if given in _BY_GIVEN_NAME and re.search(rf"(?<!\w){name.given}(?!\w)(?!\s[A-Z])", text) is not None:
        return given
    return None


def is_other_of_family(statement: str, answer: str, accepted: Sequence[str]) -> bool:
    """Return whether an accepted family name stands behind given names that no accepted person bears: `Ira Gershwin`.

    Args:
        statement: As written.
        answer: The accepted answer, as the row has it.
        accepted: All of them.
    """
    names = [name for name in map(_name, accepted) if name is not None and name.family == answer]
    if not names or answer not in accepted:
        return False
    text = _INITIALS.sub(" ", _without_accents(statement))
    pattern = re.compile(rf"(?<!\w){re.escape(_without_accents(answer))}(?!\w)")
    for found in islice(pattern.finditer(text), _MOST_PLACES):
        own = [word for word in _before(text, found.start())[1] if word.lower() not in _NO_GIVEN_NAME]
        if not own or any(_may_be(own[place:], name) for name in names for place in range(len(own))):
            return False
    return True


def _is_enough(answer: str, family: str, question: str) -> tuple[bool, bool]:
    """Return whether a family name with a title, and alone, is enough: who is asked for, or offered, or neither."""
    asked = folded(_without_accents(question))
    if folded(_without_accents(answer)) in asked and asked.count(folded(family)) == 1:
        return True, True  # `Anna Berg or Ida Holm?`
    with_title = folded(family) not in asked and asks_for_person(question)
    return with_title, with_title and _ASKS_IN_FAMILY.search(question) is None


def said_names(statement: str, answer: str, question: str) -> tuple[str, ...]:
    """Return the people that an answer lists as a statement has them, folded; empty where it lacks one.

    Args:
        statement: As written.
        answer: The accepted answer, as the row has it: `Anna Berg and I. Holm`.
        question: As asked.
    """
    people = [part for part in _AND.split(answer) if part]
    if len(people) < _LEAST_PEOPLE or not asks_for_person(question):
        return ()
    said = [said_name(statement, one, [one], question) for one in people]
    return tuple(one for one in said if one is not None) if None not in said else ()


def _name(answer: str) -> _Name | None:
    """Return a name in parts; None for what is no name of a person."""
    parts = _SUFFIX.sub("", answer).split()
    if not 2 <= len(parts) <= _MOST_PARTS:
        return None
    if not all(part[:1].isupper() or part in PARTICLES for part in parts) or parts[-1] in PARTICLES:
        return None
    start = len(parts) - 1
    while start > 1 and parts[start - 1].lower() in PARTICLES:
        start -= 1
    return _Name(parts[0], tuple(parts[1:start]), " ".join(parts[start:]))


def _before(text: str, start: int) -> tuple[int, list[str]]:
    """Return where the capital words right before a place begin, and those words."""
    words: list[str] = []
    while len(words) < _MOST_PARTS and (found := _WORD_BEFORE.search(text, max(0, start - 40), start)):
        if not found["word"][0].isupper() or (found["dot"] and len(found["word"]) > len("Prof")):
            break
        words.insert(0, found["word"])
        start = found.start()
    return start, words


def _may_be(words: Sequence[str], name: _Name) -> bool:
    """Return whether given names may be those of a person: `Timothy`, `T.`, `Maria` for `Marie`."""
    if not _is_variant(words[0].lower(), _without_accents(name.given).lower().rstrip(".")):
        return False
    initials = [part[:1].lower() for part in words[1:]], [part[:1].lower() for part in name.middle]
    return all(one == other for one, other in zip(*initials, strict=False))


def _is_family(words: Sequence[str], name: _Name) -> bool:
    """Return whether words before a family name are middle names right before it: `García` of `García Márquez`."""
    own = [word.lower() for word in words]
    return bool(own) and own == [_without_accents(part).lower() for part in name.middle[-len(own) :]]


def _is_variant(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if long.startswith(short) and len(short) in (1, *range(_LEAST_SHARED, len(long) + 1)):
        return True
    if are_one_given_name(short, long) or _PET_ENDING.sub("y", short) == _PET_ENDING.sub("y", long):
        return True
    return len(short) > _LEAST_SHARED and short[0] == long[0] and differs_by_one(short, long)


def differs_by_one(short: str, long: str) -> bool:
    """Return whether two words differ by one letter: another one, or one more in the long one."""
    if len(short) == len(long):
        return sum(mine != theirs for mine, theirs in zip(short, long, strict=True)) == 1
    return len(long) == len(short) + 1 and any(
        long[:place] + long[place + 1 :] == short for place in range(len(long))
    )


def _without_accents(text: str) -> str:
    """Return a text of plain letters, every one in its place."""
    plain = (unicodedata.normalize("NFD", letter)[0] for letter in text)
    return "".join(plain)
