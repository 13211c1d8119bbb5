"""Collectors and items: what pytest sees of a benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import pytest

from pytest_helmbench.benchmarks.kind import Broken, Loaded
from pytest_helmbench.benchmarks.places import closed_files
from pytest_helmbench.core.case_texts import error_text, failure_text
from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.core.outline import RowOutline
from pytest_helmbench.core.problem import CaseError, Problem, without_effects
from pytest_helmbench.core.scrub import REDACTED, excerpt, scrub
from pytest_helmbench.engine.job import CaseJob, escaped_id, escaped_path
from pytest_helmbench.options.settings import Settings

HAND_WRITTEN: pytest.StashKey[CaseJob] = pytest.StashKey()
"""The job of a hand-written test, with its item."""
_PASSED = Outcome(Verdict.PASSED, score=1.0)
_MARKS_ON_DEMAND = frozenset({"skip", "skipif", "xfail"})
_KEY = "helmbench_skip"
_LONGEST = 200


class PlainItem(pytest.Item):
    """An item whose `CaseError` has no traceback, like `pytest.fail` with `pytrace=False`."""

    __slots__ = ()

    def _repr_failure_py(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return what pytest shows of an error: it calls this by name for one in setup."""
        return super()._repr_failure_py(excinfo, "value" if isinstance(excinfo.value, CaseError) else style)


class ItemSession(Protocol):
    """The session as its items see it."""

    settings: Settings
    wants_properties: bool
    known_paths: dict[str, str]
    """Files of cases as pytest shows them."""

    def obtain(self, item: CaseItem) -> Outcome:
        """Return the outcome of an item; a judged one stands."""


PLUGIN: pytest.StashKey[ItemSession] = pytest.StashKey()


def _file_id(parent: pytest.Collector, path: Path) -> str | None:
    """Return the node id of a file with an odd name; None for pytest's own."""
    if str(path).isprintable():
        return None
    root = parent.config.rootpath
    return escaped_path((path.relative_to(root) if path.is_relative_to(root) else path).as_posix())


class CaseFile(pytest.File):
    """A file with cases: one item per case, model and repetition, then the broken rows."""

    loaded: Loaded

    @classmethod
    def build(cls, parent: pytest.Collector, path: Path, loaded: Loaded) -> CaseFile:
        """Return the collector of a file."""
        outline = loaded.outline
        is_address = isinstance(outline, RowOutline) and outline.is_own and "://" in outline.name
        node_id = outline.name if is_address else _file_id(parent, path)
        collector: CaseFile = cls.from_parent(parent, path=path, nodeid=node_id)
        collector.loaded = loaded
        return collector

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the items in natural order; no prompt is composed yet."""
        settings = self.config.stash[PLUGIN].settings
        for job in self.loaded.jobs(self.path, self.nodeid, settings.repeat):
            # The id is given whole: pytest >= 9.2 looks for what stands in brackets in ids that it reads.
            item: CaseItem = CaseItem.from_parent(self, name=job.name, nodeid=job.node_id)
            item.job = job
            item.outcome = None
            yield item
        yield from _broken_items(self, self.loaded.broken_in(self.path), self.loaded)


class ClosedFolder(pytest.File):
    """The folder of a closed benchmark. It is not a `pytest.Directory`, whose conftest.py pytest would run."""

    def collect(self) -> Iterator[pytest.Collector]:
        """Yield the files that its kind names; those in a folder below, by that folder."""
        ihook = self.ihook
        for path in closed_files(self.path):
            if path.parent == self.path:
                yield from ihook.pytest_collect_file(file_path=path, parent=self)
            else:
                yield ClosedFolder.from_parent(self, path=self.path / path.relative_to(self.path).parts[0])


class BrokenFile(pytest.File):
    """A file of a benchmark with problems: one erroring item per code it breaks."""

    broken: Broken
    loaded: Loaded | None

    @classmethod
    def build(
        cls, parent: pytest.Collector, path: Path, broken: Broken, loaded: Loaded | None = None
    ) -> BrokenFile:
        """Return the collector of a broken file; its benchmark is None where that cannot be read at all."""
        collector: BrokenFile = cls.from_parent(parent, path=path, nodeid=_file_id(parent, path))
        collector.broken = broken
        collector.loaded = loaded
        return collector

    def collect(self) -> Iterator[BrokenItem]:
        """Yield one item per code."""
        yield from _broken_items(self, self.broken, self.loaded)


def _broken_items(parent: pytest.File, broken: Broken, loaded: Loaded | None) -> Iterator[BrokenItem]:
    for code, problems in broken:
        name = escaped_id(code)
        item: BrokenItem = BrokenItem.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        item.code = code
        item.problems = problems
        item.loaded = loaded
        yield item


class BrokenItem(PlainItem):
    """Represents cases that cannot be read; errors in setup with all problems of its file.

    It is skipped where another item of the session errors with their cause.
    """

    code: str
    problems: tuple[Problem, ...]
    loaded: Loaded | None

    def listextrakeywords(self) -> set[str]:
        """Let `-k` find it by its code as written."""
        return {self.code, *super().listextrakeywords()}

    def setup(self) -> None:
        """Error with every problem, in file order."""
        base = self.config.invocation_params.dir
        others = (
            item for item in self.session.items if isinstance(item, BrokenItem) and item.loaded is self.loaded
        )
        own = without_effects(self.problems, (problem for item in others for problem in item.problems))
        if not own:
            pytest.skip(self.problems[0].message)
        raise CaseError(scrub("\n".join(problem.text(base) for problem in own)))

    def runtest(self) -> None:
        """Do nothing: setup always raises."""

    def reportinfo(self) -> tuple[str, int | None, str]:
        """Return the line of the first problem."""
        line = self.problems[0].line
        return escaped_path(str(self.path)), 0 if line is None else line - 1, self.name


class CaseItem(PlainItem):
    """One case × model × repetition. Setup obtains the outcome, the call asserts it."""

    # Without them every item that has an outcome would get a dictionary of its own, 400 bytes each.
    __slots__ = ("job", "outcome")

    job: CaseJob
    outcome: Outcome | None

    def iter_markers_with_node(self, name: str | None = None) -> Iterator[tuple[Any, pytest.Mark]]:
        """Yield the marks; make our own only when it is looked up."""
        if name is None or name == "helmbench":
            yield self, pytest.mark.helmbench(**self.job.facts()).mark
        yield from super().iter_markers_with_node(name)

    def _initrequest(self) -> None:
        """Do nothing: pytest-retry calls this on every item that it repeats, and there are no fixtures."""

    def listextrakeywords(self) -> set[str]:
        """Let `-k` find a case by its family, and by code and model as written; made only when looked up."""
        return {self.job.family, self.job.code, self.job.model_id, *super().listextrakeywords()}

    def setup(self) -> None:
        """Wait for the whole outcome; a fault is an error, a skip is a skip."""
        plugin = self.config.stash[PLUGIN]
        outcome = plugin.obtain(self)
        self.outcome = outcome
        if plugin.wants_properties:
            self.user_properties[:] = self.job.properties(outcome)
        if outcome.verdict is Verdict.ERROR:
            raise CaseError(error_text(outcome))
        if outcome.verdict is Verdict.SKIPPED:
            pytest.skip(outcome.message or outcome.reason or "skipped")

    def runtest(self) -> None:
        """Assert the verdict."""
        outcome = self.outcome
        if outcome is None or outcome.verdict is not Verdict.FAILED:
            return
        if self.job.neutral and not self.config.getoption("runxfail", True):
            pytest.xfail("neutral")
        settings = self.config.stash[PLUGIN].settings
        if self.is_own and not (settings.shown_texts.any or settings.packs.show_hidden):
            hidden = tuple(replace(one, expected=REDACTED) for one in outcome.evaluations)
            outcome = replace(outcome, evaluations=hidden)  # JUnit has this text
        text = failure_text(self.job, outcome, with_text=settings.shown_texts.any)
        pytest.fail(text, pytrace=False)

    @property
    def is_own(self) -> bool:
        """Whether the case is of a table with the user's own data."""
        outline = self.parent.loaded.outline if isinstance(self.parent, CaseFile) else None
        return isinstance(outline, RowOutline) and outline.is_own

    @property
    def location(self) -> tuple[str, int | None, str]:
        """As pytest has it; paths are looked up once for all items of a file."""
        path, line, name = self.reportinfo()
        known = self.config.stash[PLUGIN].known_paths
        shown = known.get(path)
        if shown is None:
            shown = known[path] = super().location[0]
        return shown, line, name

    def teardown(self) -> None:
        """Keep of a passed outcome only that it passed; a judged verdict stands under reruns."""
        if self.outcome is not None and self.outcome.verdict is Verdict.PASSED:
            self.outcome = _PASSED

    def reportinfo(self) -> tuple[str, int | None, str]:
        """Return the place of the case in its file, and the item's name."""
        path, line = self.job.place or (self.path, 1)
        return escaped_path(str(path)), line - 1, self.name


def job_of(item: pytest.Item) -> CaseJob | None:
    """Return the job of an item; None for items of other plugins."""
    return item.job if isinstance(item, CaseItem) else item.stash.get(HAND_WRITTEN, None)


def jobs_of(items: Iterable[pytest.Item]) -> Iterator[CaseJob]:
    """Yield the cases among items, in their order."""
    return (job for item in items if (job := job_of(item)) is not None)


def on_demand_ids(items: Iterable[pytest.Item]) -> frozenset[int]:
    """Return the `id()` of the items that carry a `skip`, `skipif` or `xfail` mark, their own or inherited.

    Such an item may never want its outcome, so it is not started ahead.
    """
    inherited: dict[pytest.Collector | None, bool] = {}
    found = set()
    for item in items:
        parent = item.parent
        if parent not in inherited:
            marks = {mark.name for mark in parent.iter_markers()} if parent is not None else set()
            inherited[parent] = bool(marks & _MARKS_ON_DEMAND)
        if inherited[parent] or any(mark.name in _MARKS_ON_DEMAND for mark in item.own_markers):
            found.add(id(item))
    return frozenset(found)


def keep_skip_reason(report: pytest.TestReport) -> None:
    """Keep the reason in the report of a case that a mark or another plugin has skipped."""
    if report.skipped and not hasattr(report, "wasxfail"):
        found = report.longrepr
        text = str(found[2] if isinstance(found, tuple) else found)
        report.__dict__[_KEY] = excerpt(text.removeprefix("Skipped: "), _LONGEST)


def skip_reason(report: pytest.TestReport) -> str | None:
    """Return why a mark or another plugin skipped a case; None for other reports."""
    reason: str | None = report.__dict__.get(_KEY)
    return reason


def own_time_s(outcome: Outcome, otherwise: float) -> float:
    """Return how long the calls of a case took, without its waits for other cases."""
    if outcome.latency_ms is not None:
        return outcome.latency_ms / 1000
    if outcome.started_at is None or outcome.completed_at is None:
        return otherwise
    begun, ended = (datetime.fromisoformat(at) for at in (outcome.started_at, outcome.completed_at))
    return max(0.0, (ended - begun).total_seconds())
