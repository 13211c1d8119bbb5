"""Points of the score that a run has lost, by case and by part: the one order of "worst"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.rows import Row
from pytest_helmbench.scoring.run_score import RunScore
from pytest_helmbench.store.read.results import ResultRow

CaseRepetition = tuple[str, int]  # code of a case, and its repetition from 1
_NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True)
class Losses:
    """Losses of a run as shares of the whole score: 0.031 is 3.1 points.

    The losses of all cases, and those of the behaviours, add up to 1 − score. Neutral and unjudged rows lose nothing.

    Args:
        cases: Of judged cases that have lost something.
        behaviours: By code, what their cases have lost together; empty for a benchmark without.
        groups: Of a pack, by family and by group of metadata; a case counts in several.
    """

    cases: Mapping[CaseRepetition, Fraction] = field(default_factory=dict)
    behaviours: Mapping[str, Fraction] = field(default_factory=dict)
    groups: Mapping[str, Fraction] = field(default_factory=dict)

    def of(self, case: ResultRow) -> Fraction:
        """Return what a case in one repetition has lost: 0 for one that is right, neutral or not judged."""
        return self.cases.get((case.code, case.repetition), _NOTHING)

    def worst_first(self, cases: Iterable[ResultRow]) -> list[ResultRow]:
        """Return cases with the most points lost first, equal ones in natural order of their codes."""
        return sorted(cases, key=lambda case: (-self.of(case), natural_key(case.code), case.repetition))

    @property
    def worst_parts(self) -> Sequence[tuple[str, Fraction]]:
        """Behaviours, or groups of a pack, that have lost something, by the same order."""
        parts = self.behaviours or self.groups
        return sorted(parts.items(), key=lambda part: (-part[1], natural_key(part[0])))


def losses(
    rows: Iterable[tuple[str, Row]], score: RunScore, groups: Mapping[str, Sequence[str]] | None = None
) -> Losses:
    """Return what a run has lost.

    Args:
        rows: Every row that the run has planned, with the code of its case; in any order.
        score: Of these rows: it has the weights of the behaviours.
        groups: Of a pack, what the score of each case counts in, by code; None for a tree.
    """
    points: defaultdict[str, int | Fraction] = defaultdict(int)
    tenths: defaultdict[CaseRepetition, int | Fraction] = defaultdict(int)
    behaviour_of: dict[CaseRepetition, str] = {}
    for code, row in rows:
        if row.credit is None or row.neutral:
            continue
        stake = row.stake
        points[row.behaviour] += stake
        if row.credit != 1 and row.difficulty != 10:
            wrong = 1 if not row.credit else 1 - row.credit
            tenths[code, row.repetition] += stake * (10 - row.difficulty) * wrong
            behaviour_of[code, row.repetition] = row.behaviour
    given = {behaviour.code: behaviour.weight for behaviour in score.behaviours}
    weights = {code: given.get(code, Fraction(1)) for code in points}
    total = sum(weights.values(), _NOTHING)
    if score.score is None or not total:
        return Losses()
    per_tenth = {code: weights[code] / (10 * total * points[code]) for code in points}
    cases = {case: per_tenth[behaviour_of[case]] * found for case, found in tenths.items()}
    is_tree, known = bool(score.behaviours), {group.code for group in score.groups}
    behaviours = _sums((behaviour_of[case], lost) for case, lost in cases.items()) if is_tree else {}
    return Losses(
        cases={case: lost for case, lost in cases.items() if lost},
        behaviours=behaviours,
        groups=_sums(
            (group, lost)
            for (code, _), lost in cases.items()
            for group in (groups or {}).get(code, ())
            if group in known
        ),
    )


def _sums(found: Iterable[tuple[str, Fraction]]) -> dict[str, Fraction]:
    sums: defaultdict[str, Fraction] = defaultdict(Fraction)
    for code, lost in found:
        sums[code] += lost
    return {code: lost for code, lost in sums.items() if lost}
