"""One form for names that accepted answers may be: nouns, countries, `the Second`, `Amendment XIII`, `the 7 Dwarfs`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from pytest_helmbench.benchmarks.packs.families.short_answer.common_names import elements_of, symbol_of
from pytest_helmbench.benchmarks.packs.families.text.number_words import (
    ORDINAL_WORDS,
    WRITTEN_NUMBERS,
    has_ordinal,
    with_plain_ordinals,
)
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import one_of

__all__ = ["steps_of_names"]

_CHARGES = {
    **dict.fromkeys(("+", "pos"), "positive"),
    **dict.fromkeys(("-", "−", "–", "neg"), "negative"),
}
_RHESUS = re.compile(r"\s?\(?(?:Rh(?:esus)?(?:[\s-]?\(?D\)?)?|RhD)\)?[\s-]?(?=neg|pos|[-+−–])")
_CHARGE_WORD = re.compile(r"(?<=\s)(neg|pos)\.?(?!\w)")
_CHARGE = re.compile(r"(?<=[A-Z])\s?([-+−–])(?:\s?(?:positive|negative))?(?!\w)")
_NUMERALS = (
    "I",
    "II",
    "III",
    "IV",
    "V",
    "VI",
    "VII",
    "VIII",
    "IX",
    "X",
    "XI",
    "XII",
    "XIII",
    "XIV",
    "XV",
    "XVI",
)
_ORDINALS = ORDINAL_WORDS[: len(_NUMERALS)]
_REGNAL = re.compile(rf"(?<=\w)\sthe\s(?P<ordinal>{'|'.join(_ORDINALS)})(?!\w)", re.IGNORECASE)
_NUMERAL = re.compile(rf"(?<=\w)\s(?:{one_of(_NUMERALS)})(?!\w)")
_NOUN = re.compile(r"[a-z]{3,20}")
"""One word in small letters: `ohm` may be said as `ohms`."""
_LATIN = tuple(
    pair
    for one, many in (("on", "a"), ("um", "a"), ("us", "i"), ("is", "es"))
    for pair in ((one, many), (many, one))
)
_ROMAN = {
    numeral: str(value) for value, numeral in enumerate(("I", "II", "III", "IV", "V", "VI", "VII", "VIII"), 1)
}
_NUMBERED_NAME = re.compile(rf"(?<![\w'])(?P<name>[A-Z]\w+)\s(?P<numeral>{one_of(_ROMAN)})(?![\w'])")
_HAS_NUMBERED_NAME = re.compile(r"[A-Z]\w+\s[1-8]")
_SHORT_COUNTRIES = (
    ("United States", re.compile(r"(?<!\w)(?:USA?(?!\w)|U\.\s?S\.(?:\s?A\.)?)(?!\s?\$)")),
    ("United Kingdom", re.compile(r"(?<!\w)(?:UK(?!\w)|U\.\s?K\.)")),
)
_LONG_TITLES = {
    "Dr": "Doctor",
    "Mr": "Mister",
    "Prof": "Professor",
    "Capt": "Captain",
    "Sgt": "Sergeant",
    "Col": "Colonel",
}
_TITLE = re.compile(rf"(?<!\w)({one_of([*_LONG_TITLES, *_LONG_TITLES.values()])})(?:\.|(?!\w))(?=\s[A-ZÀ-Þ])")
_HUNDREDS = re.compile(r"(?:(?:mid|early|late|early to mid)[- ])?(?<![\d.,])(\d{1,2})00s(?!\w)")
_TWO_LETTERS = {
    "ä": "ae",
    "ö": "oe",
    "ü": "ue",
    "Ä": "Ae",
    "Ö": "Oe",
    "Ü": "Ue",
    "ß": "ss",
    "ø": "oe",
    "å": "aa",
}
_UMLAUT = re.compile(f"[{''.join(_TWO_LETTERS)}]")
_FIRST_NUMBERS = WRITTEN_NUMBERS[1:21]
_RANK = re.compile(
    rf"(?:(?<!\w)(?:number|no\.?)\s|#)(\d{{1,3}}|{'|'.join(_FIRST_NUMBERS)})(?!\w)", re.IGNORECASE
)
_SYMBOL = r"[A-Z][a-z]?"
_SYMBOLS = re.compile(rf"(?<!\w){_SYMBOL}(?:(?:,?\s(?:and\s|&\s)?|,\s?){_SYMBOL}(?!\w))+")
_LIST_END = re.compile(r",\s?(?:and\s)?|\s(?:and|&)\s")
_COUNTS = WRITTEN_NUMBERS[:21]
_COUNT = rf"(?:{'|'.join(map(str.title, _COUNTS[2:]))}|[2-9]|1\d|20)"
_HAS_COUNT = re.compile(
    rf"^(?=[A-Z1-9])(?:{_COUNT}\s[A-Z]\w+|[\w'&,\s-]{{2,60}}\s{_COUNT}\s[A-Z]\w+)(?:\s|$)"
)
"""A title with a number before a name: `Seven Samurai`, `Snow White and the Seven Dwarfs`."""
_ROMAN_NUMBERS = tuple(tens + ones for tens in ("", "X", "XX", "XXX") for ones in ("", *_ROMAN, "IX"))
"""Each stands where its value says."""
_NTH = re.compile(r"\d{1,3}th ([A-Z]\w+)")
_SPELT_TWO_WAYS = re.compile(
    r"i[sz](?:e|ing|at)|[^\W\d_]{3}ou?r(?![a-z]{5})|[bt](?:re|er)s?(?!\w)|en[cs]e|rogram"
)
_SPELLINGS = (
    (re.compile(r"(?<=[^\W\d_]{4})is(?=(?:e[drs]?|ing|ations?|ational)(?!\w))"), "iz"),
    (re.compile(r"(?<=[^\W\d_]{3})our(?=(?:s|ed|ing|ful|ite|able|less)?(?!\w))"), "or"),
    (re.compile(r"(?<=[^\W\d_]{2}[bt])re(?=s?(?!\w))"), "er"),
    (re.compile(r"(?<=efen|ffen|icen)c(?=es?(?!\w))"), "s"),
    (re.compile(r"(?<=rogram)me(?=s?(?!\w))"), ""),
)


def steps_of_names(answers: Sequence[str]) -> Iterator[Callable[[str], str]]:
    """Yield what brings nouns, countries and what is numbered into one form."""
    if any(_SPELT_TWO_WAYS.search(answer) is not None for answer in answers):
        yield _in_one_spelling
    umlauts = {_glyphs(word).casefold(): word for word in " ".join(answers).split() if _UMLAUT.search(word)}
    if umlauts:
        spelled = re.compile(rf"(?<!\w){one_of(umlauts)}(?!\w)", re.IGNORECASE)
        yield lambda text: spelled.sub(lambda found: umlauts[found[0].casefold()], text)
    forms = _other_numbers(answers)
    if forms:
        other = re.compile(rf"(?<!\w){one_of(forms)}(?!\w)", re.IGNORECASE)
        yield lambda text: other.sub(lambda found: forms[found[0].casefold()], text)
    if any(_lists_elements(answer) for answer in answers):
        yield lambda text: _SYMBOLS.sub(_with_element_names, text)
    for name, short in _SHORT_COUNTRIES:
        if any(name in answer for answer in answers):
            yield partial(short.sub, name)
    if any(_NUMERAL.search(answer) is not None for answer in answers):
        yield lambda text: _REGNAL.sub(_numeral, text)
    elif any(map(has_ordinal, answers)):
        if any("century" in answer for answer in answers):
            yield lambda text: _HUNDREDS.sub(lambda found: f"{int(found[1]) + 1}th century", text)
        yield lambda text: with_plain_ordinals(_RANK.sub(_rank, text))
        if nouns := {
            found[1] for answer in answers if (found := _NTH.fullmatch(with_plain_ordinals(answer)))
        }:
            behind = re.compile(
                rf"(?<!\w)({one_of(nouns)})\s({one_of(_ROMAN_NUMBERS[1:])}|\d{{1,3}})(?![\w%]|[.,]\d)"
            )
            yield lambda text: behind.sub(_nth, text)
    if any(_HAS_COUNT.search(answer) is not None for answer in answers):
        yield from map(_step_of_title, filter(_HAS_COUNT.search, answers))
    if any(_TITLE.match(answer) is not None for answer in answers):
        yield lambda text: _TITLE.sub(lambda found: _LONG_TITLES.get(found[1], found[1]), text)
    if any(_NUMBERED_NAME.search(answer) or _HAS_NUMBERED_NAME.fullmatch(answer) for answer in answers):
        yield lambda text: _NUMBERED_NAME.sub(
            lambda found: f"{found['name']} {_ROMAN[found['numeral']]}", text
        )
    if any(answer.endswith((" negative", " positive")) for answer in answers):
        yield lambda text: _RHESUS.sub(" ", text)
        yield lambda text: _CHARGE_WORD.sub(lambda found: _CHARGES[found[1]], text)
        yield lambda text: _CHARGE.sub(lambda found: f" {_CHARGES[found[1]]}", text)


def _glyphs(word: str) -> str:
    """Return a word with two letters for each umlaut: `Roentgen`."""
    return _UMLAUT.sub(lambda found: _TWO_LETTERS[found[0]], word)


def _in_one_spelling(text: str) -> str:
    """Return a text in one of the spellings that English has: `organisation`, `colour`, `theatre`."""
    for pattern, written in _SPELLINGS:
        text = pattern.sub(written, text)
    return text


def _lists_elements(answer: str) -> bool:
    """Return whether an answer lists chemical elements by name."""
    parts = _LIST_END.split(answer)
    return len(parts) > 1 and all(len(symbol_of(part.strip().lower()) or "") in (1, 2) for part in parts)


def _with_element_names(found: re.Match[str]) -> str:
    """Return a list of chemical symbols as names: `He, Ne and Ar`; another list as it is."""
    names = [elements_of(symbol) for symbol in re.findall(_SYMBOL, found[0])]
    return ", ".join(one[0] for one in names) if all(names) else found[0]


def _nth(found: re.Match[str]) -> str:
    """Return `13th Amendment` of `Amendment XIII`."""
    written = found[2]
    number = int(written) if written.isdigit() else _ROMAN_NUMBERS.index(written)
    return f"{number}th {found[1]}"


def _step_of_title(title: str) -> Callable[[str], str]:
    """Return what writes the numbers of a title as it does: `the 7 Dwarfs` or `Twelve Angry Men`."""
    parts = map(_title_part, title.split())
    pattern = re.compile(r"(?<!\w)" + r"\s+".join(parts) + r"(?!\w)", re.IGNORECASE)
    return lambda text: pattern.sub(title, text)


def _title_part(part: str) -> str:
    """Return the pattern of a word of a title: a number in digits or words, `&` for `and`."""
    if part.lower() in ("and", "&"):
        return "(?:and|&)"
    return one_of((part, *_other_count(part)))


def _other_count(word: str) -> tuple[str, ...]:
    """Return a number below a hundred in words for digits, in digits for words; nothing for another word."""
    if word.isdigit() and int(word) < len(_COUNTS):
        return (_COUNTS[int(word)],)
    return (str(_COUNTS.index(word.lower())),) if word.lower() in _COUNTS else ()


def _rank(found: re.Match[str]) -> str:
    place = found[1].casefold()
    return f"{place if place.isdigit() else _FIRST_NUMBERS.index(place) + 1}th"


def _other_numbers(answers: Iterable[str]) -> dict[str, str]:
    """Return what nouns in small letters are in the plural, or in the singular, and those nouns."""
    forms: dict[str, str] = {}
    for noun in answers:
        if _NOUN.fullmatch(noun) is None:
            continue
        forms |= {f"{noun}s": noun} if not noun.endswith("s") else {}
        if noun.endswith(("s", "x", "z", "ch", "sh", "o")):
            forms[f"{noun}es"] = noun
        forms |= {noun[: -len(one)] + other: noun for one, other in _LATIN if noun.endswith(one)}
        if noun.endswith("y"):
            forms[f"{noun[:-1]}ies"] = noun
        if noun.endswith("s") and not noun.endswith(("ss", "us", "is")):
            forms[noun[:-1]] = noun
    return forms


def _numeral(found: re.Match[str]) -> str:
    return f" {_NUMERALS[_ORDINALS.index(found['ordinal'].casefold())]}"
