"""A process that stood still longer than its timeouts reads what has arrived before it asks the clock."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from bench_pack_sessions import write_asking_pack
from provider import Provider, Request
from sessions import Session, until
from trees import category, rows, write_tree

_CASES = 32


def _long_reply(_request: Request) -> str:
    return '{"category": "RISK", "response": "' + "x" * 300_000 + '"}'


@pytest.mark.parametrize(
    ("workers", "long"), [("-n0", True), ("-n2", False)], ids=["long replies", "short replies, two workers"]
)
def test_replies_that_arrived_during_a_standstill_are_not_asked_for_again(
    pytester: pytest.Pytester, provider: Provider, workers: str, long: bool
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * _CASES)})
    if long:
        provider.reply = _long_reply
    provider.hold()
    session = Session(
        pytester.path, provider.url, workers, f"--helmbench-concurrency={_CASES}", "--helmbench-timeout=3"
    )
    until(lambda: len(provider.requests) == _CASES, "all are asked")
    with session.paused():
        provider.let_go()
        time.sleep(3.5)
    assert session.end() == pytest.ExitCode.OK, session.text
    assert len(provider.requests) == _CASES
    database: Path = pytester.path / "helmbench.db"
    assert rows(database, "SELECT count(*), count(error) FROM calls") == [(_CASES, 0)]


def test_a_standstill_is_no_time_of_a_scenario_that_goes_on_asking(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    asks_twice = "async () => { await ask('first'); await ask('second'); return result(); }"
    write_asking_pack(pytester.path / "pack", {"asks-twice": asks_twice})
    provider.hold()
    session = Session(pytester.path, provider.url, "--helmbench-case-timeout=3", paths=("pack",))
    until(lambda: len(provider.requests) == 1, "it has asked")
    with session.paused():
        provider.let_go()
        time.sleep(3.5)
    assert session.end() == pytest.ExitCode.OK, session.text
    assert len(provider.requests) == 2
