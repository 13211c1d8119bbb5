"""Our formulas against scipy, statsmodels and ppi-python, which no session imports.

Each test imports what it needs: seconds, which every worker would spend when it collects.
"""

from __future__ import annotations

import random
import re
from fractions import Fraction
from typing import Any

import pytest
from house_figures import paths

from pytest_helmbench.scoring.changes import change_of, holm_adjusted, sign_flip
from pytest_helmbench.scoring.intervals import Stratum, t_quantile, tree_interval, wilson
from pytest_helmbench.scoring.judge_agreement import agreement, corrected_rate


def _gain(first: Any, second: Any, axis: int) -> Any:
    return first.sum(axis) - second.sum(axis)


def test_the_sign_flip_is_the_exact_permutation_test() -> None:
    import numpy as np
    from scipy import stats

    rng = random.Random(1)
    for number in range(200):
        size = rng.randint(2, 12) if number % 10 == 0 else rng.randint(2, 8)
        changes = [Fraction(rng.randint(-30, 20), 60) for _ in range(size)]
        known = np.array([float(change) for change in changes if change])
        if len(known) < 2:
            continue
        expected = stats.permutation_test(
            (known, np.zeros_like(known)),
            _gain,
            permutation_type="samples",
            alternative="less",
            n_resamples=np.inf,
            vectorized=True,
        ).pvalue
        assert sign_flip(changes) == pytest.approx(expected, abs=1e-9)


def test_equal_changes_are_a_binomial_test() -> None:
    from scipy import stats

    for up, down in ((4, 14), (200, 250), (0, 5), (7, 7)):
        changes = [Fraction(1, 300)] * up + [Fraction(-1, 300)] * down
        expected = stats.binomtest(up, up + down, 0.5, alternative="less").pvalue
        assert sign_flip(changes) == pytest.approx(expected, abs=1e-12)


def test_quantiles_wilson_and_holm() -> None:
    from scipy import stats
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.proportion import proportion_confint

    for probability in (0.9, 0.95, 0.975):
        for df in (1, 2, 3, 3.7, 5, 8, 20, 100):
            assert t_quantile(probability, df) == pytest.approx(stats.t.ppf(probability, df), rel=0.0013)
        for df in (1.5, 2.5):
            assert t_quantile(probability, df) >= stats.t.ppf(probability, df)
    for passed, rows in ((5, 8), (0, 6), (10, 10), (213, 263)):
        assert wilson(passed / rows, rows) == pytest.approx(proportion_confint(passed, rows, method="wilson"))
    p_values = [0.001, 0.01, 0.02, 0.04, 0.2]
    assert holm_adjusted(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_the_variances_are_those_of_a_weighted_regression_with_hc2() -> None:
    import numpy as np
    import statsmodels.api as sm
    from scipy import stats

    points, earned = np.array([10, 10, 20, 10.0]), np.array([10, 5, 15, 10.0])
    fit = sm.WLS(earned / points, np.ones(4), weights=points).fit(cov_type="HC2")
    clusters = [(int(m), int(e)) for m, e in zip(points, earned, strict=True)]
    found = tree_interval([Stratum(Fraction(1), clusters, 1)])
    assert found is not None
    share = earned.sum() / points.sum()
    t = t_quantile(0.975, 3)
    trials = share * (1 - share) / fit.bse[0] ** 2 * (stats.norm.ppf(0.975) / t) ** 2
    assert found.trials == pytest.approx(max(trials, found.effective_units))

    changes = [Fraction(x, 1000) for x in (-30, -20, -15, -12, -10, -6, 5, 4, -3, 0)]
    shares = np.full(10, 0.1)
    values = np.array([float(change) for change in changes]) / shares
    fit = sm.WLS(values, np.ones(10), weights=shares).fit(cov_type="HC2")
    change = change_of(changes, [Fraction(1, 10)] * 10, Fraction(0))
    assert change.low is not None
    assert float(change.change) - change.low == pytest.approx(t_quantile(0.95, 9) * fit.bse[0])


@pytest.mark.parametrize("cells", [(46, 4, 9, 41), (10, 1, 0, 3), (90, 3, 5, 2), (5, 9, 7, 4), (1, 0, 1, 1)])
def test_kappa_and_its_interval_are_those_of_statsmodels(cells: tuple[int, int, int, int]) -> None:
    from statsmodels.stats.inter_rater import cohens_kappa

    found = agreement(*cells)
    oracle = cohens_kappa([[cells[0], cells[1]], [cells[2], cells[3]]])
    assert found is not None
    assert found.kappa == pytest.approx(oracle.kappa)
    assert found.kappa_low == pytest.approx(max(-1, oracle.kappa_low))
    assert found.kappa_high == pytest.approx(min(1, oracle.kappa_upp))


def test_the_corrected_rate_is_what_ppi_estimates_from_a_random_sample() -> None:
    import numpy as np
    from ppi_py import ppi_mean_pointestimate

    # 100 of 660 verdicts labelled at random: 78 of 85 passes right, 3 of 15 fails wrong.
    labels = np.repeat([1.0, 0.0, 1.0, 0.0], [78, 7, 3, 12])
    verdicts = np.repeat([1.0, 0.0], [85, 15])
    others = np.repeat([1.0, 0.0], [475, 85])
    found = corrected_rate(560, 660, 85, 78, 15, 3)
    assert found is not None
    assert found.corrected == pytest.approx(ppi_mean_pointestimate(labels, verdicts, others)[0], abs=5e-5)


def test_no_module_of_ours_imports_a_statistics_library() -> None:
    heavy = re.compile(r"^\s*(import|from) (numpy|scipy|statsmodels|pandas|ppi_py)\b", re.MULTILINE)
    assert [path for path in paths() if heavy.search(path.read_text(encoding="utf-8"))] == []
