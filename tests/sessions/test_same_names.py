"""Benchmarks of one name in one results file: each compares with its own earlier runs, wherever it is checked out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from provider import Provider
from trees import category, rows, run_tree, write_tree

from pytest_helmbench.cli.main import main
from pytest_helmbench.store.read.benchmark_places import folder_of, place_of


def _two(folder: Path) -> Path:
    """Write two benchmarks of the same name, of 6 and of 3 cases, and return where their results go."""
    write_tree(folder / "a" / "benchmark", {"P1-B1-S1": category(*["RISK"] * 6)})
    write_tree(folder / "b" / "benchmark", {"P1-B1-S1": category(*["RISK"] * 3)})
    return folder / "helmbench.db"


@pytest.mark.parametrize("mode", ["-n2"])
def test_another_benchmark_of_the_same_name_is_not_held_to_have_lost_cases(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    database = _two(pytester.path)

    run_tree(pytester, mode, "a/benchmark", url=provider.url, apart=True).assert_outcomes(passed=6)
    other = run_tree(pytester, mode, "b/benchmark", url=provider.url, apart=True)

    other.assert_outcomes(passed=3)
    assert "it had" not in other.stdout.str()
    assert rows(database, "SELECT benchmark_place FROM evaluation_runs") == [
        ("a/benchmark",),
        ("b/benchmark",),
    ]
    assert main(["show", "last", "--gone", f"--db={database}"]) == 0
    assert "no case is gone" in capsys.readouterr().out

    write_tree(pytester.path / "a" / "benchmark", {"P1-B1-S1": category(*["RISK"] * 5)})
    fewer = run_tree(pytester, mode, "a/benchmark", "b/benchmark", url=provider.url)

    said = "benchmark (a/benchmark) has 5 cases; it had 6 in run 1. Gone: P1-B1-S1-C1-PT6\n"
    assert said in f"{fewer.stdout.str()}\n"
    assert fewer.stdout.str().count("it had") == 1


def test_a_baseline_is_a_run_of_the_same_benchmark_and_a_run_that_is_named_one_of_any_of_its_name(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    database = _two(pytester.path)
    write_tree(pytester.path / "b" / "benchmark", {"P1-B1-S1": category(*["CALM"] * 6)})
    last = "--helmbench-baseline=last"
    run_tree(pytester, "a/benchmark", url=provider.url).assert_outcomes(passed=6)

    first = run_tree(pytester, "b/benchmark", last, url=provider.url)
    assert "has no complete session of benchmark (b/benchmark) for 'last'" in first.stdout.str()
    named = run_tree(pytester, "b/benchmark", "--helmbench-baseline=1", url=provider.url)
    assert "run 1" in named.stdout.str()
    both = run_tree(pytester, "a/benchmark", "b/benchmark", last, url=provider.url)

    compared = (
        "SELECT id, baseline ->> '$.run', baseline ->> '$.file' FROM evaluation_runs WHERE session_id ="
    )
    compared += " (SELECT session_id FROM evaluation_runs ORDER BY id DESC LIMIT 1) ORDER BY id"
    assert rows(database, compared) == [(4, 1, None), (5, 3, None)], both.stdout.str()
    capsys.readouterr()
    assert main(["report", "4", "5", "--format", "markdown", f"--db={database}"]) == 0
    assert "\n### `test/good` on benchmark (run 4)\n" in capsys.readouterr().out
    main(["export", "4", "--format", "baseline", "-o", "main.json", f"--db={database}"])
    assert json.loads((pytester.path / "main.json").read_text())["runs"][0]["place"] == "a/benchmark"
    run_tree(pytester, "a/benchmark", "b/benchmark", "--helmbench-baseline=main.json", url=provider.url)
    names = [place for _, *place in rows(database, compared)]
    assert names == [[4, "main.json"], [5, "main.json"]]
    capsys.readouterr()
    assert main(["compare", "1", "4", "--json", f"--db={database}"]) == 2
    found = json.loads(capsys.readouterr().out)
    said = [
        (one["candidate_run"], one["baseline_run"], one["reason"])
        for one in found
        if one["baseline_run"] is None
    ]
    assert [(one["candidate_run"], one["baseline_run"]) for one in found] == [(4, "run 1"), (5, None)]
    assert said == [(5, None, "run 1 has no run of benchmark (b/benchmark)")]
    main(["compare", "1", "3", "--json", f"--db={database}"])
    assert json.loads(capsys.readouterr().out)[0]["baseline_run"] == "run 1"


@pytest.mark.parametrize(
    ("root", "db", "place"),
    [
        ("home/me/p/a/benchmark", "home/me/p/helmbench.db", "a/benchmark"),
        ("home/me/p/benchmark", "home/me/p/out/helmbench.db", "../benchmark"),
        ("home/me/p/benchmark", "home/me/p/benchmark/helmbench.db", "."),
        ("home/me/p/benchmark", "home/me/results.db", "p/benchmark"),
        ("home/me/p/benchmark", "var/results.db", "~/p/benchmark"),
        ("home/me/p/benchmark", "home/you/results.db", "~/p/benchmark"),
        ("srv/p/benchmark", "srv/results/helmbench.db", "../p/benchmark"),
    ],
)
def test_a_place_says_the_same_in_every_checkout_and_names_no_user(
    root: str, db: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "me"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home" / "me"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "home" / "me" / ".cache"))

    found = place_of(tmp_path / root, tmp_path / db)

    assert found == place
    if found is not None:
        assert folder_of(found, tmp_path / db).resolve() == (tmp_path / root).resolve()


def test_a_place_that_has_nothing_in_common_with_the_file_is_absolute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    assert place_of(Path("/opt/benchmark"), Path("/data/helmbench.db")) == "/opt/benchmark"
