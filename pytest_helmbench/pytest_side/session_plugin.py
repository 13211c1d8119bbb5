"""A session that asks for us: hooks of one call each, and what they share."""

from __future__ import annotations

import os
import pickle
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_helmbench.benchmarks.bench_packs.places import MANIFEST
from pytest_helmbench.benchmarks.packs.places import manifests_of
from pytest_helmbench.benchmarks.places import benchmark_root, benchmarks_below, is_closed, is_prompt_file
from pytest_helmbench.benchmarks.scenario_trees.jobs import LoadedTree
from pytest_helmbench.core.codes import scenario_code_of
from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.core.problem import HelmbenchError, Problem, UnreadableBenchmarkError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.engine.assembly import Share
from pytest_helmbench.engine.engine import CancelledRunError
from pytest_helmbench.engine.job import Broken, CaseJob, Loaded, escaped_path
from pytest_helmbench.judging.judge import load_template
from pytest_helmbench.plugin import TURN_FIXTURE, option_value
from pytest_helmbench.pytest_side.exit_code import ExitRule
from pytest_helmbench.pytest_side.garbage_collection import GarbagePace
from pytest_helmbench.pytest_side.items import (
    PLUGIN,
    BrokenFile,
    BrokenItem,
    CaseFile,
    CaseItem,
    CaseText,
    PackFolder,
    SelfCheckItem,
    job_of,
    ran_on_demand,
)
from pytest_helmbench.pytest_side.roles import (
    Coordinator,
    SessionRole,
    SingleProcess,
    XdistController,
    XdistWorker,
    in_ci,
)
from pytest_helmbench.pytest_side.terminal import Announcer, LiveLine, add_suite_properties, session_lines
from pytest_helmbench.pytest_side.xdist_channel import SliceScheduling, crash_report
from pytest_helmbench.reports.case_texts import quoted_texts
from pytest_helmbench.reports.stored_reports import write_reports
from pytest_helmbench.session.gates import read_gates
from pytest_helmbench.session.library import Library
from pytest_helmbench.session.resume import as_continued
from pytest_helmbench.session.runs import Plan, plan_jobs
from pytest_helmbench.session.settings import Settings, resolve_settings
from pytest_helmbench.session.targets import session_concurrency

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.python_tests.fixtures import HandWrittenTests

__all__ = ["SessionPlugin", "register"]

_JUDGED_AGAIN = (
    "a judged case was run again: its first verdict stands, no call was made"
    " (asking until it passes would bias the score; use --helmbench-repeat)"
)


def register(config: pytest.Config) -> None:
    """Bring the session plugin in.

    Raises:
        pytest.UsageError: An option that cannot be used, or nothing to run.
    """
    try:
        settings = _settings(config)
        template = load_template(settings.judge_template)
        gates = read_gates(settings.min_score, settings.min_coverage)
    except HelmbenchError as error:
        raise pytest.UsageError(scrub(str(error))) from error
    _choose_paths(config)
    library = Library(settings, os.environ)
    few_ahead = bool(config.getoption("maxfail", 0)) or bool(config.getoption("stepwise", False))
    role: SessionRole
    coordinator: Coordinator | None = None
    workerinput = getattr(config, "workerinput", None)
    if workerinput is not None:
        role = XdistWorker(
            settings,
            library,
            template,
            workerinput["helmbench"],
            Share(
                session_concurrency(settings),
                few_ahead,
                workers=workerinput["workercount"],
                name=f"{workerinput['workerid']}:",
            ),
        )
    else:
        coordinator = Coordinator(settings, library, gates)
        announcer = Announcer(config, coordinator)
        if _is_controller(config):
            _check_distribution(config)
            role = XdistController(coordinator, announcer)
        else:
            role = SingleProcess(coordinator, template, announcer, few_ahead=few_ahead)
    plugin = SessionPlugin(config, settings, library, role, coordinator)
    config.stash[PLUGIN] = plugin
    config.pluginmanager.register(plugin, "helmbench-session")


def _settings(config: pytest.Config) -> Settings:
    """Return the settings of the session; a worker has those of its controller."""
    workerinput = getattr(config, "workerinput", None)
    if workerinput is not None:
        settings: Settings = pickle.loads(workerinput["helmbench_settings"])
        return settings
    return as_continued(
        resolve_settings(
            lambda name: option_value(config, name),
            config.getini("helmbench_ask_above"),
            config.invocation_params.dir,
            config.rootpath,
        )
    )


def _is_controller(config: pytest.Config) -> bool:
    return config.getoption("dist", "no") != "no" and not config.getoption("collectonly")


def _check_distribution(config: pytest.Config) -> None:
    mode = config.getoption("dist")
    if mode != "load":
        raise pytest.UsageError(
            f"helmbench cases run with --dist=load, not --dist={mode}\n"
            "  hint: leave --dist out; each worker gets an equal share and keeps its calls in flight"
        )


def _choose_paths(config: pytest.Config) -> None:
    """Without a path on the command line, run the benchmark at hand and nothing else."""
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return
    start = config.invocation_params.dir
    here = benchmark_root(start)
    paths = (
        [here]
        if here is not None
        else [config.rootpath / path for path in config.getini("helmbench_paths") or ["benchmark"]]
    )
    found = [path for path in paths if benchmark_root(path) is not None or benchmarks_below(path)]
    if not found:
        places = ", ".join(str(path) for path in paths)
        raise pytest.UsageError(
            f"no benchmark at {places}\n"
            "  hint: give the path of one, or set helmbench_paths; a benchmark is a folder with scenarios/P1-B1-S1/…,"
            " a pack (manifest.yaml and tasks.jsonl), or a Bench Pack (benchlocal.pack.json)"
        )
    config.args[:] = [str(path) for path in found]


class SessionPlugin:
    """The hooks of a session that asks.

    Args:
        config: pytest's.
        settings: Of the session.
        library: Its benchmarks.
        role: Where outcomes come from.
        coordinator: Limiter and record; None in an xdist worker.
    """

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        library: Library,
        role: SessionRole,
        coordinator: Coordinator | None,
    ) -> None:
        self.settings = settings
        self.wants_properties = bool(config.getoption("xmlpath", None))
        self._config = config
        self._library = library
        self._role = role
        self._coordinator = coordinator
        self._hides_text = in_ci() and not settings.with_text
        self._live = LiveLine(config, coordinator)
        self._garbage = GarbagePace()
        self._garbage.begin()
        if isinstance(role, XdistController):
            role.on_tick = self._live.tick
        self._broken = 0
        self._unjudged_failures = 0
        self._failures = 0
        self._noted_again = False
        self._jobs: list[CaseJob | None] = []
        self._plan: Plan | None = None
        self._tests: HandWrittenTests | None = None
        self._named_files = {
            (config.invocation_params.dir / argument.split("::")[0]).resolve() for argument in config.args
        }

    # Collection

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Have a hand-written test that uses a fixture of ours run on every model."""
        if TURN_FIXTURE in metafunc.fixturenames and not self.settings.self_check:
            self._hand_written().parametrize(metafunc)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """Load what the arguments name: what is wrong with a whole benchmark ends the session before it begins."""
        self._load_what_is_named()
        self._garbage.before_items()
        try:
            return (yield)
        finally:
            self._garbage.after_items()

    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a pack as one thing, so that nothing in it is imported: no conftest, no tester file."""
        return PackFolder.from_parent(parent, path=path) if is_closed(path) else None

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a file of a benchmark."""
        try:
            loaded = self._library.of_file(file_path)
        except UnreadableBenchmarkError as error:
            folder = file_path.parent
            if is_closed(folder):
                # One pack among others: its own item errors, and the others run.
                broken = ((folder.name, error.problems),)
                manifests = (folder / MANIFEST, *manifests_of(folder))
                return BrokenFile.build(parent, file_path, broken) if file_path in manifests else None
            raise pytest.Collector.CollectError(self._text_of(error)) from error
        except HelmbenchError as error:
            raise pytest.Collector.CollectError(self._text_of(error)) from error
        if loaded is None:
            return None
        if loaded.cases_in(file_path):
            return CaseFile.build(parent, file_path, loaded)
        found = loaded.broken_in(file_path) or self._named_but_broken(loaded, file_path)
        return BrokenFile.build(parent, file_path, found) if found else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Apply `--helmbench-select`; put the cases of local models together."""
        self._select(items)
        _group_local_models(items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Plan what was selected; a worker tells its controller."""
        if self._config.getoption("collectonly"):
            return
        on_demand = ran_on_demand(session.items)
        jobs = [
            item.job if isinstance(item, CaseItem) and id(item) not in on_demand else None
            for item in session.items
        ]
        self._jobs = jobs
        cases = [job for item in session.items if (job := job_of(item)) is not None]
        self._plan = (
            plan_jobs(cases, dry_run=self.settings.dry_run, scope=self._scope(len(cases))) if cases else None
        )
        if self._plan is not None and self._tests is not None:
            self._plan = replace(self._plan, python_tests=self._tests.outline)
        if self._plan is not None and isinstance(self._role, XdistWorker):
            self._begin(self._plan)

    # Running

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Start the engine; a worker waits for its controller to say so."""
        if isinstance(self._role, SingleProcess) and self._plan is not None:
            self._begin(self._plan)

    def obtain(self, item: CaseItem) -> Outcome:
        """Return the outcome of an item; a judged one stands."""
        if item.outcome is not None and item.outcome.judged:
            if not self._noted_again:
                self._noted_again = True
                self._role.note(_JUDGED_AGAIN)
            return item.outcome
        try:
            return self._role.obtain(item.job, self._live.tick)
        except CancelledRunError as error:
            reason = str(error) or "cancelled"
        # Out of the handler: pytest would take its time over the chained traceback.
        item.session.shouldstop = reason
        pytest.exit(reason, returncode=0)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the report carry verdict and ids, and the reply's start where people look."""
        report = yield
        fault = call.excinfo.value if call.excinfo is not None else None
        if (
            isinstance(item, CaseItem | BrokenItem | SelfCheckItem)
            and isinstance(fault, pytest.fail.Exception)
            and report.failed
        ):
            report.longrepr = str(fault)  # as it is: pytest would put "Failed: " before it
        if isinstance(item, CaseItem | BrokenItem) and not str(item.path).isprintable():
            # Names of folders are among them, and xdist cannot send what is no UTF-8.
            report.keywords = {escaped_path(name): value for name, value in report.keywords.items()}
        if isinstance(item, CaseItem):
            self._complete(report, item)
        elif isinstance(item, SelfCheckItem) and report.skipped and fault is not None:
            report.longrepr = (escaped_path(str(item.path)), 1, scrub(str(fault)))
        elif isinstance(item, BrokenItem) and report.when == "setup":
            report.__dict__["helmbench"] = {"code": item.name, "verdict": "broken"}
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        """Take note before others print, and let go of what nobody will print."""
        self._take_note(report)
        yield
        self._let_go(report)

    def _let_go(self, report: pytest.TestReport) -> None:
        """Take a phase that passed without a word off the terminal's list.

        pytest searches that list once per failure: minutes for some ten thousand cases.
        """
        if (
            not report.passed
            or report.when == "call"
            or report.sections
            or self._config.getoption("durations")
        ):
            return
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        kept = reporter.stats.get("") if reporter is not None else None
        if kept and kept[-1] is report:
            kept.pop()

    def _take_note(self, report: pytest.TestReport) -> None:
        """Count what decides about stopping; take the live line away before others print."""
        self._live.clear()
        carried: dict[str, Any] | None = getattr(report, "helmbench", None)
        if carried is not None and self._coordinator is not None:
            self._broken += carried["verdict"] == "broken"
            if isinstance(report.longrepr, str):
                report.longrepr = CaseText(report.longrepr)  # type: ignore[assignment]
        judged_wrong = carried is not None and carried["verdict"] == "failed" and report.when == "call"
        self._unjudged_failures += report.failed and not judged_wrong
        if isinstance(self._role, XdistController):
            if carried is not None or report.when == "teardown":
                self._role.reported(getattr(report, "node", None), report.nodeid)
            self._failures += report.failed
            most = self._config.getoption("maxfail", 0)
            if most and self._failures >= most:
                self._role.cancel(f"stopping after {self._failures} failures")

    # pytest-xdist

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give a worker its channel."""
        if isinstance(self._role, XdistController):
            self._role.connect(node)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self) -> SliceScheduling | None:
        """Schedule by slices."""
        if not isinstance(self._role, XdistController):
            return None
        return self._role.scheduler(self._config, self._differs)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport, sched: Any) -> None:
        """Queue the item of a dead worker once more."""
        if isinstance(self._role, XdistController):
            again = self._role.runs_again(crashitem)
            crash_report(report, again=again)
            if again:
                sched.mark_test_pending(crashitem)

    # The end

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Stop at once."""
        self._role.cancel("interrupted")
        if not self._config.getoption("fulltrace", False):
            # pytest shows the innermost line, but formats every frame first: half a second in each process.
            excinfo.traceback = excinfo.traceback[-2:]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
        """Stop, store, and settle the exit code."""
        self._live.clear()
        interrupted = exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
        self._role.end(interrupted=interrupted)
        if self._coordinator is not None:
            status = ExitRule(self._coordinator, _models_on_command_line(self._config)).settle(
                int(exitstatus), unjudged_failures=self._unjudged_failures, left_over=self._left_over()
            )
            if status != exitstatus:
                session.exitstatus = status
            if self.wants_properties:
                add_suite_properties(self._config, self._coordinator)
            write_reports(self.settings, tuple(self._coordinator.book.tallies), self._coordinator.note)

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the summary."""
        if self._coordinator is None:
            return
        lines = session_lines(self._coordinator, self._broken, verbose=self._config.get_verbosity() > 0)
        if lines:
            terminalreporter.section("helmbench")
        for line in lines:
            terminalreporter.write_line(scrub(line))

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self) -> None:
        """Leave the collector as it was found, and nothing running."""
        self._library.end()
        self._garbage.end()

    def self_check(self, loaded: Loaded, code: str) -> tuple[Sequence[Problem], str | None]:
        """Return what is wrong with a row, or why it could not be checked."""
        return self._library.loop.run(self._library.self_check(loaded, code))

    # What the hooks share

    def _load_what_is_named(self) -> None:
        if self._coordinator is None:
            return
        for argument in self._config.args:
            path = self._config.invocation_params.dir / argument.split("::")[0]
            inside = benchmark_root(path)
            for root in dict.fromkeys([*([inside] if inside is not None else []), *benchmarks_below(path)]):
                try:
                    self._library.load(root)
                except HelmbenchError as error:
                    if isinstance(error, UnreadableBenchmarkError) and is_closed(root):
                        continue  # it becomes an item that errors
                    raise pytest.UsageError(self._text_of(error)) from error

    def _text_of(self, error: HelmbenchError) -> str:
        if not isinstance(error, UnreadableBenchmarkError):
            return scrub(str(error))
        base = self._config.invocation_params.dir
        return scrub("\n".join(problem.text(base) for problem in error.problems))

    def _named_but_broken(self, loaded: Loaded, path: Path) -> Broken:
        """A healthy file whose scenario or pack is broken elsewhere must not run silently empty."""
        if path.resolve() not in self._named_files:
            return ()
        if loaded.outline.kind == "pack":
            return loaded.broken_in(manifests_of(loaded.root)[0])
        if not is_prompt_file(path):
            return ()
        if not isinstance(loaded, LoadedTree):
            return ()
        codes = {code for broken, code in loaded.outline.broken.items() if path.parent in broken.parents}
        return tuple((code, loaded.problems_of_code(code)) for code in sorted(codes))

    def _scope(self, selected: int) -> str:
        """Return `evaluation_runs.scope`: paths, options and marks all narrow what is selected."""
        in_all = sum(
            loaded.count(add_no_context=self.settings.add_no_context)
            * len(loaded.targets)
            * self.settings.repeat
            for loaded in self._library.loaded
        )
        if selected == in_all:
            return "whole"
        by_outcome = self._config.getoption("lf", False) or self._config.getoption("stepwise", False)
        return "by_outcome" if by_outcome else "selected"

    def _hand_written(self) -> HandWrittenTests:
        if self._tests is None:
            from pytest_helmbench.benchmarks.python_tests.fixtures import HandWrittenTests  # noqa: PLC0415 - few sessions have any

            try:
                self._tests = HandWrittenTests(self._config, self._library, self._role, self._live.tick)
            except HelmbenchError as error:
                raise pytest.Collector.CollectError(self._text_of(error)) from error
            self._config.pluginmanager.register(self._tests, "helmbench-tests")
        return self._tests

    def _begin(self, plan: Plan) -> None:
        try:
            self._role.begin(self._jobs, plan)
        except HelmbenchError as error:
            raise pytest.UsageError(scrub(str(error))) from error

    def _select(self, items: list[pytest.Item]) -> None:
        selection = self.settings.select
        if selection is None:
            return
        kept: list[pytest.Item] = []
        dropped: list[pytest.Item] = []
        for item in items:
            job = job_of(item)
            if job is not None:
                selected = selection.matches(job.parts)
            elif isinstance(item, BrokenItem):
                # A file of the whole benchmark (scoring.yaml) is named by no code and concerns every case.
                selected = scenario_code_of(item.name) is None or selection.may_match(
                    tuple(item.name.split("-"))
                )
            else:
                selected = True
            (kept if selected else dropped).append(item)
        if dropped:
            items[:] = kept
            self._config.hook.pytest_deselected(items=dropped)

    def _complete(self, report: pytest.TestReport, item: CaseItem) -> None:
        outcome = item.outcome
        if outcome is None:
            return
        if report.when == "call" or report.failed:
            report.__dict__["helmbench"] = {
                "code": item.job.code,
                "model": item.job.model_id,
                "verdict": str(outcome.verdict),
            }
            if report.failed and not self._hides_text and not self.settings.with_text:
                report.sections += quoted_texts(outcome)
        elif report.when == "setup" and report.skipped and outcome.verdict is Verdict.SKIPPED:
            why = scrub(outcome.message or outcome.reason or "skipped")
            report.longrepr = (escaped_path(str(item.path)), 1, why)

    def _differs(self, sentence: str) -> None:
        if self._coordinator is not None:
            self._coordinator.note(sentence)
        raise pytest.UsageError(sentence)

    def _left_over(self) -> int:
        return self._role.left_over if isinstance(self._role, XdistController) else 0


def _models_on_command_line(config: pytest.Config) -> bool:
    return any(
        str(argument).split("=", 1)[0] == "--helmbench-model" for argument in config.invocation_params.args
    )


def _group_local_models(items: list[pytest.Item]) -> None:
    """Let local models run one after the other, so that a server need not swap them."""
    order: dict[str, int] = {}
    for job in filter(None, map(job_of, items)):
        if getattr(job.target.model.endpoint, "local", False):
            order.setdefault(job.model_id, len(order) + 1)
    if len(order) > 1:
        items.sort(key=lambda item: 0 if (job := job_of(item)) is None else order.get(job.model_id, 0))
