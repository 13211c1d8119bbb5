"""The one poller of all viewers: how far the runs of the file are, asked for only while somebody looks."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.run_queries import Pulse, PulseReader
from pytest_helmbench.view.shelf import ReaderThread

__all__ = ["Seen", "Watch"]

_LIVES_EVERY_S = 5.0
"""How often it is looked whether processes live although nothing was written."""
_MOST_OF_THE_TIME = 0.1
"""Share of its time that the poller reads at most; counting a run of 100,000 cases takes 0.1 s."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the poller has seen last.

    Args:
        pulses: By run.
        fault: Why nothing newer can be read; empty while it can.
        file: Counts the files that have stood at the path.
    """

    pulses: Mapping[int, Pulse] = field(default_factory=dict)
    fault: str = ""
    file: int = 0


class Watch:
    """Looks at a results file while there are viewers.

    Args:
        path: Of it.
        refresh_s: Between two looks.
        other_file: Called when another file stands at the path.
    """

    def __init__(self, path: Path, refresh_s: float, other_file: Callable[[], None]) -> None:
        self.seen = Seen()
        self._path = path
        self._refresh_s = refresh_s
        self._other_file = other_file
        self._thread = ReaderThread("helmbench-poller")
        self._viewers = 0
        self._wanted = asyncio.Event()
        self._news = asyncio.Event()
        self._reader: PulseReader | None = None
        self._opened = -1
        self._counted_at = 0.0

    @contextlib.contextmanager
    def viewer(self) -> Iterator[None]:
        """Have the file looked at while inside."""
        self._viewers += 1
        self._wanted.set()
        try:
            yield
        finally:
            self._viewers -= 1
            if not self._viewers:
                self._wanted.clear()

    async def change(self) -> None:
        """Wait until something else was seen."""
        await self._news.wait()

    async def poll(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self._wanted.wait()
            start = time.monotonic()
            found = await self._thread.read(self._look)
            if found != self.seen:
                if found.file != self.seen.file:
                    self._other_file()
                self.seen = found
                self._news.set()
                self._news = asyncio.Event()
            took_s = time.monotonic() - start
            await asyncio.sleep(max(self._refresh_s, took_s / _MOST_OF_THE_TIME))

    def _look(self) -> Seen:
        """Return what the file says; runs in the poller's thread."""
        seen = self.seen
        try:
            if self._reader is not None and not self._reader.is_kept:
                self._reader.close()
                self._reader = None
            if self._reader is None:
                self._reader = PulseReader(self._path)
                self._opened += 1
                self._counted_at = 0.0
            now = time.monotonic()
            if self._reader.has_changed() or now - self._counted_at > _LIVES_EVERY_S:
                self._counted_at = now
                seen = replace(seen, pulses=self._reader.pulses())
            return replace(seen, fault="", file=self._opened)
        except StoreError as error:
            return replace(seen, fault=f"{error.path.name}: {error.problem}")
