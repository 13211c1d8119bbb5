"""The last line of a session: one verdict per run, behind pytest's own count."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from pytest_helmbench.core.scrub import quoted
from pytest_helmbench.pytest_side.failures import ShownFailures
from pytest_helmbench.pytest_side.session_end import SessionEnd


class LastWords:
    """The very last lines of a session: one verdict per run, behind pytest's own count.

    Args:
        config: pytest's.
        end: Knows them.
        shown: The failures that were shown.
    """

    def __init__(self, config: pytest.Config, end: SessionEnd, shown: ShownFailures) -> None:
        self._config = config
        self._end = end
        self._shown = shown

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Leave to pytest's short summary what stands nowhere else."""
        self._shown.give_no_case_twice(terminalreporter)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        """Wait until all have printed."""
        yield
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            for line in self._end.verdicts:
                reporter.write_line(quoted(line))
