"""Tokens of the relay never reach the results file."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from bench_pack_records import bench_pack_store, judged, result, run_record, said
from trees import rows

from pytest_helmbench.benchmarks.bench_packs.bench_pack import PackScore
from pytest_helmbench.gateway.relay.relay import Relay, RelayRoute


def test_nothing_that_a_pack_says_stops_the_writer_or_brings_a_token_in(tmp_path: Path) -> None:
    path = tmp_path / "helmbench.db"

    async def opened() -> str:
        relay = Relay()
        try:
            return (await relay.open_route(RelayRoute())).token
        finally:
            await relay.close()

    token = asyncio.run(opened())
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    hostile = said(
        "A",
        summary=f"Bearer {token}!",
        rawLog="\0\ud800",
        output={"sent": f"Authorization: Bearer {token}"},
        verifier={"nan": float("nan"), "infinite": [float("inf"), 1]},
        artifacts=deep,
    )
    with bench_pack_store(path, [run_record()]) as (store, (run_id,)):
        store.record_result(result(run_id, "A", judged(hostile, token)))
        store.record_statement(run_id, PackScore(1, ({"id": token},), token))

    with closing(sqlite3.connect(path)) as connection:
        dump = "\n".join(connection.iterdump())
    assert token not in dump
    assert dump.count("<redacted>") == 5
    assert rows(path, "SELECT summary, raw_log, verifier, artifacts FROM pack_results") == [
        (
            "Bearer <redacted>!",
            "\ufffd?",
            '{"nan":null,"infinite":[null,1]}',
            '{"lost":"nested too deeply to be kept"}',
        )
    ]
