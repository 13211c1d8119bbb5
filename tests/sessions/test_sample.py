"""`--helmbench-sample`: what is asked, said, stored, compared and resumed of a part of a benchmark."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
from packs import row, write_pack
from provider import Answer, Provider, Request
from trees import Part, Tree, category, clear_environment, collected, rows, run_tree, write_tree

from pytest_helmbench.cli.main import main

_USAGE = 4
_ANSWERS = ["RISK"] * 5 + ["CALM"]


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def _scenario(perturbations: int) -> Tree:
    parts = {f"C{n}": Part(f"## Tone\n\nTone {n}.") for n in (1, 2)}
    contexts = {f"U{n}": Part(f"## Who\n\nReader {n}.", n) for n in (1, 2, 3)}
    return category(*_ANSWERS[-perturbations:], conditions=parts, user_contexts=contexts)


def _tree(pytester: pytest.Pytester) -> Path:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": _scenario(6), "P1-B2-S1": _scenario(4)})
    return pytester.path / "helmbench.db"


def _asked(database: Path, run_id: int) -> set[str]:
    return {code for (code,) in rows(database, f"SELECT code FROM results WHERE run_id = {run_id}")}


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_a_sample_is_asked_scored_stored_and_compared_as_one(
    pytester: pytest.Pytester, provider: Provider, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    database = _tree(pytester)
    sample = ("--helmbench-sample=0.4", "--tb=no")

    shown = run_tree(pytester, "--collect-only", "-q", *sample, url=provider.url)
    codes = {name.partition("[")[0] for name in collected(shown)}
    shown.stdout.fnmatch_lines(["*sample of benchmark: 24 of 60 cases (--helmbench-sample=0.4)"])
    cells = defaultdict(set)
    for code in codes:
        cells[code.partition("-C")[0], code.rpartition("-")[2]].add(code)
    assert [len(found) for found in cells.values()] == [6] * 4  # whole perturbations
    assert {scenario for scenario, _ in cells} == {"P1-B1-S1", "P1-B2-S1"}

    first = run_tree(pytester, mode, *sample, "--helmbench-json=report.json", url=provider.url)
    assert provider.count == 24
    assert _asked(database, 1) == codes
    first.stdout.fnmatch_lines(
        ["*: of a sample, 24 of 60 cases (--helmbench-sample=0.4): the interval counts the cases left out"]
    )
    report = json.loads((pytester.path / "report.json").read_text())["runs"][0]
    assert report["score"]["sample"] == {"rule": "0.4", "seed": 1, "cases": 24, "of": 60}
    assert report["score"]["coverage"] == 1
    assert rows(database, "SELECT rule, seed, cases, of_cases FROM samples") == [("0.4", 1, 24, 60)]
    ((settings, scope),) = rows(database, "SELECT settings, scope FROM evaluation_runs")
    assert (json.loads(settings)["sample"], scope) == ("0.4", "selected")
    assert rows(database, "SELECT cases FROM benchmark_sizes") == [(60,)]  # what the files define

    gate = run_tree(pytester, mode, *sample, "--helmbench-baseline=last", url=provider.url)
    gate.stdout.fnmatch_lines(["compare test/good with run 1: no verdict differs in 24 cases"])
    # Another seed has too little in common with it, and says why; all of the benchmark likewise.
    seed = "--helmbench-sample=0.4@2"
    other = run_tree(pytester, mode, *sample[1:], seed, "--helmbench-baseline=1", url=provider.url)
    other.stdout.fnmatch_lines(
        ["compare *: nothing in common with run 1: run 1 is of a sample (--helmbench-sample=0.4)"]
    )
    assert _asked(database, 3) not in (codes, set())

    capsys.readouterr()
    assert main(["rescore", "1", f"--db={database}"]) == 0
    assert rows(database, "SELECT rule, seed, cases, of_cases FROM samples WHERE run_id = 4") == [
        ("0.4", 1, 24, 60)
    ]
    assert main(["report", "4", "--format=json", f"--db={database}"]) == 0
    assert '"of": 60' in capsys.readouterr().out
    assert main(["export", "1", "--format=baseline", f"--db={database}"]) == 0
    assert '"sample": "--helmbench-sample=0.4"' in capsys.readouterr().out


def test_a_sampled_session_goes_on_with_the_same_sample_only(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    database = _tree(pytester)
    sample = ("--helmbench-sample=24", "--tb=no")

    def broken(request: Request) -> str | Answer | None:
        return Answer(status=400) if "Reader 2" in request.prompt else None

    provider.reply = broken
    run_tree(pytester, *sample, url=provider.url)
    asked = _asked(database, 1)
    calls = provider.count
    provider.reply = lambda _request: None

    for other, said in (
        (("--helmbench-sample=0.5",), "--helmbench-sample was 24, now 0.5"),
        (("--helmbench-sample=24@2",), "--helmbench-sample was 24, now 24@2"),
        ((), "--helmbench-sample was 24, now not given"),
    ):
        refused = run_tree(pytester, "--helmbench-resume", *other, url=provider.url)
        assert refused.ret == _USAGE
        assert said in refused.stderr.str()
    assert provider.count == calls

    resumed = run_tree(pytester, "--helmbench-resume", *sample, url=provider.url)
    assert (provider.count - calls, _asked(database, 1)) == (8, asked)
    assert "24 of 24 cases" not in resumed.stdout.str()
    assert rows(database, "SELECT cases, of_cases FROM samples") == [(24, 60)]


def test_pairs_of_components_are_asked_and_rows_of_packs_are_drawn(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _tree(pytester)
    pairs = run_tree(
        pytester,
        "-q",
        "--collect-only",
        "--helmbench-sample=pairwise",
        "--helmbench-select=P1-B1",
        url=provider.url,
    )
    codes = [name.partition("[")[0].rpartition("S1-")[2].split("-") for name in collected(pairs)]
    assert len(codes) == 18  # six perturbations × three contexts; conditions take turns
    assert len({(condition, perturbation) for condition, _, perturbation in codes}) == 12
    assert len({(condition, context) for condition, context, _ in codes}) == 6
    pairs.stdout.fnmatch_lines(["*18 of 36 cases (--helmbench-sample=pairwise)"])

    texts = [row("short_answer", {"metadata": {"passage": f"p{n // 4}"}}, f"q{n}") for n in range(40)]
    write_pack(pytester.path / "pack", texts, "id: demo\nversion: 1\ncluster: passage\n")
    pack = run_tree(pytester, "pack", "-q", "--collect-only", "--helmbench-sample=10", url=provider.url)
    drawn = {int(name.partition("[")[0][1:]) // 4 for name in collected(pack) if name.startswith("q")}
    assert len(drawn) * 4 == len([name for name in collected(pack) if name.startswith("q")]) in (8, 12)
    refused = run_tree(pytester, "pack", "--helmbench-sample=pairwise", url=provider.url)
    assert refused.ret == _USAGE
    refused.stderr.fnmatch_lines(
        ["*q0 has no condition, user context and perturbation", "*hint: give a share*"]
    )
    pytester.makepyfile(test_own="def test_own(helmbench_model):\n    assert helmbench_model.ask('Hello')\n")
    own = run_tree(
        pytester, "benchmark", "test_own.py", "--helmbench-sample=0.2", "--tb=no", url=provider.url
    )
    own.stdout.fnmatch_lines(
        ["--helmbench-sample: cases that pytest itself collects (Python tests) are in no sample*"]
    )
    assert rows(pytester.path / "helmbench.db", "SELECT cases, of_cases FROM samples") == [(12, 60)]
    assert rows(pytester.path / "helmbench.db", "SELECT count(*) FROM results") == [(13,)]
    wrong = run_tree(pytester, "--helmbench-sample=1.5", url=provider.url)
    wrong.stderr.fnmatch_lines(
        [
            "*--helmbench-sample is '1.5'",
            "*a share (0.2), a number of cases (200) or pairwise, and a seed (200@7)",
        ]
    )
