"""Pages that viewers look at, each read once however many look, and never so often that nothing else is done."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import OrderedDict
from dataclasses import field
from pathlib import Path

from pytest_helmbench.benchmarks.kind_record import record_of
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.reports.page.columns import case_texts, told_case
from pytest_helmbench.results.run_report import recorded_results
from pytest_helmbench.store.result_queries import calls_of_case, case_steps
from pytest_helmbench.store.run_queries import RunDetail, run_detail
from pytest_helmbench.view.all_runs import RunList
from pytest_helmbench.view.reader_thread import ReaderThread
from pytest_helmbench.view.shown import Address, NoSuchRunError, Shown

__all__ = ["Shelf"]

_MOST_KEPT = 6
_REST = 3.0
"""After a page was read, so many times as long passes before it is read again for who only follows it."""


@dataclass(slots=True)
class _Kept:
    shown: Shown
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    again_at: float = 0.0


class Shelf:
    """Pages of one results file.

    Args:
        path: Of it.
        texts: Whose texts are shown.
    """

    def __init__(self, path: Path, texts: ShownTexts) -> None:
        self._path = path
        self._texts = texts
        self._thread = ReaderThread("helmbench-pages")
        self._versions = itertools.count(1)
        self._kept: OrderedDict[Address, _Kept] = OrderedDict()
        self._list = RunList(path)

    def forget(self) -> None:
        """Forget what was read: another file stands at the path."""
        self._kept.clear()
        self._list = RunList(self._path)

    async def page(self, address: Address) -> str:
        """Return the page of an address.

        Raises:
            HelmbenchError: There is no such run, or the file cannot be read.
        """
        shown = await self._newest(address)
        return await self._thread.read(lambda: shown.page)

    async def news(self, address: Address, since: int, *, patient: bool) -> str:
        """Return what has changed on it since a version, as JSON; raises as `page` does.

        Args:
            address: Of the page.
            since: Version.
            patient: Nobody waits for it: what was read a moment ago is not read again yet.
        """
        shown = await self._newest(address, patient=patient)
        return await self._thread.read(lambda: shown.news(since))

    async def run_list(self, since: int | None = None) -> str:
        """Return the page that lists the runs, or what has changed on it since a version; raises as `page` does."""
        runs, version = self._list, next(self._versions)

        def read() -> str:
            runs.read(version)
            return runs.page() if since is None else runs.news(since)

        return await self._thread.read(read)

    async def case(self, run: int, code: str, repetition: int) -> dict[str, object]:
        """Return what a page does not hold of a case; raises as `page` does."""
        return await self._thread.read(lambda: self._case(run, code, repetition))

    async def search(self, run: int, word: str) -> list[tuple[str, int]]:
        """Return the cases whose texts, as far as they are shown, hold a word; raises as `page` does."""
        return await self._thread.read(lambda: self._search(run, word.lower()))

    async def _newest(self, address: Address, *, patient: bool = False) -> Shown:
        kept = self._kept.setdefault(address, _Kept(Shown(self._path, address, self._texts)))
        self._kept.move_to_end(address)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        async with kept.lock:  # who waits here gets what was read meanwhile
            if not await self._thread.read(kept.shown.is_new):
                if patient:
                    await asyncio.sleep(max(0.0, kept.again_at - time.monotonic()))
                start = time.monotonic()
                version = next(self._versions)
                await self._thread.read(lambda: kept.shown.read(version))
                end = time.monotonic()
                kept.again_at = end + _REST * (end - start)
        return kept.shown

    def _case(self, run: int, code: str, repetition: int) -> dict[str, object]:
        detail = self._detail(run)
        found = recorded_results(self._path, detail, code, with_text=self._texts.any)
        row = next((row for row in found if row.repetition == repetition), None)
        if row is None:
            raise NoSuchRunError(f"run {run} has no case {code}")
        calls = [call for call in calls_of_case(self._path, run, code) if call.repetition == repetition]
        steps = case_steps(self._path, run, code).get((code, repetition), ())
        return told_case(row, calls, record_of(detail.kind).columns, self._texts, steps)

    def _search(self, run: int, word: str) -> list[tuple[str, int]]:
        if not self._texts.any:
            return []
        rows = recorded_results(self._path, self._detail(run), with_text=True)
        shown = [row for row in rows if self._texts.of(row.outcome)]
        steps = case_steps(self._path, run)
        found = (
            (row.code, row.repetition, case_texts(row, steps.get((row.code, row.repetition), ())))
            for row in shown
        )
        return [(code, repetition) for code, repetition, text in found if word in text.lower()]

    def _detail(self, run: int) -> RunDetail:
        detail = run_detail(self._path, run)
        if detail is None:
            raise NoSuchRunError(f"{self._path.name} has no run {run}")
        return detail
