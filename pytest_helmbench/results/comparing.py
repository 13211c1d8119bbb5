"""Comparison of a run with its baseline, case by case, for the gate and `helmbench compare`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from pathlib import Path

from pytest_helmbench.core.codes import natural_key, scenario_of
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.results.differences import (
    Difference,
    SideBySide,
    by_code,
    scoring_rules,
    side_by_side,
)
from pytest_helmbench.results.stored_scores import one_row_each
from pytest_helmbench.scoring.changes import LEAST_CHANGED, Conclusion
from pytest_helmbench.scoring.comparison import (
    BehaviourChange,
    ComparedCase,
    Limit,
    ScopeChange,
    compare_scopes,
)
from pytest_helmbench.scoring.rows import Row, exact
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey, seen_from
from pytest_helmbench.store.read.judged_replies import JudgedCase, judged_cases
from pytest_helmbench.store.read.runs import RunSummary, run_detail
from pytest_helmbench.store.read.score_facts import RunFacts, defined_codes

LEAST_COMMON = Fraction(9, 10)
"""With less of the points in both runs, nothing is concluded."""

LEAST_SHARED = Fraction(1, 2)
"""With less of the baseline's points in both runs, of the cases that are still selected, nothing is compared."""

NEW_BASELINE = "; make a new baseline (`helmbench export last --format baseline -o FILE.json`)"

INCONCLUSIVE_PASSES = "the gate lets that pass"
"""Words for a gate that holds although next to nothing was compared."""

WHOLE_RUN = (Limit("", Fraction(0)),)
"""No drop of the run score is allowed."""

_MUCH_RECORDED = Fraction(1, 10)


@dataclass(frozen=True, slots=True)
class RunRef:
    """Where a run stands.

    Args:
        path: Results file, or baseline file.
        name: What people call it: `run 12`, `run 3 of old.db`.
        benchmark: Of a baseline file its name alone.
        scope: `by_outcome` makes no fair sample.
    """

    path: Path
    run_id: int
    name: str
    session_id: str
    benchmark: BenchmarkKey
    model: str
    status: str
    scope: str

    @classmethod
    def of(cls, path: Path, run: RunSummary, own: Path) -> RunRef:
        """Return where a stored run stands; runs of our own file are called by number alone."""
        name = f"run {run.id}" if path == own else f"run {run.id} of {path.name}"
        key = seen_from(run.key, path, own)
        return cls(path, run.id, name, run.session_id, key, run.model, run.status, run.scope)


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run with its judged replies.

    Args:
        settings: That it was made with; empty where unknown.
        sample: How it was asked for: `--helmbench-sample=0.2, seed 1`; empty for all.
        defined: Cases of its benchmark, selected or not; empty where unknown.
        scoring: `weights`, `floors` and `cap` of its benchmark, empty for none of them; None where unknown.
    """

    ref: RunRef
    benchmark_hash: str
    settings: Mapping[str, object]
    cases: Mapping[str, JudgedCase]
    sample: str = ""
    defined: frozenset[str] = frozenset()
    scoring: Mapping[str, JsonValue] | None = None

    @classmethod
    def stored(cls, ref: RunRef) -> ComparedRun | None:
        """Return a run of a results file; None where the file has it no more."""
        detail = run_detail(ref.path, ref.run_id)
        if detail is None:
            return None
        asked = detail.settings.get("sample")
        sample = "" if asked is None else f"--helmbench-sample={asked}"
        defined = defined_codes(ref.path, ref.run_id)
        scoring = detail.settings["scoring"] or {} if "scoring" in detail.settings else None
        return cls(
            ref,
            detail.benchmark_hash,
            detail.settings,
            judged_cases(ref.path, ref.run_id),
            sample,
            defined,
            scoring if isinstance(scoring, dict) else None,
        )


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case that a run has planned, and that carries points.

    Args:
        pillar: `P1`.
        behaviour: `P1-B2`.
        unit: What it stands or falls with: its perturbation, its cluster, or itself.
        stake: |base| of each criterion, times the weight of the case in its sample.
        severity: |base| of each criterion.
    """

    code: str
    pillar: str
    behaviour: str
    unit: str
    stake: int | Fraction
    difficulty: int
    criteria: int
    severity: int


@dataclass(slots=True)
class PairedCases:
    """The common cases of two runs.

    Args:
        cases: That both have judged.
        left_out: Planned cases that are not among them.
        changed: Of those, the ones whose content differs.
        other_rules: Case × criterion judged by other rules.
        recorded: Replies of the candidate that came from the record.
        compared: Points by behaviour.
    """

    cases: list[ComparedCase] = field(default_factory=list)
    left_out: int = 0
    changed: int = 0
    other_rules: int = 0
    recorded: int = 0
    compared: defaultdict[str, int | Fraction] = field(default_factory=lambda: defaultdict(int))
    newly_failing: list[PlannedCase] = field(default_factory=list)
    newly_passing: list[PlannedCase] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RunComparison:
    """The result of comparing a run with its baseline.

    Args:
        limits: How far the run and its named parts may have dropped.
        scopes: How they changed; parts without a compared case are left out.
        changeable: Perturbations, clusters or rows of these cases in which a wrong answer costs points.
        cases_left_out: Planned by the candidate, and not compared.
        cases_changed: Of them, those whose content is another one now.
        rows_by_other_rules: Case × criterion judged by other rules; left out.
        common: Share of the candidate's planned points that was compared.
        recorded: Replies of the candidate that came from the record and cannot differ.
        replies: Of the candidate, all that were compared.
        reason: Why nothing is concluded; empty where something is.
        other_sample: That the baseline was asked another sample; empty where it was not.
        newly_failing: Cases that passed in the baseline and fail now, those that lose the most points first.
        newly_passing: Cases that failed in the baseline and pass now, likewise.
        gone: Cases of the baseline that the candidate's benchmark, read whole, does not define any more.
        uncounted: Cases that cost points in the baseline when they were wrong, and cost none now.
        rules_changed: Floors, cap, weights, severities and difficulties that are not those of the baseline.
        cases_not_selected: Cases of the baseline that it defines, and that the candidate has not planned.
        allows_gone: Whether cases may be gone, or cost no points any more.
        beside: Both runs beside each other; None where one is not at hand.
    """

    model: str
    candidate: RunRef | None
    baseline: RunRef | None
    limits: tuple[Limit, ...]
    scopes: tuple[ScopeChange, ...] = ()
    behaviours: tuple[BehaviourChange, ...] = ()
    cases_compared: int = 0
    changeable: int = 0
    cases_left_out: int = 0
    cases_changed: int = 0
    rows_by_other_rules: int = 0
    common: Fraction | None = None
    recorded: int = 0
    replies: int = 0
    reason: str = ""
    other_sample: str = ""
    newly_failing: tuple[PlannedCase, ...] = ()
    newly_passing: tuple[PlannedCase, ...] = ()
    gone: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    rules_changed: tuple[Difference, ...] = ()
    cases_not_selected: int = 0
    allows_gone: bool = True
    beside: SideBySide | None = None

    def with_both(self) -> RunComparison:
        """Return the comparison with both runs beside each other."""
        refs = (self.baseline, self.candidate)
        places = [(ref.path, ref.run_id) for ref in refs if ref is not None]
        return replace(self, beside=side_by_side(*places)) if len(places) > 1 else self

    @property
    def collapsed(self) -> tuple[BehaviourChange, ...]:
        """The behaviours that collapsed."""
        return tuple(behaviour for behaviour in self.behaviours if behaviour.word == Conclusion.COLLAPSED)

    @property
    def fallen(self) -> tuple[BehaviourChange, ...]:
        """The behaviours that fell, or collapsed, on these very cases."""
        return tuple(behaviour for behaviour in self.behaviours if behaviour.word)

    @property
    def has_too_little_in_common(self) -> bool:
        """Whether too few of the planned points are in both runs."""
        return self.common is not None and self.common < LEAST_COMMON

    @property
    def can_regress(self) -> bool:
        """Whether enough could change for a regression of the run, or of a part by its replies, to show."""
        by_replies = [scope.change.units for scope in self.scopes if scope.unit == "reply"]
        return max(self.changeable, *by_replies, 0) >= LEAST_CHANGED

    @property
    def verdict(self) -> Conclusion:
        """The worst conclusion about the run and its named parts."""
        verdicts = [self.verdict_of(scope) for scope in self.scopes]
        if len(verdicts) < len(self.limits):
            verdicts.append(Conclusion.NOT_COMPARABLE)
        if not self.allows_gone:
            verdicts += [Conclusion.CASES_GONE] if self.gone else []
            verdicts += [Conclusion.NOT_COUNTED] if self.uncounted else []
        return min(verdicts, key=[*Conclusion].index)

    def verdict_of(self, scope: ScopeChange) -> Conclusion:
        """Return the conclusion about the run or a named part."""
        if self.has_too_little_in_common:
            return Conclusion.INCONCLUSIVE
        found = scope.change.verdict
        if found is Conclusion.WORSE or scope.code:
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
) -> RunComparison:
    """Compare a run with its baseline on the cases that both have judged.

    Severities, difficulties and weights are those of the candidate, whose facts are given.
    """
    empty = _scoped(facts, candidate, baseline, limits)
    if unfair := [run.ref.name for run in (candidate, baseline) if run.ref.scope == "by_outcome"]:
        reason = f"the cases of {unfair[0]} were selected by earlier outcomes (--lf, --sw): no fair sample"
        return replace(empty, reason=reason)
    planned = planned_cases(facts)
    paired = pair_cases(planned, candidate, baseline)
    weights = behaviour_weights(facts, planned)
    common = common_share(planned, paired, weights)
    other_sample = _other_sample(candidate, baseline)
    counts = replace(
        empty,
        cases_compared=len(paired.cases),
        changeable=_changeable(paired, weights),
        cases_left_out=paired.left_out,
        cases_changed=paired.changed,
        rows_by_other_rules=paired.other_rules,
        common=common,
        recorded=paired.recorded,
        replies=sum(len(case.candidate) for case in paired.cases),
        reason=f"nothing in common with {baseline.ref.name}{other_sample or NEW_BASELINE}",
        other_sample=other_sample,
        newly_failing=_worst_first(paired.newly_failing, planned, weights),
        newly_passing=_worst_first(paired.newly_passing, planned, weights),
    )
    if not any(weights[case.behaviour] for case in paired.cases):
        return counts
    if reason := _little_shared(facts, planned, paired, baseline):
        return replace(counts, reason=reason)
    scopes, behaviours = compare_scopes(paired.cases, weights, limits, unit_of(facts))
    if facts.rows is not None:
        behaviours = ()
    return replace(counts, scopes=scopes, behaviours=behaviours, reason="")


def _scoped(
    facts: RunFacts, candidate: ComparedRun, baseline: ComparedRun, limits: Sequence[Limit]
) -> RunComparison:
    """Return an empty comparison with the cases of the baseline that are gone or not selected."""
    defined = candidate.defined
    missing = [code for code in baseline.cases if code not in defined] if defined else []
    selected = {*facts.codes, *(case.code for case in facts.broken), *missing}
    uncounted = () if candidate.benchmark_hash == baseline.benchmark_hash else _uncounted(facts, baseline)
    return replace(
        not_comparable(candidate.ref, baseline.ref, limits, ""),
        gone=gone_cases(missing, defined),
        uncounted=uncounted,
        rules_changed=tuple(rule for rule in _rules(baseline, candidate, uncounted) if rule[1] != rule[2]),
        cases_not_selected=sum(code not in selected for code in baseline.cases) if defined else 0,
    )


def _changeable(paired: PairedCases, weights: Mapping[str, Fraction]) -> int:
    """Return in how many compared units a wrong answer costs points."""
    cases = (one for one in paired.cases if one.difficulty < 10 and weights[one.behaviour])
    return len({(one.behaviour, one.unit) for one in cases})


def _little_shared(
    facts: RunFacts, planned: Sequence[PlannedCase], paired: PairedCases, baseline: ComparedRun
) -> str:
    """Return that too few points of the baseline's cases that are still selected are in both runs, else nothing."""
    kept = [case for case in planned if case.code in baseline.cases]
    shared = common_share(kept, paired, behaviour_weights(facts, kept))
    if shared is None or shared >= LEAST_SHARED:
        return ""
    only = f"only {float(100 * shared):.0f} % of the points of {baseline.ref.name} are in both runs"
    return only + NEW_BASELINE


def _uncounted(facts: RunFacts, baseline: ComparedRun) -> tuple[str, ...]:
    """Return the planned cases that a wrong answer costs no points now, and has cost some in the baseline."""
    now, before = {} if facts.scoring is None else facts.scoring.weights, by_code(baseline.scoring, "weights")
    found: dict[str, None] = {}
    for code, row in one_row_each(facts):
        costs = not row.neutral and row.difficulty < 10 and now.get(row.behaviour, 1)
        judged = None if costs else baseline.cases.get(code)
        if (
            judged is not None
            and before.get(row.behaviour, 1)
            and (judged.points is None or judged.points.counts)
        ):
            found[code] = None
    return tuple(sorted(found, key=natural_key))


def _rules(baseline: ComparedRun, candidate: ComparedRun, uncounted: Collection[str]) -> Iterator[Difference]:
    """Yield floors, weights and cap, and severity and difficulty of each judged case that still counts."""
    yield from scoring_rules(baseline.scoring, candidate.scoring)
    for code in sorted(baseline.cases.keys() & candidate.cases.keys() - {*uncounted}, key=natural_key):
        before, after = baseline.cases[code].points, candidate.cases[code].points
        if before is not None and after is not None:
            yield f"severity of {code}", before.severity, after.severity
            yield f"difficulty of {code}", before.difficulty, after.difficulty


def gone_cases(codes: Iterable[str], defined: Collection[str]) -> tuple[str, ...]:
    """Return the cases that a benchmark does not define any more; a broken scenario is defined by its own code."""
    gone = (code for code in codes if code not in defined and scenario_of(code) not in defined)
    return tuple(sorted(gone, key=natural_key))


def _other_sample(candidate: ComparedRun, baseline: ComparedRun) -> str:
    if baseline.sample in ("", candidate.sample):
        return ""
    return f": {baseline.ref.name} is of a sample ({baseline.sample})"


def not_comparable(
    candidate: RunRef, baseline: RunRef | None, limits: Sequence[Limit], reason: str
) -> RunComparison:
    """Return a comparison that says nothing, and why."""
    return RunComparison(candidate.model, candidate, baseline, tuple(limits), reason=reason)


def planned_cases(facts: RunFacts) -> Sequence[PlannedCase]:
    """Return every case with points that a run has planned."""
    found: dict[str, list[Row]] = {}
    for code, row in one_row_each(facts):
        if not row.neutral:
            found.setdefault(code, []).append(row)
    is_flat = facts.rows is not None
    planned = []
    for code, (row, *others) in found.items():
        unit = row.perturbation if is_flat else f"{row.scenario}-{row.perturbation}"
        stake, criteria, severity = row.stake, 1 + len(others), abs(row.base)
        planned.append(
            PlannedCase(code, row.pillar, row.behaviour, unit, stake, row.difficulty, criteria, severity)
        )
    return planned


def unit_of(facts: RunFacts) -> str:
    """Return what stands or falls together in a benchmark: `perturbation`, `cluster` or `case`."""
    if facts.rows is None:
        return "perturbation"
    return "cluster" if any(row.cluster is not None for row in facts.rows.values()) else "case"


def behaviour_weights(facts: RunFacts, planned: Sequence[PlannedCase]) -> dict[str, Fraction]:
    """Return what the planned behaviours weigh in the score."""
    given = {} if facts.scoring is None else facts.scoring.weights
    return {code: exact(given.get(code, 1)) for code in dict.fromkeys(case.behaviour for case in planned)}


def common_share(
    planned: Sequence[PlannedCase], paired: PairedCases, weights: Mapping[str, Fraction]
) -> Fraction | None:
    """Return the share of the planned points that was compared, as coverage weighs them; None without points."""
    total, points = sum(weights.values()), _points(planned)
    if not total:
        return None
    shares = (
        weight * min(Fraction(1), Fraction(paired.compared.get(code, 0), points[code]))
        for code, weight in weights.items()
    )
    return sum(shares, Fraction(0)) / total


def _points(planned: Sequence[PlannedCase]) -> dict[str, int | Fraction]:
    """Return the points of each behaviour."""
    points: defaultdict[str, int | Fraction] = defaultdict(int)
    for case in planned:
        points[case.behaviour] += case.stake * case.criteria
    return points


def pair_cases(planned: Sequence[PlannedCase], candidate: ComparedRun, baseline: ComparedRun) -> PairedCases:
    """Return the cases that the candidate has planned, and that both runs have judged by the same rules."""
    paired = PairedCases()
    same_content = candidate.benchmark_hash == baseline.benchmark_hash
    for case in planned:
        after, before = candidate.cases.get(case.code), baseline.cases.get(case.code)
        if after is None or before is None:
            paired.left_out += 1
            continue
        if not same_content and (after.content is None or after.content != before.content):
            paired.left_out += 1
            paired.changed += 1
            continue
        both = [name for name in before.rules if name in after.rules]
        names = [name for name in both if after.rules[name] == before.rules[name] is not None]
        paired.other_rules += len(both) - len(names)
        earlier, later = (tuple(_credits(judged, names)) for judged in (before, after))
        if not names or not earlier or not later:
            paired.left_out += 1
            continue
        paired.compared[case.behaviour] += case.stake * len(names)
        paired.recorded += min(after.recorded, len(after.replies))
        passed, passes = _mostly_passed(earlier), _mostly_passed(later)
        paired.newly_failing += [case] if passed and not passes else []
        paired.newly_passing += [case] if passes and not passed else []
        paired.cases.append(
            ComparedCase(case.pillar, case.behaviour, case.unit, case.stake, case.difficulty, earlier, later)
        )
    return paired


def _worst_first(
    cases: Sequence[PlannedCase], planned: Sequence[PlannedCase], weights: Mapping[str, Fraction]
) -> tuple[PlannedCase, ...]:
    """Return cases with the most points of the score first, as `Losses` counts them."""
    per_point = {code: weights[code] / points for code, points in _points(planned).items()}

    def lost(case: PlannedCase) -> Fraction:
        return per_point[case.behaviour] * case.stake * case.criteria * (10 - case.difficulty)

    return tuple(sorted(cases, key=lambda case: (-lost(case), natural_key(case.code))))


def _mostly_passed(replies: Sequence[tuple[Fraction, ...]]) -> bool:
    """Return whether more than half of the replies earned full credit."""
    return 2 * sum(all(credit == 1 for credit in reply) for reply in replies) > len(replies)


def _credits(case: JudgedCase, names: Sequence[str]) -> Iterator[tuple[Fraction, ...]]:
    for reply in case.replies:
        if all(name in reply for name in names):
            yield tuple(exact(reply[name]) for name in names)
