"""Addresses and names of variables: those in a benchmark's models.yml are used when the user has said so."""

from __future__ import annotations

from pathlib import Path

import pytest
from inner_pytest import run_pytest
from pack_rows import choice
from packs import write_pack
from provider import Provider
from trees import category, clear_environment, judged, rows, write_tree

_TOKEN = "ghp-value-of-the-token"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)
    monkeypatch.setenv("GITHUB_TOKEN", _TOKEN)


def _write(folder: Path, models: str, kind: str = "tree") -> Path:
    if kind == "tree":
        write_tree(folder, {"P1-B1-S1": category("RISK")})
    else:
        write_pack(folder, [choice("q1")])
    (folder / "models.yml").write_text(models)
    return folder / "models.yml"


def _is_refused(result: pytest.RunResult, provider: Provider, *said: str) -> None:
    shown = result.stdout.str() + result.stderr.str()
    assert result.ret != pytest.ExitCode.OK
    assert provider.count == 0
    assert _TOKEN not in shown
    for text in said:
        assert text in shown


@pytest.mark.parametrize("kind", ["tree", "pack"])
def test_a_benchmark_sends_no_variable_to_a_server_of_its_own(
    pytester: pytest.Pytester, provider: Provider, kind: str
) -> None:
    models = f"models:\n  - id: a/b\n    base_url: {provider.url}\n    api_key_env: GITHUB_TOKEN\n"
    _write(pytester.path / "benchmark", models, kind)

    for options in ((), ("--helmbench-model=a/b",), ("--helmbench-model=a/b", "-n2")):
        _is_refused(
            run_pytest(pytester, "benchmark", *options),
            provider,
            "models.yml:3: a benchmark does not decide where prompts and keys go:"
            f" a/b at {provider.url} with the key in GITHUB_TOKEN",
            "hint: if you want that, --helmbench-models-file=",
            "or, for one session, -o helmbench_trusted=benchmark",
        )


@pytest.mark.parametrize(
    "options",
    [
        ("--helmbench-models-file=benchmark/models.yml",),
        ("-o", "helmbench_trusted=benchmark"),
        ("--helmbench-base-url={url}/",),
        ("--helmbench-model=other/model", "--helmbench-base-url={other}"),
    ],
    ids=["file", "trusted", "address", "not-asked"],
)
def test_what_the_user_has_named_is_used(
    pytester: pytest.Pytester, provider: Provider, options: tuple[str, ...]
) -> None:
    models = f"- {{id: a/b, base_url: '{provider.url}', api_key_env: GITHUB_TOKEN}}\n"
    _write(pytester.path / "benchmark", models)
    other = provider.url.replace("127.0.0.1", "localhost")

    given = (option.format(url=provider.url, other=other) for option in options)
    result = run_pytest(pytester, "benchmark", *given)

    result.assert_outcomes(passed=1)
    [request] = provider.requests
    is_other = request.body["model"] == "other/model"
    assert request.headers.get("authorization") == (None if is_other else f"Bearer {_TOKEN}")


def test_a_variable_alone_is_refused_unless_the_user_names_it(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _write(pytester.path / "benchmark", "- id: a/b\n- id: c/d\n  api_key_env: GITHUB_TOKEN\n")
    run = ("benchmark", f"--helmbench-base-url={provider.url}")

    _is_refused(
        run_pytest(pytester, *run), provider, "models.yml:3: ", f"c/d at {provider.url} with the key in"
    )
    run_pytest(pytester, *run, "--helmbench-model=a/b").assert_outcomes(passed=1)
    run_pytest(pytester, *run, "--helmbench-api-key-env=GITHUB_TOKEN").assert_outcomes(passed=2)


def test_the_judge_of_a_benchmark_has_no_address_of_its_own(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged("x")})
    (folder / "models.yml").write_text(
        f"marking_model:\n  id: the/judge\n  api_key_env: GITHUB_TOKEN\n  base_url: '{provider.url}'\n"
    )
    run = ("benchmark", "--helmbench-model=test/good")
    base = f"--helmbench-base-url={provider.url}"
    marking = f"--helmbench-marking-base-url={provider.url}"

    other = base.replace("127.0.0.1", "localhost")
    _is_refused(run_pytest(pytester, *run, other), provider, "models.yml:4: ", "the/judge at ")
    run_pytest(pytester, *run, base, marking).assert_outcomes(passed=1)


def test_a_pack_inside_of_a_benchmark_is_no_more_trusted_than_the_benchmark(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _write(pytester.path / "benchmark", f"- {{id: a/b, base_url: '{provider.url}'}}\n")
    write_pack(pytester.path / "benchmark" / "packs" / "quiz", [choice("q1")])
    _is_refused(run_pytest(pytester, "benchmark/packs/quiz"), provider, "models.yml:1: ")


def test_prices_sampling_and_limits_of_a_benchmark_are_data(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _write(pytester.path / "benchmark", "- {id: a/b, temperature: 0.25, price: {input: 1, output: 1}}\n")
    run_pytest(pytester, "benchmark", f"--helmbench-base-url={provider.url}").assert_outcomes(passed=1)
    assert provider.requests[0].body["temperature"] == 0.25


@pytest.mark.parametrize("models_file", [None, "benchmark/models.yml"])
def test_under_a_budget_a_benchmark_cannot_call_a_model_cheaper_than_the_list(
    pytester: pytest.Pytester, provider: Provider, models_file: str | None
) -> None:
    _write(pytester.path / "benchmark", "- {id: openai/gpt-4o-mini, price: {input: 0, output: 0}}\n")
    named = () if models_file is None else (f"--helmbench-models-file={models_file}",)
    run = ("benchmark", f"--helmbench-base-url={provider.url}", *named)

    result = run_pytest(pytester, *run, "--helmbench-max-cost=0.000001")

    if models_file is None:
        _is_refused(result, provider, "--helmbench-max-cost")
        run_pytest(pytester, *run).assert_outcomes(passed=1)
    else:
        result.assert_outcomes(passed=1)


def test_under_a_budget_no_name_of_a_benchmark_makes_a_server_of_the_users_free(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _write(pytester.path / "benchmark", "- id: lmstudio/gpt-5-pro\n")
    run = ("benchmark", f"--helmbench-base-url={provider.url}")

    _is_refused(
        run_pytest(pytester, *run, "--helmbench-max-cost=1"),
        provider,
        "a benchmark does not decide what is free: lmstudio/gpt-5-pro",
        "hint: --helmbench-model=lmstudio/gpt-5-pro allows it",
    )
    run_pytest(pytester, *run).assert_outcomes(passed=1)
    named = "--helmbench-model=lmstudio/gpt-5-pro"
    run_pytest(pytester, *run, "--helmbench-max-cost=1", named).assert_outcomes(passed=1)


def test_an_address_of_the_environment_is_the_users_own(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/")
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-openai")
    monkeypatch.setenv("OPENROUTER_API_KEY", "key-of-the-router")
    host = provider.url.removeprefix("http://").removesuffix("/v1")

    result = run_pytest(pytester, "benchmark", "--helmbench-model=openai/gpt-x")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [f"helmbench: openai/gpt-x: *; prompts go to {host} with the key in OPENAI_API_KEY"]
    )
    [request] = provider.requests
    assert request.body["model"] == "gpt-x"
    assert request.headers["authorization"] == "Bearer key-of-openai"
    assert b"key-of-openai" not in (pytester.path / "helmbench.db").read_bytes()
    assert rows(pytester.path / "helmbench.db", "SELECT base_url FROM llms") == [(provider.url,)]


def test_options_win_over_the_address_of_the_environment(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-openai")
    options = (f"--helmbench-base-url={provider.url}", "--helmbench-api-key-env=GITHUB_TOKEN")

    result = run_pytest(pytester, "benchmark", "--helmbench-model=openai/gpt-x", *options)

    result.assert_outcomes(passed=1)
    assert provider.requests[0].headers["authorization"] == f"Bearer {_TOKEN}"
    result.stdout.fnmatch_lines(["helmbench: *; prompts go to * with the key in GITHUB_TOKEN"])


@pytest.mark.parametrize("role", ["models:\n  - ", "marking_model:\n    "])
def test_the_name_of_a_floor_hides_no_address(
    pytester: pytest.Pytester, provider: Provider, role: str
) -> None:
    name = "baseline/lexical" if role.startswith("models") else "baseline/first"
    indent = "    "
    models = (
        f"{role}id: {name}\n{indent}url: {provider.url}/chat/completions\n{indent}api_key_env: GITHUB_TOKEN\n"
    )
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged("x")})
    (folder / "models.yml").write_text(models)
    asked = "baseline/lexical" if role.startswith("models") else "test/good"

    result = run_pytest(
        pytester, "benchmark", f"--helmbench-model={asked}", f"--helmbench-base-url={provider.url}"
    )
    _is_refused(result, provider, "models.yml:3: ", f"{name} at {provider.url}/chat/completions")


@pytest.mark.parametrize("field", ["api_base", "model", "fallbacks", "messages"])
def test_what_a_benchmark_adds_to_requests_names_nobody_else(
    pytester: pytest.Pytester, provider: Provider, field: str
) -> None:
    models = f"- id: a/b\n  extra_body: {{{field}: x, provider: {{sort: price}}}}\n"
    file = _write(pytester.path / "benchmark", models)
    run = ("benchmark", f"--helmbench-base-url={provider.url}")

    said = f"a benchmark does not decide who answers what: extra_body.{field} of a/b would have"
    _is_refused(run_pytest(pytester, *run), provider, "models.yml:1: ", said)
    run_pytest(pytester, *run, "--helmbench-model=c/d").assert_outcomes(passed=1)
    file.write_text("- id: a/b\n  extra_body: {provider: {sort: price}, top_k: 3}\n")
    run_pytest(pytester, *run).assert_outcomes(passed=1)
    assert provider.requests[-1].body["provider"] == {"sort": "price"}


def test_a_link_in_a_benchmark_quotes_nothing_of_the_users_file(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    file = _write(pytester.path / "benchmark", "")
    file.unlink()
    file.symlink_to(pytester.path / "private")
    (pytester.path / "private").write_text(f"{_TOKEN}: x\n")
    run = ("benchmark", f"--helmbench-base-url={provider.url}", "--helmbench-model=a/b")

    _is_refused(
        run_pytest(pytester, *run), provider, "models.yml: the file cannot be read: a link leads out of"
    )
    (pytester.path / "private").write_text("- id: a/b\n")
    run_pytest(pytester, *run, "--helmbench-models-file=benchmark/models.yml").assert_outcomes(passed=1)


@pytest.mark.parametrize("given", [(), ("-o", "helmbench_trusted=benchmark")])
def test_under_a_budget_a_benchmark_cannot_price_a_model_that_no_list_knows(
    pytester: pytest.Pytester, provider: Provider, given: tuple[str, ...]
) -> None:
    _write(pytester.path / "benchmark", "- {id: dear/model, price: {input: 0, output: 0}}\n")
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 6)})
    provider.cost_usd = None
    run = ("benchmark", f"--helmbench-base-url={provider.url}", *given)

    result = run_pytest(pytester, *run, "--helmbench-max-cost=1")

    if given:
        result.assert_outcomes(passed=6)
    else:
        assert provider.count == 1
        result.stdout.fnmatch_lines(
            ["*--helmbench-models-file*", "*cannot be held: dear/model has no known price*"]
        )
        run_pytest(pytester, *run).assert_outcomes(passed=6)


def test_only_models_of_openai_follow_its_variable(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    run_pytest(pytester, "benchmark", "--helmbench-model=a/b").assert_outcomes(skipped=1)
    run = run_pytest(pytester, "benchmark", "--helmbench-model=baseline/first")
    run.assert_outcomes(passed=1)
    run.stdout.no_fnmatch_line("*prompts go to*")
    assert provider.count == 0
