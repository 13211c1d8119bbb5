"""Recorded answers to an item, in their order: offline, after a kill, and from a worker of xdist."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import execnet
import pytest
from provider import Provider, Request
from relays import body, converse, opened_store, recording_gateway, relay_before
from waiting import until

from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.gateway.backend import CacheMode, LocalBackend, ReplyCache
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import ModelLimits, SessionLimits
from pytest_helmbench.gateway.relay.conversation import Conversation
from pytest_helmbench.gateway.retries import CallFailedError
from pytest_helmbench.pytest_side.workers.xdist_controller import ChannelServer
from pytest_helmbench.run.coordinator import RecordedReplies

_URL = "http://127.0.0.1:9/v1"  # without a server
_ASKED = ("draw", "count", "draw", "draw", "count")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "helmbench.db"


@pytest.fixture
def counting(provider: Provider) -> Provider:
    """A provider that never says the same twice."""

    def reply(request: Request) -> str:
        return f"{request.prompt} {provider.count}"

    provider.reply = reply
    return provider


def _rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


async def _ask(conversation: Conversation, asked: tuple[str, ...] = _ASKED) -> list[tuple[int, bytes]]:
    """Put questions through the relay, one after the other."""
    async with relay_before(conversation) as send:
        answers = [await send(body(text)) for text in asked]
    return [(answer.status, answer.body) for answer in answers]


def test_a_replay_gives_the_same_bytes_in_the_same_order_without_a_network(
    counting: Provider, path: Path
) -> None:
    async def first() -> list[tuple[int, bytes]]:
        async with recording_gateway(path) as (gateway, run_id):
            return await _ask(converse(gateway, counting.url, run_id=run_id))

    async def again() -> list[tuple[int, bytes]]:
        async with recording_gateway(path, CacheMode.ONLY) as (gateway, run_id):
            item = converse(gateway, _URL, run_id=run_id)
            answers = await _ask(item)
            totals = item.totals
            assert (totals.answered, totals.recalled, totals.usage.cost_usd, totals.latency_ms) == (
                5,
                5,
                0.0,
                0.0,
            )
            (missing,) = await _ask(item, ("draw",))
            assert missing[0] == 404
            assert json.loads(missing[1])["error"]["code"] == "not_on_record"
            assert list(map(type, item.totals.open_faults)) == [CallFailedError]
            return answers

    recorded = asyncio.run(first())
    assert len(set(recorded)) == 5
    assert asyncio.run(again()) == recorded
    assert counting.count == 5
    query = "SELECT run_id, sequence, from_cache, request_hash, response_id FROM calls ORDER BY rowid"
    calls = _rows(path, query)
    assert [(row[1], row[3], row[4]) for row in calls[:5]] == [
        (row[1], row[3], row[4]) for row in calls[5:10]
    ]
    assert [row[2] for row in calls] == [0] * 5 + [1] * 5
    assert _rows(path, "SELECT count(*), count(DISTINCT hash) FROM requests") == [(5, 5)]
    assert _rows(path, "SELECT count(DISTINCT body) FROM requests") == [(2,)]


async def test_an_item_that_was_killed_goes_on_where_it_was(counting: Provider, path: Path) -> None:
    async with recording_gateway(path) as (gateway, run_id):
        told = await _ask(converse(gateway, counting.url, run_id=run_id), _ASKED[:3])
    async with recording_gateway(path, resumes=run_id) as (gateway, _):
        item = converse(gateway, counting.url, run_id=run_id)
        assert await _ask(item, _ASKED[:3]) == told
        assert counting.count == 3
        assert item.totals.usage.cost_usd == pytest.approx(0.003)  # its own calls stay its own
        rest = await _ask(item, _ASKED[3:])
        assert [json.loads(raw)["choices"][0]["message"]["content"] for _, raw in rest] == [
            "draw 4",
            "count 5",
        ]


async def test_items_share_the_first_of_identical_requests_and_then_the_second(
    counting: Provider, path: Path
) -> None:
    counting.latency_s = 0.02

    async with recording_gateway(path, CacheMode.REUSE) as (gateway, run_id):
        items = [converse(gateway, counting.url, f"ROW-{n}", run_id=run_id) for n in (1, 2)]
        left, right = await asyncio.gather(*(_ask(item, ("draw", "draw")) for item in items))
    assert left == right
    assert left[0] != left[1]
    assert counting.count == 2


_WORKER = """
import sys
sys.path[:0] = {paths!r}
from relays import replay_in_worker
replay_in_worker(channel, {url!r}, {code!r}, {mode!r}, {run_id!r})
"""


def _replies_to_workers(workers: list[Any], path: Path, url: str, mode: CacheMode) -> dict[str, list[str]]:
    """Let each worker ask the same three times; return the replies of each."""
    store, run_id = opened_store(path)
    notes: list[str] = []
    with (
        closing(store),
        closing(LoopThread()) as loop,
        closing(RecordedReplies(store, mode, (), print)) as memory,
    ):
        gate = Limiter(SessionLimits(8), time.monotonic)
        gate.add_models([ModelLimits("test/good", 8)])
        reply_cache = ReplyCache(memory, shares=mode is CacheMode.REUSE) if mode.reads else None
        backend = LocalBackend(gate, store.record_attempt, store.record_result, reply_cache)
        told = {"note": notes.append}
        paths = [entry for entry in sys.path if entry]
        for number, worker in enumerate(workers):
            code = f"ROW-{number}"
            source = _WORKER.format(paths=paths, url=url, code=code, mode=mode.value, run_id=run_id)
            channel = worker.remote_exec(source)
            ChannelServer(loop, channel, told).serve(backend)
        until(lambda: len(notes) == len(workers), "each reports its replies")
    return dict(json.loads(note) for note in notes)


def test_workers_of_xdist_record_and_replay_the_same_sequences(counting: Provider, path: Path) -> None:
    group = execnet.Group([f"popen//python={sys.executable}"] * 2)
    try:
        recorded = _replies_to_workers(list(group), path, counting.url, CacheMode.REUSE)
        replayed = _replies_to_workers(list(group), path, _URL, CacheMode.ONLY)
    finally:
        group.terminate(timeout=5)
    assert replayed == recorded
    assert recorded["ROW-0"] == recorded["ROW-1"]  # they have shared their calls
    assert len(set(recorded["ROW-0"])) == counting.count == 3
    calls = _rows(
        path, "SELECT code, group_concat(sequence) FROM calls GROUP BY run_id, code ORDER BY run_id, code"
    )
    assert calls == [("ROW-0", "1,2,3"), ("ROW-1", "1,2,3")] * 2
