"""A model that answers nothing is stopped after its first cases, whatever its server says, and others go on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from provider import Answer, Provider
from trees import category, rows, run_tree, write_tree

_INVALID = {
    "error": {"message": "Invalid model name passed in model=test/bad", "type": "None", "code": "400"}
}
_BEHIND = {"error": {"message": "litellm.AuthenticationError: Incorrect key", "type": None, "code": "500"}}


def _outcomes(pytester: pytest.Pytester) -> dict[tuple[str, str | None], int]:
    query = (
        "SELECT llms.name, outcome || ' ' || coalesce(reason, ''), count(*) FROM results"
        " JOIN evaluation_runs ON evaluation_runs.id = run_id JOIN llms ON llms.id = llm_id GROUP BY 1, 2"
    )
    return {(model, outcome): count for model, outcome, count in rows(pytester.path / "helmbench.db", query)}


@pytest.mark.parametrize(
    ("mode", "fault", "reason"),
    [
        ("-n0", {"status": 400, "body": _INVALID}, "rejected"),
        ("-n0", {"status": 500, "body": _BEHIND}, "rejected"),
        ("-n0", {"reset": True}, "reset"),
        ("-n2", {"status": 500, "body": _BEHIND}, "rejected"),
    ],
)
def test_a_model_whose_first_20_cases_end_alike_is_stopped_and_others_go_on(
    pytester: pytest.Pytester, provider: Provider, mode: str, fault: Mapping[str, Any], reason: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 60)})
    provider.answers(**fault, when=lambda request: request.model == "test/bad")
    models = ("--helmbench-model=test/bad", "--helmbench-model=test/good")

    result = run_tree(
        pytester, mode, *models, "--helmbench-concurrency=4", "--helmbench-max-retries=0", url=provider.url
    )

    asked = sum(request.model == "test/bad" for request in provider.requests)
    assert 20 <= asked <= 24  # what was out with the twentieth; none was tried again
    found = _outcomes(pytester)
    errors, skipped = found["test/bad", f"error {reason}"], found["test/bad", "skipped model_stopped"]
    assert found == {
        ("test/bad", f"error {reason}"): errors,
        ("test/bad", "skipped model_stopped"): skipped,
        ("test/good", "passed "): 60,
    }
    assert (errors + skipped, errors <= asked) == (60, True)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = result.stdout.str()
    assert text.count("; its first 20 cases all ended in this fault") == 1
    assert "next         the same command with --helmbench-resume asks the 60 again" in result.outlines
    assert re.match("✗ FAILS   test/bad stopped: .{10,76}$", result.outlines[-1])
    assert next(line for line in result.outlines if line.startswith("cause        test/bad stopped: the "))

    provider.answers()
    again = run_tree(pytester, mode, *models, "--helmbench-resume", url=provider.url)
    again.assert_outcomes(passed=120)


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
@pytest.mark.parametrize("port", [None, 9])
def test_a_server_that_answers_nothing_names_the_way_to_go_on(
    pytester: pytest.Pytester, provider: Provider, mode: str, port: int | None
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK", "RISK")})
    provider.answers(status=500)
    url = provider.url if port is None else f"http://127.0.0.1:{port}/v1"

    result = run_tree(pytester, mode, "--helmbench-max-retries=0", url=url)

    result.assert_outcomes(errors=3)
    said = ": the same command with --helmbench-resume asks the 3 again"
    assert sum(line.endswith(said) for line in result.outlines) == 1

    if port is not None:
        return  # at another address it is another server
    provider.answers()
    again = run_tree(pytester, mode, "--helmbench-resume", url=provider.url)
    again.assert_outcomes(passed=3)
    assert "--helmbench-resume" not in again.stdout.str()


def test_faults_of_single_requests_stop_no_model(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 30)})
    error = {"message": "the prompt does not fit", "code": "context_length_exceeded"}
    provider.reply = lambda request: (
        Answer(status=400, body={"error": error}) if "Message 30." not in request.prompt else None
    )
    result = run_tree(pytester, "--helmbench-concurrency=1", url=provider.url)
    result.assert_outcomes(errors=29, passed=1)


def test_rate_limits_that_last_are_said_once(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr("pytest_helmbench.pytest_side.say.live_line._LONG_LIMIT_S", 1.5)
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})
    provider.answers(status=429, times=8)
    result = run_tree(pytester, url=provider.url)
    result.assert_outcomes(passed=2)
    text = result.stdout.str()
    assert text.count("helmbench: test/good: for ") == 1
    assert "every call was answered with a rate limit (429), and none with a reply: still trying;" in text


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_a_server_that_is_not_there_is_said_once_while_it_is_tried_on(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("CI", "true")
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})

    result = run_tree(pytester, mode, "--helmbench-max-retries=3", url="http://127.0.0.1:9/v1")

    result.assert_outcomes(errors=2)
    said = (
        "helmbench: test/good: the provider at http://127.0.0.1:9/v1 cannot be reached (connection refused):"
        " still trying"
    )
    assert result.outlines.count(said) == 1
