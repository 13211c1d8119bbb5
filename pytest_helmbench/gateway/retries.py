"""Retries: whether a failed call is tried again, when, and for how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.faults import Fault, FaultKind
from pytest_helmbench.gateway.stated_pauses import used_up_s

_RETRIED = frozenset({FaultKind.RATE_LIMITED, FaultKind.TRANSIENT, FaultKind.TIMEOUT, FaultKind.MALFORMED})
_UNAUTHORIZED = 401
_MOST_TIMEOUTS = 2
BOUND_TOKENS = 4_096
"""Bound of a completion that is asked for again because it did not end in time, where none is stated."""
_FIRST_BACKOFF_S = 0.5
_LONGEST_BACKOFF_S = 30.0
_MOST_DOUBLINGS = 10
_LEAST_ASKED_S = 1.0  # a pause that is shorter says nothing about when to come back
_BOUND = "bound replies with --helmbench-max-tokens"
_ENDLESS_HINT = (
    f"{_BOUND}, or lower --helmbench-concurrency; a slow server may need a larger --helmbench-timeout"
)
BOUND_RENAMED = "bound_renamed"
"""Reason of a refusal after which the same is asked with the bound of the completion by its other name."""
_MOST_SHARED_WAITS = 50  # pauses of everybody that one call may ask for


def is_retried(kind: FaultKind) -> bool:
    """Return whether another attempt may succeed."""
    return kind in _RETRIED


class CallFailedError(HelmbenchError):
    """A call that brought no reply, after all retries.

    Args:
        out_of_time: The case's time limit ended it, not the number of attempts.
    """

    def __init__(self, fault: Fault, attempts: int, *, out_of_time: bool = False) -> None:
        self.fault = fault
        after = f" after {attempts} attempts" if attempts > 1 else ""
        limit = ", at the time limit of the case" if out_of_time else ""
        is_late = out_of_time and fault.kind is FaultKind.TIMEOUT
        helps = f"{_BOUND}, or raise --helmbench-case-timeout" if is_late else fault.hint
        hint = f"\n  hint: {helps}" if helps else ""
        super().__init__(f"{fault.message}{after}{limit}{hint}")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
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
        jitter: A number in [0, 1), so that calls which failed together do not come back together.
    """

    __slots__ = (
        "_forgiven",
        "_jitter",
        "_own_waits",
        "_retries",
        "_retry_policy",
        "_shared_waits",
        "_timeouts",
        "_waits",
    )

    def __init__(self, retry_policy: RetryPolicy, jitter: Callable[[], float]) -> None:
        self._retry_policy = retry_policy
        self._jitter = jitter
        self._retries = 0
        self._waits = 0
        self._own_waits = 0
        self._forgiven = 0
        self._shared_waits = 0
        self._timeouts = 0

    @property
    def after_timeout(self) -> bool:
        """An attempt has run out of time: the next one is the last, and its completion is bounded."""
        return self._timeouts > 0

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
        sentence = f"the case has used up its {self._retry_policy.longest_pause_s:g} s"
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
        self._timeouts += fault.kind is FaultKind.TIMEOUT
        used_up = max(self._retries, self._own_waits) > self._retry_policy.max_retries
        if used_up or not is_retried(fault.kind) or self._timeouts == _MOST_TIMEOUTS:
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


def without_end(fault: Fault) -> Fault:
    """Return the fault of a reply without a stated bound that did not end in time, with a hint that names the bound."""
    return replace(fault, hint=_ENDLESS_HINT)


def cut_after_timeout(usage: Usage) -> Fault:
    """Return the fault of a reply that did not end in time, and was cut at `BOUND_TOKENS` when asked for once more."""
    message = f"the reply did not end in time, nor within {BOUND_TOKENS:,} tokens when asked for once more"
    return Fault(FaultKind.REJECTED, None, "timeout", message, hint=_ENDLESS_HINT, usage=usage)


def _says_unauthorized(fault: Fault) -> bool:
    """Return whether it is a 401, or says the same in an answer of another status, as routers do."""
    return fault.status == _UNAUTHORIZED or fault.reason == "bad_key"
