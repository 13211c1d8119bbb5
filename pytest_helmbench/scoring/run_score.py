"""The score of a run, its pillars and its behaviours, with everything that says how far to trust it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from statistics import stdev

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outline import Scoring
from pytest_helmbench.core.sample import Sample
from pytest_helmbench.scoring.intervals import FEW_CLUSTERS, Interval, tree_interval
from pytest_helmbench.scoring.judge_agreement import CorrectedRate
from pytest_helmbench.scoring.ledger import Ledger, behaviour_ledgers
from pytest_helmbench.scoring.reruns import Rerun, rerun
from pytest_helmbench.scoring.rows import Row, exact


class FloorState(StrEnum):
    """The state of a safety floor."""

    HELD = "held"
    BREACHED = "breached"
    NOT_EVALUATED = "not evaluated"


@dataclass(frozen=True, slots=True)
class Floor:
    """A pillar's least score, and how the pillar stands to it.

    Args:
        pillar: `P1`.
        least: From `scoring.yaml`.
        score: The pillar's; None when it did not run.
    """

    pillar: str
    least: Fraction
    score: Fraction | None

    @property
    def state(self) -> FloorState:
        """Held, breached or not evaluated."""
        if self.score is None:
            return FloorState.NOT_EVALUATED
        return FloorState.HELD if self.score >= self.least else FloorState.BREACHED


@dataclass(frozen=True, slots=True)
class Bounds:
    """The score if the unjudged rows were all wrong, and if they were all right."""

    low: Fraction
    high: Fraction


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a behaviour, a pillar or the run. Neutral rows are in none of the numbers.

    Args:
        code: `P1-B2` or `P1`; empty for the run.
        score: In [0, 1]; None when undefined (no judged row).
        bounds: None when nothing is at stake.
        coverage: Share of the planned severity points that were judged; None when nothing is at stake.
        interval: None when the score is.
        clusters: Perturbations that the interval rests on.
        weight: Of the behaviour; the sum over those of a pillar or run.
        unweighted: No case of it has a severity: each row counts 1.
        planned_rows: Case × criterion × repetition, judged or not.
        judged_rows: Those with a verdict.
        passed_rows: Those judged right.
        rerun: What asking the same cases again would show, before a cap; None without repetitions.
        cluster: What one cluster is, in a word.
    """

    code: str
    score: Fraction | None
    bounds: Bounds | None
    coverage: Fraction | None
    interval: Interval | None
    clusters: int
    weight: Fraction
    unweighted: bool
    planned_rows: int
    judged_rows: int
    passed_rows: int
    rerun: Rerun | None = None
    cluster: str = "perturbation"

    @property
    def pass_rate(self) -> Fraction | None:
        """Passed share of the judged rows, without severities; None without one."""
        return Fraction(self.passed_rows, self.judged_rows) if self.judged_rows else None

    @property
    def few_clusters(self) -> bool:
        """Whether the interval must be shown with a word of caution."""
        return self.clusters < FEW_CLUSTERS


@dataclass(frozen=True, slots=True)
class RunScore:
    """A run's score with its parts.

    Args:
        total: Of the run, before a cap.
        cap: Most that the run scores where a floor is breached; None for no cap.
        pillars: In natural order.
        behaviours: In natural order.
        floors: One per floor of `scoring.yaml`, in natural order.
        repetition_sd: Sample standard deviation of the run score over repetitions; None for fewer than two.
        neutral_rows: Planned rows that the score ignores.
        corrected: The judge's pass rate, corrected by labels; None without labels of both verdicts.
        labelled: Some of the judge's verdicts were labelled.
        corrected_points: The share of severity points, corrected by labels that were drawn by points; likewise.
        points_labelled: There are such labels.
        sample: What the planned cases are of the benchmark; None for all that were selected.
        groups: Of a pack: its families, then its groups of metadata (`subject=algebra`); empty for a tree.
    """

    total: Score
    cap: Fraction | None
    pillars: tuple[Score, ...]
    behaviours: tuple[Score, ...]
    floors: tuple[Floor, ...]
    repetition_sd: float | None
    neutral_rows: int
    warnings: tuple[str, ...]
    groups: tuple[Score, ...] = ()
    corrected: CorrectedRate | None = None
    labelled: bool = False
    corrected_points: CorrectedRate | None = None
    points_labelled: bool = False
    sample: Sample | None = None

    @property
    def score(self) -> Fraction | None:
        """Before a cap; None when undefined."""
        return self.total.score

    @property
    def capped(self) -> Fraction | None:
        """The score after the cap; None where the cap lowers nothing."""
        is_lower = self.cap is not None and self.score is not None and self.cap < self.score
        return self.cap if is_lower and self.breached else None

    @property
    def may_be_capped(self) -> bool:
        """Whether the cap may be chance: the interval of some pillar contains its floor, and none lies below it."""
        if self.cap is None:
            return False
        intervals = {pillar.code: pillar.interval for pillar in self.pillars}
        known = [(float(one.least), found) for one in self.floors if (found := intervals.get(one.pillar))]
        below = any(found.high < least for least, found in known)
        return not below and any(found.low < least for least, found in known)

    @property
    def breached(self) -> tuple[Floor, ...]:
        """The floors that do not hold."""
        return tuple(floor for floor in self.floors if floor.state is FloorState.BREACHED)

    @property
    def parts(self) -> Iterator[tuple[str, Score]]:
        """All parts with what they are, `pillar`, `behaviour` or `group`: each pillar stands before its behaviours."""
        for pillar in self.pillars:
            yield "pillar", pillar
            inside = f"{pillar.code}-"
            yield from (("behaviour", part) for part in self.behaviours if part.code.startswith(inside))
        yield from (("group", group) for group in self.groups)

    def of(self, code: str) -> Score | None:
        """Return the score of a pillar, behaviour or group, or of the run for an empty code; None when unknown."""
        scores = (self.total, *self.pillars, *self.behaviours, *self.groups)
        return next((score for score in scores if score.code == code), None)


def run_score(rows: Iterable[Row], scoring: Scoring | None = None) -> RunScore:
    """Return the score of a run with those of its pillars and behaviours.

    Args:
        rows: Every row that the run has planned, judged or not, in any order.
        scoring: Weights, floors and cap; None weighs every behaviour 1.

    Source:
        Scenario trees, section 6.
    """
    planned = tuple(rows)
    ledgers = behaviour_ledgers(planned)
    scheme = _scheme(ledgers, scoring)
    run, by_pillar = scheme.means(lambda ledger: ledger.score)
    bounds = _all_bounds(ledgers, scheme)

    def score(code: str, members: Sequence[Ledger], value: Fraction | None) -> Score:
        return Score(
            code=code,
            score=value,
            bounds=bounds[code],
            coverage=scheme.mean((ledger.code, ledger.coverage) for ledger in members),
            interval=scheme.interval(members),
            clusters=sum(len(ledger.clusters) for ledger in members),
            weight=sum((scheme.weights[ledger.code] for ledger in members), Fraction(0)),
            unweighted=bool(members) and all(ledger.unweighted for ledger in members),
            planned_rows=sum(ledger.planned_rows for ledger in members),
            judged_rows=sum(ledger.judged_rows for ledger in members),
            passed_rows=sum(ledger.passed_rows for ledger in members),
            rerun=scheme.rerun(members),
        )

    return RunScore(
        total=score("", ledgers, run),
        cap=scheme.cap,
        pillars=tuple(score(code, scheme.members[code], by_pillar[code]) for code in scheme.members),
        behaviours=tuple(score(ledger.code, [ledger], ledger.score) for ledger in ledgers),
        floors=tuple(Floor(code, least, by_pillar.get(code)) for code, least in scheme.floors.items()),
        repetition_sd=_repetition_sd(planned, scoring),
        neutral_rows=sum(ledger.neutral_rows for ledger in ledgers),
        warnings=scheme.warnings,
    )


@dataclass(frozen=True, slots=True)
class _Scheme:
    """How behaviours add up to pillars and a run.

    Args:
        weights: Of every behaviour that was planned.
        members: Pillar to its planned behaviours, in natural order.
        floors: Pillar to its least score, in natural order.
        cap: Most that a run with a breached floor scores; None for no cap.
    """

    weights: Mapping[str, Fraction]
    members: Mapping[str, Sequence[Ledger]]
    floors: Mapping[str, Fraction]
    cap: Fraction | None
    warnings: tuple[str, ...]

    def mean(self, scores: Iterable[tuple[str, Fraction | None]]) -> Fraction | None:
        """Return the weighted mean over the behaviours that are defined; None without one that weighs."""
        defined = [(self.weights[code], score) for code, score in scores if score is not None]
        total = sum(weight for weight, _ in defined)
        return sum((weight * score for weight, score in defined), Fraction(0)) / total if total else None

    def interval(self, members: Iterable[Ledger]) -> Interval | None:
        """Return the interval of the weighted mean of some behaviours."""
        return tree_interval(ledger.stratum(self.weights[ledger.code]) for ledger in members)

    def rerun(self, members: Iterable[Ledger]) -> Rerun | None:
        """Return the spread of the score when the cases of some behaviours are asked again."""
        return rerun(
            (self.weights[ledger.code], ledger.unit * ledger.points, ledger.repeats) for ledger in members
        )

    def means(
        self, score_of: Callable[[Ledger], Fraction | None]
    ) -> tuple[Fraction | None, Mapping[str, Fraction | None]]:
        """Return the score of the run and those of its pillars for the given scores of behaviours."""
        pillars = {
            pillar: self.mean((ledger.code, score_of(ledger)) for ledger in members)
            for pillar, members in self.members.items()
        }
        everything = [ledger for members in self.members.values() for ledger in members]
        return self.mean((ledger.code, score_of(ledger)) for ledger in everything), pillars


def _scheme(ledgers: Sequence[Ledger], scoring: Scoring | None) -> _Scheme:
    scoring = scoring or Scoring({}, {})
    members: defaultdict[str, list[Ledger]] = defaultdict(list)
    for ledger in ledgers:
        members[ledger.pillar].append(ledger)
    warnings = tuple(
        f"scoring.yaml: {ledger.code} has no weight, so it weighs 1\n  hint: add '{ledger.code}: …' to weights"
        for ledger in ledgers
        if scoring.weights and ledger.code not in scoring.weights
    )
    return _Scheme(
        weights={ledger.code: exact(scoring.weights.get(ledger.code, 1)) for ledger in ledgers},
        members=members,
        floors={code: exact(scoring.floors[code]) for code in sorted(scoring.floors, key=natural_key)},
        cap=None if scoring.cap is None else exact(scoring.cap),
        warnings=warnings,
    )


def _all_bounds(ledgers: Sequence[Ledger], scheme: _Scheme) -> dict[str, Bounds | None]:
    low, low_pillars = scheme.means(lambda ledger: ledger.low)
    high, high_pillars = scheme.means(lambda ledger: ledger.high)
    bounds = {ledger.code: _bounds(ledger.low, ledger.high) for ledger in ledgers}
    bounds |= {pillar: _bounds(low_pillars[pillar], high_pillars[pillar]) for pillar in scheme.members}
    return bounds | {"": _bounds(low, high)}


def _bounds(low: Fraction | None, high: Fraction | None) -> Bounds | None:
    return None if low is None or high is None else Bounds(low, high)


def _repetition_sd(rows: Iterable[Row], scoring: Scoring | None) -> float | None:
    by_repetition: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_repetition[row.repetition].append(row)
    if len(by_repetition) < 2:
        return None
    scores = []
    for part in by_repetition.values():
        ledgers = behaviour_ledgers(part)
        scores.append(_scheme(ledgers, scoring).means(lambda ledger: ledger.score)[0])
    defined = [float(score) for score in sorted(score for score in scores if score is not None)]
    return stdev(defined) if len(defined) > 1 else None
