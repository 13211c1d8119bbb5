"""Accepted answers of a short_answer row, read once: as text, number, amount, multiple of π and list."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from pytest_helmbench.benchmarks.packs.families.short_answer.named_values import members
from pytest_helmbench.benchmarks.packs.families.short_answer.row import ShortRow
from pytest_helmbench.benchmarks.packs.families.short_answer.written_forms import only_pi
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.number_words import only_number_words
from pytest_helmbench.benchmarks.packs.families.text.numbers import Number, from_value, numbers
from pytest_helmbench.benchmarks.packs.families.text.plain import plain
from pytest_helmbench.benchmarks.packs.families.text.stems import stem
from pytest_helmbench.benchmarks.packs.families.text.unit_symbols import symbols_behind
from pytest_helmbench.benchmarks.packs.families.text.units import DOLLARS, Unit, asked_unit, quantity
from pytest_helmbench.benchmarks.packs.families.text.wording import folded, words
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["Accepted", "prepared"]


_MOST_WORDS = 3
_SHORTEST_WORD = 3
_CODE, _DOTTED = re.compile(r"0\d+"), re.compile(r"\d+\.\d+")
_ASKS_FOR_LABEL = re.compile(
    r"(?<!\w)(?:versions?|releases?|sections?|chapters?|articles?|paragraphs?|clauses?|editions?)(?!\w)"
)
_HEDGE = re.compile(r"(?:about|approximately|approx\.?|around|roughly|circa|ca\.|~|≈)\s?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Accepted:
    """One accepted answer, ready to be compared.

    Args:
        index: Of the answer.
        written: As the row has it, dates and the like in one form.
        text: Folded.
        number: Its value when it is a number and nothing else; None else.
        near: The number that the tolerance concerns; None without tolerance or number.
        amount: Its number and unit when it is both and nothing else; its number and the unit that the question asks
            for when it is a number.
        in_words: Its number when it is one in words: it may be said in digits.
        bare: Its number when it is a text of a number and the unit that the question asks for, or dollars: a reply may
            leave that unit out.
        counted: Its number when words of the question alone stand behind it: `12 apples`; a reply may leave those out.
        measured: Its number and units of science (`symbols_behind`) when it is both and nothing else.
        pi: Factor and power when it is a multiple of π.
        label: Its digits when they are a name (`01001`, version `3.10`); another number of the same value is another.
        members: What it lists, when it lists several that may come in any order; else empty.
    """

    index: int
    written: str
    text: str
    number: Number | None
    near: Number | None
    amount: tuple[Number, Unit] | None = None
    in_words: Number | None = None
    bare: Number | None = None
    counted: Number | None = None
    measured: tuple[Number, str] | None = None
    pi: tuple[Fraction, int] | None = None
    members: tuple[str, ...] = ()
    label: str | None = None


def _is_label(answer: str | int | float, question: str) -> bool:
    """Return whether digits are no number: a code that begins with 0 (`01001`), a version or section (`3.10`)."""
    if not isinstance(answer, str):
        return False
    return _CODE.fullmatch(answer.strip()) is not None or (
        _DOTTED.fullmatch(answer.strip()) is not None and _ASKS_FOR_LABEL.search(question.lower()) is not None
    )


def _counted(written: str, question: str) -> Number | None:
    """Return the number of a text that is one and, behind it, words of the question."""
    found = next(numbers(written), None)
    if found is None or written[: found.start].strip(" $€£"):
        return None
    behind = words(lowered(written[found.end :]))
    known = {stem(word) for word in words(lowered(question))}
    is_known = 0 < len(behind) <= _MOST_WORDS and all(
        len(word) >= _SHORTEST_WORD and stem(word) in known for word in behind
    )
    return found if is_known and "/" not in written[found.end :] else None


def _measured(written: str) -> tuple[Number, str] | None:
    """Return the number and the units of science that a text consists of; None for any other text."""
    low = lowered(plain(written)).strip(" .")
    found = next(numbers(low), None)
    symbols, end = ("", 0) if found is None or found.start else symbols_behind(low, found.end)
    return (found, symbols) if found is not None and symbols and end == len(low) else None


def prepared(row: ShortRow, alike: Callable[[str], str]) -> tuple[Accepted, ...]:
    """Return the accepted answers of a row, ready to be compared.

    Args:
        row: What was asked.
        alike: What brings answers and replies into one form.
    """
    found = [_prepared(index, answer, row, alike) for index, answer in enumerate(row.accepted)]
    lists = {answer.members for answer in found if answer.members}
    # A comma alone may stand before a place: `Bern, Switzerland`. Beside the same list with `and` it makes a list, too.
    return tuple(
        replace(answer, members=parts)
        if not answer.members and (parts := tuple(sorted(answer.text.split(", ")))) in lists
        else answer
        for answer in found
    )


def _prepared(index: int, answer: str | int | float, row: ShortRow, alike: Callable[[str], str]) -> Accepted:
    """Return one accepted answer, ready to be compared.

    Args:
        index: Of the answer.
        answer: As the row has it.
        row: What was asked.
        alike: What brings answers and replies into one form.
    """
    if isinstance(answer, str) and (hedge := _HEDGE.match(answer)) is not None:
        rest = answer[hedge.end() :]
        answer = rest if from_value(rest) is not None or quantity(rest) is not None else answer
    number = from_value(plain(answer) if isinstance(answer, str) else answer)
    label = str(answer).strip() if _is_label(answer, row.question) else None
    near = number
    written = alike(str(answer))
    amount = quantity(written) if isinstance(answer, str) else None
    asked = asked_unit(lowered(row.question))
    bare = amount[0] if amount is not None and amount[1] in (asked, DOLLARS) else None
    if amount is None and number is not None:
        amount = None if asked is None else (number, asked)
    if row.tolerance is None:
        near = None
    elif number is None and isinstance(answer, str):
        found = [*numbers(plain(answer))]
        near = found[-1] if len(found) == 1 else None
    return Accepted(
        index,
        written,
        folded(written),
        number,
        near,
        amount,
        only_number_words(written) if isinstance(answer, str) else None,
        bare,
        _counted(written, row.question) if amount is None and isinstance(answer, str) else None,
        _measured(written) if amount is None and isinstance(answer, str) else None,
        only_pi(written),
        members(written, row.question),
        label,
    )
