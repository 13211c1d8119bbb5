"""Letters and texts of choices as replies write them: read at a place, with what is listed beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.numbers import only_number
from pytest_helmbench.benchmarks.packs.families.text.plain import plain
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import UNSPACED_SCRIPTS, any_of
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["Choices", "Picks", "as_written", "folded_choice", "read_picks"]

_EDGE = " \t\r\n\"'.,;:!?"
_ARTICLES = ("the ", "a ", "an ")

# Capital letters of other alphabets that look like Latin ones, and are typed for them.
_LOOK_ALIKES = {
    **dict(zip("АВСЕНКМОРТХ", (0, 1, 2, 4, 7, 10, 12, 14, 15, 19, 23), strict=True)),
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", (0, 1, 4, 25, 7, 8, 10, 12, 13, 14, 15, 19, 24, 23), strict=True)),
}
_INDEX = {
    **{chr(65 + index): index for index in range(26)},
    **{chr(97 + index): index for index in range(26)},
    **_LOOK_ALIKES,
}
# Letters that are words of their own where text follows: the article, the pronoun, Russian prepositions.
_WORD_LETTERS = frozenset("AIOaio" + "".join(_LOOK_ALIKES))

_LETTER = r"[A-Za-z" + "".join(_LOOK_ALIKES) + "]"
_LABEL = re.compile(rf"[(\[<\"']*\s?(?P<letter>{_LETTER})(?:\s?(?P<close>[)\]>\"']+))?(?P<end>[.:)]?)")
# A character that belongs to the same word: not of the scripts that write words without spaces.
_GLUED = re.compile(rf"[^\W{UNSPACED_SCRIPTS}]|[+#'&](?=\w|[+#])|[-/](?=\w{{2}})")
_JOINING = any_of("and or und oder et ou y o e и или")
_AFTER_WORD_LETTER = re.compile(
    r"\s*(?:$|[.,;:!?)\]\"'(=|/&<>\n\x02\x03→、，。；：和或是-]"
    rf"|(?:{_JOINING}|{any_of('because since as for but which due given with weil car porque потому так')})(?!\w))"
)
_AFTER_SMALL_LETTER = re.compile(r"\s*(?:$|[.,;:!)\]\"'\n\x02\x03]|(?:because|since)(?!\w))")
_FILLER_WORD = any_of(
    "therefore thus hence so then most_likely likely probably clearly definitely certainly indeed actually simply",
    "obviously just still now in_fact option options choice choices answer letter number the either both alternative",
    "statement réponse reponse antwort opción opcion respuesta alternativa opção risposta вариант 选项 選項 第",
)
_FILLER = re.compile(rf"(?:[\s:,\"'*(\[✓]|{_FILLER_WORD}(?![\w)]))*")
_NOT = re.compile(rf"{any_of('not neither nicht weder no ni pas nie не 不是')}(?!\w)\s*")
_BUT = re.compile(
    r"[\s,;.)]*(?:but(?: rather)?(?: it(?:'s| is))?|it(?:'s| is)"
    rf"|{any_of('rather instead sondern sino mais mas ma а но 而是')})(?!\w)\s*"
)
_AND = re.compile(
    rf"\s*(?:,\s*{_JOINING}?(?!\w)|[/&+;、和或及]|(?:and/or|{_JOINING}|as well as|along with|plus)(?!\w))\s*"
    r"(?:(?:possibly|maybe|perhaps|also|even|both|option|choice|answer)\s+)*"
)
_SAYS_MORE = re.compile(
    r"[)\]]?\s*"
    + any_of(
        "is was isn wasn has does doesn can cannot could would say says state states refer refers describe describes",
        "fail fails means gives seems contains represents ist est es это — = wrong incorrect",
    )
    + r"(?!\w)"
)
_CLAUSE_END = re.compile(r"\s*(?:$|[.;!\n)\]\x02\x03])")
_ORDINAL_WORDS = ("first", "second", "third", "fourth", "fifth", "1st", "2nd", "3rd", "4th", "5th")
_ORDINAL = re.compile(
    rf"(?:the\s+)?(?:(?P<word>{'|'.join(_ORDINAL_WORDS)})\s+(?:option|choice|answer|one|alternative|statement)"
    r"|(?:option|choice|number)\s+(?P<digits>\d{1,2}))(?![\w.,]\w)"
)
_ASKS_FOR_WRONG = re.compile(
    r"\b(?:[Ff]alse|FALSE|[Ii]ncorrect|INCORRECT|[Uu]ntrue|[Ww]rong|not true|not correct|NOT)\b"
)
_SUM = re.compile(
    r"(?=.{0,40}?\d)[\d\s.,()+*/×÷^=·%~≈-]{1,60}(?=$|[;!?]|\s\(|\s?(?:because|since|as|which|so)\s)"
)
_ARITHMETIC = re.compile(r"\s*[-+*/×÷=^·]\s*[\d(x]")


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of a row, ready to be found in a reply.

    Args:
        texts: Folded, in order.
        longest: Length of the longest text.
        by_length: Indices, those of the longest texts first.
        initials: First characters of the texts.
        written: As the row has them, but for case, white space and a full stop.
        letters: A character class of the capital letters that name a choice: the labels, and letters behind them
            that are the whole text of a choice (`O` of the blood groups).
        by_letter: The choices that the letters behind the labels are the text of.
        wrong_wanted: The question asks for what is false, so that `B is false` picks B.
    """

    texts: tuple[str, ...]
    longest: int
    by_length: tuple[int, ...]
    initials: frozenset[str]
    written: tuple[str, ...]
    letters: str
    by_letter: Mapping[str, int]
    wrong_wanted: bool = False

    @classmethod
    def of(cls, choices: tuple[str, ...], question: str = "") -> Choices:
        """Fold the texts of the choices."""
        texts = tuple([folded_choice(choice) for choice in choices])
        by_letter = {
            text: index
            for index, text in reversed([*enumerate(texts)])
            if len(text) == 1 and _INDEX.get(text, -1) >= len(texts)
        }
        by_length = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        return cls(
            texts,
            max(map(len, texts)),
            tuple(by_length),
            frozenset([text[:1] for text in texts]),
            tuple([as_written(choice) for choice in choices]),
            _label_class(len(texts)) + "".join(by_letter).upper(),
            by_letter,
            _ASKS_FOR_WRONG.search(question) is not None,
        )

    def named_by(self, letter: str) -> int | None:
        """Return the choice that a letter is the label of, or else the whole text."""
        index = _INDEX[letter]
        return index if index < len(self.texts) else self.by_letter.get(letter.lower())

    def is_label(self, text: str) -> bool:
        """Return whether a text is the letter of a choice."""
        return _INDEX.get(text, len(self.texts)) < len(self.texts)

    def same(self, index: int) -> frozenset[int]:
        """Return the indices of all choices that are written as this one: a letter names them all."""
        return frozenset([other for other, found in enumerate(self.written) if found == self.written[index]])

    def same_text(self, index: int) -> frozenset[int]:
        """Return the indices of all choices that a plain text cannot tell from this one: `p` and `*p`."""
        if not self.texts[index]:
            return self.same(index)
        return frozenset([other for other, found in enumerate(self.texts) if found == self.texts[index]])


@dataclass(frozen=True, slots=True)
class Picks:
    """What a statement names.

    Args:
        indices: Of the choices; several when it lists several.
        end: Where it ends in the text it was read from.
        by_text: It names a choice by its text, not its letter.
    """

    indices: frozenset[int]
    end: int
    by_text: bool = False


def folded_choice(text: str) -> str:
    """Return the text of a choice in the form that replies are compared in."""
    if text.isascii() and text.isalnum():
        return text.lower()
    return " ".join(lowered(plain(text)).split()).strip(_EDGE)


def as_written(text: str) -> str:
    """Return a text but for its case, white space and a full stop behind it."""
    text = " ".join(text.lower().split())
    return text.rstrip(".,;") or text


@lru_cache(maxsize=26)
def _label_class(count: int) -> str:
    """Return a character class of the capital letters of so many choices, look-alikes included."""
    return "".join(letter for letter, index in _INDEX.items() if index < count and not letter.islower())


def read_picks(text: str, choices: Choices) -> Picks | None:
    """Read what a text names at its start: a letter, a choice's text, or a list of them.

    `not A but B` names B. None when it names nothing there, or only what it is not.

    Args:
        text: One line, spaces collapsed.
        choices: Of the row.
    """
    low = lowered(text)
    picks = _read_list(text, low, 0, choices)
    start = _end(_FILLER, low, 0)
    if picks is None and start > 0:
        picks = _read_list(text, low, start, choices)
    if picks is not None:
        return picks
    denied = _NOT.match(low, start)
    if denied is not None:
        return _read_instead(text, low, denied.end(), choices)
    return _read_ordinal(low, start, choices) or _read_number(low, start, choices)


def _read_instead(text: str, low: str, position: int, choices: Choices) -> Picks | None:
    denied = _read_list(text, low, _end(_FILLER, low, position), choices)
    if denied is None:
        return None
    instead = _BUT.match(low, denied.end)
    return None if instead is None else _read_list(text, low, _end(_FILLER, low, instead.end()), choices)


def _read_list(text: str, low: str, position: int, choices: Choices) -> Picks | None:
    first = _read_one(text, low, position, choices)
    if first is None:
        return None
    indices, end = first.indices, first.end
    while (joined := _AND.match(low, end)) is not None and joined.end() < len(low):
        more = _read_one(text, low, joined.end(), choices, listed=True)
        if more is None or _SAYS_MORE.match(low, more.end) is not None:
            break
        indices, end = indices | more.indices, more.end
    return Picks(indices, end, first.by_text)


def _read_one(text: str, low: str, position: int, choices: Choices, *, listed: bool = False) -> Picks | None:
    by_text = _read_text(low, position, choices)
    if by_text is not None and not (by_text.end - position == 1 and text[position].isalpha()):
        return _with_its_letter(text, low, by_text, choices)
    label = _read_label(text, low, position, choices, listed=listed)
    if label is not None or by_text is None or text[position] in _INDEX:
        return label
    return by_text if _AFTER_WORD_LETTER.match(low, by_text.end) is not None else None


def _read_text(low: str, position: int, choices: Choices) -> Picks | None:
    """Return the choice with the longest text that stands at the place."""
    found = _text_at(low, position, choices)
    opened = _skip(low, position, " \"'([")
    if opened != position:
        inside = _text_at(low, opened, choices)
        if found is None or (inside is not None and inside.end > found.end):
            return inside
    return found


def _text_at(low: str, position: int, choices: Choices) -> Picks | None:
    if low.startswith(_ARTICLES, position):
        behind = low.index(" ", position) + 1
        if low[behind : behind + 1] in choices.initials and (picks := _bare_text_at(low, behind, choices)):
            return picks
    return _bare_text_at(low, position, choices) if low[position : position + 1] in choices.initials else None


def _bare_text_at(low: str, position: int, choices: Choices) -> Picks | None:
    for index in choices.by_length:
        text = choices.texts[index]
        if text and low.startswith(text, position) and _is_whole(low, position + len(text), text):
            return Picks(choices.same_text(index), position + len(text), by_text=True)
    return None


def _is_whole(low: str, end: int, choice: str) -> bool:
    """Return whether a choice's text ends here and is not the beginning of something longer."""
    if end >= len(low):
        return True
    if choice[-1].isalnum() and _GLUED.match(low, end) is not None:
        return False
    if choice[-1].isdigit():
        if low[end] in ".,:/^%" and (low[end] in "^%" or low[end + 1 : end + 2].isdigit()):
            return False
        return _ARITHMETIC.match(low, end) is None
    return True


def _with_its_letter(text: str, low: str, found: Picks, choices: Choices) -> Picks:
    """Return the picks with the letter that stands in brackets behind a text: `Paris (B)`."""
    place = _skip(low, found.end, " ,.-:\"'")
    if low.startswith(("(", "["), place):
        label = _read_label(text, low, _end(_FILLER, low, place), choices)
        if label is not None and low[label.end - 1] in ")]":
            both = found.indices if label.indices <= found.indices else found.indices | label.indices
            return Picks(both, label.end, by_text=True)
    return found


def _read_label(
    text: str, low: str, position: int, choices: Choices, *, listed: bool = False
) -> Picks | None:
    found = _LABEL.match(text, position)
    if found is None:
        return None
    index = choices.named_by(found["letter"])
    if index is None:
        return None
    behind = _skip(low, found.end(), " \t.:)-–,=|\"'")
    own = _read_text(low, behind, choices)
    if (
        own is not None
        and own.end == behind + 1
        and text[behind].isalpha()
        and "," in low[found.end() : behind]
    ):
        own = None  # `A, B` is a list, also where the text of A is `B`
    if own is not None and index in own.indices:
        return Picks(choices.same(index), own.end)
    close = found["close"] or ""
    closed = ")" in close or "]" in close or found["end"] == ")"
    if not closed and not _stands_alone(text, found, listed=listed):
        return None
    if own is not None and own.end > found.end() and _CLAUSE_END.match(low, own.end) is not None:
        return Picks(choices.same(index) | own.indices, own.end)
    return Picks(choices.same(index), found.end())


def _stands_alone(text: str, found: re.Match[str], *, listed: bool) -> bool:
    """Return whether a letter without brackets is a label, not a word or the beginning of one."""
    letter, end = found["letter"], found.start("end")
    if _GLUED.match(text, end) is not None:
        return False
    if found["end"] and _GLUED.match(text, found.end()) is not None:
        return False
    if letter.islower():
        return not listed and _AFTER_SMALL_LETTER.match(text, end) is not None
    if end - found.start() > 1:  # brackets or quotes around it
        return True
    return letter not in _WORD_LETTERS or _AFTER_WORD_LETTER.match(text, end) is not None


def _read_ordinal(low: str, position: int, choices: Choices) -> Picks | None:
    for place in (position, 0):
        found = _ORDINAL.match(low, place)
        if found is None:
            continue
        if found["word"]:
            index = _ORDINAL_WORDS.index(found["word"]) % 5
        elif any(text.isdigit() for text in choices.texts):
            return None
        else:
            index = int(found["digits"]) - 1
        return Picks(choices.same(index), found.end()) if 0 <= index < len(choices.texts) else None
    return None


def _read_number(low: str, position: int, choices: Choices) -> Picks | None:
    """Return the choices that are the number at the place, or the result of the sum, written otherwise."""
    found = _SUM.match(low, position)
    if found is None:
        return None
    value = only_number(found[0].rpartition("=")[2].strip(_EDGE))
    if value is None:
        return None
    equal = frozenset(
        index
        for index, text in enumerate(choices.texts)
        if (number := only_number(text)) is not None and number.equals(value)
    )
    return Picks(equal, found.end(), by_text=True) if equal else None


def _skip(text: str, position: int, characters: str) -> int:
    while position < len(text) and text[position] in characters:
        position += 1
    return position


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return position if found is None else found.end()
