"""The end of a session: exit code, report files, summary, and the headline as the last line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import quoted, scrub
from pytest_helmbench.pytest_side.collect.items import skip_reason
from pytest_helmbench.pytest_side.exit_code import Session, settled
from pytest_helmbench.pytest_side.say.case_text import CaseText
from pytest_helmbench.pytest_side.say.failures import ShownFailures, failed_listing
from pytest_helmbench.pytest_side.say.junit_view import (
    JunitView,
    add_gate_case,
    add_suite_properties,
    junit_writer,
)
from pytest_helmbench.pytest_side.say.live_line import LiveLine
from pytest_helmbench.pytest_side.say.printing import Line, in_ci, printed, width_of
from pytest_helmbench.pytest_side.say.run_names import summary_title
from pytest_helmbench.pytest_side.say.summary import session_lines
from pytest_helmbench.pytest_side.workers.role import SessionRole
from pytest_helmbench.reports.headline import Headline
from pytest_helmbench.reports.tables import display_width
from pytest_helmbench.results.gates import GateReport
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.read.results import results

_LISTING = ("collectonly", "showfixtures", "show_fixtures_per_test")
"""Options with which pytest only lists items or fixtures."""


class SessionEnd:
    """The hooks that count reports and end a session; in an xdist worker, without a coordinator, they end its role."""

    def __init__(
        self,
        config: pytest.Config,
        role: SessionRole,
        coordinator: Coordinator | None,
        live: LiveLine,
        shown: ShownFailures,
    ) -> None:
        self._config = config
        self._role = role
        self._coordinator = coordinator
        self._live = live
        self._shown = shown
        self._broken = self._judged = 0
        self._unjudged_failures: list[str] = []
        self._interrupted = False
        self._foreign_skips = Counter[str]()
        self.headline: Headline | None = None
        self.gated: GateReport | None = None
        self._view: JunitView | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Stand before the writer of a JUnit report where wrong verdicts are not failures to it."""
        writer = junit_writer(self._config)
        if writer is None or self._coordinator is None:
            return
        shown_as = self._coordinator.settings.junit_failures
        if shown_as != "failed":
            self._view = JunitView(writer, shown_as)
            self._config.pluginmanager.unregister(writer)
            self._config.pluginmanager.register(self._view, "helmbench-junit")

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self) -> None:
        """Register the writer of the JUnit report again, where pytest looks for it."""
        if self._view is not None:
            self._config.pluginmanager.unregister(self._view)
            self._config.pluginmanager.register(self._view.writer)
            self._view = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        """Count a report before others print it, and drop one that nothing prints."""
        carried = self._count(report)
        yield
        self._drop_silent(report)
        if carried is not None and self._coordinator is not None:
            self._shown.add(report, carried)
        self._live.draw_if_due()

    def _drop_silent(self, report: pytest.TestReport) -> None:
        """Take a phase that passed without output off the terminal's list.

        pytest searches that list once per failure, which takes minutes for ten thousand cases.
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

    def _count(self, report: pytest.TestReport) -> dict[str, Any] | None:
        """Count a report; return its verdict and ids where it is of a case."""
        carried: dict[str, Any] | None = getattr(report, "helmbench", None)
        if carried is not None and self._coordinator is not None:
            self._broken += carried["verdict"] == "broken"
            self._judged += carried["verdict"] in ("passed", "failed") and report.when == "call"
            if isinstance(report.longrepr, str):
                report.longrepr = CaseText(report.longrepr, report.location, carried.pop("brief", None))
        elif (skip := skip_reason(report)) is not None:
            self._foreign_skips[skip] += 1
        judged_wrong = carried is not None and carried["verdict"] == "failed" and report.when == "call"
        counted_later = hasattr(report, "helmbench_subtest")
        if report.failed and not judged_wrong and not counted_later:
            self._unjudged_failures.append(report.nodeid)
        return carried

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
        """End the role, and settle the exit code."""
        self._interrupted = exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
        try:
            self._role.end(interrupted=self._interrupted)
        finally:
            self._live.end()
        coordinator = self._coordinator
        if coordinator is None:
            return
        named = (str(argument).split("=", 1)[0] for argument in self._config.invocation_params.args)
        status, self.headline, self.gated = settled(
            Session(
                coordinator,
                int(exitstatus),
                models_named="--helmbench-model" in named,
                only_collected=any(self._config.getoption(option, False) for option in _LISTING),
                unjudged_failures=self._unjudged_failures,
                left_over=self._role.left_over,
                foreign_skips=self._foreign_skips,
                stepwise=bool(self._config.getoption("stepwise", False)),
            )
        )
        if status != exitstatus:
            session.exitstatus = status
        if self._config.getoption("xmlpath", None):
            add_suite_properties(self._config, coordinator)
            for run in self._gate_cases(coordinator):
                add_gate_case(self._config, run.subject, scrub(run.text), holds=run.holds is True)
        if coordinator.settings.wants_reports:
            from pytest_helmbench.pytest_side.say.report_files import write_report_files

            is_refused = exitstatus == pytest.ExitCode.USAGE_ERROR
            write_report_files(coordinator, self.headline, is_refused=is_refused)

    def _gate_cases(self, coordinator: Coordinator) -> Sequence[Headline]:
        """Return the headlines that become test cases: one per run with a gate."""
        found = self.headline
        if found is None or (self.gated is None and not (coordinator.gates.asked and found.holds is False)):
            return ()
        return found.by_run

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the summary."""
        self._shown.restore_all(terminalreporter)
        coordinator = self._coordinator
        if coordinator is None:
            return
        if self._interrupted:
            self._add_unreported(coordinator, terminalreporter.stats)
        usual = self._config.rootpath / "helmbench.db"
        listing = failed_listing([*coordinator.runs.tallies], coordinator.runs.db, usual)
        failures = [*self._shown.one_liners, *self._shown.lines(listing)]
        verbose = self._config.get_verbosity() > 0
        start = self._config.invocation_params.dir
        writer = self._config.get_terminal_writer()
        summary = session_lines(
            coordinator,
            self._broken,
            start,
            self.headline,
            reported=self._judged if self._interrupted else None,
            verbose=verbose,
            width=width_of(writer),
        )
        title = quoted(summary_title(coordinator))
        for head, lines in (("FAILURES" if self._shown.one_liners else "", failures), (title, summary)):
            if head and lines:
                wide = display_width(head) - len(head)  # pytest counts letters
                terminalreporter.write_sep("=", head, fullwidth=writer.fullwidth - wide)
            for line in printed(writer, lines):
                terminalreporter.write_line(line)

    def _add_unreported(self, coordinator: Coordinator, stats: Mapping[str, Any]) -> None:
        with_text = coordinator.settings.shown_texts.any or not in_ci()
        with suppress(StoreError):  # another line says what could not be stored
            for run_id in coordinator.runs.tallies:
                failed = results(coordinator.runs.db, run_id, outcome=Verdict.FAILED)
                self._shown.add_unreported(failed, stats, with_text=with_text)


class LastLine:
    """Prints the headline behind pytest's own count; with -qq there is none, and the block above has the headline."""

    def __init__(self, config: pytest.Config, end: SessionEnd, shown: ShownFailures) -> None:
        self._config = config
        self._end = end
        self._shown = shown

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Keep shown and counted cases out of pytest's short summary."""
        self._shown.hide_cases(terminalreporter)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        """Print after all other plugins."""
        yield
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        found = self._end.headline
        is_repeated = self._config.get_verbosity() < -1 and found is not None and found.holds is not None
        if reporter is not None and found is not None and not is_repeated:
            for line in printed(self._config.get_terminal_writer(), [Line(found.text, "bold")]):
                reporter.write_line(line)
