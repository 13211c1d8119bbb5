"""Streams of events on their way: cut out of what arrives, kept with their times, and taken by who passes them on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

__all__ = ["ChunkTimes", "EventCutter", "LiveStream", "events_of", "read_times", "written_times"]

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")

ChunkTimes = tuple[tuple[int, float], ...]
"""For each event of a stream: where it ends, in bytes, and when it had arrived, in ms since the request was sent."""


class LiveStream:
    """The events of a reply that have arrived so far."""

    def __init__(self) -> None:
        self.events: list[bytes] = []
        self.on_the_wire = False
        """A request is out: whoever waits for the first event waits for the model, and no more for leave."""
        self._listener: Callable[[], None] | None = None

    @property
    def begun(self) -> bool:
        """Something has been passed on: the request cannot be made again."""
        return bool(self.events)

    def begin(self) -> None:
        """Take note that the request is sent."""
        self.on_the_wire = True

    def add(self, event: bytes) -> None:
        """Take the next event, with the blank line that ends it."""
        self.events.append(event)
        if self._listener is not None:
            self._listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Have a function called when there is more; it replaces the one before."""
        self._listener = listener
        listener()


class EventCutter:
    """Cuts what arrives into events.

    Args:
        passed_on: Takes each event, with the blank line that ends it.
        cleaned: Returns an event without what must not be seen.
        now_ms: Since the request was sent.
    """

    def __init__(
        self,
        passed_on: Callable[[bytes], None],
        cleaned: Callable[[bytes], bytes],
        now_ms: Callable[[], float],
    ) -> None:
        self._passed_on = passed_on
        self._cleaned = cleaned
        self._now_ms = now_ms
        self._rest = bytearray()
        self._looked_at = 0
        self._events: list[bytes] = []
        self._times: list[tuple[int, float]] = []
        self._size = 0

    def feed(self, chunk: bytes) -> None:
        """Take what has arrived."""
        self._rest += chunk
        while (found := _END.search(self._rest, max(0, self._looked_at - 3))) is not None:
            event = bytes(self._rest[: found.end()])
            del self._rest[: found.end()]
            self._looked_at = 0
            self._take(event)
        self._looked_at = len(self._rest)

    def close(self) -> tuple[bytes, ChunkTimes]:
        """Return the whole body as it was passed on, and the times of its events."""
        if self._rest:
            rest = bytes(self._rest)
            self._rest.clear()
            self._take(rest)
        return b"".join(self._events), tuple(self._times)

    def _take(self, event: bytes) -> None:
        event = self._cleaned(event)
        self._events.append(event)
        self._size += len(event)
        self._times.append((self._size, round(self._now_ms(), 1)))
        self._passed_on(event)


def events_of(stream: bytes, times: ChunkTimes) -> Sequence[tuple[bytes, float]]:
    """Return the events of a recorded stream with their times; as one, at 0, where no times are known."""
    if not times or times[-1][0] != len(stream):
        return ((stream, 0.0),)
    starts = (0, *(end for end, _ in times))
    return tuple((stream[start:end], at) for start, (end, at) in zip(starts, times, strict=False))


def written_times(times: ChunkTimes) -> str | None:
    """Return times as JSON; None for none."""
    return json.dumps(times) if times else None


def read_times(text: str | None) -> ChunkTimes:
    """Return times that were written."""
    return tuple((int(end), float(at)) for end, at in json.loads(text)) if text else ()
