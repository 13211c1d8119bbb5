"""The time that one case may take: what counts is the wire and the pauses between attempts, not our own queues."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from pytest_helmbench.gateway.retries import Patience

__all__ = ["CaseClock"]


class CaseClock:
    """The time a case has used: on the wire and in backoff, not in our own queues.

    Args:
        patience: Its limit.
        clock: Monotonic seconds.
    """

    def __init__(self, patience: Patience, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = patience.longest_pause_s
        self._clock = clock
        self._counts = patience.case_timeout_s is not None
        self._spent_s = 0.0
        self._running = 0
        self._since = 0.0

    @property
    def seconds(self) -> Callable[[], float]:
        """Monotonic seconds, as it counts them."""
        return self._clock

    def left_s(self) -> float:
        """Return what is left; may be below 0."""
        running_s = self._clock() - self._since if self._running and self._counts else 0.0
        return self._limit_s - self._spent_s - running_s

    def asking(self) -> AbstractContextManager[None]:
        """Entered while a request of somebody else's code is open, on the wire or waiting."""
        return nullcontext()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time inside; calls that overlap count once."""
        if not self._running:
            self._since = self._clock()
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                if self._counts:
                    self._spent_s += self._clock() - self._since
                self._counts = True
