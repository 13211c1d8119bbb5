"""Samples: cases drawn, cases represented, and that the score of a sample is that of the whole on average."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_helmbench.core.sample import Sample
from pytest_helmbench.scoring.drawing import SampledCase, draw


def _scenario(
    code: str, conditions: int, contexts: int, severities: list[int], extra: int = 0
) -> list[SampledCase]:
    behaviour = code.rpartition("-")[0]
    return [
        SampledCase(
            f"{code}-C{c}-U{u}-PT{p}",
            behaviour,
            f"{code}-PT{p}",
            severity + u + extra,
            code,
            (f"C{c}", f"U{u}", f"PT{p}"),
        )
        for c, u in product(range(1, conditions + 1), range(1, contexts + 1))
        for p, severity in enumerate(severities, 1)
    ]


_TREE = [
    *_scenario("P1-B1-S1", 3, 2, [2, 4, 6, 8]),
    *_scenario("P1-B2-S1", 2, 2, [1, 3, 5, 7, 9, 2, 4, 6, 8, 10]),
    *_scenario("P1-B2-S2", 1, 3, [-3, -5, 7]),
    *_scenario("P2-B1-S1", 1, 1, [5]),
]


def _units(sample: Sample) -> Counter[str]:
    return Counter(case.unit for case in _TREE if case.code in sample.weights)


def test_a_share_takes_whole_perturbations_of_every_behaviour_from_every_band_of_severity() -> None:
    sizes = Counter(case.unit for case in _TREE)
    for seed in range(20):
        sample = draw(_TREE, "0.4", seed)
        units = _units(sample)
        assert all(units[unit] == sizes[unit] for unit in units)  # with all their cells
        assert {unit.rpartition("-S")[0] for unit in units} == {"P1-B1", "P1-B2", "P2-B1"}
        assert abs(len(sample.weights) - 0.4 * len(_TREE)) <= 6
        # Ten of the thirteen perturbations of P1-B2 are in bands of severity: the two mildest are not all it has.
        severities = sorted(case.severity for case in _TREE if case.code in sample.weights)
        assert severities[0] < 4
        assert severities[-1] > 8
    assert draw(_TREE, "0.4", 3) == draw(_TREE, "0.4", 3) != draw(_TREE, "0.4", 4)
    assert draw(_TREE, "1.0", 1).weights == {case.code: 1 for case in _TREE}
    assert len(draw(_TREE, "1", 1).weights) >= 3  # one of each behaviour, however few are asked for


def test_a_number_of_rows_is_drawn_from_every_family_and_clusters_stay_whole() -> None:
    rows = [SampledCase(f"q{n}", "short" if n % 3 else "choice", f"q{n}", 0) for n in range(90)]
    sample = draw(rows, "30", 1)
    families = Counter(case.stratum for case in rows if case.code in sample.weights)
    assert families == {"choice": 10, "short": 20}
    assert set(sample.weights.values()) == {Fraction(3)}
    clustered = [SampledCase(f"q{n}", "short", f"in text {n // 5}", 0) for n in range(90)]
    drawn = Counter(int(code[1:]) // 5 for code in draw(clustered, "30", 1).weights)
    assert set(drawn.values()) == {5}
    assert len(drawn) == 6


def test_a_new_case_hardly_changes_a_sample() -> None:
    rows = [SampledCase(f"q{n}", "short", f"q{n}", 0) for n in range(300)]
    before = draw(rows, "100", 1).weights.keys()
    after = draw([*rows, SampledCase("new", "short", "new", 0)], "100", 1).weights.keys()
    assert len(before & after) >= 60


def test_on_average_the_score_of_a_sample_is_that_of_the_whole() -> None:
    """Exactly unbiased: perturbations stand in for their band as often as they carry points."""
    cases = _scenario("P1-B1-S1", 2, 3, [1, 2, 4, 9, 10])
    lost = {case.unit: number for number, case in enumerate(cases[:5])}  # points lost differ by perturbation

    def score(weights: dict[str, Fraction]) -> float:
        points = {case.code: abs(case.severity) * weights.get(case.code, Fraction(0)) for case in cases}
        return float(sum(points[case.code] * lost[case.unit] for case in cases) / sum(points.values()))

    whole = score({case.code: Fraction(1) for case in cases})
    seeds = [score(dict(draw(cases, "0.4", seed).weights)) for seed in range(2000)]
    assert sum(seeds) / len(seeds) == pytest.approx(whole, abs=0.06)
    assert max(seeds) > whole + 0.5
    # Every perturbation meets every user context, so what conditions do not change is not even estimated.
    assert score(dict(draw(cases, "pairwise", 1).weights)) == pytest.approx(whole)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_pairwise_lets_every_two_components_meet_in_as_few_cases_as_can_be(
    conditions: int, contexts: int, perturbations: int, seed: int
) -> None:
    cases = _scenario("P1-B1-S1", conditions, contexts, [5] * perturbations)
    sample = draw(cases, "pairwise", seed)
    short, middle, long = sorted((conditions, contexts, perturbations))
    assert len(sample.weights) == middle * long
    assert set(sample.weights.values()) == {Fraction(short)}
    _assert_pairs(cases, sample)


def _assert_pairs(cases: list[SampledCase], sample: Sample) -> None:
    met: defaultdict[bool, set[tuple[int, str, int, str]]] = defaultdict(set)
    for case in cases:
        for first, second in combinations(range(3), 2):
            pair = (first, case.cell[first], second, case.cell[second])
            met[True].add(pair)
            if case.code in sample.weights:
                met[False].add(pair)
    assert met[False] == met[True]
