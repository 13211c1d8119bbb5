"""Pages that viewers look at, each read once however many look, and what has changed since on each."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Generic, TypeVar

from pytest_helmbench.benchmarks.kind_record import record_of
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.core.uncollected import uncollected
from pytest_helmbench.reports.page.columns import (
    Cells,
    Flip,
    PagePart,
    case_cells,
    case_texts,
    flips,
    packed_cells,
    told_case,
)
from pytest_helmbench.reports.page.document import (
    ListedRun,
    LiveMark,
    page_of,
    run_list_page,
    run_list_rows,
    sections_of,
)
from pytest_helmbench.results.comparing import ComparedRun, RunComparison, RunRef, compare_runs
from pytest_helmbench.results.run_report import RunReport, recorded_results, run_report
from pytest_helmbench.results.standings import boards
from pytest_helmbench.store.plans import load_facts
from pytest_helmbench.store.result_queries import calls_of_case, case_steps
from pytest_helmbench.store.run_queries import Pulse, RunDetail, RunSummary, pulses, run_detail, runs

_Read = TypeVar("_Read")


class ReaderThread:
    """One thread, one thing at a time, in the order they were asked for.

    Args:
        name: Of the thread.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name=name, daemon=True).start()

    async def read(self, act: Callable[[], _Read]) -> _Read:
        """Return what a function returns, or raise what it raises."""

        async def call() -> _Read:
            return act()

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), self._loop))


_Key = TypeVar("_Key", bound=Hashable)


class History(Generic[_Key]):
    """When each of some values has changed last."""

    def __init__(self) -> None:
        self._changed: dict[_Key, tuple[int, int]] = {}
        self._lost_at = 0

    def note(self, values: Mapping[_Key, Hashable], version: int) -> None:
        """Take what is shown from a version on.

        Args:
            values: By key, in the order they are shown.
            version: Larger than all before.
        """
        before = self._changed
        if not before.keys() <= values.keys():
            self._lost_at = version
        self._changed = {}
        for key, value in values.items():
            now, known = hash(value), before.get(key)
            self._changed[key] = known if known is not None and known[0] == now else (now, version)

    def since(self, version: int) -> tuple[_Key, ...] | None:
        """Return the keys whose values are newer than a version; None where a value has gone since."""
        if version < self._lost_at:
            return None
        return tuple(key for key, (_, changed) in self._changed.items() if changed > version)


_Place = tuple[str, int]  # code and repetition


class NoSuchRunError(HelmbenchError):
    """An address names a run that the file does not have, or runs that cannot be compared."""


@dataclass(frozen=True, slots=True)
class Address:
    """What is to be shown.

    Args:
        runs: Numbers; baseline and candidate where they are compared.
        compared: Whether they are.
    """

    runs: tuple[int, ...]
    compared: bool = False

    @property
    def path(self) -> str:
        """Of the page: `/r/3`, `/r/3,4`, `/c/3..5`."""
        return (
            f"/c/{self.runs[0]}..{self.runs[1]}" if self.compared else f"/r/{','.join(map(str, self.runs))}"
        )


@dataclass(frozen=True, slots=True)
class _Segment:
    """The cells of one run on the page."""

    keys: tuple[_Place, ...]
    cells: Cells


class Shown:
    """An address as it was read last; every method runs in the same thread.

    Args:
        path: Results file.
        address: What is shown.
        texts: Whose texts are shown where a case is opened; the page itself holds none.
    """

    def __init__(self, path: Path, address: Address, texts: ShownTexts) -> None:
        self.page = ""
        self.version = 0
        self.known: dict[int, tuple[int, str]] = {}
        self._path = path
        self._address = address
        self._texts = texts
        self._segments: dict[str, _Segment] = {}
        self._cells: dict[str, History[_Place]] = {}
        self._sections: dict[str, str] = {}
        self._parts = History[str]()

    def is_new(self) -> bool:
        """Return whether it shows what the file holds.

        Raises:
            NoSuchRunError: The file has no such run any more.
            StoreError: The file cannot be read.
        """
        return bool(self.version) and self.known == _known(self._pulses())

    def read(self, version: int) -> None:
        """Read all of it anew.

        Args:
            version: Larger than all before.

        Raises:
            NoSuchRunError: The file has no such run.
            HelmbenchError: The file cannot be read, or the page would be too large.
        """
        with uncollected():
            self._read(version)

    def _read(self, version: int) -> None:
        found = self._pulses()
        parts = [self._compared(found)] if self._address.compared else list(self._single(found))
        known = _known(found)
        reports = [part.report for part in parts if part.report is not None]
        beside = boards(reports, paired=not self._address.compared)
        segments = dict(_segments(parts))
        cells = {name: segment.cells for name, segment in segments.items()}
        page = page_of(parts, self._texts, beside, LiveMark(version, known, cells))
        for name, segment in segments.items():
            self._cells.setdefault(name, History()).note(_rows(segment), version)
        sections = sections_of(page)
        self._parts.note(sections, version)
        self.page, self.version, self.known = page, version, known
        self._segments, self._sections = segments, sections

    def news(self, since: int) -> str:
        """Return as JSON what has changed since a version: rows of the table, and parts above it."""
        cells = {name: self._new_cells(name, since) for name in self._segments}
        parts = self._parts.since(since)
        if parts is None or None in cells.values():
            return '{"reload":true}'
        told = {
            "version": self.version,
            "known": self.known,
            "cells": {name: value for name, value in cells.items() if value},
            "parts": {name: self._sections[name] for name in parts},
        }
        return json.dumps(told, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    def _new_cells(self, name: str, since: int) -> dict[str, object] | None:
        segment, changed = self._segments[name], self._cells[name].since(since)
        if changed is None:
            return None
        if not changed:
            return {}
        wanted = set(changed)
        places = [place for place, key in enumerate(segment.keys) if key in wanted]
        labels, numbers = segment.cells
        return {
            "n": len(segment.keys),
            "places": places,
            "c": packed_cells(
                (
                    {column: [values[place] for place in places] for column, values in labels.items()},
                    {column: [values[place] for place in places] for column, values in numbers.items()},
                )
            ),
        }

    def _pulses(self) -> dict[int, Pulse]:
        found = pulses(self._path)
        gone = [run for run in self._address.runs if run not in found]
        if gone:
            raise NoSuchRunError(f"{self._path.name} has no run {gone[0]}")
        return {run: found[run] for run in self._address.runs}

    def _single(self, found: Mapping[int, Pulse]) -> Iterator[PagePart]:
        for run in self._address.runs:
            yield PagePart(self._report(run, found))

    def _compared(self, found: Mapping[int, Pulse]) -> PagePart:
        before, after = (self._report(run, found) for run in self._address.runs)
        comparison = self._comparison(before, after)
        return PagePart(after, comparison, before, flips(after.results, before.results))

    def _report(self, run: int, found: Mapping[int, Pulse]) -> RunReport:
        report = run_report(self._path, run, all_cases=True)
        if report is None:
            raise NoSuchRunError(f"{self._path.name} has no run {run}")
        summary = replace(report.detail.summary, status=found[run].status)
        return replace(report, detail=replace(report.detail, summary=summary))

    def _comparison(self, before: RunReport, after: RunReport) -> RunComparison:
        first, second = (report.detail.summary for report in (before, after))
        if first.benchmark != second.benchmark:
            raise NoSuchRunError(
                f"run {second.id} is of {second.benchmark}, run {first.id} of {first.benchmark}:"
                " only runs of the same benchmark are compared"
            )
        refs = [RunRef.of(self._path, summary, self._path) for summary in (first, second)]
        baseline, candidate = (ComparedRun.stored(ref) for ref in refs)
        facts = load_facts(self._path, second.id)
        if baseline is None or candidate is None or facts is None:
            raise NoSuchRunError(f"{self._path.name} has no run {second.id}")
        return compare_runs(facts, candidate, baseline)


def _known(found: Mapping[int, Pulse]) -> dict[int, tuple[int, str]]:
    return {run: (pulse.done, pulse.stamp) for run, pulse in found.items()}


def _segments(parts: Sequence[PagePart]) -> Iterator[tuple[str, _Segment]]:
    for index, part in enumerate(parts):
        none: Mapping[_Place, Flip] = {}
        for name, report, found in (
            (f"{index}", part.report, part.flips),
            (f"{index}b", part.baseline, none),
        ):
            if report is not None:
                keys = tuple((row.code, row.repetition) for row in report.results)
                yield name, _Segment(keys, case_cells(report, found))


def _rows(segment: _Segment) -> dict[_Place, tuple[object, ...]]:
    """Return the cells of each case."""
    labels, numbers = segment.cells
    rows = zip(*labels.values(), *numbers.values(), strict=True)
    return dict(zip(segment.keys, rows, strict=True))


_MOST = 200


class RunList:
    """Every method runs in the same thread.

    Args:
        path: Results file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[str, str] = {}
        self._history = History[str]()
        self._listed: tuple[ListedRun, ...] = ()
        self._left_out = 0
        self._version = 0

    def read(self, version: int) -> None:
        """Read the runs.

        Args:
            version: Larger than all before.

        Raises:
            StoreError: The file cannot be read.
        """
        found = pulses(self._path)
        known = [run for run in reversed(runs(self._path)) if run.id in found]
        self._listed = tuple(_listed(run, found[run.id]) for run in known[:_MOST])
        self._left_out = len(known) - len(self._listed)
        self._lines = run_list_rows(self._listed)
        self._history.note(self._lines, version)
        self._version = version

    def page(self) -> str:
        """Return the page."""
        return run_list_page(self._path.name, self._listed, self._left_out, self._version)

    def news(self, since: int) -> str:
        """Return as JSON the lines that have changed since a version."""
        changed = self._history.since(since)
        if changed is None:
            return '{"reload":true}'
        lines = {name: self._lines[name] for name in changed}
        return json.dumps({"version": self._version, "lines": lines}, ensure_ascii=False)


def _listed(run: RunSummary, pulse: Pulse) -> ListedRun:
    return ListedRun(
        run.id,
        run.started_at[:19].replace("T", " "),
        f"{run.benchmark} {run.version}",
        run.model,
        pulse.status,
        pulse.done,
        pulse.planned,
        pulse.passed,
        pulse.failed,
        pulse.error,
        run.score,
    )


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
