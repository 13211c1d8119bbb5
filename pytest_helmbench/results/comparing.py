"""Two runs paired case by case, and what comes of it: the gate, `helmbench compare` and `rescore` ask here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.results.compared_runs import ComparedRun, RunRef
from pytest_helmbench.results.pairing import (
    behaviour_weights,
    common_share,
    pair_cases,
    planned_cases,
    unit_of,
)
from pytest_helmbench.scoring.changes import LEAST_CHANGED, Conclusion
from pytest_helmbench.scoring.comparison import (
    BehaviourChange,
    Limit,
    ScopeChange,
    compare_scopes,
)
from pytest_helmbench.store.plans import RunFacts

__all__ = ["LEAST_COMMON", "WHOLE_RUN", "RunComparison", "compare_runs", "not_comparable"]

LEAST_COMMON = Fraction(9, 10)
"""With less of the points in both runs, nothing is concluded."""

INCONCLUSIVE_PASSES = "the gate lets that pass"
"""Said where a gate holds though next to nothing was compared."""

WHOLE_RUN = (Limit("", Fraction(0)),)
"""No drop of the run score is allowed."""

_WORST_FIRST = (
    Conclusion.REGRESSED,
    Conclusion.COLLAPSED,
    Conclusion.NOT_COMPARABLE,
    Conclusion.INCONCLUSIVE,
    Conclusion.NOT_WORSE,
    Conclusion.NO_CHANGE,
)

_MUCH_RECORDED = Fraction(1, 10)


@dataclass(frozen=True, slots=True)
class RunComparison:
    """What came of comparing a run with its baseline.

    Args:
        model: Under test.
        candidate: Its run.
        baseline: The other one; None where there is none.
        limits: What may have dropped how far.
        scopes: What became of them; parts without a compared case are left out.
        behaviours: How each one changed.
        cases_compared: Cases in both runs.
        cases_left_out: Planned by the candidate, and not compared.
        cases_changed: Of them, those whose content is another one now.
        rows_by_other_rules: Case × criterion judged by other rules; left out.
        common: Share of the candidate's planned points that was compared.
        recorded: Replies of the candidate that came from the record and cannot differ.
        replies: Of the candidate, all that were compared.
        reason: Why nothing is concluded; empty where something is.
        other_sample: That the baseline was asked another sample; empty where it was not.
    """

    model: str
    candidate: RunRef | None
    baseline: RunRef | None
    limits: tuple[Limit, ...]
    scopes: tuple[ScopeChange, ...] = ()
    behaviours: tuple[BehaviourChange, ...] = ()
    cases_compared: int = 0
    cases_left_out: int = 0
    cases_changed: int = 0
    rows_by_other_rules: int = 0
    common: Fraction | None = None
    recorded: int = 0
    replies: int = 0
    reason: str = ""
    other_sample: str = ""

    @property
    def collapsed(self) -> tuple[BehaviourChange, ...]:
        """The behaviours that collapsed."""
        return tuple(one for one in self.behaviours if one.word == Conclusion.COLLAPSED)

    @property
    def fallen(self) -> tuple[BehaviourChange, ...]:
        """The behaviours that fell, or collapsed, on these very cases."""
        return tuple(one for one in self.behaviours if one.word)

    @property
    def has_too_little_in_common(self) -> bool:
        """Whether too few of the planned points are in both runs."""
        return self.common is not None and self.common < LEAST_COMMON

    @property
    def verdict(self) -> Conclusion:
        """What is said of the run and its named parts together: the worst of it."""
        verdicts = [self.verdict_of(scope) for scope in self.scopes]
        if len(verdicts) < len(self.limits):
            verdicts.append(Conclusion.NOT_COMPARABLE)
        return min(verdicts, key=_WORST_FIRST.index)

    def verdict_of(self, scope: ScopeChange) -> Conclusion:
        """Return what is said of the run or a named part."""
        if self.has_too_little_in_common:
            return Conclusion.INCONCLUSIVE
        found = scope.change.verdict
        if found is Conclusion.REGRESSED or scope.code:
            return found
        return Conclusion.COLLAPSED if self.collapsed else found

    def reason_of(self, scope: ScopeChange) -> str:
        """Return why a comparison is inconclusive; empty where it is not."""
        if self.has_too_little_in_common and self.common is not None:
            return f"only {float(100 * self.common):.0f} % of the points are in both runs{self.other_sample}"
        change = scope.change
        if self.verdict_of(scope) is not Conclusion.INCONCLUSIVE or change.changed >= LEAST_CHANGED:
            return ""
        noun = scope.unit if change.changed == 1 else "replies" if scope.unit == "reply" else f"{scope.unit}s"
        return f"only {change.changed} {noun} changed, at least {LEAST_CHANGED} must before anything can be shown"

    @property
    def much_recorded(self) -> bool:
        """Whether more than a tenth of the replies came from the record."""
        return self.recorded > _MUCH_RECORDED * self.replies


def compare_runs(
    facts: RunFacts,
    candidate: ComparedRun,
    baseline: ComparedRun,
    limits: Sequence[Limit] = WHOLE_RUN,
    *,
    despite_changes: bool = False,
) -> RunComparison:
    """Compare a run with its baseline on the cases that both have judged.

    Args:
        facts: Of the candidate: severities, difficulties and weights are those of its benchmark.
        candidate: What it was judged.
        baseline: What it is held against.
        limits: What may drop how far.
        despite_changes: Compare as well what was asked in other words or judged by other rules.
    """
    empty = not_comparable(candidate.ref, baseline.ref, limits, "")
    for run in (candidate, baseline):
        if run.ref.scope == "by_outcome":
            reason = (
                f"the cases of {run.ref.name} were selected by earlier outcomes (--lf, --sw): no fair sample"
            )
            return replace(empty, reason=reason)
    planned = planned_cases(facts)
    paired = pair_cases(planned, candidate, baseline, despite_changes=despite_changes)
    weights = behaviour_weights(facts, planned)
    common = common_share(planned, paired, weights)
    other_sample = _other_sample(candidate, baseline)
    counts = replace(
        empty,
        cases_compared=len(paired.cases),
        cases_left_out=paired.left_out,
        cases_changed=paired.changed,
        rows_by_other_rules=paired.other_rules,
        common=common,
        recorded=paired.recorded,
        replies=sum(len(case.candidate) for case in paired.cases),
        reason=f"nothing in common with {baseline.ref.name}{other_sample}",
        other_sample=other_sample,
    )
    if not any(weights[case.behaviour] for case in paired.cases):
        return counts
    scopes, behaviours = compare_scopes(paired.cases, weights, limits, unit_of(facts))
    if facts.rows is not None:
        behaviours = ()
    return replace(counts, scopes=scopes, behaviours=behaviours, reason="")


def _other_sample(candidate: ComparedRun, baseline: ComparedRun) -> str:
    if baseline.sample in ("", candidate.sample):
        return ""
    return f": {baseline.ref.name} is of a sample ({baseline.sample})"


def not_comparable(
    candidate: RunRef, baseline: RunRef | None, limits: Sequence[Limit], reason: str
) -> RunComparison:
    """Return a comparison that says nothing, and why."""
    return RunComparison(candidate.model, candidate, baseline, tuple(limits), reason=reason)
