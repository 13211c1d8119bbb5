"""Killed at any moment and resumed, a session ends as if nothing had happened, and pays for nothing twice.

The moments are other ones each time; `HELMBENCH_KILLS=200` tries more of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from pathlib import Path

import pytest
from provider import Answer, Provider, Request, build_reply
from records import answered_hashes, final_state, integrity, judged_rows
from sessions import Session, run_undisturbed, until
from trees import Part, Tree, category, includes, judged, judged_twice, rows, threshold, write_tree

_KILLS = int(os.environ.get("HELMBENCH_KILLS", "10"))
_SEED = int(os.environ.get("HELMBENCH_KILLS_SEED", str(time.time_ns() % 10**6)))
_CONCURRENCY = 6
_OPTIONS = ("-q", "--helmbench-marking-model=test/judge", f"--helmbench-concurrency={_CONCURRENCY}")
_STORED_WITHIN_S = 0.02 if _KILLS > 10 else 1.0
"""A reply that a process read so long before it is killed is on record; under load it may wait for a CPU."""

# Notes when the process that is killed has read a reply, by the clock that all processes share.
_NOTES = """
import hashlib, os, time
from pytest_helmbench.gateway.client import ChatClient

post = ChatClient.post

async def noted(self, endpoint, body, *more):
    answer = await post(self, endpoint, body, *more)
    if answer.status == 200:
        with open(os.environ["READ_REPLIES"], "a") as file:
            file.write(f"{hashlib.sha256(body).hexdigest()} {time.monotonic()}\\n")
    return answer

ChatClient.post = noted
"""
_BLOCKED = "ANSWER: BLOCKED"
_CHAIN = 5  # kills of one and the same run
_SHARE_AT_START = 0.15


_TOOLS = """- name: order_status
  description: Look up an order.
  parameters: {type: object, properties: {order: {type: string}}}
  returns: [{value: shipped}]
"""
_CALL = {"id": "c", "seal": "S", "function": {"name": "order_status", "arguments": '{"order": "7"}'}}
_TALK = "## Turn 1\n\nWhere is order {0}?\n\n## Turn 2\n\nThank you, {0}."


def _write_benchmark(folder: Path) -> None:
    talks = {f"PT{number}": Part(_TALK.format(number), 5) for number in range(1, 6)}
    calls = Tree(("evaluation: {type: tool_calls, required: [order_status], turn: 1}",), None, talks)
    root = write_tree(
        folder / "benchmark",
        {
            "P1-B1-S1": category(*["RISK", "CALM", "RISK"] * 3),
            "P1-B1-S2": includes("A,B", "A", "A,B,C"),
            "P1-B2-S1": threshold("A,B", "A", "A,B,C,D"),
            "P1-B2-S2": judged(*["fine"] * 5),
            "P2-B1-S1": judged_twice(*["fine"] * 6),
            "P2-B1-S2": category("RISK", "BLOCKED", "RISK"),
            "P2-B2-S1": calls,
        },
    )
    (root / "scenarios" / "P2-B2-S1" / "tools.yml").write_text(_TOOLS, encoding="utf-8")


def _number(request: Request) -> int:
    return int(hashlib.sha256(request.raw).hexdigest()[:8], 16)


def _reply(request: Request) -> Answer:
    """Return the same to the same request, after 10 to 60 ms; judges wait a little longer."""
    number = _number(request)
    latency_s = 0.01 + number % 50 / 1000
    if request.is_judge:
        verdict = ("GOOD", "MIDDLING", "BAD")[number % 3]
        return Answer(text=json.dumps(build_reply(request.schema or {}, verdict)), latency_s=latency_s + 0.05)
    if _BLOCKED in request.prompt:
        refusal = {"error": {"code": "content_filter", "message": "no"}}
        return Answer(status=400, body=refusal, latency_s=latency_s)
    if request.body.get("tools") and "Where is order" in request.body["messages"][-1]["content"]:
        message = {"content": None, "reasoning_content": "Look it up.", "tool_calls": [_CALL]}
        choice = {"message": message, "finish_reason": "tool_calls"}
        return Answer(body={"choices": [choice], "usage": {"cost": 0.001}}, latency_s=latency_s)
    return Answer(latency_s=latency_s)


class _Chain:
    """One run, killed again and again and resumed until it ends.

    Args:
        pytester: Where it runs.
        provider: Counts what is asked.
        workers: `-n0` or `-n2`.
    """

    def __init__(self, pytester: pytest.Pytester, provider: Provider, workers: str) -> None:
        self.database = pytester.path / "helmbench.db"
        self.kills = 0
        self.read_replies = 0
        self.lost_s: list[float] = []
        """How long before a kill the replies were read that are not on record."""
        self._pytester = pytester
        self._provider = provider
        self._workers = workers
        self.read = pytester.path / "read.txt"
        (pytester.path / "notes.py").write_text(_NOTES, encoding="utf-8")
        self.whole_s = 0.0
        self.start_s = 0.0

    def measure(self) -> None:
        """Run undisturbed, to compare with and to know how long it takes."""
        started = time.monotonic()
        folder = self._pytester.path
        database = f"--helmbench-db={folder / 'undisturbed.db'}"
        session = Session(folder, self._provider.url, self._workers, *_OPTIONS, database)
        assert session.end() == pytest.ExitCode.TESTS_FAILED, session.text
        first, last = self._provider.requests[0].at, self._provider.requests[-1].at
        self.start_s, self.whole_s = first - started, last - first

    def kill_once(self, after_s: float, *, from_the_start: bool) -> None:
        """Start or resume, and kill.

        Args:
            after_s: When.
            from_the_start: Counted from the start of the process, not from its first request.
        """
        recorded, asked = self._recorded(), self._provider.count
        self.read.unlink(missing_ok=True)
        session = Session(self._pytester.path, self._provider.url, "-p", "notes", *self._options())
        if not from_the_start:
            until(lambda: self._provider.count > asked or session.has_ended, "the first request comes")
        time.sleep(after_s)
        killed = time.monotonic()
        self.kills += session.kill_all()
        self._check(asked, *recorded)
        self._note_what_was_lost(killed)

    def _note_what_was_lost(self, killed: float) -> None:
        """Note what the process had read before, and is not on record."""
        lines = self.read.read_text().splitlines() if self.read.exists() else []
        read = {name: float(at) for name, _, at in (line.partition(" ") for line in lines) if at}
        self.read_replies += len(read)
        stored = answered_hashes(self.database) if self._has_run() else set()
        self.lost_s += [killed - at for name, at in read.items() if name not in stored]

    def finish(self) -> None:
        """Resume a last time and let it end."""
        recorded, asked = self._recorded(), self._provider.count
        ended = run_undisturbed(self._pytester, self._provider.url, *self._options())
        assert ended.ret == pytest.ExitCode.TESTS_FAILED
        self._check(asked, *recorded)

    def _recorded(self) -> tuple[set[str], set[tuple[object, ...]]]:
        """Return what has been answered and judged."""
        if not self._has_run():
            return set(), set()
        return answered_hashes(self.database), judged_rows(self.database)

    def has_ended(self) -> bool:
        """Whether the run is closed."""
        return (
            self._has_run() and rows(self.database, "SELECT status FROM evaluation_runs")[-1][0] == "partial"
        )

    def _has_run(self) -> bool:
        """Whether anything is on record yet."""
        if not self.database.exists():
            return False
        tables = rows(self.database, "SELECT count(*) FROM sqlite_master WHERE name = 'evaluation_runs'")
        return tables == [(1,)] and rows(self.database, "SELECT count(*) FROM evaluation_runs") != [(0,)]

    def _options(self) -> tuple[str, ...]:
        resume = ("--helmbench-resume",) if self._has_run() else ()
        return (self._workers, *_OPTIONS, *resume)

    def _check(self, asked: int, before: set[str], verdicts: set[tuple[object, ...]]) -> None:
        again = [request for request in self._provider.requests[asked:] if _hash(request) in before]
        assert again == []
        if self._has_run():
            assert verdicts <= judged_rows(self.database)
            assert integrity(self.database) == "ok"


def _hash(request: Request) -> str:
    return hashlib.sha256(request.raw).hexdigest()


@pytest.mark.timeout(300 + 15 * _KILLS)
@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_sessions_killed_at_random_moments_and_resumed_end_as_undisturbed_ones(
    pytester: pytest.Pytester, provider: Provider, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(_SEED)
    monkeypatch.setenv("READ_REPLIES", str(pytester.path / "read.txt"))
    provider.reply = _reply
    folder = pytester.path
    _write_benchmark(folder)
    chain = _Chain(pytester, provider, workers)
    chain.measure()
    kills = 0
    while kills < _KILLS // 2:
        provider.requests.clear()
        for name in ("helmbench.db", "helmbench.db-wal", "helmbench.db-shm"):
            (folder / name).unlink(missing_ok=True)
        chain.kills = 0
        while chain.kills < _CHAIN and not chain.has_ended():
            at_start = chance.random() < _SHARE_AT_START
            longest_s = chain.start_s if at_start else 2 * chain.whole_s / _CHAIN
            chain.kill_once(chance.uniform(0, longest_s), from_the_start=at_start)
        kills += chain.kills
        if not chain.has_ended():
            chain.finish()
        assert final_state(chain.database) == final_state(folder / "undisturbed.db"), f"seed {_SEED}"
        # Only what was in flight, or on its way to the disk, was asked once more.
        print(
            f"{workers}: {kills} kills, {chain.read_replies} replies read, lost before one: {sorted(chain.lost_s)}"
        )
        answerable = [_hash(request) for request in provider.requests if _BLOCKED not in request.prompt]
        assert len(answerable) - len(set(answerable)) <= chain.kills * 2 * _CONCURRENCY
    assert chain.read_replies
    assert [lost for lost in chain.lost_s if lost > _STORED_WITHIN_S] == []


def test_a_killed_worker_costs_only_the_calls_in_flight(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    folder = pytester.path
    write_tree(folder / "benchmark", {"P1-B1-S1": judged_twice(*["fine"] * 10), "P1-B1-S2": category("CALM")})
    database = f"--helmbench-db={folder / 'undisturbed.db'}"
    undisturbed = run_undisturbed(pytester, provider.url, "-n2", *_OPTIONS, database)
    assert undisturbed.ret == pytest.ExitCode.TESTS_FAILED
    provider.requests.clear()
    # All cases are answered and half of their judges; the others hang until both workers are dead.
    provider.answers(hang=True, when=lambda request: request.is_judge and "Point 2." in request.prompt)
    session = Session(folder, provider.url, "-n2", *_OPTIONS)
    until(lambda: provider.in_flight == _CONCURRENCY, "the judges are asked")
    until(
        lambda: len(answered_hashes(folder / "helmbench.db")) == provider.count - _CONCURRENCY,
        "the rest is stored",
    )
    in_flight = {_hash(request) for request in provider.requests} - answered_hashes(folder / "helmbench.db")
    assert len(in_flight) == _CONCURRENCY
    before = provider.count
    provider.reset()
    session.kill_workers("gw0", "gw1")
    assert session.end() == pytest.ExitCode.TESTS_FAILED, session.text
    assert "10 passed" in session.text
    assert "1 failed" in session.text
    # Together each request once, but for those that were out.
    assert before + provider.count == 10 * 3 + 1 + _CONCURRENCY
    assert in_flight <= {_hash(request) for request in provider.requests}
    assert final_state(folder / "helmbench.db") == final_state(folder / "undisturbed.db")
