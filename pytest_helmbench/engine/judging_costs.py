"""The cost of judging, as measured: by it is decided where the next reply is judged."""

from __future__ import annotations

from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.judging.evaluator import Evaluator

__all__ = ["INLINE_MS", "CostKey", "JudgingCosts"]

INLINE_MS = 2.0
"""Below it a reply is judged where it arrives: every other way costs more."""

CostKey = tuple[str, int]
"""Replies that take about as long: the evaluator's group, and the length of the reply in powers of two."""

_SETTLES = 0.8
_WORTH_MS = 3_000.0
_SEEN = 8


class JudgingCosts:
    """CPU milliseconds per reply."""

    def __init__(self) -> None:
        self._expected = 0
        self._done = 0
        self._spent_ms = 0.0
        self._dear = 0
        self._most: dict[CostKey, float] = {}
        self._mean: dict[CostKey, float] = {}

    def expect(self, replies: int) -> None:
        """Take note that so many more will be judged, at most."""
        self._expected += replies

    @staticmethod
    def key(evaluator: Evaluator[object], reply: Reply) -> CostKey:
        """Return what a reply is like."""
        return evaluator.group, len(reply.text).bit_length()

    def is_cheap(self, key: CostKey) -> bool:
        """Return whether replies like it are known to take less than `INLINE_MS`."""
        most = self._most.get(key)
        return most is not None and most < INLINE_MS

    def mean(self, key: CostKey) -> float | None:
        """Return what replies like it take; None where none has been judged."""
        return self._mean.get(key)

    def took(self, key: CostKey, ms: float) -> None:
        """Take note of a reply. What took long once is not called cheap again before it was cheap many times."""
        self._done += 1
        self._spent_ms += ms
        self._dear += ms >= INLINE_MS
        self._most[key] = max(ms, self._most.get(key, 0.0) * _SETTLES)
        self._mean[key] = ms + (self._mean.get(key, ms) - ms) * _SETTLES

    @property
    def worth_judges(self) -> bool:
        """Whether what is still to be judged is worth processes that have to be started for it."""
        if self._dear < _SEEN:
            return False
        return (self._expected - self._done) * self._spent_ms / self._done >= _WORTH_MS
