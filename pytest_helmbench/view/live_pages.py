"""Pages of a results file for `helmbench view`, each read once however many viewers look, and how far its runs are."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeVar

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.reports.page.document import html_page, run_list_page
from pytest_helmbench.reports.page.parts import PagePart
from pytest_helmbench.results.comparing import ComparedRun, RunComparison, RunRef, compare_runs
from pytest_helmbench.results.run_report import RunReport, run_report, shown_texts
from pytest_helmbench.results.standings import boards
from pytest_helmbench.store.read.runs import ProgressReader, RunDetail, RunProgress, run_detail, runs
from pytest_helmbench.store.read.score_facts import load_facts

_Read = TypeVar("_Read")

_LIVES_EVERY_S = 5.0
"""Seconds between two checks for live processes while nothing is written."""
_PAUSE = 9.0
"""Pause after a look, in times of its duration; a look at a run of 100,000 cases takes 0.1 s."""
_MOST_LISTED = 200
_MOST_KEPT = 6


class NoSuchRunError(HelmbenchError):
    """An address names a run that the file does not have, or runs that cannot be compared."""


@dataclass(frozen=True, slots=True)
class Address:
    """The runs of a page by number; of a comparison, baseline and candidate."""

    runs: tuple[int, ...]
    compared: bool = False

    @property
    def path(self) -> str:
        """The path of the page: `/r/3`, `/r/3,4`, `/c/3..5`."""
        return (
            f"/c/{self.runs[0]}..{self.runs[1]}" if self.compared else f"/r/{','.join(map(str, self.runs))}"
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of a results file when it was last read: how many have stood at its path, and progress by run."""

    file: int
    progress: Mapping[int, RunProgress]

    def record(self, wanted: tuple[int, ...] = ()) -> dict[str, object]:
        """Return the state in JSON types: of the wanted runs, of all runs without any."""
        found = {
            run: asdict(progress) | {"done": progress.done}
            for run, progress in self.progress.items()
            if not wanted or run in wanted
        }
        return {"file": self.file, "runs": found}


class _ReaderThread:
    """One thread that ends with the process; it does one thing at a time, in the order of the requests."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name=name, daemon=True).start()

    async def read(self, act: Callable[[], _Read]) -> _Read:
        async def call() -> _Read:
            return act()

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), self._loop))


class LivePages:
    """Pages of one results file; without `texts` they show those of the user's own data."""

    def __init__(self, path: Path, texts: ShownTexts | None, refresh_s: float) -> None:
        self._path = path
        self._texts = texts
        self._refresh_s = refresh_s
        self._looking = _ReaderThread("helmbench-poller")
        self._reading = _ReaderThread("helmbench-pages")
        self._reader: ProgressReader | None = None
        self._seen = Seen(0, {})
        self._counted_at = self._again_at = 0.0
        self._kept: OrderedDict[Address, tuple[Seen, str]] = OrderedDict()

    async def state(self, *, newest: bool = False) -> Seen:
        """Return how far the runs are as of a moment ago, or of now where the newest is wanted.

        Raises:
            StoreError: The file is missing, or cannot be read.
        """
        return await self._looking.read(lambda: self._look(newest=newest))

    def _look(self, *, newest: bool) -> Seen:
        start = time.monotonic()
        if start < self._again_at and not newest:
            return self._seen
        if self._reader is not None and not self._reader.is_kept:
            self._reader.close()
            self._reader = None
        if self._reader is None:
            self._reader = ProgressReader(self._path)
            self._seen = Seen(self._seen.file + 1, {})
            self._counted_at = 0.0
        if self._reader.has_changed() or start - self._counted_at > _LIVES_EVERY_S:
            self._seen = replace(self._seen, progress=self._reader.progress())
            self._counted_at = start
        end = time.monotonic()
        self._again_at = max(start + self._refresh_s, end + _PAUSE * (end - start))
        return self._seen

    async def run_list(self) -> str:
        """Return the page that lists the runs, the newest first.

        Raises:
            StoreError: The file is missing, or cannot be read.
        """
        seen = await self.state(newest=True)
        return await self._reading.read(lambda: self._run_list(seen))

    def _run_list(self, seen: Seen) -> str:
        known = [run for run in reversed(runs(self._path)) if run.id in seen.progress]
        listed = [(run, seen.progress[run.id]) for run in known[:_MOST_LISTED]]
        return run_list_page(self._path.name, listed, len(known) - len(listed), self._refresh_s)

    async def page(self, address: Address) -> str:
        """Return the page of an address.

        Raises:
            NoSuchRunError: The file has no such run, or the two cannot be compared.
            HelmbenchError: The file cannot be read, or the page would be too large.
        """
        seen = await self.state(newest=True)
        gone = [run for run in address.runs if run not in seen.progress]
        if gone:
            raise NoSuchRunError(f"{self._path.name} has no run {gone[0]}")
        mine = replace(seen, progress={run: seen.progress[run] for run in address.runs})
        return await self._reading.read(lambda: self._page(address, mine))

    def _page(self, address: Address, seen: Seen) -> str:
        kept = self._kept.get(address)
        if kept is not None and kept[0] == seen:
            return kept[1]
        texts = shown_texts([(self._path, run) for run in address.runs], self._texts)
        if address.compared:
            found = PagePart.compared(self._comparison(*address.runs), texts)
            parts = [replace(found, baseline=_as_seen(found.baseline, seen))]
        else:
            reports = (
                run_report(self._path, run, with_text=texts.any, all_cases=True) for run in address.runs
            )
            parts = [PagePart.of(report, texts) for report in reports if report is not None]
        parts = [replace(part, report=_as_seen(part.report, seen)) for part in parts]
        shown = [part.report for part in parts if part.report is not None and not address.compared]
        live = seen.record() | {"refresh_ms": 1000 * self._refresh_s}
        page = html_page(parts, texts, boards(shown), live)
        self._kept[address] = (seen, page)
        self._kept.move_to_end(address)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return page

    def _comparison(self, before: int, after: int) -> RunComparison:
        first, second = (self._detail(run) for run in (before, after))
        if first.benchmark != second.benchmark:
            raise NoSuchRunError(
                f"run {second.id} is of {second.benchmark}, run {first.id} of {first.benchmark}:"
                " only runs of the same benchmark are compared"
            )
        refs = [RunRef.of(self._path, summary, self._path) for summary in (first, second)]
        baseline, candidate = (ComparedRun.stored(ref) for ref in refs)
        facts = load_facts(self._path, after)
        if baseline is None or candidate is None or facts is None:
            raise NoSuchRunError(f"{self._path.name} has no run {after}")
        return compare_runs(facts, candidate, baseline)

    def _detail(self, run: int) -> RunDetail:
        detail = run_detail(self._path, run)
        if detail is None:
            raise NoSuchRunError(f"{self._path.name} has no run {run}")
        return detail


def _as_seen(report: RunReport | None, seen: Seen) -> RunReport | None:
    """Return a report with the status that its process shows."""
    if report is None:
        return None
    status = seen.progress[report.detail.id].status
    return replace(report, detail=replace(report.detail, status=status))
