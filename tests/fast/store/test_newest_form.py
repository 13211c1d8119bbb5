"""A new results file gets its newest form at once, and that is what the migrations make."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from newest_form_sql import FILE, make_older, newest_form_sql, objects_of

from pytest_helmbench.store.database_file import open_database
from pytest_helmbench.store.newest_form import applied_migrations, create_newest, migration_names
from pytest_helmbench.store.schema import migrate


@pytest.fixture
def migrated() -> sqlite3.Connection:
    conn = sqlite3.connect(":memory:", isolation_level=None)
    migrate(conn)
    return conn


def test_the_file_is_made_of_the_migrations() -> None:
    assert FILE.read_text("utf-8") == newest_form_sql(), (
        "write it anew: python tests/support/newest_form_sql.py"
    )


def test_a_new_file_is_what_the_migrations_make(tmp_path: Path, migrated: sqlite3.Connection) -> None:
    with closing(open_database(tmp_path / "new.db", 1.0)) as conn, closing(migrated):
        assert objects_of(conn) == objects_of(migrated)
        assert applied_migrations(conn) == applied_migrations(migrated) == migration_names()
        times = [
            one.execute("SELECT applied_at FROM _sqlite_migrations").fetchone()[0] for one in (conn, migrated)
        ]
        assert [datetime.fromisoformat(time).tzinfo for time in times] == [UTC, UTC]


def test_what_is_created_goes_with_the_transaction_that_it_was_created_in() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        conn.execute("BEGIN IMMEDIATE")
        create_newest(conn)
        conn.execute("ROLLBACK")
        assert applied_migrations(conn) is None


def test_a_file_that_lacks_the_last_migration_gets_it(tmp_path: Path, migrated: sqlite3.Connection) -> None:
    path = tmp_path / "old.db"
    with closing(open_database(path, 1.0)) as conn:
        make_older(conn)
    with closing(open_database(path, 1.0)) as conn, closing(migrated):
        assert objects_of(conn) == objects_of(migrated)
        assert applied_migrations(conn) == migration_names()


def test_a_file_with_tables_of_others_gets_ours_beside_them(tmp_path: Path) -> None:
    path = tmp_path / "mixed.db"
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("CREATE TABLE theirs (a)")
    with closing(open_database(path, 1.0)) as conn:
        assert applied_migrations(conn) == migration_names()
        assert conn.execute("SELECT count(*) FROM theirs").fetchone() == (0,)
