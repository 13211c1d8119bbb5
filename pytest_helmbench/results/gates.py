"""Gates of a session: which scores must reach which thresholds, and whether they do."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.run_score import RunScore
from pytest_helmbench.scoring.thresholds import (
    GateVerdict,
    Threshold,
    ThresholdError,
    gate,
    parse_share,
    parse_thresholds,
)

if TYPE_CHECKING:
    from pytest_helmbench.results.baselines import BaselineAsked
    from pytest_helmbench.results.comparing import RunComparison
    from pytest_helmbench.store.read.runs import RunDetail
    from pytest_helmbench.store.read.score_facts import RunFacts


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates that the options ask for.

    Args:
        thresholds: Of `--helmbench-min-score`; empty for none.
        min_coverage: None when it was not given: 1 with a gate, nothing without.
        baseline: Of `--helmbench-baseline`; None for none.
    """

    thresholds: tuple[Threshold, ...]
    min_coverage: Fraction | None
    baseline: BaselineAsked | None = None

    @property
    def asked(self) -> bool:
        """Whether a score must reach something, or must not have dropped."""
        return bool(self.thresholds) or self.baseline is not None

    @property
    def any(self) -> bool:
        """Whether a gate is asked for, or a coverage alone."""
        return self.asked or self.min_coverage is not None

    def judge(
        self,
        scores: Mapping[str, RunScore | None],
        comparisons: Mapping[str, RunComparison] | None = None,
        cases: Mapping[str, JudgedCases] | None = None,
    ) -> GateReport:
        """Compare every run with every threshold, and with its baseline.

        Args:
            scores: By the name of the run (a model); None where it has none.
            comparisons: With the baselines, by the same names, and of what has no run any more.
            cases: How many each run has judged, by the same names; None where that is not known.
        """
        compared, counts = comparisons or {}, cases or {}
        named = {**dict.fromkeys(compared), **scores}
        runs = (self._run(name, one, compared.get(name), counts.get(name)) for name, one in named.items())
        return GateReport(tuple(runs))

    def _run(
        self, name: str, score: RunScore | None, comparison: RunComparison | None, cases: JudgedCases | None
    ) -> RunGates:
        if score is None:
            return RunGates(name, comparison=comparison, worse=comparison is not None, cases=cases)
        if not (self.any or comparison is not None):
            return RunGates(name, score, min_coverage=Fraction(0), cases=cases)
        coverage = self.min_coverage if self.min_coverage is not None else Fraction(1)
        verdicts = tuple(gate(score, threshold, coverage) for threshold in self.thresholds)
        worse = self.baseline is not None if comparison is None else comparison.verdict.fails
        return RunGates(name, score, verdicts, coverage, comparison, worse, cases)


@dataclass(frozen=True, slots=True)
class JudgedCases:
    """Cases of a run, each repetition counted: those with a verdict, and all."""

    judged: int
    planned: int

    @classmethod
    def of(cls, facts: RunFacts) -> JudgedCases:
        """Return the counts of a stored run; the cases of a broken scenario count as planned."""
        judged = len({(code, repetition) for code, repetition, _ in facts.verdicts})
        return cls(judged, facts.repeat * (len(facts.codes) + len(facts.broken)))


@dataclass(frozen=True, slots=True)
class RunGates:
    """The result of the gates for one run.

    Args:
        score: None where it has none: no gate holds then.
        comparison: With its baseline; None where none was made.
        worse: Whether that comparison fails the gate.
        cases: How many of its cases were judged; None where that is not known.
    """

    name: str
    score: RunScore | None = None
    verdicts: tuple[GateVerdict, ...] = ()
    min_coverage: Fraction = Fraction(1)
    comparison: RunComparison | None = None
    worse: bool = False
    cases: JudgedCases | None = None

    @property
    def holds(self) -> bool:
        """Whether the run reaches all that was asked."""
        return (
            self.score is not None
            and (self.score.total.coverage or 0) >= self.min_coverage
            and not self.worse
            and not self.score.breached
            and not self.cannot_fail
            and all(verdict.holds for verdict in self.verdicts)
        )

    @property
    def cannot_fail(self) -> bool:
        """Whether the baseline is the only gate, and too little could change for a regression to show."""
        if self.verdicts or self.comparison is None or (self.score is not None and self.score.floors):
            return False
        return not self.worse and not self.comparison.can_regress


@dataclass(frozen=True, slots=True)
class GateReport:
    """The results of the gates for the runs of a session; empty where nothing was judged."""

    runs: tuple[RunGates, ...]

    @property
    def holds(self) -> bool:
        """Whether all gates hold."""
        return bool(self.runs) and all(run.holds for run in self.runs)


def gates_of_session(run: RunDetail) -> Gates:
    """Return the gates of a run; none while it waits for batches, or where its version read thresholds otherwise."""
    score, coverage = (str(run.settings.get(name) or "") for name in ("min_score", "min_coverage"))
    try:
        return read_gates(score, coverage) if run.status != "waiting" else Gates((), None)
    except ThresholdError:
        return Gates((), None)


def read_gates(
    min_score: str | None, min_coverage: str | None, baseline: BaselineAsked | None = None
) -> Gates:
    """Read the gate options.

    Raises:
        ThresholdError: One of them cannot be read.
    """
    return Gates(
        parse_thresholds(min_score) if min_score else (),
        parse_share(min_coverage, "--helmbench-min-coverage") if min_coverage else None,
        baseline,
    )
