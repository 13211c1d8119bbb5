"""The special methods by which an object of the candidate may answer, sorted by what they give away.

A test compares what it got with what it wants. An object that is asked to compare itself would be told what is wanted,
and could agree with everything. So only what hands over nothing but an input ever reaches an object that the tests
did not ask for.
"""

from __future__ import annotations

__all__ = [
    "ASKING",
    "COMPUTING",
    "JUDGING",
    "KEYED",
    "LENT_OPERATORS",
    "OPERATORS",
    "ORDERING",
    "SHOWN_BY",
    "VALUE_METHODS",
]


def _names(text: str) -> frozenset[str]:
    return frozenset(f"__{word}__" for word in text.split())


SHOWN_BY = _names("repr str format")

ASKING = SHOWN_BY | _names(
    "call len length_hint bool int float complex index bytes abs neg pos invert round trunc floor ceil iter next "
    "reversed enter exit await aiter anext aenter aexit fspath dir copy deepcopy"
)
"""Questions that name no other value, and calls."""

KEYED = _names("getitem setitem delitem")
"""Questions after a part."""

ORDERING = _names("lt le gt ge")

JUDGING = ORDERING | _names("contains sub rsub")
"""Questions that name a value which may well be the wanted one."""

_ARITHMETIC = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift"
COMPUTING = _names(_ARITHMETIC) | _names("r" + _ARITHMETIC.replace(" ", " r"))
COMPUTING |= _names("i" + _ARITHMETIC.replace(" ", " i"))
COMPUTING -= _names("idivmod sub rsub")

OPERATORS = ASKING | KEYED | JUDGING | COMPUTING | _names("eq hash")

VALUE_METHODS = frozenset(
    (
        *(
            "startswith",
            "endswith",
            "isdisjoint",
            "issubset",
            "issuperset",
            "find",
            "rfind",
            "index",
            "rindex",
        ),
        *("count", "difference", "symmetric_difference", "intersection"),
    )
)
"""Methods of texts and sets to which a test hands what it wants."""

LENT_OPERATORS = (
    KEYED | ORDERING | _names("repr str call len iter contains bool enter exit add sub mul eq hash")
)
"""What the candidate may do with an object of the tests that was handed to it."""
