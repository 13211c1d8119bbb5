"""The record of a shard held to the form of ours, to its plan and to its share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from pytest_helmbench.core.shard import Shard, hashed_share
from pytest_helmbench.store.fault import StoreError

__all__ = ["UNCHANGED", "check_forms", "check_share"]

UNCHANGED = "give the files that the shards have written, as they are"

# What stands in the form of a file as its type is believed by nobody but us: SQLite goes by the statement.
_OTHER_FORMS = """
    SELECT name FROM sqlite_master WHERE NOT coalesce(
        type = 'table' AND sql LIKE 'CREATE TABLE%' OR type = 'index'
        OR type = 'view' AND substr(name, 1, 2) = 'v_' AND sql LIKE 'CREATE VIEW%', 0)
    UNION ALL SELECT tables.name FROM sqlite_master AS tables JOIN pragma_table_xinfo(tables.name) AS part
    WHERE tables.type = 'table' AND part.hidden
"""


def check_forms(conn: sqlite3.Connection, path: Path) -> None:
    """See that a file holds ordinary tables, their indexes, and views that nobody asks.

    Raises:
        StoreError: It holds a trigger, a virtual table, a computed column, or a view in the place of a table.
    """
    odd = conn.execute(_OTHER_FORMS).fetchone()
    if odd is not None:
        raise StoreError(path, f"it holds {odd[0]!r}, which no results file has", UNCHANGED)


def check_share(
    path: Path,
    share: tuple[Shard, str, str],
    codes: Iterable[str],
    whole: Iterable[str],
    judged: Iterable[str],
) -> None:
    """See that a run has planned and judged nothing but cases of its share.

    Args:
        path: Of the file.
        share: Which shard it is, how the plan was shared out, and the model's id.
        codes: Of this share, as planned.
        whole: Of all shards.
        judged: Those that have a result.

    Raises:
        StoreError: It speaks for the cases of others.
    """
    shard, by, model = share
    own = set(codes)
    foreign = own.difference(whole)
    if by == "hash":
        foreign |= {code for code in own if hashed_share(f"{model}\0{code}", shard.of) != shard.index}
    if foreign:
        raise StoreError(path, f"its plan names {min(foreign)}, which is not in {shard.name}", UNCHANGED)
    more = set(judged).difference(own)
    if more:
        raise StoreError(path, f"it holds a result of {min(more)}, which is not in its plan", UNCHANGED)
