"""Tests of one's own that ask no model are no cases: no plan, count, coverage or gate has them."""

from __future__ import annotations

import pytest
from commands import run_command
from own_tests import every_number, run_own_tests, write_own_tests
from provider import Provider
from trees import clear_environment, rows

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


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


@every_number
def test_a_run_has_the_tests_that_asked(pytester: pytest.Pytester, provider: Provider, workers: str) -> None:
    write_own_tests(pytester.path, _TESTS.replace("number < 1", "True"))

    result = run_own_tests(
        pytester, provider, workers, "--helmbench-min-score=0.1", "--helmbench-min-coverage=1"
    )

    result.assert_outcomes(passed=5)
    assert result.ret == pytest.ExitCode.OK
    shown = result.stdout.str()
    assert "tests that asked no model, and are no cases: 2" in shown
    assert "not judged" not in shown
    assert "skipped:" not in shown
    assert rows(pytester.path / "helmbench.db", _RUNS) == _ALL_THERE


def test_one_that_fails_fails_for_pytest_alone(pytester: pytest.Pytester, provider: Provider) -> None:
    write_own_tests(pytester.path, _TESTS)

    result = run_own_tests(pytester, provider, "--helmbench-repeat=2")

    result.assert_outcomes(passed=8, failed=2)
    assert "--helmbench-resume" not in result.stdout.str()
    assert rows(pytester.path / "helmbench.db", _RUNS) == [(6, 6, 0, 0, "complete", 1.0)]


def test_a_resumed_run_counts_them_once(pytester: pytest.Pytester, provider: Provider) -> None:
    write_own_tests(pytester.path, _TESTS.replace("number < 1", "True"))
    provider.answers(status=500, times=1)

    broken = run_own_tests(pytester, provider, "--helmbench-max-retries=0")
    assert "1 of 3 cases is not judged" in broken.stdout.str()
    assert rows(pytester.path / "helmbench.db", _RUNS) == [(3, 2, 0, 0, "partial", 2 / 3)]

    resumed = run_own_tests(pytester, provider, "--helmbench-resume")
    assert resumed.ret == pytest.ExitCode.OK
    assert rows(pytester.path / "helmbench.db", _RUNS) == _ALL_THERE


def test_merged_shards_have_none_either(pytester: pytest.Pytester, provider: Provider) -> None:
    write_own_tests(pytester.path, _TESTS.replace("number < 1", "True"))
    for number in (1, 2):
        shard = run_own_tests(
            pytester, provider, f"--helmbench-shard={number}/2", "--helmbench-min-score=0.1"
        )
        assert shard.ret == pytest.ExitCode.OK

    files = ("helmbench-1of2.db", "helmbench-2of2.db")
    merged = run_command(pytester, "merge", *files, "-o", "merged.db", "--gate")

    assert merged.ret == 0
    assert "3 of 3 cases judged, complete" in merged.stdout.str()
    assert rows(pytester.path / "merged.db", _RUNS) == _ALL_THERE
    shown = run_command(pytester, "report", "1", "--db=merged.db", "--format=json")
    assert "no_model_call" not in shown.stdout.str()
