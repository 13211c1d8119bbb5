"""The share passed of a pack: exact, by family and group, with an interval that is honest at both ends."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from pytest_helmbench.scoring.intervals import wilson
from pytest_helmbench.scoring.row_scores import PackVerdict, pack_score


def _verdicts(*passed: bool | None, groups: tuple[str, ...] = ()) -> list[PackVerdict]:
    return [PackVerdict(f"row-{number}", 1, value, groups) for number, value in enumerate(passed)]


def test_every_row_counts_one_and_the_unjudged_lower_the_coverage() -> None:
    score = pack_score(_verdicts(True, True, False, None))
    assert score.score == Fraction(2, 3)
    assert score.total.coverage == Fraction(3, 4)
    assert score.total.bounds is not None
    assert (score.total.bounds.low, score.total.bounds.high) == (Fraction(1, 2), Fraction(3, 4))
    assert (score.total.planned_rows, score.total.judged_rows, score.total.passed_rows) == (4, 3, 2)


def test_families_and_groups_that_say_something_stand_beside_the_whole() -> None:
    rows = [
        PackVerdict("a", 1, True, ("short_answer", "topic=sea")),
        PackVerdict("b", 1, False, ("short_answer", "topic=sky")),
        PackVerdict("c", 1, True, ("short_answer", "topic=sky")),
    ]
    random.Random(1).shuffle(rows)
    found = {group.code: group.score for group in pack_score(rows).groups}
    assert found == {"topic=sea": Fraction(1), "topic=sky": Fraction(1, 2)}  # the only family is the whole


@pytest.mark.parametrize(
    ("share", "trials", "low", "high"),
    # Values of scipy.stats.binomtest(k, n).proportion_ci(method="wilson").
    [
        (0.0, 6, 0.0, 0.390334),
        (1.0, 10, 0.722467, 1.0),
        (0.5, 100, 0.403832, 0.596168),
        (213 / 263, 263, 0.758133, 0.852716),
    ],
)
def test_the_interval_is_wilsons(share: float, trials: int, low: float, high: float) -> None:
    found = wilson(share, trials)
    assert found == pytest.approx((low, high), abs=1e-6)


def test_rows_of_a_passage_stand_or_fall_together() -> None:
    def passages(number: int, *, clustered: bool) -> list[PackVerdict]:
        return [
            PackVerdict(f"{passage}-{row}", 1, passage % 4 > 0, (), f"p{passage}" if clustered else None)
            for passage in range(number)
            for row in range(5)
        ]

    alone, together = (pack_score(passages(12, clustered=clustered)).total for clustered in (False, True))
    assert alone.interval is not None
    assert together.interval is not None
    assert (alone.clusters, alone.interval.target, alone.interval.trials) == (60, "other rows", 60)
    assert (together.clusters, together.interval.target) == (12, "other perturbations")
    assert together.interval.trials == pytest.approx(12)
    assert together.interval.high - together.interval.low > 1.9 * (alone.interval.high - alone.interval.low)
    loose = [*passages(12, clustered=True), PackVerdict("without", 1, True, ())]
    assert pack_score(loose).total.clusters == 13
