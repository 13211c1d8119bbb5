"""Numbers of a short_answer statement, in digits or words."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.number_words import number_words
from pytest_helmbench.benchmarks.packs.families.text.numbers import Number, numbers
from pytest_helmbench.benchmarks.packs.families.text.units import unit_of

__all__ = ["numbers_said"]


def numbers_said(text: str) -> list[Number]:
    """Return the numbers of a text; those written as words where it has no digits, fractions (`a fourth`) anywhere."""
    digits, spelled = [*numbers(text)], [*number_words(lowered(text))]
    low = lowered(text)
    parts = [one for one in spelled if one.values[0].denominator != 1 or unit_of(low, one) is not None]
    return sorted([*digits, *parts], key=lambda one: one.start) if digits else spelled
