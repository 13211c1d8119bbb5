"""Recorded replies in place of calls: what each mode reads and writes, what counts as the same request."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from gateways import GatewayFixture, StoppableWatch, open_gateway
from provider import Provider, Request
from trees import Part, category, includes, judged, judged_twice, rows, run_tree, threshold, write_tree

from pytest_helmbench.core.case import Message
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import RecordedReply
from pytest_helmbench.gateway.backend import RecordedUse, ReplyCache, ReplyQuery
from pytest_helmbench.gateway.call import Call, CaseClock, Origin
from pytest_helmbench.gateway.providers.endpoints import Endpoint, resolve_endpoint
from pytest_helmbench.gateway.replies import encode
from pytest_helmbench.gateway.requests import request_body, request_hash
from pytest_helmbench.gateway.retries import CallFailedError, RetryPolicy
from pytest_helmbench.options.settings import resolve_settings
from pytest_helmbench.run.targets import resolve_targets

_JUDGE = "--helmbench-marking-model=test/judge"
_REUSE = "--helmbench-cache=reuse"
_ONLY = "--helmbench-cache=only"
_workers = pytest.mark.parametrize("workers", ["-n0", "-n2"])
_VERDICTS = """
    SELECT results.code, repetition, outcome, reason, results.score, criterion, rule_hash, passed, credit, parse,
        expected, observed, justification, prompt_tokens, completion_tokens
    FROM results LEFT JOIN evaluations ON result_id = results.id WHERE run_id = {} ORDER BY 1, 2, criterion
"""
_REPLAYS = """
    SELECT count(*), min(from_cache), max(attempt), total(cost_usd), count(response_id)
    FROM calls WHERE run_id = {}
"""


def _judge_by_message(request: Request) -> str | None:
    if not request.is_judge:
        return None
    verdict = "BAD" if "Message 2." in request.prompt and "Point 2." in request.prompt else "GOOD"
    return f'{{"evidence": [], "justification": "So it is.", "judgment": "{verdict}"}}'


@_workers
def test_a_replay_without_provider_and_key_gives_the_same_verdicts(
    pytester: pytest.Pytester, provider: Provider, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(
        pytester.path / "benchmark",
        {
            "P1-B1-S1": category("RISK", "CALM"),
            "P1-B1-S2": includes("A,B", "A"),
            "P1-B1-S3": threshold("A,B", "D"),
            "P1-B1-S4": judged("fine", "poor"),
            "P1-B1-S5": judged_twice("fine", "poor"),
        },
    )
    provider.reply = _judge_by_message
    monkeypatch.setenv("SOME_KEY", "a-key-of-twenty-characters")
    options = (_JUDGE, "--helmbench-api-key-env=SOME_KEY", "--helmbench-repeat=2", workers)
    run_tree(pytester, *options, url=provider.url).assert_outcomes(passed=12, failed=8)
    asked = provider.count
    assert asked == 20 + 4 + 8

    monkeypatch.delenv("SOME_KEY")
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        dead = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
    replay = run_tree(pytester, *options, _ONLY, "--helmbench-timeout=5", url=dead)
    replay.assert_outcomes(passed=12, failed=8)
    for model in ("test/good", "test/judge"):
        said = f"{model}: replies of {provider.url} are used, not of {dead} (--helmbench-cache=only)"
        assert replay.outlines.count(said) == 1
    replay.stdout.fnmatch_lines(["helmbench: test/good: 20 cases, 0 calls (32 at a time), free; *"])
    database = pytester.path / "helmbench.db"
    assert rows(database, _VERDICTS.format(2)) == rows(database, _VERDICTS.format(1))
    assert rows(database, _REPLAYS.format(2)) == [(asked, 1, 0, 0.0, asked)]
    assert rows(database, "SELECT status, cost_usd FROM evaluation_runs WHERE id = 2") == [("complete", 0.0)]
    assert rows(database, "SELECT count(*) FROM responses") == [(asked,)]
    assert provider.count == asked


def test_a_request_that_is_not_on_record_is_an_error_of_a_replay(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    root = write_tree(
        pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK"), "P1-B1-S2": judged("fine")}
    )
    run_tree(pytester, _JUDGE, url=provider.url).assert_outcomes(passed=3)
    perturbations = root / "scenarios" / "P1-B1-S1" / "perturbations.md"
    perturbations.write_text(perturbations.read_text().replace("Message 2.", "Message 2, reworded."))
    rubric = root / "scenarios" / "P1-B1-S2" / "criteria.md"
    rubric.write_text(rubric.read_text().replace("All in all.", "On the whole."))
    provider.requests.clear()
    replay = run_tree(pytester, _JUDGE, _ONLY, url=provider.url)
    replay.assert_outcomes(passed=1, errors=2)
    assert provider.count == 0
    shown = replay.stdout.str()
    assert "no stored reply to this request (--helmbench-cache=only)" in shown
    left = (
        "judge_not_on_record 1, not_on_record 1:"
        " without --helmbench-cache=only the model is asked for what is not stored"
    )
    assert left in shown
    assert "--helmbench-resume" not in shown
    assert (
        "hint: run once with --helmbench-cache=reuse; another prompt, model or sampling option is another"
        in shown
    )
    outcomes = "SELECT code, outcome, reason FROM results WHERE run_id = 2 ORDER BY code"
    assert rows(pytester.path / "helmbench.db", outcomes) == [
        ("P1-B1-S1-C1-PT1", "passed", None),
        ("P1-B1-S1-C1-PT2", "error", "not_on_record"),
        ("P1-B1-S2-C1-PT1", "error", "judge_not_on_record"),
    ]


def _same_words(count: int) -> dict[str, Part]:
    return {f"C{number}": Part("## Tone\n\nBe calm.") for number in range(1, count + 1)}


@_workers
def test_identical_requests_share_one_call_also_across_workers(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    # Three conditions in the same words; half of the requests are out when the others come.
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 8, conditions=_same_words(3))})
    provider.latency_s = 0.15
    # A request that fails for good keeps no other waiting: the next one is sent.
    provider.answers(times=1, status=400, when=lambda request: "Message 5." in request.prompt)
    result = run_tree(pytester, workers, _REUSE, "--helmbench-concurrency=12", url=provider.url)
    result.assert_outcomes(passed=23, errors=1)
    assert provider.count == 8 + 1
    database = pytester.path / "helmbench.db"
    kinds = "SELECT from_cache, count(*), total(cost_usd), count(response_id) FROM calls GROUP BY 1"
    assert rows(database, kinds) == [(0, 9, pytest.approx(0.008), 8), (1, 15, 0.0, 15)]
    assert rows(database, "SELECT cost_usd FROM evaluation_runs") == [(pytest.approx(0.008),)]
    # A second session calls for the one that failed, which by now is on record for another case.
    provider.latency_s = 0.0
    provider.requests.clear()
    again = run_tree(pytester, workers, _REUSE, url=provider.url)
    again.assert_outcomes(passed=24)
    assert provider.count == 0
    assert rows(database, _REPLAYS.format(2)) == [(24, 1, 0, 0.0, 24)]


def test_whatever_is_sent_and_the_repetition_make_another_request(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK"), "P1-B1-S2": judged("fine")})
    (pytester.path / "system.txt").write_text("Be brief.", encoding="utf-8")
    calls = []
    for more in (
        (_JUDGE,),
        (_JUDGE,),
        (_JUDGE, "--helmbench-temperature=0.7"),
        (_JUDGE, "--helmbench-system-prompt=system.txt"),
        ("--helmbench-marking-model=test/strict",),
        (_JUDGE, "--helmbench-repeat=2"),
        (_JUDGE, "--helmbench-repeat=2"),
    ):
        provider.requests.clear()
        run_tree(pytester, _REUSE, *more, url=provider.url)
        calls.append(provider.count)
    # The judge sees no sampling options and no system prompt of the model under test.
    assert calls == [3, 0, 2, 2, 1, 3, 0]


@_workers
@pytest.mark.parametrize("elsewhere", ["model", "judge"])
def test_replies_of_one_server_are_not_reused_for_another_one(
    pytester: pytest.Pytester, provider: Provider, workers: str, elsewhere: str
) -> None:
    write_tree(
        pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM"), "P1-B1-S2": judged("fine")}
    )
    options = (_JUDGE, _REUSE, workers)
    run_tree(pytester, *options, url=provider.url).assert_outcomes(passed=2, failed=1)
    with Provider() as other:
        other.reply = lambda request: None if request.is_judge else '{"response": "", "category": "CALM"}'
        url, judge = (other.url, provider.url) if elsewhere == "model" else (provider.url, other.url)
        for asked in ((3, 1) if elsewhere == "model" else (1, 0)), (0, 0):
            other.requests.clear()
            provider.requests.clear()
            run_tree(pytester, *options, f"--helmbench-marking-base-url={judge}", url=url)
            assert (other.count, provider.count) == asked


def test_refreshing_asks_anew_and_the_newest_reply_is_what_later_runs_take(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    run_tree(pytester, url=provider.url).assert_outcomes(passed=1)
    provider.reply = lambda _request: '{"response": "", "category": "CALM"}'
    run_tree(pytester, "--helmbench-cache=refresh", url=provider.url).assert_outcomes(failed=1)
    assert provider.count == 2
    for mode in (_REUSE, _ONLY):
        run_tree(pytester, mode, url=provider.url).assert_outcomes(failed=1)
    assert provider.count == 2
    written = (
        "SELECT run_id, from_cache, responses.rowid FROM calls JOIN responses ON responses.id = response_id"
    )
    assert rows(pytester.path / "helmbench.db", f"{written} ORDER BY run_id") == [
        (1, 0, 1),
        (2, 0, 2),
        (3, 1, 2),
        (4, 1, 2),
    ]


# --- models of the usual providers, whose keys decide where they are asked ---


def _call(endpoint: Endpoint) -> Call:
    entry = ModelEntry(endpoint.model_id)
    return Call(Origin(1, "P1-B1-S1-PT1", 1), entry, endpoint, [Message("user", "Hello")], None)


def _hash_at(call: Call) -> str:
    return request_hash(
        encode(request_body(call.endpoint, call.entry.sampling, call.messages, None, repetition=1))
    )


class _Shelf:
    """A record of one reply."""

    def __init__(self, request_hash_: str) -> None:
        self._hash = request_hash_

    def look_up(self, query: ReplyQuery) -> RecordedReply | None:
        if query.request_hash != self._hash:
            return None
        body = b'{"choices": [{"finish_reason": "stop", "message": {"content": "recorded"}}]}'
        return RecordedReply(body, own=False)

    def settle(self) -> None:
        """Do nothing: the record is complete."""


def _keyless(folder: Path, model: str) -> Endpoint:
    """Return where a replay without any key looks for a model."""
    given: dict[str, Any] = {"model": [model], "cache": "only"}
    settings = resolve_settings(lambda option: given.get(option.name), folder, folder)
    (target,) = resolve_targets(folder, settings, {})
    assert isinstance(target.model.endpoint, Endpoint)
    return target.model.endpoint


def _replay(shelf: _Shelf, call: Call) -> str:
    async def ask() -> str:
        async with open_gateway() as parts:
            _reads(parts, shelf)
            reply = await parts.gateway.ask(call, CaseClock(RetryPolicy()), StoppableWatch())
            return reply.text

    return asyncio.run(ask())


def _reads(parts: GatewayFixture, shelf: _Shelf) -> None:
    parts.backend.reply_cache = ReplyCache(shelf, shares=False)
    parts.gateway._recorded = RecordedUse.ONLY


@pytest.mark.parametrize(
    ("model", "keys"),
    [
        ("openai/gpt-4o-mini", {"OPENAI_API_KEY": "a"}),
        ("openai/gpt-4o-mini", {"OPENROUTER_API_KEY": "a"}),
        ("meta/llama", {"OPENROUTER_API_KEY": "a"}),
    ],
)
def test_a_replay_without_keys_finds_what_was_asked_at_either_provider(
    tmp_path: Path, model: str, keys: dict[str, str]
) -> None:
    asked = resolve_endpoint(ModelEntry(model), default_base_url=None, default_key_env=None, environ=keys)
    assert isinstance(asked, Endpoint)
    shelf = _Shelf(_hash_at(_call(asked)))
    assert _replay(shelf, _call(_keyless(tmp_path, model))) == "recorded"
    with pytest.raises(CallFailedError, match="no stored reply to this request"):
        _replay(_Shelf("another"), _call(_keyless(tmp_path, model)))
