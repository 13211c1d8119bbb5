"""The end of a session with many failed cases: some are shown, the others are counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

__all__ = ["FoldedFailures"]

_SHOWN = 100
_SHOWN_QUIETLY = 2


class FoldedFailures:
    """Takes judged cases off the terminal's list of failures while it prints them.

    Errors, and failures of other tests, are all shown. Reports, JUnit and counts know of no folding.

    Args:
        config: Of the session; with `-v` nothing is folded.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._verbosity = config.get_verbosity()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Iterator[None]:
        """Leave the first ones, and say how many more there are."""
        failed = terminalreporter.stats.get("failed", [])
        folded = self._folded(failed)
        if not folded:
            yield
            return
        terminalreporter.stats["failed"] = [report for report in failed if id(report) not in folded]
        try:
            yield
        finally:
            terminalreporter.stats["failed"] = failed
        terminalreporter.write_line(
            f"{len(folded)} more failed cases: -v shows them all, `helmbench show` lists them"
        )

    def _folded(self, failed: list[Any]) -> set[int]:
        """Return which reports are not shown, by identity."""
        if self._verbosity > 0:
            return set()
        cases = [id(report) for report in failed if _is_judged(report)]
        return set(cases[_SHOWN_QUIETLY if self._verbosity < 0 else _SHOWN :])


def _is_judged(report: Any) -> bool:
    carried = getattr(report, "helmbench", None)
    return isinstance(carried, dict) and carried.get("verdict") == "failed"
