"""Providers' own words in a session: names of the bound, costs of a proxy, headers, prompts that a server has cut."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from inner_pytest import run_pytest
from provider import Answer, Provider, Request
from trees import RESPONSE_SCHEMA, Part, Tree, category, judged, rows, run_tree, write_tree

_every_way = pytest.mark.parametrize("mode", ["-n0", "-n2"])


def _rows(pytester: pytest.Pytester, query: str) -> list[tuple[Any, ...]]:
    return rows(pytester.path / "helmbench.db", query)


def _refusal(code: str, message: str, **more: str) -> Answer:
    return Answer(status=400, body={"error": {"message": message, "code": code, **more}})


@_every_way
def test_a_refused_json_of_the_model_is_judged_as_its_reply(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "cut", "other", "none")})
    written = {"cut": '{"category": "RI', "other": '{"response": "x", "category": "BLUE"}', "none": ""}

    def reply(request: Request) -> Answer | None:
        text = next((text for word, text in written.items() if f"ANSWER: {word}" in request.prompt), None)
        return None if text is None else _refusal("json_validate_failed", "No JSON.", failed_generation=text)

    provider.reply = reply
    result = run_tree(pytester, mode, url=provider.url)
    result.assert_outcomes(passed=1, failed=3)
    found = dict(_rows(pytester, "SELECT perturbation, reason FROM v_results WHERE outcome = 'failed'"))
    assert found["PT2"] == "invalid_json"
    assert found["PT3"] == "schema_violation"
    asked = provider.count
    run_tree(pytester, "--helmbench-cache=only", url=provider.url).assert_outcomes(passed=1, failed=3)
    assert provider.count == asked


@pytest.mark.parametrize(
    "body",
    [
        {
            "message": "Unsupported parameter: 'max_tokens' is not supported with this model."
            " Use 'max_completion_tokens' instead.",
            "param": "max_tokens",
            "code": "unsupported_parameter",
        },
        {"message": "Unrecognized request argument supplied: max_tokens", "type": "invalid_request_error"},
    ],
)
def test_a_bound_by_another_name_is_asked_for_once_in_a_session(
    pytester: pytest.Pytester, provider: Provider, body: Mapping[str, str]
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 4)})
    provider.reply = lambda request: (
        Answer(status=400, body={"error": body}) if "max_tokens" in request.body else None
    )
    options = ("-n0", "--helmbench-max-tokens=100", "--helmbench-max-retries=0", "--helmbench-concurrency=1")
    run_tree(pytester, *options, url=provider.url).assert_outcomes(passed=4)
    names = [[name for name in request.body if name.startswith("max_")] for request in provider.requests]
    assert names == [["max_tokens"], *[["max_completion_tokens"]] * 4]
    assert provider.requests[1].body["max_completion_tokens"] == 100
    # The name is no other question: the record answers it by the first one.
    run_tree(pytester, *options, "--helmbench-cache=reuse", url=provider.url).assert_outcomes(passed=4)
    assert provider.count == 5
    # With two workers the message comes once, too.
    run_tree(pytester, *options[1:], "-n2", url=provider.url).assert_outcomes(passed=4)
    assert sum("max_tokens" in request.body for request in provider.requests) == 2


def test_a_bound_that_is_too_large_is_no_other_name(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    message = "'max_tokens' or 'max_completion_tokens' is too large: 9999"
    provider.reply = lambda _request: _refusal("BadRequestError", message)
    options = ("--helmbench-max-tokens=9999", "--helmbench-max-retries=0")
    run_tree(pytester, *options, url=provider.url).assert_outcomes(errors=1)
    assert provider.count == 1


def test_a_proxys_cost_is_that_of_the_call_and_of_the_part_that_goes_on(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    cheap = Tree(("evaluation: {type: cost_below, usd: 0.01}",), RESPONSE_SCHEMA, {"PT1": Part("Hello.", 3)})
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK"), "P1-B1-S2": cheap})
    provider.cost_usd = None
    headers = {"x-litellm-response-cost": "0.0125"}
    provider.answers(headers=headers)
    # A reply that another run has paid is judged by that price, though it costs nothing now.
    for _ in range(2):
        done = run_tree(pytester, "--helmbench-cache=reuse", model="openai/gpt-4o", url=provider.url)
        done.assert_outcomes(passed=2, failed=1)
    costs = "SELECT run_id, cost_usd FROM v_results GROUP BY 1, 2"
    assert _rows(pytester, costs) == [(1, 0.0125), (2, 0.0)]
    assert _rows(pytester, "SELECT round(cost_usd, 9) FROM evaluation_runs") == [(0.0375,), (0.0,)]


def _models(url: str, *more: str) -> str:
    return "\n".join(
        ("models:", "  - id: a/b", f"    base_url: {url}", *(f"    {line}" for line in more), "")
    )


def test_extra_headers_and_a_query_go_with_every_request(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECOND_KEY", "second-key-0123456789")
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    lines = ("extra_headers: {X-Team: red, X-Pass: 'Bearer ${SECOND_KEY}'}",)
    (pytester.path / "own.yml").write_text(_models(f"{provider.url}?api-version=7", *lines))
    provider.answers(text='{"response": "second-key-0123456789", "category": "RISK"}')

    result = run_tree(pytester, "-n0", "--helmbench-models-file=own.yml", "-v")

    result.assert_outcomes(passed=1)
    (request,) = provider.requests
    assert request.path == "/v1/chat/completions?api-version=7"
    assert (request.headers["x-team"], request.headers["x-pass"]) == ("red", "Bearer second-key-0123456789")
    assert b"second-key" not in b"".join(path.read_bytes() for path in pytester.path.glob("helmbench.db*"))
    monkeypatch.delenv("SECOND_KEY")
    result = run_tree(pytester, "-n0", "--helmbench-models-file=own.yml")
    result.assert_outcomes(skipped=1)
    assert "SECOND_KEY is not set" in result.stdout.str()


def test_a_benchmark_states_no_headers(pytester: pytest.Pytester, provider: Provider) -> None:
    root = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    lines = "models:\n  - id: a/b\n    extra_headers: {X-Team: '${HOME}'}\n"
    (root / "models.yml").write_text(lines)
    result = run_tree(pytester, model="a/b", url=provider.url)
    assert result.ret != pytest.ExitCode.OK
    said = f"models.yml:3: a benchmark does not decide where prompts and keys go: a/b at {provider.url}"
    assert f"{said} with the headers x-team" in result.stderr.str()
    assert provider.count == 0


_LONG = "The pupil asks why the water in the beaker turned blue. " * 250  # 14,000 characters


def _stated(tokens: int) -> Mapping[str, int]:
    return {"prompt_tokens": tokens, "completion_tokens": 5}


def _long(path: Path, words: str) -> None:
    tree = category("RISK", "RISK", conditions={"C1": Part(f"## Background\n\n{words}")})
    write_tree(path, {"P1-B1-S1": tree})


@_every_way
def test_a_prompt_that_the_server_cut_is_the_first_caution_everywhere(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    _long(pytester.path / "benchmark", _LONG)
    provider.answers(text='some words {"response": "x", "category": "RISK"}', usage=_stated(500))
    files = ("--helmbench-markdown=r.md", "--helmbench-html=r.html", "--helmbench-json=r.json")

    result = run_tree(pytester, mode, *files, url=provider.url)

    result.assert_outcomes(passed=2)
    said = r"its server has cut 2 prompts: 1,000 tokens counted in 28,\d{3} characters; raise"
    (place,) = (n for n, line in enumerate(result.outlines) if re.match(f"test/good: {said}", line))
    others = [n for n, line in enumerate(result.outlines) if "JSON recovered 2 times" in line]
    assert place < min(others)
    lines = (pytester.path / "r.md").read_text().splitlines()
    assert re.match(f"> - {said}", lines[lines.index("> [!WARNING]") + 1])
    warnings = json.loads((pytester.path / "r.json").read_text())["runs"][0]["warnings"]
    assert re.match(said, warnings[0])
    page = (pytester.path / "r.html").read_text()
    assert page.index("its server has cut 2 prompts") < page.index("JSON recovered 2 times")


@pytest.mark.parametrize(("words", "tokens"), [(_LONG, 1_000), (_LONG[:7_000], 10), ("短" * 9_000, 600)])
def test_a_prompt_that_may_have_been_read_whole_is_no_caution(
    pytester: pytest.Pytester, provider: Provider, words: str, tokens: int
) -> None:
    _long(pytester.path / "benchmark", words)
    provider.answers(text='{"response": "x", "category": "RISK"}', usage=_stated(tokens))
    result = run_tree(pytester, url=provider.url)
    result.assert_outcomes(passed=2)
    assert "has cut" not in result.stdout.str()


def test_a_judges_prompt_that_was_cut_names_the_judge(pytester: pytest.Pytester, provider: Provider) -> None:
    tree = judged("RISK", conditions={"C1": Part(f"## Background\n\n{_LONG}")})
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": tree})
    provider.answers(when=lambda request: request.is_judge, usage=_stated(90))
    result = run_tree(pytester, "--helmbench-marking-model=test/judge", url=provider.url)
    assert "its server has cut 1 prompt of the judge test/judge: 90 tokens" in result.stdout.str()


def test_check_names_headers_that_are_not_free(pytester: pytest.Pytester) -> None:
    lines = "extra_headers:\n      X-Api-Key: plain-text-key-123\n      Content-Length: '1'"
    (pytester.path / "own.yml").write_text(_models("http://127.0.0.1:9/v1", lines))
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    result = run_pytest(pytester, "benchmark", "--helmbench-models-file=own.yml")
    shown = result.stdout.str() + result.stderr.str()
    assert "the header 'x-api-key' holds what looks like a key" in shown
    assert "the header 'content-length' is made here" in shown
    assert "plain-text-key" not in shown
