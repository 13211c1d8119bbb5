"""A large pack: every row is an item, and every item is on record."""

from __future__ import annotations

import pytest
from packed import choice
from packs import write_pack
from trees import clear_environment, rows, run_tree


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def test_thousands_of_rows_run_and_are_all_on_record(pytester: pytest.Pytester) -> None:
    count = 2_000
    found = [choice(f"q{number}", **{"eval.answer": "ABC"[number % 3]}) for number in range(count)]
    write_pack(pytester.path / "benchmark", found)

    result = run_tree(pytester, "-q", "--tb=no", "-rN", "--helmbench-model=baseline/first")

    result.assert_outcomes(passed=667, failed=1_333)
    totals = "SELECT status, total_tests, passed_tests, round(score, 4), coverage FROM evaluation_runs"
    database = pytester.path / "helmbench.db"
    assert rows(database, totals) == [("complete", count, 667, 0.3335, 1.0)]
    assert rows(database, "SELECT count(DISTINCT code), count(scenario_id) FROM results") == [(count, count)]
