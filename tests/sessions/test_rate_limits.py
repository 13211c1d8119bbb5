"""Providers that limit, pause or hang: what all cases wait for is waited for once."""

from __future__ import annotations

import itertools

import pytest
from commands import run_command
from provider import Provider, Request
from trees import category, judged, rows, run_tree, write_tree

_MODES = pytest.mark.parametrize("mode", ["-n0", "-n2"])


def _seconds(pytester: pytest.Pytester, provider: Provider, *options: str) -> tuple[pytest.RunResult, float]:
    """Run 120 cases; return how long it takes from the first request to the last, too."""
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 120)})
    result = run_tree(pytester, *options, url=provider.url)
    return result, provider.requests[-1].at - provider.requests[0].at


@_MODES
def test_a_provider_that_only_asks_for_pauses_ends_its_model_with_the_reason(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    provider.answers(status=429, retry_after=3)

    result, seconds = _seconds(pytester, provider, mode, "--helmbench-case-timeout=5")

    result.assert_outcomes(skipped=120)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert seconds < 60  # one pause; one after the other, each case in its own time, they would be 360
    assert "it asks for a pause of 3 s, after 3 s without a reply; a case may take 5 s" in result.stdout.str()
    found = rows(pytester.path / "helmbench.db", "SELECT DISTINCT reason FROM results")
    assert found == [("model_stopped",)]


def test_a_provider_that_hangs_does_not_make_the_session_serial(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    provider.answers(times=1)
    provider.answers(hang=True)

    result, seconds = _seconds(pytester, provider, "--helmbench-timeout=0.5", "--helmbench-max-retries=1")

    result.assert_outcomes(passed=1, errors=119)
    assert seconds < 100  # 120 cases, 32 or 22 at a time, about 1.5 s each: 6; one at a time 180


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


@pytest.mark.parametrize(
    ("slots", "stated", "options", "most"),
    [
        (None, "", [], 4),
        (2, "", [], 2),
        (6, "", [], 6),
        (2, "max_concurrency: 5", [], 5),
        (2, "", ["--helmbench-concurrency=7"], 7),
        (2, "", ["-n2"], 2),
    ],
)
def test_calls_to_one_local_server_judges_too_never_exceed_its_slots(
    pytester: pytest.Pytester,
    provider: Provider,
    slots: int | None,
    stated: str,
    options: list[str],
    most: int,
) -> None:
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged(*["fine"] * 10)})
    (folder / "models.yml").write_text(f"models: [{{id: my-model, {stated}}}]\n")
    provider.slots, provider.latency_s = slots, 0.1
    url = f"--helmbench-base-url={provider.url}"
    judge = f"--helmbench-marking-base-url={provider.url.replace('127.0.0.1', 'localhost')}"

    result = run_tree(pytester, url, judge, "--helmbench-marking-model=llamacpp/judge", "-v", *options)

    result.assert_outcomes(passed=10)
    result.stdout.fnmatch_lines([f"helmbench: my-model: *20 calls ({most} at a time)*"])
    assert provider.max_in_flight == most
    result.stdout.re_match_lines([r" .* tokens/s \(all\)$", r"my-model .* [\d.]+ \([\d.]+\)$"])
    page = run_command(pytester, "report", "1", "--format", "html", "-o", "page.html")
    assert page.ret == 0
    assert "tokens/s of a call" in (pytester.path / "page.html").read_text()


def test_the_slots_of_a_server_are_known_where_the_first_question_loses_its_connection(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})
    provider.slots, provider.lost_gets = 3, 1

    result = run_tree(pytester, "--helmbench-model=my-model", f"--helmbench-base-url={provider.url}")

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["helmbench: my-model: *2 calls (3 at a time)*"])


def test_a_provider_that_limits_now_and_then_fails_no_case(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    provider.answers(times=20, status=429, retry_after=2)

    result, seconds = _seconds(pytester, provider, "--helmbench-case-timeout=20")

    result.assert_outcomes(passed=120)
    assert seconds < 40  # quiet: 3; one pause after the other
