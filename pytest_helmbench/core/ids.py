"""Ids of rows: unlike any other, here and elsewhere, and in the order in which they were made."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

_TICKS_PER_MS = 4096
_RANDOM_BITS = 62


class Ids:
    """Makes ids like version 7 of RFC 9562: the time in 1/4096 ms, then 62 random bits.

    Rows with such keys go to the end of an index. Random keys would change a page of it per row.

    Args:
        now_ns: Nanoseconds since the epoch.
        randomness: Returns so many random bytes.
    """

    def __init__(self, now_ns: Callable[[], int], randomness: Callable[[int], bytes]) -> None:
        self._now_ns = now_ns
        self._randomness = randomness
        self._last = 0

    def __call__(self) -> str:
        """Return a new id, which sorts behind all earlier ones of this process."""
        self._last = max(self._last + 1, self._now_ns() * _TICKS_PER_MS // 1_000_000)
        ticks = f"{self._last:015x}"
        rest = f"{int.from_bytes(self._randomness(8)) >> 2 | 1 << _RANDOM_BITS + 1:016x}"
        return f"{ticks[:8]}-{ticks[8:12]}-7{ticks[12:]}-{rest[:4]}-{rest[4:]}"


new_id = Ids(time.time_ns, os.urandom)
"""Returns the id of a run, a session, a result, a call or a reply."""
