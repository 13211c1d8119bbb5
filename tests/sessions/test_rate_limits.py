"""Providers that limit, pause or hang: what all cases wait for is waited for once."""

from __future__ import annotations

import itertools
import time
from typing import Any
from xml.etree import ElementTree

import pytest
from provider import Provider, Request
from trees import category, clear_environment, judged, rows, run_tree, write_tree

_MODES = pytest.mark.parametrize("mode", ["-n0", "-n2"])


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def _seconds(pytester: pytest.Pytester, provider: Provider, *options: str) -> tuple[pytest.RunResult, float]:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 120)})
    started = time.monotonic()
    result = run_tree(pytester, *options, url=provider.url)
    return result, time.monotonic() - started


@_MODES
def test_a_provider_that_only_asks_for_pauses_ends_its_model_with_the_reason(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    provider.answers(status=429, retry_after=3)

    result, seconds = _seconds(pytester, provider, mode, "--helmbench-case-timeout=5")

    result.assert_outcomes(skipped=120)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert seconds < 60  # one pause; it was one after the other, each case in its own time
    assert "it asks for a pause of 3 s, after 3 s without a reply; a case may take 5 s" in result.stdout.str()
    found = rows(pytester.path / "helmbench.db", "SELECT DISTINCT reason FROM results")
    assert found == [("model_stopped",)]


@pytest.mark.parametrize("role", ["model", "judge"])
def test_a_skip_says_first_that_the_model_was_stopped(
    pytester: pytest.Pytester, provider: Provider, role: str
) -> None:
    tree = category("RISK") if role == "model" else judged("fine")
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": tree})
    provider.answers(status=429, retry_after=3600, when=lambda ask: ask.is_judge is (role == "judge"))
    options = ("-rs", "-v", "--helmbench-marking-model=test/judge", "--junitxml=junit.xml")

    result = run_tree(pytester, *options, url=provider.url)

    result.assert_outcomes(skipped=1)
    why = f"not judged, since the {role} was stopped: the provider answered 429 ("
    (short,) = [line for line in result.outlines if line.startswith("SKIPPED")]
    assert why in short
    (skipped,) = ElementTree.parse(pytester.path / "junit.xml").iter("skipped")
    assert str(skipped.get("message")).startswith(why)


def test_a_provider_that_limits_now_and_then_fails_no_case(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    provider.answers(times=20, status=429, retry_after=2)

    result, seconds = _seconds(pytester, provider, "--helmbench-case-timeout=3")

    result.assert_outcomes(passed=120)
    assert seconds < 20


def test_a_provider_that_hangs_does_not_make_the_session_serial(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    provider.answers(times=1)
    provider.answers(hang=True)

    result, seconds = _seconds(pytester, provider, "--helmbench-timeout=0.5", "--helmbench-max-retries=1")

    result.assert_outcomes(passed=1, errors=119)
    assert seconds < 25  # 120 cases, 32 or 22 at a time, about 1.5 s each


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"status": 401}, id="status"),
        pytest.param({"status": 200, "body": {"error": {"code": 401, "message": "No auth"}}}, id="in a 200"),
        pytest.param({"status": 403, "body": {"error": {"code": "invalid_api_key"}}}, id="in words"),
    ],
)
def test_one_401_in_the_middle_costs_nothing(
    pytester: pytest.Pytester, provider: Provider, answer: dict[str, Any]
) -> None:
    provider.latency_s = 0.02
    provider.answers(
        times=1, when=lambda request: provider.count > 50 and "Message 90." in request.prompt, **answer
    )

    result, _ = _seconds(pytester, provider)

    result.assert_outcomes(passed=120)
    assert provider.count == 121


@_MODES
def test_models_of_one_local_server_are_asked_one_after_the_other(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 16)})
    names = ("one", "two", "three")
    models = "".join(f"  - {{id: ollama/{name}, base_url: '{provider.url}'}}\n" for name in names)
    (folder / "models.yml").write_text(f"models:\n{models}")
    provider.latency_s = 0.05
    most = 0

    def reply(_request: Request) -> None:
        nonlocal most
        most = max(most, provider.in_flight)

    provider.reply = reply

    result = run_tree(pytester, mode, "--helmbench-models-file=benchmark/models.yml")

    result.assert_outcomes(passed=48)
    result.stdout.fnmatch_lines(["helmbench: *48 calls (4 at a time)*"])
    assert most <= 4
    asked = [request.model for request in provider.requests]
    changes = sum(before != after for before, after in itertools.pairwise(asked))
    # Two workers need not be at the same model when one of them has nothing to ask for a moment.
    assert changes == 2 if mode == "-n0" else changes <= 8
