"""Faults: what went wrong with a call, what that means for it, whether it is tried again, and when."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import REDACTED, scrub
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.providers.servers import without_keys

_BROKEN_OFF = frozenset({"timeout", "reset", "truncated_body", "not_http", "content_encoding"})
_NAMED = ("temperature", "maxItems")  # parts of a request that it can go without
_SHOWN = 200
_READ = 20_000  # characters of an error body that are looked at


class FaultKind(StrEnum):
    """Class of a fault, by what it means for the call, the case and the model."""

    RATE_LIMITED = "rate_limited"
    TRANSIENT = "transient"
    TIMEOUT = "timeout"
    DEAD_MODEL = "dead_model"
    BLOCKED = "blocked"
    REJECTED = "rejected"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an attempt brought no reply.

    Args:
        kind: What it means.
        status: HTTP status; None when no answer came.
        reason: One stable word for tables: `overloaded`, `bad_key`, `moderation`, …
        message: One sentence for people that says whose fault it was; foreign text cut and scrubbed.
        retry_after_s: How long the provider asked to wait; None when it did not say.
        hint: What to do; empty when there is nothing to add.
        code: The provider's own codes and types for it; empty where it named none.
        parameter: Request parameter that the provider named as the culprit.
        usage: What the provider counted nevertheless (a reply that its moderation cut is paid).
        finish_reason: Of such a reply.
    """

    kind: FaultKind
    status: int | None
    reason: str
    message: str
    retry_after_s: float | None = None
    hint: str = ""
    code: str = ""
    parameter: str | None = None
    usage: Usage = Usage()
    finish_reason: str | None = None

    def without_words(self) -> Fault:
        """Return the fault without what the provider has written of it; what it says of no answer is our own."""
        if self.status is None:
            return self
        said = f" {self.code}" if self.code else ""
        named = self.parameter or next((one for one in _NAMED if one in self.message), None)
        return replace(
            self, message=f"the provider answered {self.status}{said} ({REDACTED})", parameter=named
        )

    def text(self) -> str:
        """Return the message, and the hint on a line of its own."""
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


def is_unanswered(fault: Fault) -> bool:
    """Return whether a request was sent and brought no reply, and the provider may bill it all the same.

    It says what it has cost itself, or it never was connected, or it answered that it refuses.
    """
    if fault.usage.cost_usd is not None:
        return False
    if fault.status is None:
        return fault.reason in _BROKEN_OFF
    return fault.kind in (FaultKind.MALFORMED, FaultKind.TOO_LARGE) or fault.finish_reason is not None


def excerpt(text: str, endpoint: Endpoint | None = None) -> str:
    """Return foreign text for a message: one line, no key, no control characters, at most 200 characters."""
    start = text[:_READ]
    # Before the cut: half a key must not survive it.
    shown = endpoint.redacted(start) if endpoint is not None else without_keys(start)
    line = scrub(" ".join(shown.split()))
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


_LEAST_MOMENT = 1e9  # seconds since 1970: what is less is a duration
_WINDOWS = (
    (
        ("x-ratelimit-remaining-requests", "x-ratelimit-remaining"),
        ("x-ratelimit-reset-requests", "x-ratelimit-reset"),
    ),
    (("x-ratelimit-remaining-tokens",), ("x-ratelimit-reset-tokens",)),
)
"""Headers that say how much is left of a window, and when it starts anew; of several the first that is there."""


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


def stated_pause_s(document: object, now: float, depth: int = 0) -> float | None:
    """Return the pause that a field of an error body names, wherever it stands; None where none does.

    Args:
        document: As decoded.
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


_RETRIED = frozenset(
    {FaultKind.RATE_LIMITED, FaultKind.TRANSIENT, FaultKind.TIMEOUT, FaultKind.MALFORMED},
)
_UNAUTHORIZED = 401
_FIRST_BACKOFF_S = 0.5
_LONGEST_BACKOFF_S = 30.0
_MOST_DOUBLINGS = 10
_LEAST_ASKED_S = 1.0  # a pause that is shorter says nothing about when to come back
BOUND_RENAMED = "bound_renamed"
"""Reason of a refusal after which the same is asked with the bound of the completion by its other name."""
_MOST_SHARED_WAITS = 50  # pauses of everybody that one call may ask for


def is_retried(kind: FaultKind) -> bool:
    """Return whether another attempt may succeed."""
    return kind in _RETRIED


class CallFailedError(HelmbenchError):
    """A call that brought no reply, after all retries.

    Args:
        fault: The last fault.
        attempts: How many attempts were sent.
        out_of_time: The case's time limit ended it, not the number of attempts.
    """

    def __init__(self, fault: Fault, attempts: int, *, out_of_time: bool = False) -> None:
        self.fault = fault
        after = f" after {attempts} attempts" if attempts > 1 else ""
        limit = ", at the time limit of the case" if out_of_time else ""
        is_late = out_of_time and fault.kind is FaultKind.TIMEOUT
        helps = "raise --helmbench-case-timeout" if is_late else fault.hint
        hint = f"\n  hint: {helps}" if helps else ""
        super().__init__(f"{fault.message}{after}{limit}{hint}")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often.

    Args:
        timeout_s: Per attempt.
        case_timeout_s: Per case, our own waiting for limits apart; None for 3 × timeout after the first
            attempt.
        max_retries: Attempts after the first; a 429 uses none up, but so many that name no pause are waited for.
        grace_s: How long calls on the wire are waited for whose model has stopped.
    """

    timeout_s: float = 120.0
    case_timeout_s: float | None = None
    max_retries: int = 5
    grace_s: float = 5.0

    @property
    def longest_pause_s(self) -> float:
        """How long a provider may make everybody wait: as long as one case may take."""
        return self.case_timeout_s or 3 * self.timeout_s

    def announced_pause_s(self, headers: Mapping[str, str]) -> float:
        """Return how long a provider wants to be left alone whose window is used up; 0 for not at all."""
        return min(used_up_s(headers, time.time()) or 0.0, self.longest_pause_s)


class Retries:
    """The attempts of one call: whether another one follows, and when.

    Args:
        patience: How long and how often.
        jitter: A number in [0, 1), so that calls which failed together do not come back together.
    """

    __slots__ = ("_forgiven", "_jitter", "_own_waits", "_patience", "_retries", "_shared_waits", "_waits")

    def __init__(self, patience: Patience, jitter: Callable[[], float]) -> None:
        self._patience = patience
        self._jitter = jitter
        self._retries = 0
        self._waits = 0
        self._own_waits = 0
        self._forgiven = 0
        self._shared_waits = 0

    @property
    def attempts(self) -> int:
        """Attempts that have failed so far."""
        return self._retries + self._waits + self._forgiven

    def forgive_once(self, fault: Fault) -> Fault:
        """Return a 401 as a fault that passes, the first time: servers that answer well send one now and then."""
        if self._forgiven or not _says_unauthorized(fault) or fault.kind is not FaultKind.DEAD_MODEL:
            return fault
        return replace(fault, kind=FaultKind.TRANSIENT)

    def check_time(self, left_s: float) -> None:
        """Refuse to go on when the case has no time left.

        Raises:
            CallFailedError: It has none.
        """
        if left_s > 0:
            return
        sentence = f"the case has used up its {self._patience.longest_pause_s:g} s"
        fault = Fault(FaultKind.TIMEOUT, None, "timeout", sentence, hint="raise --helmbench-case-timeout")
        raise CallFailedError(fault, self.attempts)

    def next_pause_s(self, fault: Fault, left_s: float) -> float:
        """Count a failed attempt; return how long to wait before the next one.

        A pause that a rate limit asks of everybody is waited for in the limiter, and costs the case no time.

        Args:
            fault: What came instead of a reply.
            left_s: What is left of the time of the case.

        Raises:
            CallFailedError: No other attempt follows.
        """
        limited = fault.kind is FaultKind.RATE_LIMITED
        if limited:
            self._waits += 1
        elif fault.reason == BOUND_RENAMED or _says_unauthorized(fault):
            self._forgiven += 1
        else:
            self._retries += 1
        self._own_waits += limited and not fault.retry_after_s
        if not is_retried(fault.kind) or max(self._retries, self._own_waits) > self._patience.max_retries:
            raise CallFailedError(fault, self.attempts)
        if limited and (fault.retry_after_s or 0.0) >= _LEAST_ASKED_S:
            self._shared_waits += 1
            if self._shared_waits > _MOST_SHARED_WAITS:
                raise CallFailedError(fault, self.attempts)
            return 0.0
        pause_s = self._pause_s(fault, self._waits if limited else self._retries)
        if pause_s >= left_s:
            raise CallFailedError(fault, self.attempts, out_of_time=True)
        return pause_s

    def _pause_s(self, fault: Fault, count: int) -> float:
        doubled_s = _FIRST_BACKOFF_S * 2.0 ** min(max(count, 1) - 1, _MOST_DOUBLINGS)
        backoff_s = min(_LONGEST_BACKOFF_S, doubled_s) * (0.5 + self._jitter() / 2)
        if fault.retry_after_s is None or fault.retry_after_s < _LEAST_ASKED_S:
            return max(backoff_s, fault.retry_after_s or 0.0)
        # A little more than asked for, and not all at the same moment.
        return fault.retry_after_s + self._jitter() * min(1.0, 0.1 + fault.retry_after_s / 10)


def _says_unauthorized(fault: Fault) -> bool:
    """Return whether it is a 401, or says the same in an answer of another status, as routers do."""
    return fault.status == _UNAUTHORIZED or fault.reason == "bad_key"
