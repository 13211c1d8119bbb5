"""Servers that hang, pour, break off or talk nonsense: each costs its own case, in its own time, and no other."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from typing import Any

import pytest
from provider import Answer, Provider, Request
from records import calls_by_error
from trees import category, judged, rows, run_tree, write_tree

_workers = pytest.mark.parametrize("workers", ["-n0", "-n2"])
_MEBIBYTE = 2**20
_TIMEOUT_S = 2

# The server's answer, the reason on record, and words of the message.
_FAULTS: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"hang": True}, "timeout", f"the provider gave no whole answer within {_TIMEOUT_S} s"),
    ({"drip": True}, "timeout", f"the provider gave no whole answer within {_TIMEOUT_S} s"),
    ({"truncated": True}, "truncated_body", "the provider's answer broke off before its end"),
    ({"reset": True}, "reset", "the connection to the provider broke before an answer came"),
    (
        {"status": 302, "body": b"", "headers": {"Location": "https://example.com/v1"}},
        "redirected",
        "hint: the base URL has moved to https://example.com/v1: give the new one",
    ),
    (
        {"body": b"<html>Welcome!</html>"},
        "not_json",
        "with something that is not a JSON object: '<html>Welcome!</html>'",
    ),
    ({"body": b""}, "not_json", "the provider answered 200 with something that is not a JSON object: ''"),
    ({"body": {"choices": []}}, "no_choices", "the provider answered 200 without choices"),
    (
        {"body": {"choices": [{"finish_reason": "stop"}]}},
        "no_message",
        "200 without a message that can be read",
    ),
    (
        {"body": {"error": {"code": 503, "message": "busy"}}},
        "overloaded",
        "answered 200 with an error 503 (busy)",
    ),
    ({"body": b"[" * 100_000}, "not_json", "with something that is not a JSON object: '[[["),
)


def _about(number: int) -> Callable[[Request], bool]:
    return lambda request: f"Message {number}." in request.prompt


def _script(provider: Provider) -> None:
    for number, (fields, _, _) in enumerate(_FAULTS, 1):
        provider.answers(when=_about(number), **fields)


def _report_memory(pytester: pytest.Pytester) -> None:
    """Have every process say how much memory it took at most."""
    pytester.makeconftest(
        """
        import os, pathlib, resource

        def pytest_unconfigure():
            # This program's own peak: getrusage begins with the peak of its parent.
            status = pathlib.Path("/proc/self/status")
            if status.exists():
                peak_kib = int(status.read_text().partition("VmHWM:")[2].split()[0])
            else:
                peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            pathlib.Path(f"peak-{os.getpid()}").write_text(str(peak_kib))
        """
    )


@_workers
def test_every_fault_of_a_server_is_an_error_of_its_case_alone(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * (len(_FAULTS) + 7))})
    _script(provider)
    options = (f"--helmbench-timeout={_TIMEOUT_S}", "--helmbench-max-retries=0", "--helmbench-show=all")
    result = run_tree(pytester, workers, "-p", "no:cacheprovider", *options, url=provider.url)
    result.assert_outcomes(passed=7, errors=len(_FAULTS))
    shown = re.sub(r"\s+", " ", result.stdout.str())
    for _, _, words in _FAULTS:
        assert words in shown
    assert "Traceback" not in shown
    database = pytester.path / "helmbench.db"
    reasons = dict(rows(database, "SELECT code, reason FROM results WHERE outcome = 'error'"))
    assert [reasons[f"P1-B1-S1-C1-PT{n}"] for n in range(1, len(_FAULTS) + 1)] == [
        why for _, why, _ in _FAULTS
    ]
    assert provider.count == sum(calls_by_error(database).values()) == len(_FAULTS) + 7


@_workers
def test_replies_of_hundreds_of_megabytes_are_errors_and_take_no_memory(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 5)})
    bomb = gzip.compress(bytes(400 * _MEBIBYTE), 1)
    provider.answers(when=_about(1), huge=50 * _MEBIBYTE)
    provider.answers(when=_about(2), body=bomb, headers={"Content-Encoding": "gzip"})
    _report_memory(pytester)
    options = ("--helmbench-max-retries=0", "--helmbench-show=all")
    result = run_tree(pytester, workers, *options, url=provider.url, apart=True)
    result.assert_outcomes(passed=3, errors=2)
    assert result.stdout.str().count("the provider's answer is larger than 32 MiB") >= 2
    reasons = rows(pytester.path / "helmbench.db", "SELECT reason FROM results WHERE outcome = 'error'")
    assert reasons == [("too_large",)] * 2
    peaks = [int(peak.read_text()) for peak in pytester.path.glob("peak-*")]
    assert len(peaks) == (1 if workers == "-n0" else 3)
    assert max(peaks) < 300 * 1024


def test_with_retries_every_fault_ends_at_the_time_limit_of_its_case(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * (len(_FAULTS) + 7))})
    _script(provider)
    limits = ("--helmbench-timeout=1", "--helmbench-case-timeout=3")
    options = ("--helmbench-show=all", "--helmbench-concurrency=40")
    result = run_tree(pytester, *limits, *options, url=provider.url)
    result.assert_outcomes(passed=7, errors=len(_FAULTS))
    result.stdout.fnmatch_lines(
        [
            "the provider gave no whole answer within 1 s after 2 attempts",
            "  hint: bound replies with --helmbench-max-tokens, or *",
        ]
    )
    database = pytester.path / "helmbench.db"
    assert provider.count == sum(calls_by_error(database).values()) > len(_FAULTS) + 7
    spans = "SELECT max(julianday(completed_at) - julianday(started_at)) * 86400 FROM results"
    assert rows(database, spans)[0][0] < 30


@pytest.mark.parametrize(
    ("options", "second", "outcome", "bounds", "said"),
    [
        (
            (),
            Answer(hang=True),
            "errors",
            [None, 4096],
            "within 2 s after 2 attempts\n  hint: bound replies with",
        ),
        (
            (),
            Answer(finish_reason="length"),
            "errors",
            [None, 4096],
            "nor within 4,096 tokens when asked for once",
        ),
        ((), Answer(), "passed", [None, 4096], ""),
        (
            ("--helmbench-max-tokens=9",),
            Answer(hang=True),
            "errors",
            [9, 9],
            "hint: raise --helmbench-timeout",
        ),
    ],
)
def test_a_reply_that_does_not_end_in_time_is_asked_for_once_more_with_a_bound(
    pytester: pytest.Pytester,
    provider: Provider,
    options: tuple[str, ...],
    second: Answer,
    outcome: str,
    bounds: list[int | None],
    said: str,
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    provider.reply = lambda _request: Answer(drip=True) if provider.count == 1 else second
    run = ("--helmbench-timeout=2", "--helmbench-show=all", *options)
    result = run_tree(pytester, *run, url=provider.url)
    result.assert_outcomes(**{outcome: 1})
    assert [request.body.get("max_tokens") for request in provider.requests] == bounds
    assert said in result.stdout.str()
    provider.reply = None
    # A whole reply answers the request as it was made; one that was cut by our bound answers none.
    again = "--helmbench-cache=only" if outcome == "passed" else "--helmbench-resume"
    run_tree(pytester, *run, again, url=provider.url).assert_outcomes(passed=1)
    assert provider.count == 2 + (outcome == "errors")


def test_a_judge_that_hangs_or_talks_nonsense_is_an_error_that_keeps_the_reply(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged("fine", "fine", "fine")})
    provider.answers(hang=True, when=lambda request: request.is_judge and _about(1)(request))
    provider.answers(body=b"no", when=lambda request: request.is_judge and _about(2)(request))
    result = run_tree(
        pytester,
        "--helmbench-marking-model=test/judge",
        f"--helmbench-timeout={_TIMEOUT_S}",
        "--helmbench-max-retries=0",
        url=provider.url,
    )
    result.assert_outcomes(passed=1, errors=2)
    shown = result.stdout.str()
    assert f"the judge's call failed: the provider gave no whole answer within {_TIMEOUT_S} s" in shown
    assert (
        "the judge's call failed: the provider answered 200 with something that is not a JSON object: 'no'"
        in shown
    )
    results = "SELECT outcome, reason, response_id IS NOT NULL, cost_usd FROM results ORDER BY code"
    assert rows(pytester.path / "helmbench.db", results) == [
        ("error", "judge_timeout", 1, 0.001),
        ("error", "judge_not_json", 1, 0.001),
        ("passed", None, 1, 0.001),
    ]
