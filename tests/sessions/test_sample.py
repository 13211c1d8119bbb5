"""`--helmbench-sample`: what is asked, said, stored, compared and resumed of a part of a benchmark."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
from provider import Answer, Provider, Request
from trees import Part, Tree, category, collected, rows, run_tree, write_tree

from pytest_helmbench.cli.main import main

_USAGE = 4
_ANSWERS = ["RISK"] * 5 + ["CALM"]


def _scenario(perturbations: int) -> Tree:
    parts = {f"C{n}": Part(f"## Tone\n\nTone {n}.") for n in (1, 2)}
    contexts = {f"U{n}": Part(f"## Who\n\nReader {n}.", n) for n in (1, 2, 3)}
    return category(*_ANSWERS[-perturbations:], conditions=parts, user_contexts=contexts)


def _tree(pytester: pytest.Pytester) -> Path:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": _scenario(6), "P1-B2-S1": _scenario(4)})
    return pytester.path / "helmbench.db"


def _samples(database: Path) -> list[tuple[object, ...]]:
    """Return rule, seed, cases and of how many, by run."""
    weights = "(SELECT count(*) FROM json_each(sample, '$.weights'))"
    cells = ", ".join(f"json_extract(sample, '$.{key}')" for key in ("rule", "seed"))
    of = "json_extract(sample, '$.of')"
    return rows(database, f"SELECT {cells}, {weights}, {of} FROM plans WHERE sample NOT NULL ORDER BY run_id")


def _asked(database: Path, run_id: int) -> set[str]:
    return {code for (code,) in rows(database, f"SELECT code FROM results WHERE run_id = {run_id}")}


@pytest.mark.parametrize("mode", ["-n2"])
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
    first.stdout.fnmatch_lines(["test/good *", "  sample of 24 of 60*"])
    report = json.loads((pytester.path / "report.json").read_text())["runs"][0]
    assert report["score"]["sample"] == {"rule": "0.4", "seed": 1, "cases": 24, "of": 60}
    assert report["score"]["coverage"] == 1
    assert _samples(database) == [("0.4", 1, 24, 60)]
    ((settings, scope),) = rows(database, "SELECT settings, scope FROM evaluation_runs")
    assert (json.loads(settings)["sample"], scope) == ("0.4", "selected")

    gate = run_tree(pytester, mode, *sample, "--helmbench-baseline=last", url=provider.url)
    gate.stdout.fnmatch_lines(["  baseline   run 1: 75.0 %: no verdict differs in 24 cases"])
    # Another seed has too little in common with it, and says why; all of the benchmark likewise.
    seed = "--helmbench-sample=0.4@2"
    other = run_tree(pytester, mode, *sample[1:], seed, "--helmbench-baseline=1", url=provider.url)
    other.stdout.fnmatch_lines(
        [
            "✗ FAILS   *: nothing in common with run 1: run 1 is of a sample (--helmbench-sample=0.4)"
            " (of the 24 selected cases)"
        ]
    )
    assert _asked(database, 3) not in (codes, set())

    capsys.readouterr()
    assert main(["rescore", "1", f"--db={database}"]) == 0
    assert _samples(database)[-1] == ("0.4", 1, 24, 60)
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
    assert _samples(database) == [("24", 1, 24, 60)]
