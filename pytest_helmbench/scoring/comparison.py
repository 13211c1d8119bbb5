"""Two runs over the same cases: the change of the score, of named parts, and the behaviours that fell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.changes import (
    ALPHA,
    LEAST_CHANGED,
    Change,
    Conclusion,
    change_interval,
    change_of,
    detectable_drop,
    flip_p,
    holm_adjusted,
    sign_flip,
)

_FEW_UNITS = 6
"""With fewer perturbations a named part is compared by pairs of replies, on these very cases."""

_COLLAPSE = Fraction(2, 5)
"""A behaviour that loses so much of its own score …"""
_SURE = 0.01
"""… beyond the model's own randomness, over all behaviours together, has collapsed."""

Replies = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True, slots=True)
class ComparedCase:
    """A case that both runs have judged.

    Args:
        pillar: `P1`.
        behaviour: `P1-B2`.
        unit: What it stands or falls with: its perturbation, its cluster, or itself.
        stake: |base| of each criterion in the candidate's benchmark, times the case's weight in its sample; above 0.
        difficulty: Of the condition (0..10), likewise.
        baseline: Credits by reply and criterion, in the order of the repetitions.
        candidate: Likewise, of the same criteria.
    """

    pillar: str
    behaviour: str
    unit: str
    stake: int | Fraction
    difficulty: int
    baseline: Replies
    candidate: Replies


@dataclass(frozen=True, slots=True)
class Limit:
    """How far the score of the run (an empty code), a pillar or a behaviour may drop."""

    code: str
    drop: Fraction


@dataclass(frozen=True, slots=True)
class BehaviourChange:
    """How a behaviour changed on the compared cases.

    Args:
        code: `P1-B2`.
        score: Of the candidate.
        baseline_score: Of the baseline.
        units: Its perturbations; None where that is not on record.
        pairs: Replies of the same case in both runs.
        changed: Of them.
        p: Of the hypothesis that it has not fallen on these very cases.
        p_adjusted: By Holm over all behaviours.
        word: `collapsed`, `fell` or empty.
    """

    code: str
    score: Fraction
    baseline_score: Fraction
    units: int | None
    pairs: int
    changed: int
    p: float
    p_adjusted: float
    word: str

    @property
    def change(self) -> Fraction:
        """Candidate minus baseline."""
        return self.score - self.baseline_score


@dataclass(frozen=True, slots=True)
class ScopeChange:
    """How the run or a named part changed on the compared cases.

    Args:
        code: Empty for the run.
        drop: That is allowed.
        score: Of the candidate.
        baseline_score: Of the baseline.
        change: What the changes of its units say; p is adjusted by Holm where several parts are compared.
        unit: `perturbation`, `cluster`, `case` or `reply`.
        detectable: Drop that these changes would have shown four times of five; None where nothing changed.
        p_two_sided: Of the hypothesis that neither run is better.
        low: End of the 95 % interval of the change, in accord with `p_two_sided`; None where `change` has none.
        high: The other end.
    """

    code: str
    drop: Fraction
    score: Fraction
    baseline_score: Fraction
    change: Change
    unit: str
    detectable: float | None
    p_two_sided: float = 1.0
    low: float | None = None
    high: float | None = None

    @property
    def direction(self) -> str:
        """`better`, `worse` or `no change shown`, by the two-sided test."""
        return _DIRECTIONS[better_one(self.change.change, self.p_two_sided)]


_DIRECTIONS = {1: "better", -1: "worse", 0: "no change shown"}


@dataclass(slots=True)
class _Unit:
    """Changes in tenths of a severity point."""

    stake: int | Fraction = 0
    change: Fraction = Fraction(0)


class _Behaviour:
    """Sums over the compared cases of one behaviour; what is lost is in tenths of a severity point."""

    def __init__(self, code: str, pillar: str) -> None:
        self.code = code
        self.pillar = pillar
        self.stake: int | Fraction = 0
        self.lost = [Fraction(0), Fraction(0)]
        self.units: defaultdict[str, _Unit] = defaultdict(_Unit)
        self.pairs: list[tuple[Fraction, Fraction]] = []  # change, and stake of the reply

    def add(self, case: ComparedCase) -> None:
        """Take in a case."""
        criteria = len(case.baseline[0])
        stake, at_risk = case.stake * criteria, case.stake * (10 - case.difficulty)
        earned = [_mean_credits(replies) for replies in (case.baseline, case.candidate)]
        self.stake += stake
        for run, credit in enumerate(earned):
            self.lost[run] += at_risk * (criteria - credit)
        unit = self.units[case.unit]
        unit.stake += stake
        unit.change += at_risk * (earned[1] - earned[0])
        pairs = min(len(case.baseline), len(case.candidate))
        for before, after in zip(case.baseline, case.candidate, strict=False):
            change = at_risk * (sum(after, Fraction(0)) - sum(before, Fraction(0)))
            self.pairs.append((change / pairs, Fraction(stake, pairs)))

    def score(self, run: int) -> Fraction:
        """Return the score of the baseline (0) or the candidate (1)."""
        return 1 - self.lost[run] / (10 * self.stake)


def _mean_credits(replies: Replies) -> Fraction:
    """Return the credit of all criteria together, as a mean over replies."""
    return Fraction(sum(sum(reply, Fraction(0)) for reply in replies), len(replies))


def compare_scopes(
    cases: Iterable[ComparedCase],
    weights: Mapping[str, Fraction],
    limits: Sequence[Limit],
    unit: str,
) -> tuple[tuple[ScopeChange, ...], tuple[BehaviourChange, ...]]:
    """Return how the run and its named parts changed, and how each behaviour did.

    Args:
        cases: At least one, in any order.
        weights: Of the behaviours, in the candidate's benchmark.
        limits: Of the run, pillars and behaviours; a part without a compared case is left out.
        unit: What `ComparedCase.unit` names.
    """
    behaviours = _behaviours(cases)
    parts = [
        _Part(limit, members, weights, unit)
        for limit in limits
        if (members := [member for member in behaviours if limit.code in ("", member.pillar, member.code)])
        and sum(weights[member.code] for member in members)
    ]
    p_values = holm_adjusted(flip_p(part.changes, part.shares, part.limit.drop) for part in parts)
    scopes = tuple(part.result(p) for part, p in zip(parts, p_values, strict=True))
    return scopes, _behaviour_changes([member for member in behaviours if weights[member.code]])


def unit_changes(
    cases: Iterable[ComparedCase], weights: Mapping[str, Fraction], unit: str
) -> Sequence[Fraction]:
    """Return what each unit changed in the score of the run, candidate minus baseline; see `compare_scopes`."""
    members = [member for member in _behaviours(cases) if weights[member.code]]
    return _Part(Limit("", Fraction(0)), members, weights, unit).changes


def _behaviours(cases: Iterable[ComparedCase]) -> list[_Behaviour]:
    known: dict[str, _Behaviour] = {}
    for case in cases:
        known.setdefault(case.behaviour, _Behaviour(case.behaviour, case.pillar)).add(case)
    return [known[code] for code in sorted(known, key=natural_key)]


class _Part:
    """The run, a pillar or a behaviour, in units that are signed."""

    def __init__(
        self,
        limit: Limit,
        members: Sequence[_Behaviour],
        weights: Mapping[str, Fraction],
        unit: str,
    ) -> None:
        self.limit = limit
        self.unit = unit
        total = sum((weights[member.code] for member in members), Fraction(0))
        self.shares_of = {member.code: weights[member.code] / total for member in members}
        self.members = [member for member in members if self.shares_of[member.code]]
        if limit.code and sum(len(member.units) for member in self.members) < _FEW_UNITS:
            self.unit = "reply"
        self.changes: list[Fraction] = []
        self.shares: list[Fraction] = []
        for member in self.members:
            scale = self.shares_of[member.code] / member.stake
            pairs = member.pairs
            if self.unit != "reply":
                pairs = [(part.change, Fraction(part.stake)) for _, part in sorted(member.units.items())]
            self.changes += [change * scale / 10 for change, _ in pairs]
            self.shares += [stake * scale for _, stake in pairs]

    def result(self, p: float) -> ScopeChange:
        """Return what the part's changes say, given the adjusted p."""
        baseline, score = (
            sum((self.shares_of[member.code] * member.score(run) for member in self.members), Fraction(0))
            for run in (0, 1)
        )
        change = change_of(self.changes, self.shares, self.limit.drop, p)
        square = sum(float(known) ** 2 for known in self.changes)
        p = pair_difference(self.changes).p
        return ScopeChange(
            code=self.limit.code,
            drop=self.limit.drop,
            score=score,
            baseline_score=baseline,
            # Pairs of replies leave out what one run alone has repeated: the change is that of the scores.
            change=replace(change, change=score - baseline),
            unit=self.unit,
            detectable=detectable_drop(square) if square else None,
            p_two_sided=p,
            **self._interval(p),
        )

    def _interval(self, p: float) -> Mapping[str, float]:
        """Return the ends of the 95 % interval; none where nothing changed, or one unit alone."""
        total = sum(self.changes, Fraction(0))
        low, high = change_interval(self.changes, self.shares, total, ALPHA / 2)
        if low is None or high is None or not any(self.changes):
            return {}
        side = better_one(total, p)
        low = max(low, 0.0) if side > 0 else low if side < 0 else min(low, 0.0)
        return {"low": low, "high": min(high, 0.0) if side < 0 else high if side > 0 else max(high, 0.0)}


def _behaviour_changes(behaviours: Sequence[_Behaviour]) -> tuple[BehaviourChange, ...]:
    changes = (behaviour.score(1) - behaviour.score(0) for behaviour in behaviours)
    pairs = ([change for change, _ in behaviour.pairs] for behaviour in behaviours)
    fallen = behaviours_fallen(zip(changes, pairs, strict=True))
    return tuple(
        BehaviourChange(
            code=behaviour.code,
            score=behaviour.score(1),
            baseline_score=behaviour.score(0),
            units=len(behaviour.units),
            pairs=len(behaviour.pairs),
            changed=sum(bool(change) for change, _ in behaviour.pairs),
            p=p,
            p_adjusted=adjusted,
            word=word,
        )
        for behaviour, (p, adjusted, word) in zip(behaviours, fallen, strict=True)
    )


def behaviours_fallen(
    behaviours: Iterable[tuple[Fraction, Sequence[Fraction]]],
) -> list[tuple[float, float, str]]:
    """Return p, adjusted p and word of each behaviour: sign flip over pairs of replies, Holm over behaviours.

    Args:
        behaviours: Change of its own score, and the change of every pair, in any unit.

    Source:
        `docs/statistics.md`, behaviours.
    """
    known = list(behaviours)
    p_values = [sign_flip(pairs) for _, pairs in known]
    found = []
    for (change, _), p, adjusted in zip(known, p_values, holm_adjusted(p_values), strict=True):
        word = "fell" if adjusted <= ALPHA and change < 0 else ""
        if adjusted <= _SURE and -change >= _COLLAPSE:
            word = Conclusion.COLLAPSED.value
        found.append((p, adjusted, word))
    return found


@dataclass(frozen=True, slots=True)
class PairDifference:
    """The score of one run minus that of another, on the cases that both have judged.

    Args:
        difference: In [−1, 1].
        p: Two-sided, of the hypothesis that neither is better.
        units: What was signed: perturbations, clusters or rows.
        changed: Of them.
    """

    difference: Fraction
    p: float
    units: int
    changed: int

    @property
    def cannot_tell(self) -> bool:
        """Whether so few units differ that no difference of theirs could be shown, even of a single pair."""
        return self.changed <= LEAST_CHANGED


def pair_difference(changes: Sequence[Fraction]) -> PairDifference:
    """Return what the differences of some units say: the exact sign-flip test, to both sides.

    Args:
        changes: Of every unit, first run minus second, in points of the score.

    Source:
        `docs/statistics.md`, the test and leaderboards.
    """
    smaller = min(sign_flip(changes), sign_flip(-change for change in changes))
    changed = sum(bool(change) for change in changes)
    return PairDifference(sum(changes, Fraction(0)), min(1.0, 2 * smaller), len(changes), changed)


def better_one(difference: Fraction, p_adjusted: float) -> int:
    """Return which of two runs is shown to be better: 1 for the first, −1 for the second, 0 where none is."""
    if p_adjusted > ALPHA or not difference:
        return 0
    return 1 if difference > 0 else -1
