"""Cases that were judged wrong, and gates, in a JUnit report."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pytest_helmbench.pytest_side.items import CaseText


def junit_writer(config: pytest.Config) -> Any:
    """Return the plugin that writes the JUnit report; None where none is written.

    It is a plugin without a name, and its key in the stash is pytest's own.
    """
    plugins = config.pluginmanager.get_plugins()
    return next((plugin for plugin in plugins if hasattr(plugin, "add_global_property")), None)


def add_gate_case(config: pytest.Config, name: str, verdict: str, *, holds: bool) -> None:
    """Put a gate among the test cases of the JUnit report, where one is written.

    Args:
        config: pytest's.
        name: Of the run (its model).
        verdict: What is said of it.
        holds: Whether it passes.
    """
    writer = junit_writer(config)
    if writer is None:
        return
    test = f"gate[{name}]"
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
    """Stands before the writer of the JUnit report and shows it cases that were judged wrong as something else.

    Args:
        writer: See `junit_writer`.
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
        """Hand on a report; one of a case that was judged wrong as it is to be shown."""
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
        """See the writer's."""
        self.writer.add_global_property(name, value)
