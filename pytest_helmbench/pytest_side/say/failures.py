"""Failed cases at the end of a session: it shows the worst, counts the others, and lists no case twice."""

from __future__ import annotations

import re
import shlex
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import pytest

from pytest_helmbench.core.case_texts import (
    HIDDEN,
    short_text,
)
from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.scrub import excerpt, full_observed, scrub
from pytest_helmbench.pytest_side.say.case_text import CaseText
from pytest_helmbench.reports.tables import count_text
from pytest_helmbench.results.losses import CaseRepetition, Losses
from pytest_helmbench.store.read.results import ResultRow

_IN_FULL_QUIETLY = 3
_LONGEST_LINE = 400
_LONGEST_OBSERVED = 160
_T = TypeVar("_T")
LossesOf: TypeAlias = Callable[[str, str], Losses]
"""Returns the losses of the closed run of a benchmark and a model."""

_FIGURES = re.compile(r"\d+\.\d+|\d{4,}|\d+(?= ?(?:ms|s|bytes|tokens)\b)")  # no status codes


class WorstCases(Generic[_T]):
    """The failed cases with the most points lost, collected while they arrive.

    Within a part (benchmark, model, behaviour) severity, difficulty and credit decide, so each part keeps `most`.
    The score decides between the parts at the end.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: defaultdict[tuple[str, str, str], list[tuple[object, CaseRepetition, _T]]] = defaultdict(
            list
        )

    def add(self, carried: Mapping[str, Any], value: _T) -> _T | None:
        """Keep a failed case; return one that is no longer among the worst."""
        case = str(carried["code"]), int(carried["repetition"])
        kept = self._parts[carried["benchmark"], carried["model"], carried["part"]]
        insort(kept, ((-carried["weight"], natural_key(case[0]), case[1]), case, value), key=itemgetter(0))
        return kept.pop()[2] if len(kept) > self._most else None

    def worst(self, losses: LossesOf) -> list[_T]:
        """Return the worst cases, the most points lost first, equal ones in natural order of their codes."""
        found = [
            (-losses(benchmark, model).cases.get(case, Fraction(0)), natural_key(case[0]), case[1], value)
            for (benchmark, model, _), kept in self._parts.items()
            for _, case, value in kept
        ]
        return [value for *_, value in sorted(found, key=itemgetter(0, 1, 2))[: self._most]]


class ShownFailures:
    """Takes all but a few judged cases and errors off the terminal's lists while pytest prints them.

    pytest shows all failures of other tests. JUnit, counts and other plugins see all reports.

    Args:
        config: With `-v` and `-rA` all failures are shown.
        show: Most failures and most errors to show (`--helmbench-show`); None for all.
    """

    def __init__(self, config: pytest.Config, show: int | None, losses: LossesOf) -> None:
        self._losses = losses
        self._quiet = config.get_verbosity() < 0
        self._all_listed = "A" in str(config.getoption("reportchars", ""))
        self._most = None if self._all_listed or config.get_verbosity() > 0 else show
        self._worst: WorstCases[Any] = WorstCases(self._most or 0)
        self._seen = 0
        self._before: dict[str, list[Any]] = {}
        self._rest: dict[str, list[Any]] = {}
        self._lines: list[str] = []
        self.one_liners: list[str] = []

    def add(self, report: Any, carried: dict[str, Any]) -> None:
        """Count a judged case; keep only the first line of a case that is not shown."""
        wrong = report.when == "call" and carried["verdict"] == "failed" and report.failed
        if not wrong or "hand_written" in carried:
            return
        self._seen += 1
        if self._most is None:
            return
        dropped = self._worst.add(carried, report)
        if dropped is None:
            return
        if isinstance(dropped.longrepr, CaseText):
            dropped.longrepr = CaseText(dropped.longrepr.reprcrash.message, dropped.location)
        dropped.sections = []

    def add_unreported(
        self, failed: Iterable[ResultRow], stats: Mapping[str, Any], *, with_text: bool
    ) -> None:
        """List failed cases that were judged before an interrupted session came to their items, a line for each.

        Args:
            stats: The reports of pytest's terminal, by category.
            with_text: Show running text of the reply.
        """
        reported = {getattr(one, "nodeid", "") for name, found in stats.items() if name for one in found}
        rows = [row for row in failed if row.node_id not in reported and not row.neutral]
        room = None if self._most is None else max(0, self._most - self._seen)
        self._seen += len(rows)
        for row in rows[:room]:
            wrong = [one for one in row.evaluations if not one.passed]
            if with_text:
                wrong = [replace(one, observed=full_observed(one)) for one in wrong]
            said = excerpt("; ".join(map(short_text, wrong)), _LONGEST_LINE)
            self.one_liners.append(f"{short_name(row.node_id)}: {' '.join(said.split())}")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Iterator[None]:
        """Have pytest print the shown reports alone, and restore the others after that."""
        stats = terminalreporter.stats
        if self._all_listed:
            yield
            return
        self._before = {name: stats[name] for name in ("failed", "error") if name in stats}
        failed = [report for report in self._before.get("failed", []) if not _is(report, "failed")]
        errors = [report for report in self._before.get("error", []) if not _is(report, "error")]
        broken = [report for report in errors if _is(report, "broken")]
        kept = {id(report) for report in broken[: self._most]}
        errors = [report for report in errors if not _is(report, "broken") or id(report) in kept]
        self._rest = {"failed": failed, "error": errors}
        if self._most is not None:
            self._lines = self._choose_shown(failed, errors, len(broken) - len(kept), stats)
        try:
            yield
        finally:
            stats.update(self._before)

    def _choose_shown(
        self, failed: list[Any], errors: list[Any], broken: int, stats: dict[str, Any]
    ) -> list[str]:
        """Put the shown reports into pytest's lists; return the lines that represent the others."""
        worst = self._worst.worst(self._losses)
        for report in worst:
            report.__dict__.pop("node", None)  # pytest names an xdist worker above each failure
        faults = [report for report in self._before.get("error", []) if _is(report, "error")]
        groups = same_errors(str(report.longrepr) for report in faults)
        shown = [(faults[place], count) for place, count in groups[: self._most]]
        for report, count in shown:
            if count > 1:
                text = f"{report.longrepr}\n  {count} times: the first was {short_name(report.nodeid)}"
                report.longrepr = CaseText(text, report.location)
        lines = []
        if self._quiet and len(worst) > _IN_FULL_QUIETLY:
            self.one_liners += [f"{short_name(report.nodeid)}: {_headline(report)}" for report in worst]
            worst = []
        if self._quiet and len(shown) > _IN_FULL_QUIETLY:
            self.one_liners += [
                f"{count} × {_headline(report)} (first: {short_name(report.nodeid)})"
                for report, count in shown
            ]
            shown = []
        stats.update({"failed": failed + worst, "error": errors + [report for report, _ in shown]})
        if len(groups) > (self._most or 0):
            kinds = count_text(len(groups) - (self._most or 0), "more kind")
            lines.append(f"{kinds} of errors (`helmbench show last --errors`)")
        if broken > 0:
            lines.append(f"{count_text(broken, 'more broken file')} (`helmbench check PATH` lists all)")
        return lines

    def lines(self, listing: str) -> Iterator[str]:
        """Yield the lines that represent the cases not shown; `listing` is the command that lists all failed ones."""
        yield from self._lines
        left_out = 0 if self._most is None else self._seen - self._most
        if left_out > 0:
            yield (
                f"{count_text(left_out, 'more failed case')}: {listing} lists all,"
                " --helmbench-show=all or -v shows them here"
            )

    def restore_all(self, terminalreporter: Any) -> None:
        """Let other plugins see all reports."""
        terminalreporter.stats.update(self._before)

    def hide_cases(self, terminalreporter: Any) -> None:
        """Keep judged cases out of the short summary: the lines above have them."""
        if self._before:
            terminalreporter.stats.update(self._rest)


def _is(report: Any, verdict: str) -> bool:
    carried = getattr(report, "helmbench", None)
    return isinstance(carried, dict) and "hand_written" not in carried and carried.get("verdict") == verdict


def short_name(node_id: str) -> str:
    """Return the part of a node id behind its file."""
    return node_id.rpartition("::")[2]


def _headline(report: Any) -> str:
    text, brief = scrub(str(report.longrepr).partition("\n")[0]), getattr(report.longrepr, "brief", None)
    if brief is None:
        return text
    observed = excerpt(" ".join(brief["observed"].split()), _LONGEST_OBSERVED)
    if HIDDEN in text and HIDDEN not in brief["expected"]:
        return f"expected {brief['expected']}, observed {observed}"  # of the user's own data
    if not brief["unlike"] or brief["observed"] in text:
        return text
    also = f"; {brief['also']}" if brief["also"] else ""
    return f"{brief['expected'] if also else text}, observed {observed}{also}"  # running text of the reply


def same_errors(texts: Iterable[str]) -> Sequence[tuple[int, int]]:
    """Return the different errors, the most frequent first: the place of the first one, and their number.

    Times, sizes and ports in their texts do not matter.
    """
    counts: Counter[str] = Counter()
    first: dict[str, int] = {}
    for place, text in enumerate(texts):
        alike = _FIGURES.sub("#", text)
        counts[alike] += 1
        first.setdefault(alike, place)
    return [(first[alike], count) for alike, count in counts.most_common()]


def failed_listing(runs: Sequence[int], db: Path, usual: Path) -> str:
    """Return the command that lists the failed cases of a run, or of one of several: `helmbench show 3 --failed`."""
    run = runs[0] if len(runs) == 1 else "RUN"
    return f"`helmbench show {run} --failed{'' if db == usual else f' --db={shlex.quote(str(db))}'}`"
