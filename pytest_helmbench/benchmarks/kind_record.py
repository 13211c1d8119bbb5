"""The record of a kind of benchmark beside the tables that all kinds share, as reports and exports read it.

A kind that keeps nothing of its own needs no such object: `NO_RECORD` represents it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol

from pytest_helmbench.benchmarks.registry import all_places
from pytest_helmbench.core.kind_words import NO_COLUMNS, CaseWords, OwnColumns, ResultWords, RunWords
from pytest_helmbench.core.outcome import CaseStatement


class KindRecord(Protocol):
    """Reads what a kind has kept of a run."""

    @property
    def columns(self) -> OwnColumns:
        """Its own columns in exports."""

    @property
    def failures(self) -> str:
        """The title of the reasons of failed cases on a run's page."""

    def statements(self, conn: sqlite3.Connection, run_id: int) -> Mapping[str, CaseStatement]:
        """Return what was said about the judged results of a run, by `results.id`, for a session that goes on."""

    def results(
        self, path: Path, run_id: int, code: str | None, *, with_text: bool
    ) -> Mapping[str, ResultWords]:
        """Return what is said about the results of a run, by `results.id`.

        Args:
            path: Results file.
            run_id: `evaluation_runs.id`.
            code: Only this case; None for all.
            with_text: Also what may quote replies.

        Raises:
            StoreError: The file is missing or no results file.
        """

    def case(self, path: Path, run_id: int, code: str) -> Mapping[int, CaseWords]:
        """Return all that is known of the results of one case, by repetition.

        Raises:
            StoreError: The file is missing or no results file.
        """

    def run(self, path: Path, run_id: int) -> RunWords | None:
        """Return what is said about a run; None for nothing.

        Raises:
            StoreError: The file is missing or no results file.
        """


class _NoRecord:
    """The record of a kind that has no tables of its own."""

    columns = NO_COLUMNS
    failures = "failed for"

    def statements(self, _conn: sqlite3.Connection, _run_id: int) -> Mapping[str, CaseStatement]:
        return {}

    def results(self, *_asked: object, **_flags: object) -> Mapping[str, ResultWords]:
        return {}

    def case(self, _path: Path, _run_id: int, _code: str) -> Mapping[int, CaseWords]:
        return {}

    def run(self, _path: Path, _run_id: int) -> RunWords | None:
        return None


NO_RECORD = _NoRecord()


def record_of(kind: str) -> KindRecord:
    """Return what reads the record of a kind, by the name that `benchmarks.kind` keeps.

    A kind that is not installed here has `NO_RECORD`: what all kinds share can still be shown.
    """
    places = next((places for places in all_places() if places.name == kind), None)
    if places is None or not places.record:
        return NO_RECORD
    found: KindRecord = import_module(places.record).RECORD
    return found
