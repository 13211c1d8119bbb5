"""Rate-limit headers: what a provider says about its limits, and how long it asks to wait."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["RateHeaders", "asked_pause_s", "rate_headers"]

_DURATION = re.compile(
    r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?"
)
_UNITS_S = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)


@dataclass(frozen=True, slots=True)
class RateHeaders:
    """What a provider says about its limits; None where it does not.

    Args:
        limit_requests: Requests per window.
        remaining_requests: Left in this window.
        reset_requests_s: Seconds until the window of requests starts anew.
        limit_tokens: Tokens per window.
        remaining_tokens: Left in this window.
        reset_tokens_s: Seconds until the window of tokens starts anew.
    """

    limit_requests: float | None = None
    remaining_requests: float | None = None
    reset_requests_s: float | None = None
    limit_tokens: float | None = None
    remaining_tokens: float | None = None
    reset_tokens_s: float | None = None


def rate_headers(headers: Mapping[str, str], now: float | None = None) -> RateHeaders:
    """Read `x-ratelimit-*`.

    Args:
        headers: Names in lower case.
        now: Seconds since 1970, for providers that send a point in time; None for the system's clock.
    """
    at = time.time() if now is None else now

    def number(*names: str) -> float | None:
        return next((value for name in names if (value := _number(headers.get(name))) is not None), None)

    def reset(*names: str) -> float | None:
        return next((value for name in names if (value := _reset_s(headers.get(name), at)) is not None), None)

    return RateHeaders(
        limit_requests=number("x-ratelimit-limit-requests", "x-ratelimit-limit"),
        remaining_requests=number("x-ratelimit-remaining-requests", "x-ratelimit-remaining"),
        reset_requests_s=reset("x-ratelimit-reset-requests", "x-ratelimit-reset"),
        limit_tokens=number("x-ratelimit-limit-tokens"),
        remaining_tokens=number("x-ratelimit-remaining-tokens"),
        reset_tokens_s=reset("x-ratelimit-reset-tokens"),
    )


def asked_pause_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return how long to wait: `retry-after-ms`, `Retry-After`, else the reset of what is used up."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    stated = headers.get("retry-after")
    seconds = _number(stated)
    if seconds is None and stated:
        seconds = _seconds_until(stated, now)
    if seconds is not None:
        return seconds
    rates = rate_headers(headers, now)
    used_up = (
        (rates.remaining_requests, rates.reset_requests_s),
        (rates.remaining_tokens, rates.reset_tokens_s),
    )
    return max((reset for left, reset in used_up if left == 0 and reset is not None), default=None)


def _seconds_until(date: str, now: float) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    # A date without a zone is UTC: HTTP knows no other.
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, aware.timestamp() - now)


def _reset_s(text: str | None, now: float) -> float | None:
    value = _number(text)
    if value is not None:
        moment = value / 1000 if value > 1e11 else value
        return max(0.0, moment - now) if moment > 1e9 else value
    if not text:
        return None
    match = _DURATION.fullmatch(text.strip())
    if match and any(match.groups()):
        return sum(float(part) * unit for part, unit in zip(match.groups(), _UNITS_S, strict=True) if part)
    try:
        moment_at = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    # Without a zone nobody knows which moment is meant.
    return max(0.0, moment_at.timestamp() - now) if moment_at.tzinfo else None


def _number(text: str | None) -> float | None:
    """Return a finite number that is at least 0."""
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
