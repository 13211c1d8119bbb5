"""Samples of a judge's verdicts by severity points: drawn in proportion, and honest about shares of points."""

from __future__ import annotations

import pytest

from pytest_helmbench.imports.judge_labels import drawn
from pytest_helmbench.scoring.judge_agreement import corrected_rate
from pytest_helmbench.store.read.judgements import JudgedRow


def _row(number: int, *, passed: bool, severity: int) -> JudgedRow:
    return JudgedRow((f"case-{number}", 1, ""), passed, severity)


def test_rows_are_drawn_in_proportion_to_their_points_half_of_each_verdict() -> None:
    heavy, light = _row(1, passed=True, severity=-9), _row(2, passed=True, severity=3)
    plain = _row(3, passed=False, severity=0)  # a behaviour without severities: each row has base 1
    draws = drawn((heavy, light, plain), 4_000, 0, by_points=True)
    assert draws[plain] == 2_000
    assert draws[heavy] / draws[light] == pytest.approx(3, rel=0.1)
    assert (
        draws
        == drawn((heavy, light, plain), 4_000, 0, by_points=True)
        != drawn((heavy, light, plain), 4_000, 1, by_points=True)
    )
    assert drawn((heavy, light), 10, 0, by_points=True).keys() <= {heavy, light}


def test_the_corrected_share_is_one_of_points_where_heavy_rows_are_judged_worse() -> None:
    """A judge that lets ten heavy rows of twenty pass wrongly is wrong on more points than rows."""
    rows = [_row(n, passed=True, severity=10 if n < 20 else 1) for n in range(100)]
    rows += [_row(n, passed=False, severity=1) for n in range(100, 140)]
    wrong = {rows[n] for n in range(10)}
    points = sum(row.points for row in rows)
    truth = sum(row.points for row in rows if row.passed and row not in wrong) / points
    covered, total = 0, 0.0
    for seed in range(300):
        draws = drawn(rows, 80, seed, by_points=True)
        passes = {row: count for row, count in draws.items() if row.passed}
        found = corrected_rate(
            sum(row.points for row in rows if row.passed),
            points,
            sum(passes.values()),
            sum(count for row, count in passes.items() if row not in wrong),
            80 - sum(passes.values()),
            0,
            points**2 / sum(row.points**2 for row in rows),
        )
        assert found is not None
        total += found.corrected
        covered += found.low <= truth <= found.high
    assert total / 300 == pytest.approx(truth, abs=0.01)
    assert covered / 300 >= 0.93
