"""What a session says is what is so: keys, gates, budgets, recorded replies, neutral cases, folders that are none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from packs import write_pack
from provider import Provider
from trees import MODEL, Part, category, clear_environment, run_tree, write_tree

from pytest_helmbench.cli.main import main


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def test_a_variable_that_is_not_set_is_named(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    provider.answers(status=401)
    result = run_tree(pytester, "--helmbench-api-key-env=NOPE", url=provider.url)
    said = "the variable NOPE is not set, or empty"
    result.stdout.fnmatch_lines([f"helmbench: *; prompts go to * with no key: {said}"])
    result.stdout.fnmatch_lines([f"*no key was sent: {said}*"])
    for pasted in ("sk-0123456789abcdef", "gsk_0123456789abcdefghijkl"):
        for options in ((), ("--helmbench-model=openai/gpt-4o-mini",)):
            where = provider.url if not options else ""
            words = run_tree(pytester, f"--helmbench-api-key-env={pasted}", *options, url=where).stdout.str()
            assert pasted not in words
            assert "looks like a key: name the variable that has it" in words
    assert "name its variable" not in result.stdout.str()


def test_a_gate_has_one_way_of_rounding(pytester: pytest.Pytester, provider: Provider) -> None:
    answers = ["RISK"] * 2 + ["CALM"]
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*answers)})
    result = run_tree(pytester, "--helmbench-min-score=0.66667", url=provider.url)
    (line,) = (line for line in result.outlines if line.startswith("gate "))
    assert "score 0.666667 [" in line
    assert "], threshold 0.666670: does not hold: the score of the run is below it" in line


def test_a_budget_that_pays_nothing_is_not_spent(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})
    provider.cost_usd = 0.0005
    prices = "- id: test/good\n  max_tokens: 4\n  price: {input: 1, output: 100}\n"
    (pytester.path / "models.yml").write_text(prices)
    result = run_tree(
        pytester,
        "--helmbench-models-file=models.yml",
        "--helmbench-max-cost=0.0012",
        "-rs",
        url=provider.url,
    )
    output = result.stdout.str()
    assert "0.0000 of" not in output
    assert "budget spent: 0.00050 of 0.0012 USD, the call may cost 0.000" in output


def test_replies_on_record_are_not_announced_as_calls(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})
    run_tree(pytester, url=provider.url)
    result = run_tree(pytester, "--helmbench-cache=reuse", url=provider.url)
    result.stdout.fnmatch_lines(
        ["helmbench: *: 2 cases, at most 2 calls, fewer where replies are on record (*"]
    )
    assert provider.count == 2


def test_neutral_cases_are_told_apart_from_failed_ones(pytester: pytest.Pytester, provider: Provider) -> None:
    tree = category("RISK", "CALM")
    parts = {**tree.perturbations, "PT2": Part(tree.perturbations["PT2"].body, 0)}
    tree = replace(tree, perturbations=parts)
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": tree})
    result = run_tree(pytester, url=provider.url)
    result.assert_outcomes(passed=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            f"{MODEL}: 1 wrong neutral case (severity 0): among the failed of this table, xfailed to pytest, ignored*"
        ]
    )


@pytest.mark.parametrize("name", ["benchmark-quiz", "benchmark-quiz/tasks.jsonl"])
def test_a_folder_that_was_meant_as_a_pack_is_a_usage_error(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    write_pack(pytester.path / "benchmark-quiz", [], 'id: quiz\nversion: "1"\n')
    result = run_tree(pytester, name, url=provider.url)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"*{name}: what stands there was meant as a benchmark*",
            "*benchmark-quiz/manifest.yaml:2: version: '1' is no whole number",
            "*hint: without quotes: 1",
        ]
    )
    capsys.readouterr()
    assert main(["list", "--benchmark", name]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"helmbench: {name}: what stands there was meant as a benchmark, but cannot be read as one",
        f"{pytester.path}/benchmark-quiz/manifest.yaml:2: version: '1' is no whole number",
        "  hint: without quotes: 1",
    ]
