"""Pauses that providers ask for, in headers, in fields of an error body and in words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SHOWN = 200
_READ = 20_000  # characters of an error body that are read
_LEAST_MOMENT = 1e9  # seconds since 1970: what is less is a duration
_WINDOWS = (
    (
        ("x-ratelimit-remaining-requests", "x-ratelimit-remaining"),
        ("x-ratelimit-reset-requests", "x-ratelimit-reset"),
    ),
    (("x-ratelimit-remaining-tokens",), ("x-ratelimit-reset-tokens",)),
)
"""Headers that say how much is left of a window, and when it starts anew; of several the first that is there."""
_PAUSE_FIELD = re.compile(
    r"(?:\w*(?:retry|resets?|wait)(?:after|in|delay|at|time)|waitseconds|estimatedtime)(?:s|secs?|seconds)?(?P<thousandths>ms)?"
)
"""Names of fields that state a pause, in small letters without signs; a bare number in them counts seconds."""
_DEEPEST = 6
_AMOUNT = r"(\d+(?:\.\d+)?|an?(?= )|one(?= )) ?(ms|millisecond|s|sec|second|m|min|minute|h|hr|hour|d|day)s?(?![a-z])"
_AMOUNTS, _ALL_AMOUNTS = re.compile(_AMOUNT), re.compile(f"(?:{_AMOUNT} ?)+", re.IGNORECASE)
_PAUSE_IN_WORDS = re.compile(
    r"\b(?:try again|retry|retrying|wait|resets?|available)\b[^.;\d]{0,40}?\b"
    rf"(?P<pause>(?:{_AMOUNT}(?:,? (?:and )?)?)+)"
)
_SECONDS_OF = {"ms": 0.001, "mil": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


def used_up_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return how long until the windows start anew that are used up; None where none is.

    Args:
        headers: Names in lower case.
        now: Seconds since 1970, for providers that send a point in time.
    """
    found = None
    for left, reset in _WINDOWS:
        remaining = next((n for name in left if (n := _number(headers.get(name))) is not None), None)
        until = next((s for name in reset if (s := _reset_s(headers.get(name), now)) is not None), None)
        if remaining is not None and remaining < 1 and until is not None:
            found = max(found or 0.0, until)
    return found


def asked_pause_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return how long to wait: `retry-after-ms`, `Retry-After`, else the reset of what is used up."""
    stated = (_field_s(name, headers.get(name), now) for name in ("retry-after-ms", "retry-after"))
    seconds = next((one for one in stated if one is not None), None)
    return used_up_s(headers, now) if seconds is None else seconds


def stated_pause_s(document: object, now: float, depth: int = 0) -> float | None:
    """Return the pause that a field of an error body names, wherever it stands; None where none does.

    Args:
        now: Seconds since 1970, for moments.
        depth: Of the value in the body.
    """
    if depth >= _DEEPEST or not isinstance(document, dict | list):
        return None
    inner = document[:_DEEPEST] if isinstance(document, list) else document.values()
    if isinstance(document, dict):
        named = [_field_s(key, value, now) for key, value in document.items()]
        headers = document.get("headers")
        if isinstance(headers, dict):
            named.append(asked_pause_s({key.lower(): str(value) for key, value in headers.items()}, now))
        if any(named):
            return next(filter(None, named))
    return next(filter(None, (stated_pause_s(value, now, depth + 1) for value in inner)), None)


def _field_s(key: str, value: object, now: float) -> float | None:
    named = _PAUSE_FIELD.fullmatch(re.sub(r"[\s_-]", "", key.lower()[:_SHOWN]))
    if named is None or value is None or isinstance(value, bool):
        return None
    if isinstance(value, dict):  # Google's own form of a duration
        seconds, nanos = (_number(str(value.get(name))) or 0.0 for name in ("seconds", "nanos"))
        return seconds + nanos / 1e9
    stated = str(value)[:_SHOWN].strip()
    number = _number(stated)
    if number is not None and number < _LEAST_MOMENT:
        return number / 1000 if named["thousandths"] else number
    return _reset_s(stated, now)


def worded_pause_s(text: str) -> float | None:
    """Return the pause that a sentence names (`Please retry in 25.3 seconds`); None where it names none."""
    found = _PAUSE_IN_WORDS.search(text[:_READ].lower())
    return _amounts_s(found["pause"]) if found is not None else None


def _amounts_s(text: str) -> float | None:
    """Return the sum of all amounts of time in a text; None where there are none."""
    found = _AMOUNTS.findall(text.lower())
    each = (
        (float(n) if n[0].isdigit() else 1.0) * (_SECONDS_OF.get(unit[:3]) or _SECONDS_OF[unit[0]])
        for n, unit in found
    )
    return sum(each) if found else None


def _reset_s(text: str | None, now: float) -> float | None:
    value = _number(text)
    if value is not None:
        moment = value / 1000 if value > 1e11 else value
        return max(0.0, moment - now) if moment > _LEAST_MOMENT else value
    if not text:
        return None
    if _ALL_AMOUNTS.fullmatch(text.strip()):
        return _amounts_s(text)
    with suppress(ValueError):
        moment_at = datetime.fromisoformat(text.strip())
        # A date without a zone names no moment.
        return max(0.0, moment_at.timestamp() - now) if moment_at.tzinfo else None
    with suppress(ValueError):
        moment_at = parsedate_to_datetime(text)
        # A date of HTTP without a zone is UTC: it knows no other.
        return max(0.0, (moment_at if moment_at.tzinfo else moment_at.replace(tzinfo=UTC)).timestamp() - now)
    return None


def _number(text: str | None) -> float | None:
    """Return a finite number that is at least 0."""
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
