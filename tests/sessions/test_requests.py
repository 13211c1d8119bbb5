"""Requests that arrive at the provider: exact bodies, keys, and their number."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from provider import Provider
from trees import (
    CATEGORY_SCHEMA,
    category,
    judged,
    rows,
    run_tree,
    write_tree,
)

_PROMPT = """\
<task>
Sort the message.
</task>

<tone>
Be calm.
</tone>

<users_input>
Message 1.

ANSWER: RISK
</users_input>"""

_FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "P1-B1-S1", "strict": True, "schema": CATEGORY_SCHEMA},
}


_SAMPLING = (
    "--helmbench-temperature=0.7",
    "--helmbench-top-p=0.9",
    "--helmbench-top-k=40",
    "--helmbench-min-p=0.05",
    "--helmbench-repetition-penalty=1.1",
    "--helmbench-seed=7",
    "--helmbench-max-tokens=99",
    "--helmbench-reasoning-effort=low",
    '--helmbench-extra-body={"logit_bias": {"5": -1}}',
)
_SAMPLING_SENT = {
    "temperature": 0.7,
    "top_p": 0.9,
    "top_k": 40,
    "min_p": 0.05,
    "repetition_penalty": 1.1,
    "seed": 7,
    "max_tokens": 99,
    "reasoning_effort": "low",
    "logit_bias": {"5": -1},
}


def test_a_case_is_sent_as_composed_and_nothing_that_was_not_set(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})

    run_tree(pytester, url=provider.url).assert_outcomes(passed=1)

    [request] = provider.requests
    assert request.path == "/v1/chat/completions"
    assert request.body == {
        "model": "test/good",
        "messages": [{"role": "user", "content": _PROMPT}],
        "response_format": _FORMAT,
    }
    # The order of properties is part of the question.
    assert list(request.body["response_format"]["json_schema"]["schema"]["properties"]) == [
        "response",
        "category",
    ]
    assert "authorization" not in request.headers
    assert request.headers["content-type"] == "application/json"
    [(body,)] = rows(pytester.path / "helmbench.db", "SELECT body FROM requests")
    assert bytes(body) == request.raw


def test_sampling_options_go_to_the_model_and_never_to_the_judge(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged("fine")})
    (pytester.path / "system.txt").write_text("You are the product.\n")

    result = run_tree(
        pytester,
        *_SAMPLING,
        "--helmbench-repeat=2",
        "--helmbench-system-prompt=system.txt",
        "--helmbench-marking-model=test/judge",
        "-n0",
        "--helmbench-concurrency=1",
        url=provider.url,
    )

    result.assert_outcomes(passed=2)
    own = [request for request in provider.requests if not request.is_judge]
    judges = [request for request in provider.requests if request.is_judge]
    for repetition, request in enumerate(own, 1):
        sent = dict(request.body)
        system, user = sent.pop("messages")
        assert system == {"role": "system", "content": "You are the product."}
        assert user["role"] == "user"
        assert sent.pop("response_format")["json_schema"]["strict"] is True
        assert sent == {**_SAMPLING_SENT, "model": "test/good", "seed": 6 + repetition}
    assert len(judges) == 2
    for request in judges:
        assert set(request.body) == {"model", "messages", "response_format", "temperature", "max_tokens"}
        assert request.body["model"] == "test/judge"
        assert (request.body["temperature"], request.body["max_tokens"]) == (0, 1_024)
        [message] = request.body["messages"]
        assert "How good is it? All in all." in message["content"]
        assert "You are the product." not in message["content"]
        assert re.search(r"BEGIN reply ([0-9a-f]{16})\nfine\nEND reply \1", message["content"])
        schema = request.body["response_format"]["json_schema"]["schema"]
        assert schema["properties"]["judgment"]["enum"] == ["GOOD", "MIDDLING", "BAD"]
    [(settings,)] = rows(pytester.path / "helmbench.db", "SELECT settings FROM evaluation_runs")
    assert "You are the product." not in settings
    assert json.loads(settings)["sampling"]["seed"] == 7


def test_models_yml_gives_values_that_options_go_before(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = replace(judged("x"), schema=None)
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK"), "P1-B1-S2": plain})
    (folder / "models.yml").write_text(
        f"marking_model: {{id: the/judge, base_url: '{provider.url}', temperature: 0.2}}\n"
        "models:\n"
        f"  - {{id: first/one, base_url: '{provider.url}', api_key_env: FIRST_KEY, temperature: 1, top_p: 0.5}}\n"
        f"  - {{id: ollama/small, base_url: '{provider.url}'}}\n"
    )
    monkeypatch.setenv("FIRST_KEY", "key-of-the-first")

    result = run_tree(pytester, "--helmbench-temperature=0.1", "--helmbench-models-file=benchmark/models.yml")

    result.assert_outcomes(passed=4)
    by_model = {request.model: request for request in provider.requests if not request.is_judge}
    assert set(by_model) == {"first/one", "small"}
    assert sum("response_format" not in request.body for request in provider.requests) == 2
    assert by_model["first/one"].body["temperature"] == 0.1
    assert by_model["first/one"].body["top_p"] == 0.5
    assert by_model["first/one"].headers["authorization"] == "Bearer key-of-the-first"
    assert by_model["small"].body["temperature"] == 0.1
    assert "top_p" not in by_model["small"].body
    assert "authorization" not in by_model["small"].headers
    judges = [request for request in provider.requests if request.is_judge]
    assert {request.body["temperature"] for request in judges} == {0.2}
    assert b"key-of-the-first" not in (pytester.path / "helmbench.db").read_bytes()


def test_the_key_that_is_sent_is_the_one_that_was_named(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    for name in ("NAMED", "HELMBENCH_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.setenv(name, f"key-{name}")

    run_tree(pytester, "--helmbench-api-key-env=NAMED", url=provider.url)
    run_tree(pytester, url=provider.url)
    monkeypatch.setenv("HELMBENCH_API_KEY", "")
    run_tree(pytester, url=provider.url)

    assert [request.headers.get("authorization") for request in provider.requests] == [
        "Bearer key-NAMED",
        "Bearer key-HELMBENCH_API_KEY",
        None,
    ]


def test_the_session_keeps_to_its_limits_over_all_workers(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 40)})
    provider.latency_s = 0.05

    run_tree(pytester, "-n2", "--helmbench-concurrency=5", url=provider.url).assert_outcomes(passed=40)

    assert provider.count == 40
    assert provider.max_in_flight == 5
