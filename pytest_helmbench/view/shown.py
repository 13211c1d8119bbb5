"""One address of the server: its runs read from the file, as a page and as what has changed since an earlier one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.core.uncollected import uncollected
from pytest_helmbench.reports.page.columns import Cells, case_cells, packed_cells
from pytest_helmbench.reports.page.document import LiveMark, page_of, sections_of
from pytest_helmbench.reports.page.parts import Flip, PagePart, flips
from pytest_helmbench.results.comparing import ComparedRun, RunComparison, RunRef, compare_runs
from pytest_helmbench.results.run_report import RunReport, run_report
from pytest_helmbench.results.standings import boards
from pytest_helmbench.store.plans import load_facts
from pytest_helmbench.store.run_queries import Pulse, pulses
from pytest_helmbench.view.history import History

__all__ = ["Address", "NoSuchRunError", "Shown"]

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
