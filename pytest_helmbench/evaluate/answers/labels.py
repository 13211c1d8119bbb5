"""Letters and texts of choices as replies write them: read at a place, with what is listed beside them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pytest_helmbench.evaluate.answers.cues import lowered
from pytest_helmbench.evaluate.answers.numbers import only_number
from pytest_helmbench.evaluate.answers.plain import plain

__all__ = ["Choices", "Picks", "folded_choice", "label_class", "read_picks"]

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
_LABEL = re.compile(rf"(?P<open>[(\[<\"']*)\s?(?P<letter>{_LETTER})(?:\s?(?P<close>[)\]>\"']+))?(?P<end>[.:)]?)")
# A character that belongs to the same word: not of the scripts that write words without spaces.
_GLUED = re.compile(r"[^\W\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[+#'&](?=\w|[+#])|[-/](?=\w{2})")
_AFTER_WORD_LETTER = re.compile(
    r"\s*(?:$|[.,;:!?)\]\"'(=|/&<>\n\x02\x03→、，。；：和或是-]|(?:because|since|as|for|and|or|but|which|due|given|with|und|oder|weil|et|ou|car|"
    r"porque|y|или|и|потому|так)(?!\w))"
)
_AFTER_SMALL = re.compile(r"\s*(?:$|[.,;:!)\]\"'\n\x02\x03])")
_FILLER = re.compile(
    r"(?:[\s:,\"'*(\[✓]|(?:therefore|thus|hence|so|then|most likely|likely|probably|clearly|definitely|certainly|"
    r"indeed|actually|simply|obviously|just|still|now|in fact|option|options|choice|answer|letter|number|the|either|both|"
    r"alternative|statement|choices|réponse|reponse|antwort|opción|opcion|respuesta|alternativa|opção|risposta|"
    r"вариант|选项|選項|第)(?![\w)]))*"
)
_NOT = re.compile(r"(?:not|neither|nicht|weder|no|ni|pas|не|不是|nie)(?!\w)\s*")
_BUT = re.compile(r"[\s,;.)]*(?:but(?: rather)?(?: it(?:'s| is))?|it(?:'s| is)|rather|instead|sondern|sino|mais|mas|ma|а|но|而是)(?!\w)\s*")
_AND = re.compile(
    r"\s*(?:,\s*(?:and|or|und|oder|et|ou|y|o|e|и|или)?(?!\w)|/|&|\+|;|、|和|或|及|"
    r"(?:and/or|and|or|und|oder|et|ou|y|o|e|и|или|as well as|along with|plus)(?!\w))"
    r"\s*(?:(?:possibly|maybe|perhaps|also|even|both|option|choice|answer)\s+)*"
)
_SAYS_MORE = re.compile(
    r"[)\]]?\s*(?:is|was|isn|wasn|has|does|doesn|can|cannot|could|would|says?|states?|refers?|describes?|fails?|"
    r"means|gives|seems|contains|represents|ist|est|es|это|—|=|wrong|incorrect|rul)(?!\w)"
)
_CLAUSE_END = re.compile(r"\s*(?:$|[.;!\n)\]\x02\x03])")
_ORDINAL = re.compile(
    r"(?:the\s+)?(?:(?P<word>first|second|third|fourth|fifth|1st|2nd|3rd|4th|5th)\s+"
    r"(?:option|choice|answer|one|alternative|statement)|(?:option|choice|number)\s+(?P<digits>\d{1,2}))(?![\w.,]\w)"
)
_ORDINAL_WORDS = ("first", "second", "third", "fourth", "fifth", "1st", "2nd", "3rd", "4th", "5th")
_SUM = re.compile(r"(?=.{0,40}?\d)[\d\s.,()+*/×÷^=·%~≈-]{1,60}(?=$|[;!?]|\s\(|\s?(?:because|since|as|which|so)\s)")
_ARITHMETIC = re.compile(r"\s*[-+*/×÷=^·]\s*[\d(x]")


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of a row, ready to be found in a reply.

    Args:
        texts: Folded, in order.
        longest: Length of the longest text.
        by_length: Indices, those of the longest texts first.
        initials: First characters of the texts.
    """

    texts: tuple[str, ...]
    longest: int
    by_length: tuple[int, ...]
    initials: frozenset[str]

    @classmethod
    def of(cls, choices: tuple[str, ...]) -> Choices:
        """Fold the texts of the choices."""
        texts = tuple([folded_choice(choice) for choice in choices])
        by_length = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        return cls(texts, max(map(len, texts)), tuple(by_length), frozenset([text[:1] for text in texts]))

    def same(self, index: int) -> frozenset[int]:
        """Return the indices of all choices with the text of this one."""
        text = self.texts[index]
        return frozenset(other for other, found in enumerate(self.texts) if found == text)


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


@lru_cache(maxsize=26)
def label_class(count: int) -> str:
    """Return a character class of the capital letters of so many choices, look-alikes included."""
    return "".join(letter for letter, index in _INDEX.items() if index < count and not letter.islower())


def read_picks(text: str, choices: Choices) -> Picks | None:
    """Read what a text names at its start: a letter, a choice's text, or a list of them.

    `not A but B` names B. None when it names nothing there, or only what it is not.

    Args:
        text: One line, spaces collapsed.
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
    first = picks = _read_one(text, low, position, choices)
    if first is None:
        return None
    indices, end = first.indices, first.end
    while (joined := _AND.match(low, end)) is not None and joined.end() < len(low):
        picks = _read_one(text, low, joined.end(), choices, listed=True)
        if picks is None or _SAYS_MORE.match(low, picks.end) is not None:
            break
        indices, end = indices | picks.indices, picks.end
    return Picks(indices, end, first.by_text)


def _read_one(text: str, low: str, position: int, choices: Choices, *, listed: bool = False) -> Picks | None:
    by_text = _read_text(low, position, choices)
    if by_text is not None and not (by_text.end - position == 1 and text[position].isalpha()):
        return _with_its_letter(text, low, by_text, choices)
    return _read_label(text, low, position, choices, listed=listed)


def _read_text(low: str, position: int, choices: Choices) -> Picks | None:
    """Return the choice with the longest text that stands at the place."""
    found = _text_at(low, position, choices)
    opened = _end_of_openers(low, position)
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
            return Picks(choices.same(index), position + len(text), by_text=True)
    return None


def _end_of_openers(low: str, position: int) -> int:
    while position < len(low) and low[position] in " \"'([":
        position += 1
    return position


def _is_whole(low: str, end: int, choice: str) -> bool:
    """Return whether a choice's text ends here and is not the beginning of something longer."""
    if end >= len(low):
        return True
    if (choice[-1].isalnum()) and _GLUED.match(low, end) is not None:
        return False
    if choice[-1].isdigit():
        if low[end] in ".,:/^%" and (low[end] in "^%" or low[end + 1 : end + 2].isdigit()):
            return False
        return _ARITHMETIC.match(low, end) is None
    return True


def _with_its_letter(text: str, low: str, found: Picks, choices: Choices) -> Picks:
    """Return the picks with the letter that stands in brackets behind a text: `Paris (B)`."""
    place = found.end
    while place < len(low) and low[place] in " ,.-:\"'":
        place += 1
    if low.startswith(("(", "["), place):
        label = _read_label(text, low, _end(_FILLER, low, place), choices)
        if label is not None and low[label.end - 1] in ")]":
            return Picks(found.indices if label.indices <= found.indices else found.indices | label.indices, label.end, True)
    return found


def _read_label(text: str, low: str, position: int, choices: Choices, *, listed: bool = False) -> Picks | None:
    found = _LABEL.match(text, position)
    if found is None:
        return None
    index = _INDEX[found["letter"]]
    if index >= len(choices.texts):
        return None
    end = found.end()
    close = found["close"] or ""
    closed = ")" in close or "]" in close or found["end"] == ")"
    own = _read_text(low, _end_of_delimiter(low, end), choices)
    if own is not None and index in own.indices:
        return Picks(choices.same(index), own.end)
    if not closed and not _stands_alone(text, found, listed=listed):
        return None
    if own is not None and _CLAUSE_END.match(low, own.end) is not None and not own.end - end == 0:
        return Picks(choices.same(index) | own.indices, own.end)
    return Picks(choices.same(index), end)


def _end_of_delimiter(low: str, position: int) -> int:
    while position < len(low) and low[position] in " \t.:)-–,=|\"'":
        position += 1
    return position


def _stands_alone(text: str, found: re.Match[str], *, listed: bool) -> bool:
    """Return whether a letter without brackets is a label, not a word or the beginning of one."""
    letter, end = found["letter"], found.start("end")
    if _GLUED.match(text, end) is not None:
        return False
    if found["end"] and _GLUED.match(text, found.end()) is not None:
        return False
    if letter.islower():
        return not listed and _AFTER_SMALL.match(text, end) is not None
    if found["close"] or found["open"]:
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


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return position if found is None else found.end()
