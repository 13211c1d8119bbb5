"""Dry runs, keys, prices and budgets: what is called, what it may cost, and how the session ends."""

from __future__ import annotations

from itertools import pairwise

import pytest
from provider import Provider
from trees import category, judged, rows, run_tree, write_tree

_NO_KEY = "neither OPENROUTER_API_KEY nor OPENAI_API_KEY is set"
_COSTLY = "- id: test/good\n  price: {input: 0, output: 10000}\n  max_tokens: 10\n"  # 0.1 USD per reply


def _table(result: pytest.RunResult, model: str) -> list[str]:
    return next(line for line in result.outlines if line.startswith(f"{model} ")).split()[1:]


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_without_a_usable_model_everything_is_composed_priced_and_skipped(
    pytester: pytest.Pytester, mode: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM"), "P1-B1-S2": judged("x")})

    result = run_tree(
        pytester,
        "-q",
        "-rs",
        mode,
        "--helmbench-model=openai/gpt-4o-mini",
        "--helmbench-marking-model=nobody/knows",
    )

    result.assert_outcomes(skipped=3)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            f"helmbench: dry run ({_NO_KEY}): 3 cases are composed, nothing is called",
            "=* benchmark · 3 cases × 1 model · dry run =*",
            " *prompts *judge calls *tokens *USD low *expected *high",
            "openai/gpt-4o-mini *",
            "every prompt was composed, nothing was called, nothing was stored",
            "next         set OP*_API_KEY: then the same command calls the model",
            "SKIPPED * dry run",
        ]
    )
    assert result.stdout.str().count(_NO_KEY) == 1
    prompts, judge_calls, tokens, *price = _table(result, "openai/gpt-4o-mini")
    assert (prompts, judge_calls, price) == ("3", "1", ["unknown"] * 3)
    assert int(tokens.removeprefix("~")) > 75
    assert not (pytester.path / "helmbench.db").exists()


def test_a_dry_run_that_was_asked_for_calls_nothing_and_knows_list_prices(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM")})
    (folder / "models.yml").write_text(
        f"- {{id: test/good, base_url: '{provider.url}', price: {{input: 1000, output: 1000}}, max_tokens: 100}}\n"
        "- id: openai/gpt-4o-mini\n"
    )
    monkeypatch.setenv("CI", "1")

    result = run_tree(pytester, "--helmbench-dry-run", "--helmbench-models-file=benchmark/models.yml")

    result.assert_outcomes(skipped=4)
    assert result.ret == pytest.ExitCode.OK
    assert provider.count == 0
    assert not (pytester.path / "helmbench.db").exists()
    result.stdout.fnmatch_lines(
        [
            "helmbench: dry run (as asked for)*",
            "every prompt was composed, nothing was called*",
            "next         the same command without --helmbench-dry-run calls the model",
        ]
    )
    _, _, tokens, *own = _table(result, "test/good")
    prompt_usd = int(tokens.removeprefix("~")) / 1000
    completions = (2 * 20 / 1000, 2 * 100 / 1000, 2 * 100 / 1000)
    assert own == [f"{prompt_usd + completion:.4f}" for completion in completions]
    low, expected, high = _table(result, "openai/gpt-4o-mini")[3:]
    assert low == "<0.0001"
    assert 0.0001 <= float(expected) < float(high) < 0.01


@pytest.mark.parametrize(
    ("options", "ci", "ending", "sentence"),
    [
        (
            ["--helmbench-model=openai/gpt-4o-mini"],
            "1",
            1,
            "nothing was judged: neither OPENROUTER_API_KEY nor",
        ),
        (["--helmbench-model", "a/b"], "1", 1, "nothing was judged: OPENROUTER_API_KEY is empty"),
        (
            ["--helmbench-model=a/b", "--helmbench-api-key-env=MINE"],
            "1",
            1,
            "nothing was judged: MINE is not set",
        ),
        (["--helmbench-model=a/b"], "", 0, "next         set OPENROUTER_API_KEY: then the same"),
        ([], "1", 0, "next         set OPENROUTER_API_KEY: then the same"),
        (["--helmbench-require-run"], "", 1, "nothing was judged: OPENROUTER_API_KEY is empty"),
        (
            ["--helmbench-require-run", "--helmbench-dry-run"],
            "",
            1,
            "nothing was judged (--helmbench-require-run)",
        ),
    ],
    ids=["ci", "ci-space", "ci-own-variable", "no-ci", "ci-models-file", "required", "required-dry"],
)
def test_a_run_in_which_nothing_was_judged_ends_as_the_place_demands(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    ci: str,
    ending: int,
    sentence: str,
) -> None:
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    (folder / "models.yml").write_text("- id: from/file\n")
    monkeypatch.setenv("OPENROUTER_API_KEY", "")
    monkeypatch.setenv("CI", ci)

    result = run_tree(pytester, "-q", *options)

    result.assert_outcomes(skipped=1)
    assert result.ret == ending
    assert sentence in result.stdout.str()


def test_models_without_a_key_are_skipped_beside_those_that_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK"), "P1-B1-S2": judged("x")})
    monkeypatch.setenv("CI", "1")

    result = run_tree(
        pytester,
        "-rs",
        "--helmbench-model=baseline/first",
        "--helmbench-model=a/b",
        "--helmbench-marking-model=baseline/first",
    )

    result.assert_outcomes(passed=3, skipped=3)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "helmbench: baseline/first: 6 cases, 4 calls*",
            "helmbench: a/b is skipped: OPENROUTER_API_KEY is not set",
            "  * · 1 answer of baseline/first stands in for a judge: not a judgement",
            "SKIPPED * a/b cannot be called: OPENROUTER_API_KEY is not set",
        ]
    )
    query = "SELECT outcome, reason, count(*) FROM results GROUP BY 1, 2 ORDER BY 1"
    assert rows(pytester.path / "helmbench.db", query) == [("passed", None, 3), ("skipped", "no_model", 3)]


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_a_run_above_the_agreed_price_stops_before_the_first_call(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK", "RISK")})
    (folder / "models.yml").write_text(_COSTLY)
    pytester.makefile(".ini", pytest="[pytest]\nhelmbench_ask_above = 0.25\nhelmbench_trusted = benchmark\n")

    result = run_tree(pytester, mode, url=provider.url)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert provider.count == 0
    assert not (pytester.path / "helmbench.db").exists()
    shown = result.stderr.str()
    assert (
        "ERROR: this run may cost 0.30 USD (0.30 to 0.30), more than helmbench_ask_above (0.25 USD)" in shown
    )
    assert "  hint: agree to a bound: --helmbench-max-cost=1" in shown
    assert "INTERNALERROR" not in result.stdout.str() + shown

    agreed = run_tree(pytester, mode, "--helmbench-max-cost=1", url=provider.url)
    agreed.assert_outcomes(passed=3)
    agreed.stdout.fnmatch_lines(["helmbench: test/good: 3 cases, 3 calls (32 at a time), about 0.3000 USD*"])


def test_a_budget_is_never_overspent_and_skips_what_it_cannot_pay(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 12)})
    (folder / "models.yml").write_text(_COSTLY)
    pytester.makefile(".ini", pytest="[pytest]\nhelmbench_trusted = benchmark\n")
    provider.cost_usd = None
    provider.latency_s = 0.02

    result = run_tree(pytester, "--helmbench-max-cost=0.55", "-rs", url=provider.url)

    result.assert_outcomes(passed=5, skipped=7)
    assert provider.count == 5
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "not judged   budget 7",
            "next         the same command with --helmbench-resume asks the 7 again",
            "SKIPPED * budget spent: 0.5000 of 0.5500 USD, the call may cost 0.1000",
            "✗ FAILS   test/good: the budget was spent: what it could not pay was skipped",
        ]
    )
    [(status, known)] = rows(
        pytester.path / "helmbench.db", "SELECT status, known_cost_usd FROM evaluation_runs"
    )
    assert status == "partial"
    assert known == pytest.approx(0.5)


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_a_budget_that_cannot_be_held_stops_the_session_after_one_call(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 8)})
    provider.cost_usd = None

    result = run_tree(pytester, mode, "--helmbench-max-cost=5", url=provider.url)

    assert provider.count == 1
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1, skipped=7)
    result.stdout.fnmatch_lines(
        [
            "next         give the model a `price:` in a models.yml of your own (--helmbench-models-file), or *",
            "✗ FAILS   test/good: --helmbench-max-cost cannot be held: test/good has no known price and its *",
        ]
    )


def test_with_an_unknown_price_one_call_goes_ahead_and_tells_what_the_others_cost(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 8)})
    provider.cost_usd = 0.1
    provider.latency_s = 0.2

    result = run_tree(pytester, "--helmbench-max-cost=0.45", url=provider.url)

    result.assert_outcomes(passed=4, skipped=4)
    # A longer reply may cost more than the budget: each goes alone, at the cost of calls so far.
    times = [request.at for request in provider.requests]
    assert all(later - earlier >= 0.2 for earlier, later in pairwise(times))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
