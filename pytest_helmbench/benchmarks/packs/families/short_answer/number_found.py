"""The number that a short_answer statement ends in, and what was seen around it."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.text.numbers import Number
from pytest_helmbench.benchmarks.packs.families.text.units import Unit
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["NumberFound"]


@dataclass(frozen=True, slots=True)
class NumberFound:
    """The number that a statement ends in.

    Args:
        number: None when there is none, when it is denied, or one of several.
        several: It stands in a list or a range.
        other_end: Of the range that `several` is, beside `number`; None for a list.
        unit: Of the number; None for none that is known.
        bound: It stands behind `<`, `>` and the like: it only bounds the value.
        written: As the statement has it, in lower case.
        about: It is said to be rounded.
        symbols: Units of science behind it, see `symbols_behind`; empty for none.
        guess: It is chosen from several, or said without digits.
    """

    number: Number | None = None
    several: bool = False
    other_end: Number | None = None
    unit: Unit | None = None
    bound: bool = False
    written: str = ""
    about: bool = False
    symbols: str = ""
    guess: bool = False
