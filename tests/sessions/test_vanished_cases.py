"""Cases that a benchmark had when it was last run, and has no more, are told."""

from __future__ import annotations

import shutil

import pytest
from provider import Provider
from trees import category, clear_environment, rows, run_tree, write_tree

from pytest_helmbench.cli.main import main


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_a_benchmark_that_has_fewer_cases_than_in_its_last_run_is_told_with_their_codes(
    pytester: pytest.Pytester,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mode: str,
) -> None:
    clear_environment(monkeypatch)
    folder = write_tree(
        pytester.path / "benchmark",
        {"P1-B1-S1": category(*["RISK"] * 3), "P1-B1-S2": category(*["RISK"] * 12)},
    )
    database = pytester.path / "helmbench.db"

    # What is selected does not matter: it is what the files define.
    first = run_tree(pytester, mode, "-k", "P1-B1-S1", url=provider.url)
    assert first.parseoutcomes()["passed"] == 3
    assert rows(database, "SELECT cases FROM benchmark_sizes") == [(15,)]
    same = run_tree(pytester, mode, "--helmbench-select=P1-B1-S2", url=provider.url)
    assert "it had" not in same.stdout.str()

    shutil.rmtree(folder / "scenarios" / "P1-B1-S2")
    fewer = run_tree(pytester, mode, url=provider.url)

    codes = [f"P1-B1-S2-C1-PT{number}" for number in range(1, 13)]
    said = f"has 3 cases; it had 15 in run 2. Gone: {', '.join(codes[:10])} and 2 more (`helmbench show last --gone`"
    assert said in fewer.stdout.str()
    capsys.readouterr()
    assert main(["show", "last", "--gone", f"--db={database}"]) == 0
    assert capsys.readouterr().out.split() == codes
    assert "it had" not in run_tree(pytester, mode, url=provider.url).stdout.str()
