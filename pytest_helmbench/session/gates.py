"""Gates of a session: which scores must reach which thresholds, and what that does to the exit code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from pytest_helmbench.reports.score_lines import gate_line
from pytest_helmbench.reports.tables import share
from pytest_helmbench.scoring.run_score import RunScore
from pytest_helmbench.scoring.thresholds import (
    GateVerdict,
    Threshold,
    gate,
    parse_share,
    parse_thresholds,
)

__all__ = ["GateReport", "Gates", "read_gates"]


@dataclass(frozen=True, slots=True)
class Gates:
    """What was asked for.

    Args:
        thresholds: Of `--helmbench-min-score`; empty for none.
        min_coverage: None when it was not given: 1 with a threshold, nothing without.
    """

    thresholds: tuple[Threshold, ...]
    min_coverage: Fraction | None

    @property
    def asked(self) -> bool:
        """Whether a score must reach something."""
        return bool(self.thresholds)

    def judge(self, scores: Mapping[str, RunScore | None]) -> GateReport:
        """Hold every run to every threshold.

        Args:
            scores: By the name of the run (a model); None where it has none.
        """
        lines: list[str] = []
        holds = bool(scores)
        coverage = self.min_coverage if self.min_coverage is not None else Fraction(1)
        for name, score in scores.items():
            if score is None:
                holds = False
                lines.append(f"gate {name}: does not hold: the run has no score")
                continue
            verdicts: list[GateVerdict] = [gate(score, threshold, coverage) for threshold in self.thresholds]
            lines += [gate_line(name, verdict) for verdict in verdicts]
            holds = holds and all(verdict.holds for verdict in verdicts)
            if not verdicts and (score.total.coverage or 0) < coverage:
                holds = False
                lines.append(f"coverage of {name} is {share(score.total.coverage)}, below {share(coverage)}")
        if not scores:
            lines.append("the gate does not hold: nothing was judged")
        return GateReport(holds, tuple(lines))


@dataclass(frozen=True, slots=True)
class GateReport:
    """Whether all gates hold, and a line per gate."""

    holds: bool
    lines: tuple[str, ...]


def read_gates(min_score: str | None, min_coverage: str | None) -> Gates:
    """Read the gate options.

    Raises:
        ThresholdError: One of them cannot be read.
    """
    return Gates(
        parse_thresholds(min_score) if min_score else (),
        parse_share(min_coverage, "--helmbench-min-coverage") if min_coverage else None,
    )
