"""Failed cases at the end of a session: the worst are shown, the others counted, and nothing twice."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.pytest_side.items import CaseText
from pytest_helmbench.reports.session_failures import PartCounts, RunPlace, failure_table, same_errors

_IN_FULL_QUIETLY = 3
_PARTS_QUIETLY = 3


class ShownFailures:
    """Takes judged cases and their errors off the terminal's lists while it prints them, all but a few.

    Failures of other tests are all shown, as pytest does it. JUnit, counts and other plugins know of no limit.

    Args:
        config: Of the session; with `-v` and `-rA` all are shown.
        show: `--helmbench-show`: how many failures and how many errors; None for all.
    """

    def __init__(self, config: pytest.Config, show: int | None) -> None:
        self._quiet = config.get_verbosity() < 0
        all_asked = config.get_verbosity() > 0 or "A" in str(config.getoption("reportchars", ""))
        self._most = None if all_asked else show
        self._parts: defaultdict[str, PartCounts] = defaultdict(PartCounts)
        self._worst: list[tuple[int, int, Any]] = []
        self._seen = 0
        self._left_out = 0
        self._before: dict[str, list[Any]] = {}
        self._rest: dict[str, list[Any]] = {}
        self._lines: list[str] = []
        self.in_short: list[str] = []

    def take(self, report: Any, carried: dict[str, Any]) -> None:
        """Count a judged case; of those that nobody will look at, only the first line is kept."""
        if report.when != "call" or carried["verdict"] not in ("passed", "failed"):
            return
        if not carried["neutral"]:  # scores ignore it, and so does the table beside them
            self._parts[carried["part"]].add(is_wrong=carried["verdict"] == "failed")
        if not report.failed:
            return
        self._seen += 1
        if self._most is None:
            return
        entry = (carried["weight"], -self._seen, report)
        if len(self._worst) < self._most:
            heapq.heappush(self._worst, entry)
            return
        dropped = heapq.heappushpop(self._worst, entry)[2] if self._most else report
        self._left_out += 1
        if isinstance(dropped.longrepr, CaseText):
            dropped.longrepr = CaseText(dropped.longrepr.reprcrash.message, dropped.location)
        dropped.sections = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Iterator[None]:
        """Leave those that are shown to pytest, and give back the others when it has printed."""
        stats = terminalreporter.stats
        if self._most is None:
            yield
            return
        self._before = {name: stats[name] for name in ("failed", "error") if name in stats}
        failed = [report for report in self._before.get("failed", []) if not _is(report, "failed")]
        errors = [report for report in self._before.get("error", []) if not _is(report, "error")]
        broken = [report for report in errors if _is(report, "broken")]
        kept = {id(report) for report in broken[: self._most]}
        errors = [report for report in errors if not _is(report, "broken") or id(report) in kept]
        self._lines = self._prepared(failed, errors, len(broken) - len(kept), stats)
        try:
            yield
        finally:
            stats.update(self._before)

    def _prepared(
        self, failed: list[Any], errors: list[Any], broken: int, stats: dict[str, Any]
    ) -> list[str]:
        """Put what pytest shows in full into its lists; return the lines that stand for the others."""
        worst = [report for *_, report in sorted(self._worst, key=lambda one: one[:2], reverse=True)]
        faults = [report for report in self._before.get("error", []) if _is(report, "error")]
        groups = same_errors(str(report.longrepr) for report in faults)
        shown = [(faults[place], count) for place, count in groups[: self._most]]
        for report, count in shown:
            if count > 1:
                text = f"{report.longrepr}\n  {count} times: the first was {_name(report)}"
                report.longrepr = CaseText(text, report.location)
        lines = []
        if self._quiet and len(worst) > _IN_FULL_QUIETLY:
            self.in_short += [f"{_name(report)}: {_headline(report)}" for report in worst]
            worst = []
        if self._quiet and len(shown) > _IN_FULL_QUIETLY:
            self.in_short += [
                f"{count} × {_headline(report)} (first: {_name(report)})" for report, count in shown
            ]
            shown = []
        self._rest = {"failed": failed, "error": errors}
        stats.update({"failed": failed + worst, "error": errors + [report for report, _ in shown]})
        if len(groups) > (self._most or 0):
            lines.append(
                f"{len(groups) - (self._most or 0)} more kinds of errors (`helmbench show last --errors`)"
            )
        if broken > 0:
            lines.append(f"{broken} more broken files (`helmbench check PATH` lists all)")
        return lines

    def lines(self, place: RunPlace) -> Iterator[str]:
        """Yield what stands for those that were not shown.

        Args:
            place: Of the session's runs.
        """
        yield from self._lines
        if self._left_out:
            yield from failure_table(self._parts, most=_PARTS_QUIETLY if self._quiet else 10)
            yield (
                f"{self._left_out} more failed cases: {place.listing('--failed')} lists them,"
                " --helmbench-show=all or -v shows them here"
            )

    def give_back(self, terminalreporter: Any) -> None:
        """Let other plugins see all that there is."""
        terminalreporter.stats.update(self._before)

    def give_no_case_twice(self, terminalreporter: Any) -> None:
        """Have the short summary list none of ours: they were shown or counted above."""
        if self._before:
            terminalreporter.stats.update(self._rest)


def _is(report: Any, verdict: str) -> bool:
    carried = getattr(report, "helmbench", None)
    return isinstance(carried, dict) and carried.get("verdict") == verdict


def _name(report: Any) -> str:
    return str(report.nodeid).rpartition("::")[2]


def _headline(report: Any) -> str:
    return scrub(str(report.longrepr).partition("\n")[0])
