"""Tables and Markdown: columns under a head; foreign text that cannot act; JSON as people read it."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

from pytest_helmbench.core.scrub import excerpt, quoted_json, scrub

UNKNOWN = "unknown"
_WIDEST, _NARROWEST = 60, 8
_LONGEST_LABEL = 17
_LABEL = re.compile(r"  \w+: +|(?: *\S+(?: \S+)?(?=  ))? {2,}")
"""A label and the blanks behind it, or the blanks that a line begins with."""
_WIDE = "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60"
_WORD = re.compile(rf" *(?:[{_WIDE}]|[^ {_WIDE}]+(?: (?:%|– [^ ]+|points?)(?![^ ,.;:)]))?)| +$")
_PART = re.compile(r"[^-/_[]*[-/_[]+|[^-/_[]+")
"""A word with the blanks before it, and the sign, range or noun that belongs to a number."""


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: Collection[str],
    width: int | None = None,
    spare: Iterable[Collection[str]] = (),
) -> list[str]:
    """Return aligned lines; cells are scrubbed, put on one line and cut.

    Args:
        left: Titles of the columns with text; the others have numbers.
        width: Most columns of a line; None for any.
        spare: Titles of the columns that are left out, a group at a time, where the first column does not fit in
            three eighths of the width: the first that say the same of all rows first. Then the longest texts are cut.
    """
    cells = [list(head), *([_cell(cell) for cell in row] for row in rows)]
    columns = [[row[index] for row in cells] for index in range(len(head))]
    widths = {index: max(map(display_width, column)) for index, column in enumerate(columns)}

    def is_telling(group: Collection[str]) -> bool:
        return any(len({*column[1:]} - {""}) > 1 for column in columns if column[0] in group)

    if width is not None:
        over = min(0, 3 * width // 8 - widths[0]) - 2 - width
        for group in sorted(spare, key=is_telling):
            if sum(widths.values()) + 2 * len(widths) + over > 0:
                widths = {index: wide for index, wide in widths.items() if head[index] not in group}
        while sum(widths.values()) + 2 * len(widths) - 2 > width and max(widths.values()) > _NARROWEST:
            widths[max(widths, key=widths.__getitem__)] -= 1
    return [
        "  ".join(
            padded(fitted(row[index], wide), wide, to_left=head[index] in left)
            for index, wide in widths.items()
        ).rstrip()
        for row in cells
    ]


def fitted(text: str, width: int) -> str:
    """Return a text in so many columns; of a name, which has no blank, its end stays: names differ there."""
    if display_width(text) <= width:
        return text
    places, kept = range(len(text) + 1), width - 1 if " " in text.strip() else width // 2
    first = next(place for place in places if display_width(text[: place + 1]) > kept)
    last = next(
        place for place in places if display_width(text[place:]) < width - display_width(text[:first])
    )
    return f"{text[:first]}…{text[last:]}"


def broken(text: str, width: int | None) -> list[str]:
    """Return the lines of a text, broken at blanks and between wide characters; a longer word behind `/ - _ [`.

    Args:
        width: Most columns of a line; None for any. Later lines begin under the text behind the label.
    """
    if width is None or display_width(text) <= width:
        return [text]
    label = _LABEL.match(text)
    indent = (0 if label is None else label.end()) or 2
    words = _WORD.findall(text)
    lines = [""]
    for word in (part for one in words for part in (_PART.findall(one) if len(one) > width - 2 else [one])):
        if lines[-1].strip() and display_width(lines[-1] + word) > width:
            lines.append(" " * (indent if indent <= _LONGEST_LABEL else 2))
            lines[-1] += word.lstrip(" ")
        else:
            lines[-1] += word
    return lines


def padded(text: str, width: int, *, to_left: bool = True) -> str:
    """Return a text with blanks behind it, or before it, up to as many columns of a terminal."""
    blanks = " " * (width - display_width(text))
    return text + blanks if to_left else blanks + text


def display_width(text: str) -> int:
    """Return how many columns of a terminal a scrubbed text takes: two for a wide character, none for an accent."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in unicodedata.normalize("NFC", text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def number(value: int | None) -> str:
    """Return a count; None is unknown, never 0."""
    return UNKNOWN if value is None else str(value)


def seconds(ms: float | None) -> str:
    """Return a duration for people; a dash for an unknown one."""
    if ms is None:
        return "-"
    return f"{ms:.3g} ms" if ms < 1000 else f"{ms / 1000:.3g} s"


def rate(value: float | None) -> str:
    """Return tokens per second for people; a dash where the speed is unknown."""
    return "-" if value is None else f"{value:.1f}"


def share(value: float | Fraction | None) -> str:
    """Return a fraction in per cent; None is a dash, since there is no such number yet.

    Less than all is never shown as `100.0 %`.
    """
    if value is None:
        return "-"
    return f"{99.9 if 0.9990 < value < 1 else 100 * float(value):.1f} %"


def score_cell(score: float | Fraction | None, capped: float | Fraction | None) -> str:
    """Return `67.1 %`; where a breached floor caps that, `67.1 %, capped to 50.0`."""
    return share(score) if capped is None else f"{share(score)}, capped to {100 * float(capped):.1f}"


def points_lost(part: Fraction) -> str:
    """Return what a case or a part has lost of the score, in points: `0.31`."""
    return f"{100 * float(part):.2f}"


def cost_text(known_usd: float, unknown: int) -> str:
    """Return a cost for people; what is unknown is said, never shown as 0."""
    if not unknown:
        return usd(known_usd)
    return UNKNOWN if not known_usd else f"{usd(known_usd)} + {unknown} unknown"


def usd(amount: float) -> str:
    """Return an amount for people: two digits from 10 on, four below."""
    if 0 < amount < 0.0001:
        return "<0.0001"  # a little is not nothing
    return f"{amount:.2f}" if amount >= 10 else f"{amount:.4f}"


def count_text(amount: int, noun: str, several: str = "") -> str:
    """Return `1 case`, `2 cases`."""
    return f"{amount} {noun if amount == 1 else several or f'{noun}s'}"


def labelled(label: str, text: str) -> str:
    """Return a line of a summary with its label."""
    return f"{label:<12} {text}"


def listed(names: Sequence[str]) -> str:
    """Return three names, and how many more there are."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def reasons_text(reasons: Mapping[str, int]) -> str:
    """Return `timeout 3, blocked 1`, the most frequent first."""
    return ", ".join(
        f"{reason} {count}" for reason, count in sorted(reasons.items(), key=lambda r: (-r[1], r[0])) if count
    )


def _cell(text: str) -> str:
    indent = len(text) - len(text.lstrip(" "))
    return " " * indent + fitted(excerpt(" ".join(text.split()), 4 * _WIDEST), _WIDEST)


def text_of(value: object) -> str:
    """Return a text as it is, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def readable_json(value: object, indent: int | None = None) -> str:
    """Return JSON that reads well and harms no terminal; what could, there or in the log of a CI, is escaped."""
    plain = json.dumps(value, ensure_ascii=False, indent=indent)
    return quoted_json(plain if scrub(plain) == plain else json.dumps(value, indent=indent))
