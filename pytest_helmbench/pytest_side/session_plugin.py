"""The hooks of a session that runs cases: collection, planning, running, reports."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_helmbench.benchmarks.places import absolute, benchmark_root, benchmarks_below, is_closed
from pytest_helmbench.benchmarks.python_tests import TURN_FIXTURE
from pytest_helmbench.benchmarks.registry import places_of
from pytest_helmbench.core.case_texts import quoted_texts
from pytest_helmbench.core.outcome import Outcome, Verdict, wrong_turn
from pytest_helmbench.core.problem import CaseError, HelmbenchError, UnreadableBenchmarkError
from pytest_helmbench.core.scrub import quoted, scrub
from pytest_helmbench.engine.job import CaseJob, escaped_path
from pytest_helmbench.engine.job_queue import CancelledRunError
from pytest_helmbench.engine.loop import LoopEndedError
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.pytest_side.collect.items import (
    HAND_WRITTEN,
    BrokenFile,
    BrokenItem,
    CaseFile,
    CaseItem,
    ClosedFolder,
    jobs_of,
    keep_skip_reason,
    on_demand_ids,
    own_time_s,
)
from pytest_helmbench.pytest_side.collect.selection import arrange, broken_cases, share_out
from pytest_helmbench.pytest_side.say.case_text import brief_parts
from pytest_helmbench.pytest_side.say.live_line import LiveLine
from pytest_helmbench.pytest_side.say.printing import in_ci
from pytest_helmbench.pytest_side.workers.role import SessionRole
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.run.library import Library
from pytest_helmbench.run.plan import Notes, plan_jobs
from pytest_helmbench.run.selecting import refuse_empty_selection, refuse_idle_options
from pytest_helmbench.speed.interpreter import GarbagePace

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.python_tests.hooks import HandWrittenTests


_JUDGED_AGAIN = (
    "a judged case was run again: its first verdict stands, no call was made"
    " (asking until it passes would bias the score; use --helmbench-repeat)"
)

_LONGER = "raise --timeout, or let calls end before it: --helmbench-timeout, --helmbench-case-timeout"


class SessionPlugin:
    """The hooks of a session that runs cases; an xdist worker has no coordinator."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        library: Library,
        role: SessionRole,
        coordinator: Coordinator | None,
        notes: Notes,
        live: LiveLine,
    ) -> None:
        self.settings = settings
        self.wants_properties = bool(config.getoption("xmlpath", None))
        self._config = config
        self._library = library
        self._role = role
        self._coordinator = coordinator
        self.known_paths: dict[str, str] = {}
        """Files of cases as pytest shows them."""
        self._hides_text = in_ci() and not settings.shown_texts.any
        self._is_verbose = config.get_verbosity() > 0
        self._notes = notes
        self._live = live
        self._garbage = GarbagePace()
        self._garbage.begin()
        self._noted_again = False
        self._tests: HandWrittenTests | None = None
        self._named_files = {
            absolute(config.invocation_params.dir / argument.split("::")[0]) for argument in config.args
        }

    # Collection

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a hand-written test that uses one of our fixtures on every model."""
        if TURN_FIXTURE in metafunc.fixturenames:
            if self._tests is None:
                self._tests = self._hand_written_tests()
            self._tests.parametrize(metafunc)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """Load the benchmarks that the arguments name: one that cannot be read ends the session before it begins."""
        self._garbage.before_items()
        try:
            self._load_named_benchmarks()
            return (yield)
        finally:
            self._garbage.after_items()

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out a link to a folder above itself: its benchmarks would repeat, 40 levels deep."""
        is_link = collection_path.is_symlink() and collection_path.is_dir()
        leads_back = is_link and collection_path.parent.resolve().is_relative_to(collection_path.resolve())
        return True if leads_back else None

    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a closed benchmark as one file, so that pytest imports no conftest.py or test file in it."""
        if is_closed(path) or is_closed(path.parent):
            return ClosedFolder.from_parent(parent, path=path)
        # A folder with an __init__.py would be a package to pytest, which imports that before what is in it.
        is_package = (path / "__init__.py").is_file() and self._is_of_foreign_cases(path)
        return pytest.Dir.from_parent(parent, path=path) if is_package else None

    def _is_of_foreign_cases(self, folder: Path) -> bool:
        """Return whether a folder belongs to the cases of a benchmark that is not trusted."""
        root = benchmark_root(folder)
        places = None if root is None else places_of(root)
        if root is None or places is None or str(root.resolve()) in self.settings.trusted.value:
            return False
        return folder == root or any(folder.is_relative_to(root / name) for name in places.own_folders)

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        """Collect a file of a benchmark. No other plugin does, except for Python files: a doctest would run it."""
        found = yield
        if found and file_path.suffix != ".py" and self._is_of_foreign_cases(file_path.parent):
            found = []
        own = self._collector_of(file_path, parent)
        return found if own is None else [own, *found]

    def _collector_of(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        try:
            loaded = self._library.of_file(file_path, named=file_path in self._named_files)
        except UnreadableBenchmarkError as error:
            folder = file_path.parent
            places = places_of(folder)
            if places is not None and places.is_closed:
                # One pack among others: its own item errors, and the others run.
                broken = ((folder.name, error.problems),)
                is_manifest = file_path in places.manifests(folder)
                return BrokenFile.build(parent, file_path, broken) if is_manifest else None
            raise pytest.Collector.CollectError(self._text_of(error)) from error
        except HelmbenchError as error:
            raise pytest.Collector.CollectError(self._text_of(error)) from error
        if loaded is None:
            return None
        if loaded.cases_in(file_path):
            return CaseFile.build(parent, file_path, loaded)
        found = loaded.broken_in(file_path)
        if not found and file_path in self._named_files:
            found = loaded.broken_around(file_path)  # so that it does not run silently empty
        return BrokenFile.build(parent, file_path, found, loaded) if found else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Apply `--helmbench-select` and `--helmbench-sample`; group the cases of local models."""
        dropped = arrange(items, self.settings, self._library, self._notes)
        if dropped:
            self._config.hook.pytest_deselected(items=dropped)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Plan the selected cases, and keep the share of a shard."""
        share = self.settings.share
        whole = list(session.items)
        cases = [*jobs_of(whole)]
        dropped = [] if share is None else share_out(session.items, share, self._library)
        if dropped:
            self._config.hook.pytest_deselected(items=dropped)
        if self._config.getoption("collectonly"):
            return
        on_demand = on_demand_ids(session.items)
        jobs = [
            item.job if isinstance(item, CaseItem) and id(item) not in on_demand else None
            for item in session.items
        ]
        if not cases:
            return
        scope = self._scope(cases)
        broken = broken_cases(whole, self.settings.selection)
        plan = plan_jobs(cases, dry_run=self.settings.dry_run, scope=scope, broken=broken)
        if share is not None:
            own = [*jobs_of(session.items)]
            plan = plan.shared_out(plan_jobs(own, dry_run=plan.dry, scope=scope), share)
        if self._tests is not None:
            plan = replace(plan, adopted=self._tests.outline)
        self._role.collected(jobs, plan)

    # Running

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Start the engine; a worker waits for its controller."""
        if all(isinstance(item, CaseItem | BrokenItem) for item in session.items):
            self._garbage.keep_what_stays()
        try:
            self._role.begin()
        except HelmbenchError as error:
            raise pytest.UsageError(scrub(str(error))) from error

    def obtain(self, item: CaseItem) -> Outcome:
        """Return the outcome of an item; the first judged one stands."""
        if item.outcome is not None and item.outcome.judged:
            if not self._noted_again:
                self._noted_again = True
                self._notes.say(_JUDGED_AGAIN)
            return item.outcome
        try:
            return self._role.obtain(item.job)
        except pytest.fail.Exception as stop:  # of pytest-timeout, while the item waits
            queue = self._role.queue
            outcome = queue.give_up(item.job, f"{stop}\n  hint: {_LONGER}") if queue is not None else None
            if outcome is None:
                raise
            return outcome
        except CancelledRunError as error:
            reason, code = str(error) or "cancelled", 0
        except LoopEndedError as error:
            reason, code = str(error), 1
            self._notes.say(reason)
        # Out of the handler: pytest would take its time over the chained traceback.
        item.session.shouldstop = reason
        pytest.exit(reason, returncode=code)

    def has_passed(self, item: CaseItem) -> bool:
        """Return whether an item is known to pass: then none of its phases does anything."""
        queue = self._role.queue
        if queue is None or item.outcome is not None:
            return False
        outcome = queue.ready_outcome(item.job)
        return outcome is not None and outcome.verdict is Verdict.PASSED

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add verdict and ids to the report, and the start of the reply to its sections."""
        report = yield
        fault = call.excinfo.value if call.excinfo is not None else None
        if (
            isinstance(item, CaseItem | BrokenItem)
            and isinstance(fault, pytest.fail.Exception | CaseError)
            and report.failed
        ):
            report.longrepr = str(fault)  # as it is: pytest would put "Failed: " before it
        if isinstance(item, CaseItem):
            return self.completed(report, item)
        if isinstance(item, BrokenItem):
            _escape_keywords(report, item)
            if report.when == "setup":
                report.__dict__["helmbench"] = {"code": item.name, "verdict": "broken"}
        return report

    def completed(self, report: pytest.TestReport, item: CaseItem) -> pytest.TestReport:
        """Return the report of a phase of a case with its verdict, duration and texts."""
        _escape_keywords(report, item)
        outcome = item.outcome
        if outcome is None:
            keep_skip_reason(report)
            return report
        if report.when != "teardown":
            own_s = own_time_s(outcome, report.duration)
            report.duration = own_s if report.when == "call" or not report.passed else 0.0
        if report.when == "call" or report.failed:
            report.__dict__["helmbench"] = item.job.carried(str(outcome.verdict), outcome.score)
            if report.failed and outcome.verdict is Verdict.FAILED and not self._is_verbose:
                asked = item.job.asked(wrong_turn(outcome.evaluations))
                parts = brief_parts(outcome, asked, with_text=not self._hides_text)
                report.__dict__["helmbench"]["brief"] = parts
            elif report.failed and not self._hides_text and not self.settings.shown_texts.any:
                report.sections += [*_expected(item, outcome), *quoted_texts(outcome)]
        elif report.when == "setup" and report.skipped and outcome.verdict is Verdict.SKIPPED:
            why = scrub(outcome.message or outcome.reason or "skipped")
            report.longrepr = (escaped_path(str(item.path)), 1, why)
        return report

    # The end

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self) -> None:
        """End the library, and restore the garbage collector."""
        self._library.end()
        self._garbage.end()

    # Shared by the hooks

    def _load_named_benchmarks(self) -> None:
        if self._coordinator is None:
            return
        is_named = self._config.getoption("helmbench_select") is not None
        start = self._config.invocation_params.dir
        if self._config.args_source is not pytest.Config.ArgsSource.ARGS and benchmark_root(start) is None:
            self._library.named.extend(absolute(self._config.rootpath / path) for path in self.settings.paths)
        for argument in self._config.args:
            path = self._config.invocation_params.dir / argument.split("::")[0]
            self._library.named.append(absolute(path))
            inside = benchmark_root(path)
            for root in dict.fromkeys([*([inside] if inside is not None else []), *benchmarks_below(path)]):
                try:
                    self._library.load(root)
                except HelmbenchError as error:
                    if isinstance(error, UnreadableBenchmarkError) and is_closed(root):
                        is_named = False  # it becomes an item that errors
                        continue
                    raise pytest.UsageError(self._text_of(error)) from error
        try:
            if self.settings.selection is not None and (self._library.loaded or is_named):
                refuse_empty_selection(self._library.loaded, self.settings.selection, self._notes.say)
            refuse_idle_options(self._library.loaded, self._config.getoption)
            _ = self._library.samples  # one that cannot be drawn raises before the collection
        except HelmbenchError as error:
            raise pytest.UsageError(self._text_of(error)) from error

    def _text_of(self, error: HelmbenchError) -> str:
        if not isinstance(error, UnreadableBenchmarkError):
            return scrub(str(error))
        base = self._config.invocation_params.dir
        return scrub("\n".join(problem.text(base) for problem in error.problems))

    def _scope(self, cases: Sequence[CaseJob]) -> str:
        """Return `evaluation_runs.scope`: paths, options and marks all narrow what is selected."""
        roots = {case.target.benchmark for case in cases}
        if len(cases) == self._library.count(roots) * self.settings.repeat:
            return "whole"
        by_outcome = self._config.getoption("lf", False) or self._config.getoption("stepwise", False)
        return "by_outcome" if by_outcome else "selected"

    def _hand_written_tests(self) -> HandWrittenTests:
        """Register the hooks of hand-written tests, when the first one is collected."""
        # Few sessions have any.
        from pytest_helmbench.benchmarks.python_tests.hooks import HandWrittenSession, HandWrittenTests

        session = HandWrittenSession(
            repeat=self.settings.repeat,
            with_text=self.settings.shown_texts.any,
            wants_properties=self.wants_properties,
            engine=lambda: self._role.queue,
            plan_tests=self._library.adopt,
            known=self._role.known,
            note=self._notes.say,
            tick=self._live.tick,
        )
        try:
            tests = HandWrittenTests(self._config, session, TURN_FIXTURE, HAND_WRITTEN)
        except HelmbenchError as error:
            raise pytest.Collector.CollectError(self._text_of(error)) from error
        self._config.pluginmanager.register(tests, "helmbench-tests")
        return tests


def _expected(item: CaseItem, outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Yield the expected answer to a case of the user's own data, which the text of its failure leaves out."""
    wrong = [one for one in outcome.evaluations if not one.passed]
    if item.is_own and wrong:
        yield "expected", quoted(wrong[0].expected)


def _escape_keywords(report: pytest.TestReport, item: pytest.Item) -> None:
    """Escape the names of folders in the keywords: xdist cannot send names that are not UTF-8."""
    if not str(item.path).isprintable():
        report.keywords = {escaped_path(name): value for name, value in report.keywords.items()}
