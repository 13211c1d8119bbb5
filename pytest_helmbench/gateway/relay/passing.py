"""A stream on its way to its client: the events that have come, those of a record, and the last one, held back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator

from pytest_helmbench.gateway.live_stream import EventCutter, LiveStream, events_of
from pytest_helmbench.gateway.relay.event_stream import is_done, reply_events, without_usage
from pytest_helmbench.gateway.relay.exchanges import RawReply

__all__ = ["Passing", "recorded_blocks"]

_BLOCK = 64 * 2**10


class Passing:
    """Takes the events of one stream for one client, in order.

    The event that says that the reply is whole is held back until it is on record.
    """

    def __init__(self) -> None:
        self._live: LiveStream | None = None
        self._changed = asyncio.Event()
        self._position = 0

    @property
    def begun(self) -> bool:
        """Something has come."""
        return self._live is not None and self._live.begun

    @property
    def is_on_the_wire(self) -> bool:
        """Whether the model has been asked: from then on silence is the model's."""
        return self._live is not None and self._live.on_the_wire

    def take(self, live: LiveStream) -> None:
        """Take this stream from its beginning."""
        self._live, self._position = live, 0
        live.listen(self._changed.set)

    async def more(self, completing: asyncio.Task[RawReply], timeout_s: float) -> bool:
        """Wait until there is more, the reply is whole, or time is over; return whether there is more."""
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait((completing, changed), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
        found = self._changed.is_set()
        self._changed.clear()
        return found

    def events(self, *, hides_usage: bool) -> Iterator[bytes]:
        """Yield what has come since, but for the end."""
        while self._live is not None and self._position < len(self._live.events):
            event = self._live.events[self._position]
            if is_done(event):
                return
            self._position += 1
            shown = without_usage(event) if hides_usage else event
            if shown:
                yield shown

    def last_events(self, *, hides_usage: bool) -> Iterator[bytes]:
        """Yield what is left, with the end."""
        rest = [] if self._live is None else self._live.events[self._position :]
        for event in rest:
            shown = without_usage(event) if hides_usage else event
            if shown:
                yield shown


async def recorded_blocks(raw: RawReply, *, hides_usage: bool) -> AsyncIterator[bytes]:
    """Yield a reply that did not come as a stream just now: at the times on record where it has some, else at once."""
    if raw.stream is None:
        for block in _blocks(reply_events(raw.body, with_usage=not hides_usage)):
            yield block
        return
    loop = asyncio.get_running_loop()
    started = loop.time()
    if not raw.times:
        for block in _blocks(_shown(raw.stream, hides_usage=hides_usage)):
            yield block
        return
    for event, at_ms in events_of(raw.stream, raw.times):
        await asyncio.sleep(max(0.0, started + at_ms / 1000 - loop.time()))
        shown = without_usage(event) if hides_usage else event
        if shown:
            yield shown


def _shown(stream: bytes, *, hides_usage: bool) -> Iterator[bytes]:
    if not hides_usage:
        yield stream
        return
    cut: list[bytes] = []
    cutter = EventCutter(cut.append, bytes, lambda: 0.0)
    cutter.feed(stream)
    cutter.close()
    yield from map(without_usage, cut)


def _blocks(events: Iterable[bytes]) -> Iterator[bytes]:
    """Yield events in writes of a fair size."""
    block = bytearray()
    for event in events:
        block += event
        if len(block) >= _BLOCK:
            yield bytes(block)
            block.clear()
    yield bytes(block)
