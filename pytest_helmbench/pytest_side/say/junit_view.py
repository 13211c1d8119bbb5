"""The JUnit report of a session: how it shows wrong verdicts, gates as test cases, properties of the suite."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pytest_helmbench.pytest_side.say.case_text import CaseText
from pytest_helmbench.pytest_side.say.summary import kind_words
from pytest_helmbench.run.coordinator import Coordinator


def junit_writer(config: pytest.Config) -> Any:
    """Return the plugin that writes the JUnit report; None where none is written.

    It has no name, and its key in the stash is private to pytest.
    """
    plugins = config.pluginmanager.get_plugins()
    return next((plugin for plugin in plugins if hasattr(plugin, "add_global_property")), None)


def add_gate_case(config: pytest.Config, name: str, verdict: str, *, holds: bool) -> None:
    """Put the gate of the run `name` among the test cases of the JUnit report, where one is written."""
    writer = junit_writer(config)
    if writer is None:
        return
    test = f"gate[{name}]" if name else "gate"
    for when in ("setup", "call", "teardown"):
        fails = when == "call" and not holds
        location = ("helmbench", None, test)
        text: Any = CaseText(verdict, location) if fails else None
        report = pytest.TestReport(
            f"helmbench::{test}",
            location,
            {},
            "failed" if fails else "passed",
            text,
            when,
            user_properties=[("gate", verdict)],
        )
        writer.pytest_runtest_logreport(report)


class JunitView:
    """Stands before the writer of the JUnit report and changes the outcome of wrong verdicts.

    Args:
        shown_as: `skipped`, or `none`: as if they had passed.
    """

    def __init__(self, writer: Any, shown_as: str) -> None:
        self.writer = writer
        self._shown_as = shown_as
        self.pytest_collectreport = writer.pytest_collectreport
        self.pytest_internalerror = writer.pytest_internalerror
        self.pytest_sessionfinish = writer.pytest_sessionfinish
        self.pytest_terminal_summary = writer.pytest_terminal_summary

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hand on a report; that of a wrong verdict gets the outcome that the user has chosen."""
        carried = getattr(report, "helmbench", None)
        if (
            report.failed
            and report.when == "call"
            and isinstance(carried, dict)
            and carried["verdict"] == "failed"
        ):
            text = str(report.longrepr).partition("\n")[0]
            report = copy.copy(report)
            report.outcome = "skipped" if self._shown_as == "skipped" else "passed"
            file, line, _ = report.location
            report.longrepr = (file, (line or 0) + 1, f"judged wrong: {text}") if report.skipped else None
            report.user_properties = [*report.user_properties, ("verdict", f"failed: {text}")]
        self.writer.pytest_runtest_logreport(report)

    def add_global_property(self, name: str, value: object) -> None:
        self.writer.add_global_property(name, value)


def add_suite_properties(config: pytest.Config, coordinator: Coordinator) -> None:
    """Add the comparisons and the properties of kinds to the suite of a JUnit report, where one is written."""
    plan = coordinator.runs.plan
    writer = junit_writer(config)
    if plan is None or writer is None:
        return
    add = writer.add_global_property
    for found in coordinator.comparisons.values():
        name = f"helmbench.compare.{found.model}"
        add(f"{name}.verdict", found.verdict.value)
        for scope in found.scopes[:1]:
            add(f"{name}.change", f"{float(scope.change.change):.6f}")
            add(f"{name}.p", f"{scope.change.p:.6f}")
    for _, words in kind_words(plan, coordinator):
        for name, value in words.properties:
            add(name, value)
