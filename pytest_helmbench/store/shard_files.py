"""Results files of shards, opened to be read and nothing else: nothing in them is trusted."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_helmbench.core.case import BrokenCase
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.shard import Shard
from pytest_helmbench.store.damaged_values import MALFORMED
from pytest_helmbench.store.fault import StoreError, store_error
from pytest_helmbench.store.leases import LEASE_S, holder_of
from pytest_helmbench.store.named_rows import columns_of, named_rows
from pytest_helmbench.store.newest_form import migration_names
from pytest_helmbench.store.outcome_counts import IS_CASE
from pytest_helmbench.store.run_rows import seconds_since_epoch
from pytest_helmbench.store.shard_claims import UNCHANGED, check_forms, check_share

__all__ = ["ShardFile", "ShardRun", "read_only_uri", "read_shard_file"]

_LONGEST_PLAN = 2**30


@dataclass(frozen=True, slots=True)
class ShardRun:
    """One run of a shard: a benchmark on a model.

    Args:
        run_id: `evaluation_runs.id` in its file.
        session_id: Of the shard.
        shard: Which one it is.
        by: How the plan was shared out.
        scope: Of the whole plan.
        tests: Cases × repetitions of the whole plan.
        codes: Of this share.
        whole: Of all shards, in order.
        broken: Those that cannot run, in all shards.
        started_at: ISO 8601.
        completed_at: None for a run that has not ended.
        status: As recorded.
        results: How many it has.
        total_tests: How many its share has.
        benchmark_id: Row of its benchmark in the file.
        benchmark: Name, version, hash and kind.
        llm: Name, provider and server of its model.
        settings: As recorded.
        plugin_version: Of the program that wrote it.
    """

    run_id: int
    session_id: str
    shard: Shard
    by: str
    scope: str
    tests: int
    codes: tuple[str, ...]
    whole: tuple[str, ...]
    broken: tuple[BrokenCase, ...]
    started_at: str
    completed_at: str | None
    status: str
    results: int
    total_tests: int
    benchmark_id: int
    benchmark: tuple[str, str, str, str]
    llm: tuple[str, str, str | None]
    settings: Mapping[str, Any]
    plugin_version: str
    place: str | None


@dataclass(frozen=True, slots=True)
class ShardFile:
    """A results file with its runs of shards.

    Args:
        path: Of the file.
        runs: Oldest first; those of other sessions are left out.
        newest_is_shard: Whether its last session is a shard.
        held_by: Who still writes it, for people; empty for nobody.
    """

    path: Path
    runs: tuple[ShardRun, ...]
    newest_is_shard: bool
    held_by: str


def read_only_uri(path: Path) -> str:
    """Return how a file is opened without a trace: nothing is written beside it unless its log has to be read."""
    has_log = any(_size(path.with_name(path.name + suffix)) for suffix in ("-wal", "-journal"))
    return f"{path.absolute().as_uri()}?{'mode=ro' if has_log else 'mode=ro&immutable=1'}"


def read_shard_file(path: Path, now_s: float | None = None) -> ShardFile:
    """Return what a results file says of the shards in it.

    Args:
        path: The file.
        now_s: Seconds since the epoch; None for now.

    Raises:
        StoreError: It is missing, damaged, no results file, newer than this version, or holds no run.
    """
    with _opened(path) as conn:
        try:
            _check_tables(conn, path)
            newest = conn.execute(
                "SELECT shard IS NOT NULL FROM evaluation_runs ORDER BY id DESC LIMIT 1"
            ).fetchone()
            if newest is None:
                hint = f"what a killed session has written is in {path.name}-wal: copy it along"
                raise StoreError(path, "it holds no run", hint)
            runs = tuple(_runs(conn))
            for run in runs:
                _check_share(conn, path, run)
            held_by = _holder(conn, runs, time.time() if now_s is None else now_s)
        except MALFORMED as error:
            raise StoreError(
                path, f"its record of shards cannot be read ({type(error).__name__})", UNCHANGED
            ) from error
    return ShardFile(path, runs, bool(newest[0]), held_by)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise StoreError(path, "it is no file" if path.exists() else "there is no such file", UNCHANGED)
    try:
        with contextlib.closing(sqlite3.connect(read_only_uri(path), uri=True, timeout=30)) as conn:
            conn.execute("PRAGMA trusted_schema = OFF")
            conn.execute("PRAGMA cell_size_check = ON")
            conn.execute("PRAGMA query_only = ON")
            yield conn
    except sqlite3.Error as error:
        raise store_error(path, error) from error


def _check_tables(conn: sqlite3.Connection, path: Path) -> None:
    """See that the file is one of ours: ordinary tables, of a form that this version knows.

    Raises:
        StoreError: It is not.
    """
    check_forms(conn, path)
    if "shard" not in columns_of(conn, "evaluation_runs"):
        hint = "give the files of sessions with --helmbench-shard"
        raise StoreError(path, "it holds no run of a shard", hint)
    names = {
        name
        for (name,) in conn.execute("SELECT name FROM _sqlite_migrations WHERE migration_set = 'helmbench'")
    }
    unknown = names.difference(migration_names())
    if unknown:
        said = ", ".join(sorted(map(str, unknown)))
        raise StoreError(
            path, f"written by a newer version of pytest-helmbench (unknown: {said})", "update it here"
        )
    damage = conn.execute("PRAGMA quick_check(1)").fetchone()
    if damage is None or damage[0] != "ok":
        raise StoreError(path, f"the database is damaged ({damage and damage[0]})", "take an undamaged copy")


_RUNS = f"""
    SELECT runs.*, plans.codes, plans.whole, benchmarks.name AS benchmark, benchmarks.version, benchmarks.hash,
        benchmarks.kind, llms.name AS model, llms.provider, llms.base_url,
        (SELECT count(*) FROM results WHERE results.run_id = runs.id AND {IS_CASE}) AS results
    FROM evaluation_runs AS runs JOIN plans ON plans.run_id = runs.id
    JOIN benchmarks ON benchmarks.id = runs.benchmark_id JOIN llms ON llms.id = runs.llm_id
    WHERE runs.shard IS NOT NULL AND runs.rescored_from IS NULL ORDER BY runs.id
"""


def _runs(conn: sqlite3.Connection) -> Iterator[ShardRun]:
    for row in named_rows(conn.execute(_RUNS)):
        about = json.loads(_text(row["shard"]))
        shard = Shard(_whole(about["index"]), _whole(about["of"]))
        if not 1 <= shard.index <= shard.of <= 10**9:
            raise ValueError("shard")
        settings = json.loads(_text(row["settings"]))
        if row["status"] not in ("running", "complete", "partial", "interrupted") or not isinstance(
            settings, dict
        ):
            raise ValueError("run")
        server, done, place = row["base_url"], row["completed_at"], row.get("benchmark_place")
        seconds_since_epoch(_text(row["started_at"]))
        yield ShardRun(
            run_id=_whole(row["id"]),
            session_id=_text(row["session_id"]),
            shard=shard,
            by=_text(about["by"]),
            scope="whole" if about["scope"] == "whole" else "selected",
            tests=_whole(about["tests"]),
            codes=_codes(row["codes"]),
            whole=_codes(row["whole"]),
            broken=tuple(BrokenCase(_text(code), *map(_whole, rest)) for code, *rest in about["broken"]),
            started_at=_text(row["started_at"]),
            completed_at=None if done is None else _text(done),
            status=_text(row["status"]),
            results=_whole(row["results"]),
            total_tests=_whole(row["total_tests"]),
            benchmark_id=_whole(row["benchmark_id"]),
            benchmark=(
                _text(row["benchmark"]),
                _text(row["version"]),
                _text(row["hash"]),
                _text(row["kind"]),
            ),
            llm=(_text(row["model"]), _text(row["provider"]), None if server is None else _text(server)),
            settings=settings,
            plugin_version=_text(row["plugin_version"]),
            place=None if place is None else _text(place),
        )


def _check_share(conn: sqlite3.Connection, path: Path, run: ShardRun) -> None:
    query = "SELECT DISTINCT code FROM results WHERE run_id = ?"
    judged = [_text(code) for (code,) in conn.execute(query, (run.run_id,))]
    check_share(path, (run.shard, run.by, run.llm[0]), run.codes, run.whole, judged)


def _holder(conn: sqlite3.Connection, runs: tuple[ShardRun, ...], now_s: float) -> str:
    """Return who writes one of these runs: a process that is not seen to be gone, and has spoken within 60 s."""
    for run in runs:
        if run.status != "running":
            continue
        at, process = conn.execute(
            "SELECT heartbeat_at, (SELECT process FROM leases WHERE run_id = evaluation_runs.id)"
            " FROM evaluation_runs WHERE id = ?",
            (run.run_id,),
        ).fetchone()
        known = run.settings.get("process") if process is None else json.loads(_text(process))
        holder = holder_of(known)
        if holder and at is not None and abs(now_s - seconds_since_epoch(_text(at))) <= LEASE_S:
            return holder
    return ""


def _codes(packed: object) -> tuple[str, ...]:
    if not isinstance(packed, bytes):
        raise TypeError("plan")
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(packed, _LONGEST_PLAN)
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise ValueError("plan")
    return tuple(filter(None, text.decode().split("\n")))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or not -(2**53) < value < 2**53:
        raise TypeError("number")
    return value


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
