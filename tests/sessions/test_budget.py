"""The budget is a promise, whatever the server says: bounds that are sent, what is counted, what a resume may spend."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from provider import Answer, Provider, Request
from sessions import Session, until
from trees import category, rows, run_tree, write_tree

_PRICED = "- id: test/good\n  price: {input: 0, output: 10}\n"  # 4,096 tokens may cost 0.04096 USD
_FOUR_CALLS = 5.26  # the largest output, 131,072 tokens, may cost 1.31 USD: then one of 1,000 can go
_MODES = pytest.mark.parametrize("mode", ["-n0", "-n2"])


def _benchmark(pytester: pytest.Pytester, cases: int, models: str = _PRICED) -> None:
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * cases)})
    (folder / "models.yml").write_text(models)
    pytester.makefile(".ini", pytest="[pytest]\nhelmbench_trusted = benchmark\n")


@_MODES
def test_a_budget_bounds_every_reply_and_a_reply_that_it_cuts_is_an_error(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    _benchmark(pytester, 3)
    provider.answers(times=1, text='{"ca', finish_reason="MAX_TOKENS")

    result = run_tree(pytester, mode, "--helmbench-max-cost=1", url=provider.url)

    result.assert_outcomes(passed=2, errors=1)
    assert {request.body.get("max_tokens") for request in provider.requests} == {4096}
    result.stdout.fnmatch_lines(
        [
            "helmbench: test/good: 3 cases, *, at most 4,096 tokens a reply (--helmbench-max-cost); results in *"
        ]
    )
    assert "the reply was cut at 4096 tokens, the bound that --helmbench-max-cost sets" in result.stdout.str()
    found = rows(
        pytester.path / "helmbench.db", "SELECT outcome, reason FROM results WHERE outcome = 'error'"
    )
    assert found == [("error", "cut_by_budget")]


def test_a_budget_that_cannot_pay_one_call_ends_the_session_with_the_least_sum(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _benchmark(pytester, 2)

    result = run_tree(pytester, "--helmbench-max-cost=0.02", url=provider.url)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert provider.count == 0
    shown = result.stderr.str()
    assert "--helmbench-max-cost=0.02 cannot pay one call: one of test/good may cost 0.040960 USD" in shown
    assert "  hint: give at least --helmbench-max-cost=0.044, or bound the replies" in shown
    enough = run_tree(pytester, "--helmbench-max-cost=0.044", url=provider.url)
    enough.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("mode", "fault"),
    [
        ("-n0", {"hang": True}),
        ("-n0", {"truncated": True}),
        ("-n0", {"body": b"{", "status": 200}),
        ("-n2", {"hang": True}),
    ],
)
def test_what_was_sent_and_not_answered_counts_as_spent_and_is_shown_as_unknown(
    pytester: pytest.Pytester, provider: Provider, mode: str, fault: Mapping[str, Any]
) -> None:
    _benchmark(pytester, 8)
    provider.answers(**fault)

    result = run_tree(pytester, mode, "--helmbench-max-cost=0.2", "--helmbench-timeout=0.4", url=provider.url)

    assert 1 <= provider.count <= 4  # of 0.041 USD each
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["4 calls were sent and not answered, and may be billed * counts 0.1638 USD for it"]
    )
    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT cost_usd, known_cost_usd FROM evaluation_runs") == [(None, 0.0)]
    assert rows(database, "SELECT sum(unanswered), round(sum(reserved_usd), 4) FROM calls") == [(4, 0.1638)]


@pytest.mark.parametrize("fault", [{"latency_s": 60.0}, {"reset": True}, {"truncated": True}])
@pytest.mark.parametrize("model", ["ollama/small", "test/priced"])
def test_a_free_server_stays_free_whatever_becomes_of_a_call(
    pytester: pytest.Pytester, provider: Provider, model: str, fault: dict[str, Any]
) -> None:
    provider.cost_usd = None
    provider.answers(times=2, **fault)
    folder = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 4)})
    (folder / "models.yml").write_text("models: [{id: test/priced, price: {input: 0, output: 0}}]")

    limits = ("--helmbench-timeout=2", "--helmbench-max-retries=0", "--helmbench-max-cost=1")
    mine = ("--helmbench-models-file=benchmark/models.yml", f"--helmbench-model={model}")
    result = run_tree(pytester, *limits, *mine, url=provider.url)
    result.assert_outcomes(passed=2, errors=2)
    assert "may be billed" not in result.stdout.str()
    assert rows(pytester.path / "helmbench.db", "SELECT cost_usd FROM evaluation_runs") == [(0.0,)]


@_MODES
def test_replies_without_usage_are_counted_here_and_marked(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    _benchmark(pytester, 12)
    long = json.dumps({"category": "RISK", "why": "x" * 4000})
    provider.answers(text=long, usage={})

    result = run_tree(pytester, mode, "--helmbench-max-cost=0.09", url=provider.url)

    # About a thousand tokens each, a cent; it is unknown that they are no more than that.
    assert provider.count == 2
    found = rows(pytester.path / "helmbench.db", "SELECT cost_usd, estimated FROM calls")
    assert all(estimated == 1 and 0.009 < cost < 0.012 for cost, estimated in found)
    assert sum(cost for cost, _ in found) <= 0.09
    assert "tokens and cost of " in result.stdout.str()


@_MODES
@pytest.mark.parametrize(
    "usage",
    [
        {"completion_tokens": 50, "completion_tokens_details": {"reasoning_tokens": 4950}},
        {"output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 4950}},
        {"completion_tokens": 50, "cache_creation_input_tokens": 4950},
    ],
)
def test_counts_that_contradict_each_other_are_counted_as_they_cost_most(
    pytester: pytest.Pytester, provider: Provider, usage: dict[str, Any], mode: str
) -> None:
    _benchmark(pytester, 40, "- id: test/good\n  max_tokens: 100\n  price: {input: 1000, output: 1000}\n")
    provider.cost_usd = None
    provider.answers(text='{"response": "x", "category": "RISK"}', usage={"prompt_tokens": 100, **usage})

    result = run_tree(pytester, mode, "--helmbench-max-cost=20", url=provider.url)

    assert provider.count * 5.1 <= 20
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    costs = set(rows(pytester.path / "helmbench.db", "SELECT round(cost_usd, 6), upper_bound FROM calls"))
    assert costs == {(5.1, 1)}
    result.stdout.fnmatch_lines(["*tokens and cost of * are upper bounds*"])


def test_a_resumed_session_goes_on_with_its_cap(pytester: pytest.Pytester, provider: Provider) -> None:
    _benchmark(pytester, 6, _PRICED + "  max_tokens: 1000\n")
    provider.cost_usd = 0.01
    first = run_tree(pytester, "--helmbench-max-cost=0.035", url=provider.url)
    first.assert_outcomes(passed=3, skipped=3)

    again = run_tree(pytester, "--helmbench-resume", url=provider.url)
    assert again.ret == pytest.ExitCode.USAGE_ERROR
    spent = "--helmbench-max-cost=0.035 cannot pay one call more: 0.0300 USD of it are spent: one of test/good may cost"
    assert spent in again.stderr.str()
    assert provider.count == 3

    more = run_tree(pytester, "--helmbench-resume", "--helmbench-max-cost=0.055", url=provider.url)
    more.assert_outcomes(passed=5, skipped=1)
    assert provider.count == 5


def test_the_calls_of_dead_workers_count(pytester: pytest.Pytester, provider: Provider) -> None:
    _benchmark(pytester, 20, _PRICED + "  max_tokens: 1000\n")
    provider.cost_usd = 0.01
    provider.answers(hang=True)
    session = Session(pytester.path, provider.url, "-n2", f"--helmbench-max-cost={_FOUR_CALLS}")
    until(lambda: provider.count == 4, "the first calls go out")
    provider.answers()

    session.kill_workers("gw0", "gw1")

    assert session.end() == pytest.ExitCode.TESTS_FAILED
    # A call that was let go as its worker died counts as sent, whether or not it came to the wire.
    told = re.search(r"([456]) calls were sent and not answered, and may be billed", session.text)
    assert told is not None, session.text[-900:]
    assert 4 <= provider.count <= 6


@_MODES
def test_the_calls_of_a_killed_session_count_when_it_goes_on(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    _benchmark(pytester, 20, _PRICED + "  max_tokens: 1000\n")
    provider.cost_usd = 0.01
    provider.answers(hang=True)
    session = Session(pytester.path, provider.url, mode, f"--helmbench-max-cost={_FOUR_CALLS}")
    until(lambda: provider.count == 4, "the first calls go out")
    session.kill_all()
    provider.reset()
    provider.cost_usd = 0.01

    result = run_tree(pytester, mode, "--helmbench-resume", url=provider.url)

    assert 1 <= provider.count <= 2
    result.stdout.fnmatch_lines(
        ["4 calls were in flight when an earlier part * killed: the budget counts 5.2429 USD for it"]
    )
    database = pytester.path / "helmbench.db"
    # Their cost is unknown; those of now have returned.
    assert rows(database, "SELECT cost_usd FROM evaluation_runs") == [(None,)]
    assert rows(database, "SELECT count(*) FROM sent_calls") == [(4,)]


def test_cheap_replies_at_first_do_not_open_the_purse(pytester: pytest.Pytester, provider: Provider) -> None:
    _benchmark(pytester, 40, "- id: test/good\n")
    costs = iter([0.0001, *[0.05] * 100])

    def reply(_request: Request) -> Answer:
        usage = {"prompt_tokens": 50, "completion_tokens": 4000, "cost": next(costs)}
        return Answer(text='{"category": "RISK"}', usage=usage)

    provider.reply = reply
    provider.latency_s = 0.05

    run_tree(pytester, "--helmbench-max-cost=0.2", url=provider.url)

    [(spent,)] = rows(pytester.path / "helmbench.db", "SELECT sum(cost_usd) FROM calls")
    assert spent <= 0.2 + 0.05


@_MODES
@pytest.mark.parametrize(("short", "tokens", "usd"), [(0, 30_000, 75), (10, 30_000, 75), (10, 70_000, 60)])
def test_a_server_that_takes_no_notice_of_the_bound_spends_no_more_than_the_budget(
    pytester: pytest.Pytester, provider: Provider, short: int, tokens: int, usd: int, mode: str
) -> None:
    _benchmark(pytester, 60, f"- id: test/good\n  price: {{input: 0, output: {usd}}}\n")
    provider.cost_usd, provider.latency_s = None, 0.02
    written = iter([*[20] * short, *[tokens] * 100])

    def reply(_request: Request) -> Answer:
        usage = {"prompt_tokens": 50, "completion_tokens": next(written)}
        return Answer(text='{"response": "x", "category": "RISK"}', usage=usage)

    provider.reply = reply
    run_tree(pytester, mode, "--helmbench-max-cost=10", url=provider.url)

    [(spent,)] = rows(pytester.path / "helmbench.db", "SELECT sum(cost_usd) FROM calls")
    assert 2 < spent <= 10
    assert provider.count > short


def test_a_small_budget_goes_on_call_by_call_while_replies_keep_to_the_bound(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _benchmark(pytester, 6, "- id: test/good\n  price: {input: 0, output: 150}\n  max_tokens: 200\n")
    provider.cost_usd = None
    result = run_tree(pytester, "--helmbench-max-cost=0.2", url=provider.url)
    result.assert_outcomes(passed=6)
    assert provider.max_in_flight == 1
