"""Words as two writers may spell them: one form to compare in, and where it occurs as a whole."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from pytest_helmbench.benchmarks.packs.families.text.plain import MARK, MARK_END, plain
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import UNSPACED_SCRIPTS, any_of, word_set

__all__ = [
    "FUNCTION_WORDS",
    "comma_free",
    "folded",
    "is_within",
    "sentences",
    "unmarked",
    "whole_places",
    "words",
]

FUNCTION_WORDS = word_set(
    "is are was were be been has have had do does did can could will would should may might must who which that",
    "because since as it they he she we you i this these there in on at by for from with after before during while",
    "when where into than then so not no if about whose won lost says said means ist sind war der die das ein eine",
    "und von im es est son la el los las le les des une du un en och är er het een de è sono il gli в на это был была",
)
"""Words that make a sentence of values: a line without any is a value, or a list of them."""

_LONGEST_KEPT = 400
_EDGE = " \t\r\n\"'.,;:!?*"
_LEAD = re.compile(rf"\A(?!\.\d)(?:[{re.escape(_EDGE)}](?!\.\d))*(?:[{re.escape(_EDGE)}](?=\.\d))?")
"""What is stripped from the start of a text: not the dot of `.5`."""
_MARKS = re.compile(f"[{MARK}{MARK_END}]")
_ACCENTED_LATIN = re.compile("([a-z])[\u0300-\u036f]+")
_OTHER_LETTERS = str.maketrans(
    {"đ": "d", "ð": "d", "ø": "o", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
_INITIALS = re.compile(r"(?<![\w.])(?:[^\W\d_]\.\s?){2,}")
_HYPHEN = re.compile(r"(?<=[^\W\d_]{2})-(?=[^\W\d_]{2})")
_UNIT = re.compile(r"(?<=\d)(?=(?:[^\W\d_]{1,4}|°[cf]?)(?!\w))")
_VERSION = re.compile(r"(?<!\w)v(?=\d+\.\d)")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_PERCENT = re.compile(r"(?<=\d)\s?(?:%|per\s?cent\b|pct\b)")
_COMMA = re.compile(r"(?<!\d),|,(?!\d)")
_ARTICLE = re.compile(r"(?:the|a|an)\s+(?=\S)")
_WORD = re.compile(r"\w+(?:'\w+)*")
_SENTENCE_END = re.compile(r"(?<![.!?])[.!?]++[\"')\]]*+(?=\s|$)|[。！？]|\n+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[^\W\d_]|"
    + any_of(
        "dr mr mrs ms st no jr sr mt vs ca approx prof gen col sgt lt rev inc ltd co corp ft dept fig eq e.g i.e z.b",
        "bzw ph.d u.s u.k a.m p.m etc ave blvd op nos vol ed pp bwv cf al mts capt gov sen rep pres",
    )
    + r")$",
    re.IGNORECASE,
)
_UNSPACED = re.compile(f"[{UNSPACED_SCRIPTS}]")


def folded(text: str) -> str:
    """Return the text in the form that answers are compared in.

    Case, accents of Latin letters, white space (also before a unit), a leading article, punctuation at the ends,
    hyphens between words, dots of initials and separators of thousands make no difference.
    """
    return _folded_before(text) if len(text) <= _LONGEST_KEPT else _folded(text)


@lru_cache(maxsize=2048)
def _folded_before(text: str) -> str:
    """Return a short text folded: a row's question and answers are for every reply."""
    return _folded(text)


def _folded(text: str) -> str:
    text = unmarked(plain(text)).casefold()
    if not text.isascii():
        text = unicodedata.normalize("NFC", _ACCENTED_LATIN.sub(r"\1", unicodedata.normalize("NFD", text)))
        text = text.translate(_OTHER_LETTERS)
    text = " ".join(text.split())
    if "." in text:
        text = _INITIALS.sub(
            lambda found: re.sub(r"[.\s]", "", found[0]) + found[0][len(found[0].rstrip()) :], text
        )
    if "-" in text:
        text = _HYPHEN.sub(" ", text)
    text = _VERSION.sub("", _UNIT.sub(" ", text))
    if "," in text:
        text = _GROUPED.sub(lambda found: found[0].replace(",", ""), text)
    text = _PERCENT.sub("%", text.replace("&", " and ") if "&" in text else text)
    text = _LEAD.sub("", " ".join(text.split())).rstrip(_EDGE)
    return _ARTICLE.sub("", text, count=1) if _ARTICLE.match(text) is not None else text


def comma_free(text: str) -> str:
    """Return the text without the commas between words: `a, b, and c` is `a, b and c`."""
    return _COMMA.sub("", text) if "," in text else text


def unmarked(text: str) -> str:
    """Return a plain text without the marks around answers."""
    return _MARKS.sub(" ", text) if MARK in text or MARK_END in text else text


def is_within(place: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether a place lies inside of another one, or is it."""
    return other[0] <= place[0] and place[1] <= other[1]


def words(text: str) -> list[str]:
    """Return the words of a text in order."""
    return _WORD.findall(text)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a plain text; a line break ends one, the dot of `Dr.` or of an initial does not."""
    start, last = 0, len(text.rstrip())
    for found in _SENTENCE_END.finditer(text):
        end = found.end()
        inside = found[0] == "." and end < last and text[end] != "\n"
        if inside and _ABBREVIATION.search(text, max(start, found.start() - 12), found.start()) is not None:
            continue
        if sentence := text[start:end].strip():
            yield sentence
        start = end
    if rest := text[start:].strip():
        yield rest


def whole_places(text: str, part: str) -> Iterator[tuple[int, int]]:
    """Yield where a folded part occurs in a folded text as a whole: not inside of a word or a number.

    Scripts without spaces between words have no such borders.
    """
    if not part:
        return
    start = text.find(part)
    while start >= 0:
        end = start + len(part)
        if not (
            _continues(text, start - 1, part[0], before=True) or _continues(text, end, part[-1], before=False)
        ):
            yield start, end
            start = text.find(part, end)
        else:
            start = text.find(part, start + 1)


def _continues(text: str, place: int, edge: str, *, before: bool) -> bool:
    """Return whether the character at a place belongs to the same word or number as the edge beside it."""
    if not 0 <= place < len(text):
        return False
    beside = text[place]
    if beside.isalnum() or beside == "_":
        if not (edge.isalnum() or edge == "_"):
            return False
        return _UNSPACED.match(beside) is None or _UNSPACED.match(edge) is None
    if beside == "-" and edge.isalnum():
        beyond = place - 1 if before else place + 1
        return 0 <= beyond < len(text) and text[beyond].isalnum()
    if not before:
        if beside in "+#^" and edge.isalnum():
            return True
        return (
            edge.isdigit()
            and beside in ".,:/%^"
            and (beside in "%^" or text[place + 1 : place + 2].isdigit())
        )
    return edge.isdigit() and beside in ".,:/-^" and text[max(0, place - 1) : place].isdigit()
