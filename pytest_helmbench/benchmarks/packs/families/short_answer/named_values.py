"""Values that a short_answer statement names: one and words that describe it, a list, or several."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.short_answer.guesses import without_offer
from pytest_helmbench.benchmarks.packs.families.short_answer.people import asks_for_person
from pytest_helmbench.benchmarks.packs.families.text.calendar_words import MONTHS, WHEN_BEHIND
from pytest_helmbench.benchmarks.packs.families.text.denial import is_denied
from pytest_helmbench.benchmarks.packs.families.text.number_words import number_words
from pytest_helmbench.benchmarks.packs.families.text.numbers import numbers
from pytest_helmbench.benchmarks.packs.families.text.regions import is_region, lies_elsewhere
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of, word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import (
    FUNCTION_WORDS,
    comma_free,
    folded,
    sentences,
    whole_places,
    words,
)

__all__ = [
    "SENTENCE_WORDS",
    "answer_places",
    "asks_for_order",
    "holds_all",
    "holds_parts",
    "members",
    "names_several",
    "same_members",
]

_VALUE_WORDS = 4
_SPRAY_WORDS = 4
_MOST_PLACES = 50
_MOST_ELEMENTS = 20
_MASK = "§"

_JOINING = any_of("and/or and or und oder et ou y o e и или as_well_as nor")
_SEPARATED = re.compile(
    rf"\s*[,;、，|]\s*(?:{_JOINING}\s+)?|\s+{_JOINING}\s+|\s*&\s*|(?<=[^\W\d]|{_MASK})\s*/\s*(?=[^\W\d]|{_MASK})"
    r"|\s*(?:和|或|以及|及)\s*"
)
_LABELLED = re.compile(rf"\A[^{_MASK}:]{{1,40}}:\s")
_OR_AFTER = re.compile(
    r"\s*,?\s*(?:or|oder|ou|или|或)\s*(?!(?:simply|rather|more|in other|else|so|just|less)\b)(?P<other>\S+)"
)
_OR_BEFORE = re.compile(r"(?P<other>\S+)\s*,?\s*(?:\bor|\boder|\bou|\bили|或)\s*(?:the\s|an?\s)?$")
_BETWEEN = re.compile(rf"\Abetween\s(?:the\s)?(?:{_MASK}\sand\s|[^.,;]{{1,40}}\sand\s(?:the\s)?{_MASK})")
_HEDGE = re.compile(rf"(?<!\w){any_of('could might may possibly perhaps maybe')}(?!\w)")

_FILLER = word_set(
    "of course obviously definitely certainly probably surely yes indeed likely clearly simply exactly please thanks"
)
SENTENCE_WORDS = FUNCTION_WORDS | word_set(
    "through across near between around under over into via along within without toward towards among against upon"
)
_SITES = word_set(
    "museum gallery university college school academy stadium arena cathedral church abbey basilica temple mosque",
    "library hospital theatre theater palace castle airport station hotel museums opera laboratory cemetery prison",
)
"""Behind the name of one of them stands where it is."""
_PLACES = word_set("where city town place located born")
_RANGE = re.compile(
    rf"{_MASK}\s*(?:-|~|to\s|until\s|till\s|through\s)\s*[$€£]?\d"
    rf"|(?<!\d)\d[^\s,;]{{0,12}}(?:\s[ap]m)?\s?(?:-|~|\sto|\suntil)\s?{_MASK}"
)
_NUMBERED = re.compile(r"\A\d{1,2}[.)]\s+")
_LISTED = re.compile(r"(?:\s(?:are|is|were|was|of|has|have|includes?|comprises?|contains?)|:)\s")
_RESTATED = re.compile(r"(?<!\w)(?:i\.?e\.?|that is(?: to say)?|namely|in other words)[,:]?\s")
_PLURAL = re.compile(r"(?<=[a-z]{3})(?:(?<=[sxz])es|(?<=[^su])s)$")
_ALIAS = re.compile(
    r",?\s(?:or|known as|called)\s[^,;]{1,40}?\sin\s(?:english|german|french|spanish|italian|latin|greek|russian"
    r"|chinese|japanese|arabic|dutch|polish|portuguese|hebrew|hindi|turkish|korean|full|short)(?!\w)"
)
_EPITHET = re.compile(r"[Tt]he\s\w+(?:\s\w+)?\s(?:of|in)\s")
"""`The Bard of Avon, ...`"""
_ORDERED = re.compile(
    r"(?<!\w)(?:order|ordered|sort|sorted|sequence|rank|ranked|respectively|steps?|ascending|descending"
    r"|(?:first|last|next)(?!\s(?:two|three|four|five|six|seven|eight|nine|ten|\d)))(?!\w)"
)
_ASKS_FOR_SEVERAL = re.compile(
    r"(?<!\w)(?:name|list|give|which|what are|what were|two|three|four|five|six|seven|eight|nine|ten)(?!\w)",
    re.IGNORECASE,
)
_ASKS_FOR_PLACES = re.compile(r"(?<!\w)(?:countries|nations|cities|provinces|continents)(?!\w)")
_CAPITAL = re.compile(r"(?<![\w'])[A-ZÀ-Þ][^\W\d_]+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_PARTS = re.compile(r",\s*|\sin\s")
_LABEL = re.compile(r"(?<!\w)[^\W\d]{1,20}:\s")
_WHOLE = re.compile(r"(?<![\w.,])\d+(?![\w%]|[.,]\d)")
_AND = re.compile(r"\s(?:and|und|et|y)\s|\s?&\s?")
_OR = re.compile(r"\s(?:or|oder|ou)\s")
_LISTS_MORE = re.compile(r",?\s(?:and|und|et|y)\s(?P<next>[^\W\d_]+)")
_ASIDE = re.compile(r"(?<=\S)\s*\([^()]{0,200}\)")
_LABELLED_ELSE = re.compile(
    rf"(?<={_MASK})\s*;\s*(?!answer|option|choice|guess)[^\W\d][^;:{_MASK}\d]{{0,30}}:\s[^;]{{1,80}}"
)
_CODE = re.compile(r"(?<!\w)[A-Z]{2,5}(?!\w)")
_SIZE_BEHIND = re.compile(rf"\s[–—-]\s\d[\d.,]*(?:\s[^\W\d_]{{1,6}})?\W*$|(?<={_MASK}){WHEN_BEHIND}\W*$")
"""`Elbrus, Russia - 5642 m`, `Norway in 1902`"""
_POSSESSIVE = re.compile(r"'s?(?!\w)")


def members(text: str, question: str, *, bare: bool = False) -> tuple[str, ...]:
    """Return what a text lists, sorted unless the question asks for an order; empty where it lists nothing.

    Args:
        text: An accepted answer, or a statement.
        question: As asked.
        bare: Commas alone make a list; else it takes an `and`.
    """
    joined = bare or _AND.search(text) is not None or _is_bare_list(text, question)
    if not joined or _OR.search(text) is not None or len(text) > 400:
        return ()
    ordered = asks_for_order(question)
    low = folded(_ASIDE.sub("", text.replace("→", ",")))
    for listed in (low, _LISTED.split(low)[-1]):
        elements = [folded(_NUMBERED.sub("", part)) for part in _SEPARATED.split(listed) if part.strip()]
        if len(elements) > 1 and ": " not in elements[0] and all(map(_is_valuelike, elements)):
            return tuple(elements) if ordered else tuple(sorted({*elements}))
    return ()


def asks_for_order(question: str) -> bool:
    """Return whether a question wants what it asks for in a certain order."""
    return _ORDERED.search(question.lower()) is not None


def same_members(listed: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether two lists are one, whether their words are in the plural or not; an empty one is none."""
    singular = [[_PLURAL.sub("", element) for element in one] for one in (listed, wanted)]
    return bool(listed) and (singular[0] == singular[1])


def holds_all(statement: str, names: Sequence[str], question: str) -> bool:
    """Return whether a sentence has all names of a list and no other one, but for those that it denies.

    Args:
        statement: As written.
        names: Folded; names with capitals, since what else is a value cannot be told in a sentence.
        question: As asked; one that asks for an order is not answered by a sentence.
    """
    text = folded(statement)
    places = [next(whole_places(text, name), None) for name in names]
    if (
        _OR.search(text) is not None
        or asks_for_order(question)
        or any(place is None or is_denied(text, *place) for place in places)
    ):
        return False
    known = f"{folded(question)} {' '.join(names)}"
    found = [folded(name) for name in _CAPITAL.findall(statement)]
    if len(found) > _MOST_PLACES or not all(any(part in found for part in name.split()) for name in names):
        return False
    others = [name for name in found[1:] if name not in known]
    return all(
        place is None or is_denied(text, *place)
        for name in others
        for place in [next(whole_places(text, name), None)]
    )


def holds_parts(statement: str, answer: str, question: str) -> bool:
    """Return whether a statement has the name and the number that an answer consists of, and no other ones.

    Args:
        statement: As written.
        answer: As the row has it: `1896, Athens`.
        question: As asked.
    """
    parts = [folded(part) for part in _PARTS.split(_ASIDE.sub("", answer)) if part.strip()]
    kinds = [part.isdigit() for part in parts]
    if len(parts) == len(kinds) - sum(kinds) == 2 and all(map(_CAPITAL.match, _PARTS.split(answer))):
        return _holds_both(statement, parts)
    if len(parts) != 2 or sum(kinds) != 1 or not _CAPITAL.search(answer):
        return False
    text, outside = folded(statement), _LABEL.sub(" ", _ASIDE.sub(_year_aside, statement))
    places = [next(whole_places(text, part), None) for part in parts]
    if any(place is None or is_denied(text, *place) for place in places):
        return False
    known = f"{folded(question)} {' '.join(parts)}"
    names = [folded(name) for name in _CAPITAL.findall(outside)]
    others = [
        name for name in names[1:] if name not in known and not is_region(name) and name[:3] not in MONTHS
    ]
    return not others and {*_WHOLE.findall(outside)} == {parts[kinds.index(True)]}


def _holds_both(statement: str, parts: Sequence[str]) -> bool:
    """Return whether a statement has a name and the place that it is in, one after the other."""
    text = folded(statement)
    places = [next(whole_places(text, part), None) for part in parts]
    if any(place is None or is_denied(text, *place) for place in places):
        return False
    (first, _), (last, end) = (place for place in places if place is not None)
    more = _LISTS_MORE.match(text, end)
    is_list = more is not None and more["next"] not in FUNCTION_WORDS
    return first < last and _OR.search(text[first:last]) is None and not is_list


def _year_aside(found: re.Match[str]) -> str:
    """Return what stands in brackets, without them, where it has a number."""
    return f" {found[0].strip(' ()')}" if any(map(str.isdigit, found[0])) else ""


def answer_places(text: str, answer: str) -> tuple[str, list[tuple[int, int]]]:
    """Return where an answer stands in a folded text, and that text: without commas, where it stands nowhere else."""
    places = [*islice(whole_places(text, answer), _MOST_PLACES)]
    if places:
        return text, places
    bare = comma_free(text)
    return bare, [*islice(whole_places(bare, comma_free(answer)), _MOST_PLACES)]


def _is_bare_list(text: str, question: str) -> bool:
    """Return whether commas alone make a list: of three or more, no place, where the question asks for several.

    As many as the question says are no place: `five Great Lakes`.
    """
    elements = [folded(part) for part in text.split(",")]
    counted = {one.values[0] for one in (*numbers(question), *number_words(question.lower()))}
    return (
        len(elements) > (1 if _ASKS_FOR_PLACES.search(question) is not None else 2)
        and (len(elements) in counted or len(set(map(is_region, elements))) == 1)
        and _ASKS_FOR_SEVERAL.search(question) is not None
    )


def names_several(statement: str, answer: str, accepted: Sequence[str], question: str) -> bool:
    """Return whether a statement names other values beside an accepted one: a list, alternatives, a spray of words.

    Args:
        statement: As written.
        answer: The accepted answer that it holds, as the row has it.
        accepted: All of them, folded.
        question: As asked.
    """
    masked = folded(statement)
    is_name = answer[:1].isupper() and _has_capital(statement, answer.partition(" ")[0])
    for other in sorted(accepted, key=len, reverse=True):
        for start, end in reversed([*whole_places(masked, other)][:_MOST_PLACES]):
            masked = f"{masked[:start]}{_MASK}{masked[end:]}"
    restated = [*_RESTATED.finditer(masked)]
    if restated and _MASK in masked[restated[-1].end() :]:
        masked = masked[restated[-1].end() :]
    masked = _LABELLED_ELSE.sub("", _ALIAS.sub("", _ASIDE.sub(_outside, masked)))
    if not any(map(str.isdigit, "".join(accepted))):
        masked = _SIZE_BEHIND.sub("", masked)
    question = folded(question)
    asked = frozenset(words(_POSSESSIVE.sub("", question)))
    elements = [
        value
        for element in _SEPARATED.split(without_offer(masked, _MASK))
        if (value := _LABELLED.sub("", element).strip(" .:'\"()"))
        and (_MASK in value or not _FILLER.issuperset(words(value)))
    ]
    if _RANGE.search(masked) is not None:
        return True
    if all(map(_is_valuelike, elements)):
        others = [
            element
            for element in elements
            if _MASK not in element
            and not (
                len(elements) <= _MOST_ELEMENTS
                and _describes(element, statement, accepted, asked, is_name=is_name)
            )
        ]
        if len(elements) == 2 and elements[1] == _MASK and asks_for_person(question):
            others = [one for one in others if _EPITHET.match(statement) is None]
        if others and not _is_address(elements, asked):
            in_question = any(next(whole_places(question, answer), None) is not None for answer in accepted)
            return in_question or len(others) > 1 or not _qualifies(masked, others[0], asked)
    is_phrase = statement.lstrip(" *_").lower().startswith(("the ", "a ", "an "))
    return _has_alternative(masked) or (not is_phrase and _is_spray(masked, asked))


def _is_valuelike(element: str) -> bool:
    found = words(element.replace(_MASK, ""))
    most = 1 if _MASK in element else _VALUE_WORDS
    return len(found) <= most and not any(word in SENTENCE_WORDS for word in found)


def _describes(
    element: str, statement: str, accepted: Sequence[str], asked: frozenset[str], *, is_name: bool
) -> bool:
    """Return whether an element is of another kind than the answer: a year, a name out of the question, small words.

    Words in small letters behind an answer with a capital one (`Mars, planet of war`) are no other answer.
    """
    found = words(element)
    if not found:
        return True
    has_digits = any(word[0].isdigit() for word in found)
    if not has_digits and any(_DATE.fullmatch(answer) is not None for answer in accepted):
        return True
    small = not _has_capital(statement, found[0])
    if len(found) == 1 and _CODE.search(statement) is not None and _is_code(statement, found[0], accepted):
        return True
    if has_digits and not any(character.isdigit() for answer in accepted for character in answer):
        return (
            small or bool(asked & _PLACES) or all(word[0].isdigit() or word[:3] in MONTHS for word in found)
        )
    if small and not has_digits and is_name:
        return True
    shared = [len(word) > 3 and word in asked and word not in SENTENCE_WORDS for word in found]
    return any(shared) and not all(shared)


def _outside(found: re.Match[str]) -> str:
    """Return nothing in place of what stands in brackets, unless the answer is in it."""
    return found[0] if _MASK in found[0] else ""


def _is_code(statement: str, element: str, accepted: Sequence[str]) -> bool:
    """Return whether an element is a code such as `JPY` behind an answer in words; a country is none."""
    written = re.search(rf"(?<!\w){re.escape(element.upper())}(?!\w)", statement)
    words_only = not any(answer.upper() in statement for answer in accepted)
    return (
        written is not None
        and _CODE.fullmatch(written[0]) is not None
        and words_only
        and not is_region(element)
    )


def _has_capital(statement: str, word: str) -> bool:
    found = re.search(re.escape(word), statement, re.IGNORECASE)
    return found is not None and not found[0][0].islower()


def _is_address(elements: Sequence[str], asked: frozenset[str]) -> bool:
    """Return whether elements are one place: its name, then larger and larger parts of the world."""
    inner, last = elements[:-1], elements[-1]
    if len(elements) == 2 and _MASK in elements[0] and asked & _SITES:
        return True
    if not inner or len(elements) > 4 or _MASK in last or not is_region(last) or lies_elsewhere(last, asked):
        return (
            _MASK in last
            and 0 < len(inner) < 4
            and last == _MASK
            and not any(map(is_region, inner))
            and ("country" in asked or "state" in asked)
        )
    return _MASK in elements[0] and not any(map(is_region, inner[:-1])) and not is_region(elements[0])


def _qualifies(masked: str, element: str, asked: Collection[str]) -> bool:
    """Return whether an element only describes the value before it: words of the question, or `a city`."""
    if re.search(rf"{_MASK}\W*,\s*{re.escape(element)}", masked) is None:
        return False
    return element.startswith(("a ", "an ")) or all(
        word in asked or word in ("the", "of") for word in words(element)
    )


def _has_alternative(masked: str) -> bool:
    """Return whether another value is offered in place of the accepted one: `either X or Y`, `maybe X. Maybe Y.`"""
    place = masked.find(_MASK)
    after = _OR_AFTER.match(masked, place + 1)
    before = _OR_BEFORE.search(masked, max(0, place - 60), place)
    if any(found is not None and _MASK not in found["other"] for found in (after, before)):
        return True
    if _BETWEEN.search(masked) is not None:
        return True
    guesses = [sentence for sentence in sentences(masked) if _HEDGE.search(sentence) is not None]
    return len({_MASK in sentence for sentence in guesses}) > 1


def _is_spray(masked: str, asked: Collection[str]) -> bool:
    """Return whether words are strung together without any that make a sentence."""
    said = words(masked.replace(_MASK, ""))
    if any(word in FUNCTION_WORDS or word in ("the", "of", "to", "and") for word in said):
        return False
    return (
        sum(word not in asked for word in said) >= _SPRAY_WORDS and re.search(r"[.,:;(\"-]", masked) is None
    )
