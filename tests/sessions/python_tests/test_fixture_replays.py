"""Hand-written tests that are replayed, interrupted, stopped, or lose their worker."""

from __future__ import annotations

import pytest
from own_tests import CALLS, every_number, results_of_own_tests, run_own_tests, write_own_tests
from provider import Provider, Request
from sessions import Session, until
from trees import rows

_VERDICTS = """
    SELECT code, repetition, outcome, results.score, rule, rule_hash, expected, observed, prompt_tokens,
        completion_tokens FROM results JOIN evaluations ON result_id = results.id WHERE run_id = {} ORDER BY 1, 2
"""


_TALK = """
import openai

def test_talks(helmbench_openai):
    replies = [ask(helmbench_openai, "the same") for _ in range(3)]
    assert replies == ["1", "2", "3"]

def test_differs(helmbench_openai):
    assert ask(helmbench_openai, "another", temperature=0.5) == "nothing like it"
"""


@every_number
def test_a_replay_without_network_gives_identical_results_in_the_same_order(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    write_own_tests(pytester.path, _TALK)
    seen: list[str] = []

    def reply(request: Request) -> str:
        seen.append(request.prompt)
        return str(seen.count(request.prompt))

    provider.reply = reply
    run_own_tests(pytester, provider, workers).assert_outcomes(passed=1, failed=1)
    asked = provider.count

    again = run_own_tests(
        pytester, None, "--helmbench-cache=only", "--helmbench-base-url=http://127.0.0.1:9/v1", workers
    )

    again.assert_outcomes(passed=1, failed=1)
    assert (asked, provider.count) == (4, 4)
    database = pytester.path / "helmbench.db"
    assert rows(database, _VERDICTS.format(2)) == rows(database, _VERDICTS.format(1))
    assert [call[3] for call in rows(database, CALLS.format(2))] == [1] * 4
    assert rows(database, "SELECT count(DISTINCT hash) FROM benchmarks") == [(1,)]

    write_own_tests(pytester.path, _TALK.replace("the same", "something else"))
    missing = run_own_tests(
        pytester, None, "--helmbench-cache=only", "--helmbench-base-url=http://127.0.0.1:9/v1", workers
    )
    missing.assert_outcomes(errors=1, failed=1)
    assert "no stored reply to this request (--helmbench-cache=only)" in missing.stdout.str()
    assert rows(database, "SELECT count(DISTINCT hash) FROM benchmarks") == [(2,)]


@every_number
def test_an_interrupted_session_goes_on_and_no_answered_call_is_made_again(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    write_own_tests(
        pytester.path,
        """
def test_one(helmbench_openai): assert ask(helmbench_openai, "one") == "no"

def test_two(helmbench_openai):
    assert ask(helmbench_openai, "two")
    assert ask(helmbench_openai, "hangs")
""",
    )
    provider.answers(when=lambda request: request.prompt == "hangs", times=1, hang=True)

    session = Session(pytester.path, provider.url, workers, paths=["test_own.py"])
    until(lambda: provider.count == 3 and results_of_own_tests(pytester), "a verdict and the call that hangs")
    session.interrupt(everybody=True)

    assert session.end() == pytest.ExitCode.INTERRUPTED
    assert "Error" not in session.text.replace("AssertionError", "").replace("KeyboardInterrupt", "")
    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT status FROM evaluation_runs") == [("interrupted",)]
    assert results_of_own_tests(pytester) == [("test_one", 1, "failed", None)]

    resumed = run_own_tests(pytester, provider, "--helmbench-resume", workers)

    resumed.assert_outcomes(failed=1, passed=1)
    resumed.stdout.fnmatch_lines(["notes        *went on with run 1: 1 judged cases were stored*"])
    assert "has changed" not in resumed.stdout.str()
    assert sorted(request.prompt for request in provider.requests) == ["hangs", "hangs", "one", "two"]
    assert results_of_own_tests(pytester) == [
        ("test_one", 1, "failed", None),
        ("test_two", 1, "passed", None),
    ]
    # The call that was interrupted may be billed: what it cost is unknown.
    run = "SELECT id, status, cost_usd, known_cost_usd FROM evaluation_runs"
    assert rows(database, run) == [(1, "complete", None, 0.003)]


def test_a_test_whose_worker_dies_runs_once_more_with_the_replies_it_had(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_own_tests(
        pytester.path,
        """
import os, pathlib

def test_dies(helmbench_openai):
    assert ask(helmbench_openai, "paid")
    died = pathlib.Path("died")
    if not died.exists():
        died.touch()
        os._exit(1)

def test_lives(helmbench_openai): assert ask(helmbench_openai, "lives")
""",
    )

    result = run_own_tests(pytester, provider, "-n2")

    assert results_of_own_tests(pytester) == [
        ("test_dies", 1, "passed", None),
        ("test_lives", 1, "passed", None),
    ]
    assert sorted(request.prompt for request in provider.requests) == ["lives", "paid"]
    assert "2 passed" in result.stdout.str()
