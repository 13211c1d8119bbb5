"""Digits to the base 2, 8 or 16, where a question asks for them: `0b101101`, `101101₂` and `0010 1101` are `101101`."""

from __future__ import annotations

import re

from pytest_helmbench.benchmarks.packs.families.text.cues import lowered

__all__ = ["with_bare_digits"]

_ASKS_FOR_BASE = re.compile(
    r"(?<!\w)(?:binary|octal|hex(?:adecimal)?|base[- ]?(?:2|8|16|two|eight|sixteen))(?!\w)"
)
_PREFIX = re.compile(r"(?<!\w)0[bxoBXO](?=[\dA-Fa-f]{1,64}(?![\w]))")
_BASE_BEHIND = re.compile(r"(?<=[\dA-Fa-f}])\s?(?:[₁₂₆₈₀]{1,2}|_\{?(?:2|8|10|16)(?:\}|(?![\w}])))")
_NIBBLES = re.compile(r"(?<![\w.,])[01]{1,4}(?:[ _][01]{4}){1,16}(?![\w.,]\d|\w)")


def with_bare_digits(reply: str, question: str) -> str:
    """Return a reply with its digits to a base as digits alone, where the question asks for a base; else as it is."""
    if _ASKS_FOR_BASE.search(lowered(question)) is None:
        return reply
    reply = _BASE_BEHIND.sub("", _PREFIX.sub("", reply))
    return _NIBBLES.sub(lambda found: re.sub("[ _]", "", found[0]), reply)
