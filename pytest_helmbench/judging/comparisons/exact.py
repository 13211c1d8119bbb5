"""Values and texts that are compared as they are written: what the rules of scenario trees ask for."""

from __future__ import annotations

import re
from bisect import bisect_left
from decimal import Decimal
from unicodedata import normalize

from pytest_helmbench.core.json_types import JsonValue

_NUMBER = re.compile(r"\s*[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,4})?\s*\Z", re.ASCII)
_ONE_KIND = str.maketrans(
    {
        **dict.fromkeys("‐‑‒–—―−⁃˗־⸺⸻", "-"),
        **dict.fromkeys("‘’‚‛‹›ʼʹ′´", "'"),
        **dict.fromkeys("“”„‟«»″〝〞〟", '"'),
    }
)
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Controls that are not white space, and what Unicode lets a font leave out (`Default_Ignorable_Code_Point`)."""


def matches(wanted: str | float, observed: JsonValue) -> bool:
    """Return whether a JSON value is the one that is expected.

    The reply fits its schema, so the value has the schema's type, and that type decides: strings exactly and never
    a number, numbers by value (`2` is 2, and 2.0 where numbers are asked for), `true`, `false` and `null` as words.
    """
    if isinstance(observed, str):
        return wanted == observed
    expected = str(wanted)
    if isinstance(observed, bool):
        return expected.strip().lower() == ("true" if observed else "false")
    if isinstance(observed, int | float):
        return _NUMBER.match(expected) is not None and Decimal(expected.strip()) == Decimal(str(observed))
    return observed is None and expected.strip().lower() == "null"


def comparable(text: str, *, ignore_case: bool) -> str:
    """Return a text in NFKC with one kind of hyphens, quotes and spaces, lines unwrapped, without unseen characters."""
    text = normalize("NFKC", _UNSEEN.sub("", text).translate(_ONE_KIND))
    text = re.sub(r"\s+", " ", text.translate(_ONE_KIND))
    return normalize("NFKC", text.casefold()) if ignore_case else text


def place_of(part: str, text: str, *, ignore_case: bool) -> int | None:
    """Return where a text holds another as both are compared; None for nowhere."""
    at = comparable(text, ignore_case=ignore_case).find(comparable(part, ignore_case=ignore_case))
    if at < 0:
        return None
    ends = range(len(text))
    return bisect_left(ends, at, key=lambda end: len(comparable(text[:end], ignore_case=ignore_case)))
