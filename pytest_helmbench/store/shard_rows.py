"""The share that a run is, and the whole plan that it is a share of, as every shard keeps it."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Mapping

from pytest_helmbench.core.case import BrokenCase
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.shard import Shard
from pytest_helmbench.store.cells import as_json

__all__ = ["ADD_SHARDS", "ShardRecord", "write_shard"]

ADD_SHARDS = (
    "ALTER TABLE evaluation_runs ADD COLUMN shard TEXT",
    "ALTER TABLE plans ADD COLUMN whole BLOB",
)


@dataclass(frozen=True, slots=True)
class ShardRecord:
    """A run of one shard.

    Args:
        shard: Which one.
        by: How the plan was shared out: `hash`, or `history` with what names it.
        scope: Of the whole plan: `whole` or `selected`.
        tests: Cases × repetitions of the whole plan.
        codes: The cases of the whole plan.
        broken: Those that cannot run, in all shards.
    """

    shard: Shard
    by: str
    scope: str
    tests: int
    codes: tuple[str, ...]
    broken: tuple[BrokenCase, ...]


def write_shard(conn: sqlite3.Connection, run_id: int, shard: ShardRecord | None) -> None:
    """Keep which share of a plan a run is; its row in `plans` is there already."""
    if shard is None:
        return
    (session,) = conn.execute("SELECT session_id FROM evaluation_runs WHERE id = ?", (run_id,)).fetchone()
    about: Mapping[str, JsonValue] = {
        "index": shard.shard.index,
        "of": shard.shard.of,
        "by": shard.by,
        "session": session,
        "scope": shard.scope,
        "tests": shard.tests,
        "broken": [[case.code, case.severity, case.difficulty, case.evaluations] for case in shard.broken],
    }
    conn.execute("UPDATE evaluation_runs SET shard = ? WHERE id = ?", (as_json(about), run_id))
    packed = zlib.compress("\n".join(shard.codes).encode("utf-8", "replace"))
    conn.execute("UPDATE plans SET whole = ? WHERE run_id = ?", (packed, run_id))
