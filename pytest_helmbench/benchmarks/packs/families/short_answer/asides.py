"""Brackets behind numbers of a short_answer statement: left out, unless what is asked for stands in them."""

from __future__ import annotations

import re

from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.numbers import numbers
from pytest_helmbench.benchmarks.packs.families.text.units import Unit, unit_of

__all__ = ["ASIDE", "with_asked_aside"]

ASIDE = re.compile(r"(?<=[^\s(^*])\s*\([^()]*\)")
_MORE_PRECISELY = re.compile(
    r"[^\n]*\((?:(?:or\s)?(?:more\s)?(?:precise|exact|accurate)ly,?:?\s(?:it\sis\s)?(?P<value>[^()]*\d[^()]*)"
    r"|(?P<first>[^()]*\d[^()]*?),?\s(?:to\sbe\s(?:more\s)?(?:precise|exact)|(?:precise|exact)ly))\)",
    re.IGNORECASE,
)


def with_asked_aside(text: str, asked: Unit | None) -> str:
    """Return a text without the brackets around the only number in the unit asked for, or around the exact one."""
    if "(" not in text:
        return text
    if (found := _MORE_PRECISELY.search(text)) is not None:
        return f"{found['value'] or found['first']}{text[found.end() :]}"
    if asked is None:
        return text
    low = lowered(text)
    places = [number.start for number in numbers(text) if unit_of(low, number) == asked]
    inside = [found.span() for found in ASIDE.finditer(text)]
    if len(places) != 1 or not any(start < places[0] < end for start, end in inside):
        return text
    return text.replace("(", ", ").replace(")", " ")
