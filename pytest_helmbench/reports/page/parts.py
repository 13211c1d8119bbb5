"""The parts of a page: one run each, beside the run that it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.results.comparing import RunComparison, RunRef
from pytest_helmbench.results.run_report import RunReport, run_report
from pytest_helmbench.store.read.results import ResultRow

_JUDGED = ("passed", "failed")


@dataclass(frozen=True, slots=True)
class Flip:
    """How a case came out in the other run.

    Args:
        before: Its outcome in the other run; empty where that run has no such case.
        word: `worse`, `better`, `same`; `one side` where only one run has judged it.
        index: Place of its result in the other run; -1 for none.
    """

    before: str
    word: str
    index: int


@dataclass(frozen=True, slots=True)
class PagePart:
    """One run on a page.

    Args:
        report: The run with every case.
        comparison: The comparison with its baseline; None on a page that compares nothing.
        baseline: The run that it is compared with; None where only a baseline file has it.
        flips: The change of each result since the baseline, by code and repetition.
        name: Number of the part on its page.
    """

    report: RunReport | None
    comparison: RunComparison | None = None
    baseline: RunReport | None = None
    flips: Mapping[tuple[str, int], Flip] = field(default_factory=dict)
    name: str = ""

    @property
    def runs(self) -> tuple[RunReport, ...]:
        """The runs as plots take them: the baseline first."""
        return tuple(report for report in (self.baseline, self.report) if report is not None)

    @property
    def only_before(self) -> int:
        """Results of the baseline that this run has nothing beside."""
        known = sum(flip.index >= 0 for flip in self.flips.values())
        return 0 if self.baseline is None else len(self.baseline.results) - known

    @classmethod
    def of(cls, report: RunReport, texts: ShownTexts) -> PagePart:
        """Return the part of a run, beside its baseline where it was compared with one; raises as `compared`."""
        if report.comparison is None:
            return cls(report)
        return cls.compared(report.comparison, texts, report)

    @classmethod
    def compared(
        cls, comparison: RunComparison, texts: ShownTexts, report: RunReport | None = None
    ) -> PagePart:
        """Return the part of a comparison, with both runs as their results files have them.

        Args:
            report: The run where it was read already.

        Raises:
            StoreError: A results file cannot be read.
        """
        report = report or _report(comparison.candidate, texts)
        baseline = _report(comparison.baseline, texts)
        found = {} if report is None or baseline is None else flips(report.results, baseline.results)
        return cls(report, comparison, baseline, found)


def _report(ref: RunRef | None, texts: ShownTexts) -> RunReport | None:
    if ref is None or ref.path.suffix == ".json":
        return None  # a baseline file holds scores, and no results
    return run_report(ref.path, ref.run_id, with_text=texts.any, all_cases=True)


def flips(after: tuple[ResultRow, ...], before: tuple[ResultRow, ...]) -> dict[tuple[str, int], Flip]:
    """Return how each result of a run came out in an earlier one, by code and repetition."""
    places = {(row.code, row.repetition): index for index, row in enumerate(before)}
    found = {}
    for row in after:
        index = places.get((row.code, row.repetition), -1)
        earlier = before[index].outcome if index >= 0 else ""
        found[row.code, row.repetition] = Flip(earlier, _word(earlier, row.outcome), index)
    return found


def _word(before: str, after: str) -> str:
    if before not in _JUDGED or after not in _JUDGED:
        return "one side"
    return "same" if before == after else "worse" if after == "failed" else "better"
