"""Hand-written tests that ask no model are not cases: no plan, count, coverage or gate has them."""

from __future__ import annotations

import pytest
from own_tests import every_number, run_own_tests, write_own_tests
from provider import Provider
from trees import rows

_TESTS = """
import pytest
from asking import ask

@pytest.mark.parametrize("number", range(3))
def test_asks(helmbench_openai, number): ask(helmbench_openai, str(number))

@pytest.mark.parametrize("number", range(2))
def test_silent(helmbench_openai, number): assert number < 1
"""
_RUNS = "SELECT total_tests, passed_tests, failed_tests, skipped_tests, status, coverage FROM evaluation_runs"
_ALL_THERE = [(3, 3, 0, 0, "complete", 1.0)]


@every_number
def test_a_run_has_the_tests_that_asked(pytester: pytest.Pytester, provider: Provider, workers: str) -> None:
    write_own_tests(pytester.path, _TESTS.replace("number < 1", "True"))

    result = run_own_tests(
        pytester, provider, workers, "--helmbench-min-score=0.1", "--helmbench-min-coverage=1"
    )

    result.assert_outcomes(passed=5)
    assert result.ret == pytest.ExitCode.OK
    shown = result.stdout.str()
    assert "tests that asked no model, so they are not cases: 2" in shown
    assert "not judged " not in shown.replace("not judged     USD", "")
    assert "skipped:" not in shown
    assert rows(pytester.path / "helmbench.db", _RUNS) == _ALL_THERE
