"""The pytest hooks of hand-written tests that ask a model: run on every model, in every repetition, and put on record.

Imported when a session has such a test.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from pytest_helmbench.benchmarks.kind import Loaded
from pytest_helmbench.benchmarks.python_tests.clients import Connection
from pytest_helmbench.benchmarks.python_tests.jobs import (
    INTERRUPTED,
    AssertionRule,
    Finding,
    HandWritten,
    HandWrittenJob,
    HandWrittenTest,
    HandWrittenWork,
    outline_of_tests,
)
from pytest_helmbench.benchmarks.python_tests.judge_fixture import SLICE_S, AskedJudge, Marking
from pytest_helmbench.core.case_texts import error_text, failure_text
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import NO_MODEL_CALL, Outcome, Verdict
from pytest_helmbench.core.outline import RowOutline
from pytest_helmbench.core.problem import CaseError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.engine.job import CaseJob, Target, escaped_id, escaped_path
from pytest_helmbench.engine.job_queue import CancelledRunError, JobQueue
from pytest_helmbench.engine.work import UnjudgedError

_NOTHING_NAMED = (
    "the fixtures helmbench_model, helmbench_openai, helmbench_async_openai and helmbench_judge cannot be asked for"
    " here\n"
    "  hint: name one of them among the arguments of a test function, so that the test is planned for every model"
)
_JUDGED_AGAIN = (
    "a judged test was run again: its first verdict stands, its code did not run"
    " (asking until it passes would bias the score; use --helmbench-repeat)"
)
_STOOD = "it was judged before in this session: passed, and its first verdict stands"
_NOT_COMPOSED = (
    "hand-written tests were not composed: only their own code knows what they ask; one call each is assumed"
)

_TESTS: pytest.StashKey[HandWrittenTests] = pytest.StashKey()
_OUTCOME: pytest.StashKey[Outcome] = pytest.StashKey()
_RAISED: pytest.StashKey[BaseException] = pytest.StashKey()
"""The exception that we raised in place of a test."""
_RUN: pytest.StashKey[_Run] = pytest.StashKey()
_PASSED = Finding(Verdict.PASSED)
_ASSERTIONS = (AssertionError, pytest.fail.Exception)


@dataclass(slots=True)
class _Run:
    """A test between its setup and the end of its teardown.

    Args:
        in_code: Its function runs: a report that is made now is one of a subtest.
        failed_subtests: How many so far.
        finding: How it has ended so far.
    """

    in_code: bool = False
    failed_subtests: int = 0
    finding: Finding | None = None

    @property
    def subtests_text(self) -> str:
        """`2 failed subtests`; empty for none."""
        failed = self.failed_subtests
        return f"{failed} failed subtest{'s' if failed > 1 else ''}" if failed else ""


@dataclass(frozen=True, slots=True)
class _Choice:
    """A model × repetition that a test runs on."""

    target: Target
    repetition: int

    @property
    def id(self) -> str:
        """As it stands in brackets."""
        suffix = f"-r{self.repetition}" if self.repetition > 1 else ""
        return f"{escaped_id(self.target.model.entry.id)}{suffix}"


@dataclass(frozen=True, slots=True)
class HandWrittenSession:
    """A session as its hand-written tests see it.

    Args:
        repeat: Repetitions of every test.
        with_text: Failures show texts of replies.
        wants_properties: A JUnit report is written.
        engine: Returns what runs jobs in this process; None where nothing is called.
        plan_tests: Makes the tests a benchmark of the session, or takes the selection of them. Raises
            `HelmbenchError`: the models.yml in rootdir or an id in it cannot be used.
        known: Returns, once, the outcome that a worker had brought in before it died.
        note: Says something in the summary.
        tick: Draws the session's progress; about once a second while something is waited for.
    """

    repeat: int
    with_text: bool
    wants_properties: bool
    engine: Callable[[], JobQueue[CaseJob] | None]
    plan_tests: Callable[[RowOutline], Loaded]
    known: Callable[[CaseJob], Outcome | None]
    note: Callable[[str], None]
    tick: Callable[[], None]


class HandWrittenTests:
    """The hooks of a session with hand-written tests.

    Args:
        session: What the tests belong to.
        fixture: Name of the fixture that leads the calls of a test to its model.
        job_key: Where the job of an item is kept.

    Raises:
        HelmbenchError: The models.yml in rootdir or an id in it cannot be used.
    """

    def __init__(
        self,
        config: pytest.Config,
        session: HandWrittenSession,
        fixture: str,
        job_key: pytest.StashKey[CaseJob],
    ) -> None:
        self._config = config
        self._session = session
        self._fixture = fixture
        self._job_key = job_key
        loaded = session.plan_tests(outline_of_tests(config.rootpath))
        if not isinstance(loaded, HandWritten):
            raise TypeError(f"{loaded.root}: no hand-written tests")
        self._loaded = loaded
        repeat = session.repeat
        self._choices = [
            _Choice(target, repetition)
            for target in self._loaded.targets
            for repetition in range(1, repeat + 1)
        ]
        self._digests: dict[Path, str] = {}
        config.stash[_TESTS] = self

    @property
    def outline(self) -> RowOutline:
        """The outline of the selected tests for the record."""
        return self._loaded.outline

    # Collection

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Have a test run on every model, in every repetition."""
        ids = [choice.id for choice in self._choices]
        metafunc.parametrize(self._fixture, self._choices, ids=ids, indirect=True)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Make a hand-written test a case."""
        callspec = getattr(item, "callspec", None)
        choice = callspec.params.get(self._fixture) if callspec is not None else None
        if not isinstance(choice, _Choice) or not isinstance(item, pytest.Function):
            return
        if item.path not in self._digests:
            self._digests[item.path] = hashlib.sha256(item.path.read_bytes()).hexdigest()
        file = escaped_path(item.nodeid.partition("::")[0])
        test = HandWrittenTest(
            code=escaped_path(_code(item, choice)),
            node_id=item.nodeid,
            file=file,
            line=(item.location[1] or 0) + 1,
            rule=AssertionRule(self._digests[item.path], "helmbench_judge" in item.fixturenames),
        )
        self._loaded.collected.add(test.code)
        work = HandWrittenWork(self._loaded.relay)
        job = HandWrittenJob(choice.target, choice.repetition, False, file, test, work)
        item.stash[self._job_key] = job
        item.add_marker(pytest.mark.helmbench(**job.facts()))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Take note of what is selected, before the session is planned."""
        jobs = (self.job_of(item) for item in session.items)
        tests = [job.test for job in jobs if job is not None]
        self._session.plan_tests(outline_of_tests(self._config.rootpath, tests))

    # Running

    def job_of(self, item: pytest.Item) -> HandWrittenJob | None:
        """Return the job of an item; None for any other test."""
        job = item.stash.get(self._job_key, None)
        return job if isinstance(job, HandWrittenJob) else None

    @contextmanager
    def opened(self, item: pytest.Item, job: HandWrittenJob) -> Iterator[Connection]:
        """Lead the calls of a test to its model, until its teardown has ended."""
        if item.stash.get(_RUN, None) is not None:
            self._end(item, job)  # another plugin runs it again before its report
        self._report_again(item, job)
        engine = self._session.engine()
        if engine is None:
            self._session.note(_NOT_COMPOSED)
            self._skip(item, "dry run")
        if not job.target.model.usable:
            self._skip(item, self._obtain(item, job, engine).message)
        opened = job.own_work.begin()
        engine.launch(job)
        while not wait((opened,), SLICE_S).done:
            if engine.has_ended(job):
                self._raise(item, CaseError(error_text(self._obtain(item, job, engine))))
            self._session.tick()
        address, marking = opened.result()
        item.stash[_RUN] = _Run()
        yield Connection(job.model_id, address, lambda: self._judges(item, job, marking))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Judge a test that ends before it begins."""
        __tracebackhide__ = True
        with self._judging(item, in_setup=True):
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Judge a test when its function has ended; raise where its outcome is another one than pytest has seen."""
        __tracebackhide__ = True
        run = item.stash.get(_RUN, None)
        if run is None:
            return (yield)
        run.in_code = True
        with self._judging(item, in_setup=False):
            try:
                result = yield
            finally:
                run.in_code = False
        subtests = run.failed_subtests
        self._judge_and_raise(item, Finding(Verdict.FAILED, words=run.subtests_text) if subtests else _PASSED)
        return result

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Wait for nothing where the session is stopped."""
        with self._stoppable(item):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put on record how a test ends, as its reports say when all other plugins have had their say.

        Its reports carry verdict and ids; what was never judged is an error, not a failure.
        """
        report = yield
        job, run = self.job_of(item), item.stash.get(_RUN, None)
        if job is None:
            return report
        if run is not None and run.in_code:  # of a subtest
            run.failed_subtests += report.failed
            report.__dict__["helmbench_subtest"] = True  # the report of its test decides
            return report
        raised = item.stash.get(_RAISED, None)
        if call.excinfo is not None and call.excinfo.value is raised:
            if report.failed:
                report.longrepr = str(raised)  # as it is: pytest would put "Failed: " before it
            elif isinstance(raised, pytest.skip.Exception):
                _make_skipped(report, item, job, str(raised))
        elif run is not None:
            self._take_report(item, job, run, call, report)
        outcome = item.stash.get(_OUTCOME, None)
        if outcome is None or outcome.reason == NO_MODEL_CALL:
            return report
        if report.failed and report.when != "teardown":
            report.when = "call" if outcome.judged else "setup"
        if report.failed or report.when == "call":
            report.__dict__["helmbench"] = {**job.carried(str(outcome.verdict)), "hand_written": True}
        return report

    def _take_report(
        self,
        item: pytest.Item,
        job: HandWrittenJob,
        run: _Run,
        call: pytest.CallInfo[None],
        report: pytest.TestReport,
    ) -> None:
        """Take from a report what the code of a test has not shown, and have the report say what the record does."""
        if report.passed and report.when == "call" and run.failed_subtests:
            report.outcome, report.longrepr = "failed", f"contains {run.subtests_text}"
        if run.finding is None and report.when == "teardown":
            self._judge(item, job, Finding(Verdict.SKIPPED, "not_run", "the test was not run"))
        if report.failed and run.finding is _PASSED:
            outcome = self._judge(item, job, _late_finding(item, job, call, report))
            if outcome.verdict is Verdict.ERROR and report.when == "call":
                report.longrepr = error_text(outcome)
        if report.when == "teardown":
            self._end(item, job)
        report.user_properties = list(item.user_properties)

    @contextmanager
    def _judging(self, item: pytest.Item, *, in_setup: bool) -> Iterator[None]:
        """Judge a test whose setup or function raises."""
        __tracebackhide__ = True  # here and below: pytest-retry makes reports of its own, with tracebacks
        try:
            with self._stoppable(item):
                yield
        except (KeyboardInterrupt, pytest.exit.Exception):
            raise
        except BaseException as error:
            run, job = item.stash.get(_RUN, None), self.job_of(item)
            if run is not None and job is not None and run.finding is None:
                self._judge_and_raise(item, _raised(item, job, error, in_setup=in_setup))
            raise

    @contextmanager
    def _stoppable(self, item: pytest.Item) -> Iterator[None]:
        """Where the session is stopped, let the calls of a test in and wait for no more."""
        try:
            yield
        except (KeyboardInterrupt, pytest.exit.Exception):
            job = self.job_of(item)
            if job is not None and item.stash.get(_RUN, None) is not None:
                del item.stash[_RUN]
                job.own_work.end(Finding(Verdict.SKIPPED, INTERRUPTED))
            raise

    def _report_again(self, item: pytest.Item, job: HandWrittenJob) -> None:
        """End a test that was judged before: its first verdict stands."""
        before = item.stash.get(_OUTCOME, None)
        if before is not None and before.judged:
            self._session.note(_JUDGED_AGAIN)
        else:
            before = self._session.known(job)
        if before is None or not before.judged:
            if _OUTCOME in item.stash:
                del item.stash[_OUTCOME]
            return
        item.stash[_OUTCOME] = before
        if before.verdict is Verdict.PASSED:
            self._skip(item, _STOOD)
        with_text = self._session.with_text
        self._raise(
            item, pytest.fail.Exception(failure_text(job, before, with_text=with_text), pytrace=False)
        )

    def _judges(self, item: pytest.Item, job: HandWrittenJob, marking: Marking) -> AskedJudge:
        try:
            marking.judges()
        except UnjudgedError as error:
            none = Finding(error.outcome.verdict, error.outcome.reason, error.outcome.message)
            self._skip(item, self._judge(item, job, none).message)
        return AskedJudge(marking, self._session.tick)

    def _judge_and_raise(self, item: pytest.Item, finding: Finding) -> None:
        """Judge a test; raise where its outcome is another one than pytest has seen."""
        __tracebackhide__ = True
        job = self.job_of(item)
        if job is None:
            return
        outcome = self._judge(item, job, finding)
        if outcome.reason in (finding.reason, NO_MODEL_CALL):
            return
        if outcome.verdict is Verdict.SKIPPED:
            self._skip(item, outcome.message)
        self._raise(item, CaseError(error_text(outcome)))

    def _judge(self, item: pytest.Item, job: HandWrittenJob, finding: Finding) -> Outcome:
        """Return what a test has come to so far."""
        item.stash[_RUN].finding = finding
        judged, engine = job.own_work.judge(finding), self._session.engine()
        while engine is not None and not wait((judged,), SLICE_S).done:
            if engine.has_ended(job):
                return self._obtain(item, job, engine)
            self._session.tick()
        return self._kept(item, job, judged.result())

    def _end(self, item: pytest.Item, job: HandWrittenJob) -> None:
        """Put a test on record."""
        finding = item.stash[_RUN].finding
        del item.stash[_RUN]
        if finding is not None:
            job.own_work.end(finding)
        self._obtain(item, job, self._session.engine())

    def _obtain(self, item: pytest.Item, job: HandWrittenJob, engine: JobQueue[CaseJob] | None) -> Outcome:
        """Wait for the outcome of a test; it is on its way to the record by then."""
        reason = "cancelled"
        try:
            if engine is not None:
                return self._kept(item, job, engine.obtain(job, self._session.tick))
        except CancelledRunError as error:
            reason = str(error) or reason
        # Out of the handler: pytest would take its time over the chained traceback.
        item.session.shouldstop = reason
        pytest.exit(reason, returncode=0)

    def _kept(self, item: pytest.Item, job: HandWrittenJob, outcome: Outcome) -> Outcome:
        item.stash[_OUTCOME] = outcome
        if self._session.wants_properties:
            ours = job.properties(outcome)
            names = {name for name, _ in ours}
            item.user_properties[:] = [
                *(pair for pair in item.user_properties if pair[0] not in names),
                *ours,
            ]
        return outcome

    def _skip(self, item: pytest.Item, text: str) -> NoReturn:
        self._raise(item, pytest.skip.Exception(scrub(text)))

    def _raise(self, item: pytest.Item, raised: BaseException) -> NoReturn:
        __tracebackhide__ = True
        item.stash[_RAISED] = raised
        raise raised from None


def turn(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """Lead the calls of a test to its model until it has ended: the fixture that all of ours have in common."""
    tests = request.config.stash.get(_TESTS, None)
    job = None if tests is None else tests.job_of(request.node)
    if tests is None or job is None:
        pytest.fail(_NOTHING_NAMED, pytrace=False)
    with tests.opened(request.node, job) as connection:
        yield connection


def _code(item: pytest.Function, choice: _Choice) -> str:
    """Return the node id without the model: `tests/test_own.py::test_it[a]` for `…::test_it[openai/gpt-4o-a]`."""
    name = item.originalname
    within = f"-{item.name[len(name) + 1 : -1]}-"
    escaped = choice.id.encode("unicode_escape").decode()  # by pytest, unless told not to
    for given in (choice.id, escaped):
        before, found, after = within.partition(f"-{given}-")
        if found:
            own = "-".join(filter(None, (before[1:], after[:-1])))
            return item.nodeid[: -len(item.name)] + (f"{name}[{own}]" if own else name)
    raise RuntimeError(f"{item.nodeid}: the id does not name the model {choice.id!r}")


def _make_skipped(report: pytest.TestReport, item: pytest.Item, job: HandWrittenJob, text: str) -> None:
    report.outcome = "skipped"
    report.longrepr = (escaped_path(str(item.path)), job.test.line, text)


def _late_finding(
    item: pytest.Item, job: HandWrittenJob, call: pytest.CallInfo[None], report: pytest.TestReport
) -> Finding:
    """Return why the report of a test has failed whose code has passed."""
    if call.excinfo is None:
        return Finding(Verdict.FAILED, words="another plugin failed its report")
    found = _raised(item, job, call.excinfo.value)
    if report.when == "teardown" and not isinstance(call.excinfo.value, _ASSERTIONS):
        return Finding(Verdict.ERROR, "teardown_failed", f"a fixture failed after the test: {found.words}")
    return found


def _raised(
    item: pytest.Item, job: HandWrittenJob, error: BaseException, *, in_setup: bool = False
) -> Finding:
    if isinstance(error, pytest.skip.Exception):
        return Finding(Verdict.SKIPPED, "skipped", str(error))
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(item.path)
    ]
    where = f" at {job.test.file}:{lines[-1]}" if lines else ""
    what = f"{type(error).__name__}{where}"
    if in_setup:
        return Finding(Verdict.ERROR, "setup_failed", f"a fixture of the test failed: {what}")
    return Finding(Verdict.FAILED, words=what)
