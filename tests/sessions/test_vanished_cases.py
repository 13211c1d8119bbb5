"""Cases that are gone since a benchmark's last run are reported; those of broken files are planned."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from inner_pytest import run_pytest
from packs import row, write_pack
from provider import Provider
from trees import category, rows, run_tree, write_tree

from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.cli.main import main


@pytest.mark.parametrize("mode", ["-n2"])
def test_a_benchmark_that_has_fewer_cases_than_in_its_last_run_is_told_with_their_codes(
    pytester: pytest.Pytester,
    provider: Provider,
    capsys: pytest.CaptureFixture[str],
    mode: str,
) -> None:
    folder = write_tree(
        pytester.path / "benchmark",
        {"P1-B1-S1": category(*["RISK"] * 3), "P1-B1-S2": category(*["RISK"] * 12)},
    )
    database = pytester.path / "helmbench.db"

    # The selection does not matter: the files define the cases.
    first = run_tree(pytester, mode, "-k", "P1-B1-S1", url=provider.url)
    assert first.parseoutcomes()["passed"] == 3
    same = run_tree(pytester, mode, "--helmbench-select=P1-B1-S2", url=provider.url)
    assert "it had" not in same.stdout.str()

    prompt = folder / "scenarios" / "P1-B1-S2" / "S2.md"
    prompt.write_text("---\nevaluation: {type: nonsense}\n---\n\nSort.\n")
    for selected in ("--helmbench-select=P1-B1-S1", "--helmbench-select=P1"):
        broken = run_tree(pytester, mode, selected, url=provider.url)
        assert broken.parseoutcomes()["passed"] == 3
        assert "it had" not in broken.stdout.str(), "what is broken is not gone"

    shutil.rmtree(folder / "scenarios" / "P1-B1-S2")
    fewer = run_tree(pytester, mode, url=provider.url)

    codes = [f"P1-B1-S2-C1-PT{number}" for number in range(1, 13)]
    said = f"has 3 cases; it had 15 in run 4. Gone: {', '.join(codes[:10])} and 2 more (`helmbench show last --gone`"
    assert said in fewer.stdout.str()
    capsys.readouterr()
    assert main(["show", "last", "--gone", f"--db={database}"]) == 0
    assert capsys.readouterr().out.split() == codes
    assert "it had" not in run_tree(pytester, mode, url=provider.url).stdout.str()


def test_a_benchmark_whose_scenarios_are_all_gone_is_an_error_and_one_without_rows_is_said(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    full = write_tree(pytester.path / "full" / "benchmark", {"P1-B1-S1": category("RISK")})
    bare = pytester.path / "bare" / "benchmark"
    (bare / "scenarios").mkdir(parents=True)
    (bare / "benchmark.yml").write_text("name: Bare\n")
    gate = "--helmbench-min-score=0"

    for named in ([str(bare)], [str(full), str(bare)]):
        refused = run_tree(pytester, *named, gate, url=provider.url)
        refused.stderr.fnmatch_lines(["*/bare/benchmark/scenarios: there is no scenario in it"])
        assert refused.ret == pytest.ExitCode.USAGE_ERROR
        assert not provider.requests
    (bare / "scenarios" / "P1" / "B1").mkdir(parents=True)
    beside = run_tree(pytester, str(full), str(bare), gate, url=provider.url)
    beside.assert_outcomes(passed=1, errors=1)
    beside.stdout.fnmatch_lines(["*scenarios: there is no scenario in it"])
    assert beside.ret == pytest.ExitCode.TESTS_FAILED

    empty = write_pack(pytester.path / "empty", [])
    rowless = run_tree(pytester, str(empty), gate, url=provider.url)
    rowless.stdout.fnmatch_lines(["warning: empty/tasks.jsonl: rows: there is no row in it"])
    assert rowless.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("mode", ["-n2"])
def test_what_broken_scenarios_would_have_run_is_planned_and_never_judged_wherever_coverage_stands(
    pytester: pytest.Pytester,
    provider: Provider,
    capsys: pytest.CaptureFixture[str],
    mode: str,
) -> None:
    folder = write_tree(
        pytester.path / "benchmark",
        {
            "P1-B1-S1": category(*["RISK"] * 3),  # 15 points
            "P1-B1-S2": category("RISK", "RISK"),  # 10 points, its prompt is broken
        },
    )
    (folder / "scenarios" / "P1-B1-S2" / "S2.md").write_text(
        "---\nevaluation: {type: nonsense}\n---\n\nSort.\n"
    )
    database, report = pytester.path / "helmbench.db", pytester.path / "report.json"

    ran = run_tree(
        pytester, mode, "--helmbench-min-coverage=0.61", f"--helmbench-json={report}", url=provider.url
    )

    ran.assert_outcomes(passed=3, errors=1)
    assert "3 of 5 cases, coverage 60.0 %, wanted 61 %" in ran.stdout.str()
    assert rows(database, "SELECT coverage, score, status FROM evaluation_runs") == [(0.6, 1.0, "partial")]
    assert json.loads(report.read_text())["runs"][0]["run"]["coverage"] == 0.6
    selected = run_tree(pytester, mode, "--helmbench-select=P1-B1-S1-C1,P1-B1-S2-C1-PT2", url=provider.url)
    selected.assert_outcomes(passed=3, errors=1)
    assert main(["rescore", "1", f"--db={database}"]) == 0
    assert rows(database, "SELECT coverage FROM evaluation_runs") == [(0.6,), (0.75,), (0.6,)]
    capsys.readouterr()
    assert main(["check", str(folder)]) == 1
    assert (
        "\n2 cases of 1 broken scenario cannot run: they count as planned and not judged"
        in capsys.readouterr().out
    )


def test_what_could_not_be_read_of_a_broken_scenario_counts_one_point(tmp_path: Path) -> None:
    trees = {f"P1-B1-S{number}": category("RISK", "RISK") for number in (1, 2, 4)}
    folder = write_tree(tmp_path / "benchmark", trees) / "scenarios"
    (folder / "P1-B1-S1" / "perturbations.md").unlink()
    (folder / "P1-B1-S2" / "perturbations.md").write_text("# PT1\n---\nseverity: [\n---\nHello.\n")

    unrun = load_tree(tmp_path / "benchmark").unrun

    assert {
        code: [(case.code, case.severity) for case in found.cases()] for code, found in unrun.items()
    } == {
        "P1-B1-S1": [("P1-B1-S1-C1", 1)],
        "P1-B1-S2": [("P1-B1-S2-C1-PT1", 1)],
    }


def _three_benchmarks(pytester: pytest.Pytester) -> Path:
    folder = pytester.path / "suites"
    for name in ("alpha", "beta"):
        write_tree(folder / name, {"P1-B1-S1": category(*["RISK"] * 6)})
        (folder / name / "benchmark.yml").write_text(f"name: {name}\n")
    question = {"input.question": "Message of which kind?\n\nANSWER: B", "eval.answer": "B"}
    write_pack(folder / "quiz", [row("multiple_choice", question, f"q{number}") for number in range(6)])
    return folder


_NAMED = ("suites/alpha", "suites/beta", "suites/quiz")
_LOST: Mapping[str, tuple[Callable[[Path], object], str, tuple[str, ...]]] = {
    "a tree is deleted": (lambda folder: shutil.rmtree(folder / "beta"), "beta", ("suites",)),
    "a pack is deleted": (lambda folder: shutil.rmtree(folder / "quiz"), "demo", ("suites",)),
    "a tree has no scenarios/": (lambda folder: shutil.rmtree(folder / "beta/scenarios"), "beta", _NAMED),
    "a pack has no manifest": (lambda folder: (folder / "quiz/manifest.yaml").unlink(), "demo", _NAMED),
    "a pack has no rows": (lambda folder: (folder / "quiz/tasks.jsonl").write_text(""), "demo", _NAMED),
    "all of it is another folder's": (lambda folder: (folder / "beta").rename("other"), "beta", ("suites",)),
}


@pytest.mark.parametrize("way", _LOST)
def test_a_benchmark_of_the_baseline_that_is_gone_as_a_whole_fails_the_gate(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    edit, name, paths = _LOST[way]
    folder = _three_benchmarks(pytester)
    provider.reply = lambda ask: "B" if "ANSWER: B" in ask.prompt else None

    def ran(*words: str) -> pytest.RunResult:
        own = words if any(word.startswith("suites") for word in words) else (*paths, *words)
        model = (f"--helmbench-base-url={provider.url}", "--helmbench-model=test/good")
        return run_pytest(pytester, *own, *model)

    assert ran().ret == pytest.ExitCode.OK
    assert main(["export", "last", "--format", "baseline", "-o", "main.json"]) == 0
    edit(folder)
    (pytester.path / "elsewhere").mkdir()

    for options in (
        ("--helmbench-baseline=last",),
        ("--helmbench-baseline=main.json", "--helmbench-db=elsewhere/new.db", "-n2"),
    ):
        failed = ran(*options)
        assert failed.ret == pytest.ExitCode.TESTS_FAILED
        assert (
            f"✗ FAILS   test/good on {name}: 6 cases are gone from the benchmark since run"
            in (failed.outlines[-1])
        )
        assert "accept that with --helmbench-allow-gone, or with a new baseline" in failed.stdout.str()
        capsys.readouterr()
        assert main(["report", f"--db={'elsewhere/new' if len(options) > 1 else 'helmbench'}.db"]) == 0
        assert capsys.readouterr().out.startswith(f"## ✗ FAILS test/good on {name}: 6 cases are gone")
    allowed = ran("--helmbench-baseline=main.json", "--helmbench-allow-gone")
    capsys.readouterr()
    assert main(["report"]) == 0
    assert "cases are gone" not in capsys.readouterr().out
    assert allowed.ret == pytest.ExitCode.OK
    assert f"test/good on {name}: 6 cases are gone" in allowed.stdout.str()
    narrower = ran("suites/alpha", "--helmbench-baseline=main.json")
    assert narrower.ret == pytest.ExitCode.OK
    assert "cases are gone" not in narrower.stdout.str()


def test_shards_and_a_comparison_see_a_benchmark_that_is_gone_as_a_whole(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _three_benchmarks(pytester)
    provider.reply = lambda ask: "B" if "ANSWER: B" in ask.prompt else None
    model = (f"--helmbench-base-url={provider.url}", "--helmbench-model=test/good")

    def merged(name: str, *words: str) -> int:
        files = [f"{name}{index}.db" for index in (1, 2)]
        for index, file in enumerate(files, 1):
            run_pytest(pytester, *words, *model, f"--helmbench-shard={index}/2", f"--helmbench-db={file}")
        capsys.readouterr()
        return main(["merge", *files, "-o", f"{name}.db", "--gate"])

    assert run_pytest(pytester, "suites", *model).ret == pytest.ExitCode.OK
    assert main(["export", "last", "--format", "baseline", "-o", "main.json"]) == 0
    baseline = "--helmbench-baseline=main.json"
    assert merged("whole", "suites", baseline) == 0
    assert merged("selected", "suites", "-k", "alpha", baseline) == 0
    assert merged("narrower", "suites/alpha", baseline) == 0
    shutil.rmtree(folder / "beta")

    assert merged("fewer", "suites", baseline) == 1
    assert "✗ FAILS   test/good on beta: 6 cases are gone from the benchmark" in capsys.readouterr().out
    assert main(["report", "--db=fewer.db"]) == 0
    assert "✗ FAILS test/good on beta" in capsys.readouterr().out
    assert merged("allowed", "suites", baseline, "--helmbench-allow-gone") == 0
    assert main(["compare", "1", "fewer.db"]) == 2
    assert "the candidate has no run of beta" in capsys.readouterr().out


def test_two_runs_of_one_session_are_compared_without_its_other_benchmarks(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    _three_benchmarks(pytester)
    provider.reply = lambda ask: "B" if "ANSWER: B" in ask.prompt else None
    models = [f"--helmbench-model=test/{name}" for name in ("a", "b")]
    run_pytest(pytester, "suites", f"--helmbench-base-url={provider.url}", *models)
    stored = rows(pytester.path / "helmbench.db", "SELECT id FROM evaluation_runs ORDER BY benchmark_id, id")
    first, second = (str(run_id) for (run_id,) in stored[:2])
    capsys.readouterr()

    assert main(["compare", first, second]) == 0
    assert "the candidate has no run" not in capsys.readouterr().out


def test_a_benchmark_that_a_selection_leaves_out_is_not_gone(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _three_benchmarks(pytester)
    provider.reply = lambda ask: "B" if "ANSWER: B" in ask.prompt else None
    model = (f"--helmbench-base-url={provider.url}", "--helmbench-model=test/good")
    run_pytest(pytester, "suites", *model)

    selected = run_pytest(pytester, "suites", "-k", "alpha", "--helmbench-baseline=1", *model)

    assert selected.ret == pytest.ExitCode.OK
    assert "cases are gone" not in selected.stdout.str()
