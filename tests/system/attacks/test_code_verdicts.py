"""Code that wants to pass without being right: on plain data every attack fails, elsewhere the verdict is marked."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from code_rows import CodeRow, code_rows, judge_all
from engines import Running
from shared_values import shared_value

from pytest_helmbench.benchmarks.packs.families.code_completion.check import CodeFinding
from pytest_helmbench.core.outcome import Beside, Verdict

_ATTACKS = code_rows("attacks.txt")


@pytest.fixture(scope="module")
def attacks(bwrap: Running, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, CodeFinding]:
    return shared_value(tmp_path_factory, "code_attacks", lambda: judge_all(bwrap, _ATTACKS, timeout_s=5.0))


@pytest.mark.parametrize("row", _ATTACKS, ids=lambda row: row.name)
def test_no_attack_passes_without_the_mark(row: CodeRow, attacks: Mapping[str, CodeFinding]) -> None:
    found = attacks[row.name]
    assert found.beside == (Beside.IN_PROCESS if row.says == "in_process" else None)
    assert found.verdict is not Verdict.ERROR  # nor does one turn its failure into an error
    if found.beside is None:
        assert found.verdict is Verdict.FAILED
        assert found.reason in ("tests_failed", "does_not_load", "timeout", "limit")
        assert found.message


def test_attacks_on_plain_data_are_most_of_the_table() -> None:
    assert (len(_ATTACKS), sum(row.says == "in_process" for row in _ATTACKS)) == (86, 21)


def test_the_tests_would_pass_for_the_right_code(bwrap: Running) -> None:
    """An attack proves nothing when nothing could pass."""
    rows = [
        row for row in _ATTACKS if row.starter.startswith("def double(x):\n    ...") and row.tests.count("4")
    ]
    right = [
        type(row)(row.name, row.starter, row.tests, "def double(x):\n    return 2 * x") for row in rows[:3]
    ]
    found = judge_all(bwrap, right, timeout_s=20.0)
    assert {finding.verdict for finding in found.values()} == {Verdict.PASSED}
