"""A run has one owner: the session that holds its lease; one that lost it writes and asks nothing more."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from provider import Provider
from sessions import Session, until
from trees import category, rows, write_tree

_CASES = 40
_CONCURRENCY = 4
_HELD = re.compile(
    r"run 1 is still being written, by process \d+ on \S+\n"
    r"  hint: wait for it, or stop it first \(heard of \d+ s ago\)"
)


@pytest.fixture
def folder(pytester: pytest.Pytester, provider: Provider) -> Path:
    """A benchmark whose calls take 0.1 s."""
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * _CASES)})
    provider.latency_s = 0.1
    return pytester.path


def _session(folder: Path, name: str, url: str, *options: str) -> Session:
    """Start a session that has a folder of its own, and the benchmark and database of all."""
    own = folder / name
    own.mkdir()
    more = (f"--helmbench-db={folder / 'helmbench.db'}", f"--helmbench-concurrency={_CONCURRENCY}")
    return Session(own, url, *more, *options, paths=(str(folder / "benchmark"),))


def _killed(folder: Path, provider: Provider) -> None:
    session = _session(folder, "killed", provider.url)
    until(lambda: len(provider.requests) > 3 * _CONCURRENCY, "some are asked")
    session.kill_all()
    provider.requests.clear()


def _change_lease(folder: Path, **values: object) -> None:
    names = ", ".join(f"{name} = :{name}" for name in values)
    with closing(sqlite3.connect(folder / "helmbench.db", timeout=30)) as connection, connection:
        assert connection.execute(f"UPDATE leases SET {names}", values).rowcount == 1


def _asked(provider: Provider) -> Counter[str]:
    return Counter(request.prompt for request in provider.requests)


def test_of_two_that_go_on_with_a_run_at_once_one_does_and_one_is_refused(
    folder: Path, provider: Provider
) -> None:
    _killed(folder, provider)
    both: list[Session] = []
    threads = [
        threading.Thread(
            target=lambda name=name: both.append(_session(folder, name, provider.url, "--helmbench-resume"))
        )
        for name in ("one", "two")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    codes = sorted(session.end() for session in both)
    assert codes == [pytest.ExitCode.OK, pytest.ExitCode.USAGE_ERROR], [session.text for session in both]
    refused = next(session for session in both if session.end() == pytest.ExitCode.USAGE_ERROR)
    assert _HELD.search(refused.text), refused.text
    assert max(_asked(provider).values()) == 1
    database = folder / "helmbench.db"
    assert rows(database, "SELECT status, passed_tests FROM evaluation_runs") == [("complete", _CASES)]
    assert rows(database, "SELECT count(*) FROM leases") == [(0,)]


def test_who_stood_still_beyond_the_lease_has_lost_the_run(folder: Path, provider: Provider) -> None:
    owner = _session(folder, "owner", provider.url)
    until(lambda: len(provider.requests) > 3 * _CONCURRENCY, "some are asked")
    with owner.paused():
        refused = _session(folder, "early", provider.url, "--helmbench-resume")
        assert refused.end() == pytest.ExitCode.USAGE_ERROR
        assert _HELD.search(refused.text), refused.text
        _change_lease(folder, heartbeat_at=_long_ago())
        taker = _session(folder, "taker", provider.url, "--helmbench-resume=1", "--helmbench-take-over")
        assert taker.end() == pytest.ExitCode.OK, taker.text
        asked = len(provider.requests)
    assert owner.end() == pytest.ExitCode.TESTS_FAILED
    assert "was taken over by another process while this process stood still" in owner.text
    assert len(provider.requests) <= asked + 2 * _CONCURRENCY
    database = folder / "helmbench.db"
    assert rows(database, "SELECT status, passed_tests FROM evaluation_runs") == [("complete", _CASES)]


def _long_ago() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - 70))


def test_a_session_of_another_machine_is_taken_over_when_it_is_silent_and_that_is_asked_for(
    folder: Path, provider: Provider
) -> None:
    _killed(folder, provider)
    now = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    take_over = ("--helmbench-resume=1", "--helmbench-take-over")
    for heard, options, words in (
        (now, take_over, "still being written, by process 7 on elsewhere"),
        (_long_ago(), ("--helmbench-resume",), "add --helmbench-take-over"),
    ):
        _change_lease(folder, host="elsewhere", pid=7, heartbeat_at=heard)
        refused = _session(folder, options[0], provider.url, *options)
        assert refused.end() == pytest.ExitCode.USAGE_ERROR
        assert words in refused.text
    assert provider.requests == []
    taker = _session(folder, "taker", provider.url, *take_over)
    assert taker.end() == pytest.ExitCode.OK, taker.text
