"""The last line of a session, behind pytest's own count: its headline."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from pytest_helmbench.core.scrub import quoted
from pytest_helmbench.pytest_side.failures import ShownFailures
from pytest_helmbench.pytest_side.session_end import SessionEnd


class LastWords:
    """Prints the headline behind pytest's own count.

    Args:
        config: pytest's.
        end: Knows it.
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
        if reporter is not None and self._end.headline is not None:
            reporter.write_line(quoted(self._end.headline.text))
