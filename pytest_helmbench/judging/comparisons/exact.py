"""Values and texts that are compared as they are written: what the rules of scenario trees ask for."""

from __future__ import annotations

import re
from decimal import Decimal
from unicodedata import normalize

from pytest_helmbench.core.json_types import JsonValue

_NUMBER = re.compile(r"\s*[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,4})?\s*\Z", re.ASCII)
MARKS: dict[str, str | None] = {
    **dict.fromkeys("‐‑‒–—−", "-"),
    **dict.fromkeys("‘’‚ʼ", "'"),
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad"),
}
"""Dashes, quotes, and characters that are not seen."""
_MARK_TABLE = str.maketrans(MARKS)


def matches(expected: str, observed: JsonValue) -> bool:
    """Return whether a JSON value is the one that the file writes as `expected`.

    The reply fits its schema, so the value has the schema's type, and that type decides: strings exactly,
    numbers by value (`2` is 2, and 2.0 where numbers are asked for), `true`, `false` and `null` as words.
    """
    if isinstance(observed, str):
        return expected == observed
    if isinstance(observed, bool):
        return expected.strip().lower() == ("true" if observed else "false")
    if isinstance(observed, int | float):
        return _NUMBER.match(expected) is not None and Decimal(expected.strip()) == Decimal(str(observed))
    return observed is None and expected.strip().lower() == "null"


def comparable(text: str, *, ignore_case: bool) -> str:
    """Return a text with one kind of dashes, quotes and spaces, lines unwrapped and letters composed (NFC)."""
    text = normalize("NFC", re.sub(r"\s+", " ", text.translate(_MARK_TABLE)))
    return normalize("NFC", text.casefold()) if ignore_case else text
