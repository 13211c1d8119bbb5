"""Results files when something goes wrong: other processes, full disks, kills, odd files."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_runs import AT, open_run, record_case
from waiting import PATIENCE_S

from pytest_helmbench.core.outcome import Outcome, ResultRecord, Verdict
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.schema import VERSION
from pytest_helmbench.store.write.run_rows import RunTotals
from pytest_helmbench.store.write.writer import Store

NOBODY = 65_534
posix = pytest.mark.skipif(os.name != "posix", reason="POSIX processes and limits")


def count(path: Path, table: str) -> int:
    with contextlib.closing(sqlite3.connect(path)) as conn:
        return int(conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


# --- what child processes do ---


def write_cases(path: str, cases: str) -> None:
    with contextlib.closing(Store.open(Path(path))) as store:
        run_id = open_run(store)
        for number in range(int(cases)):
            record_case(store, run_id, number)
            time.sleep(0.0005)  # so that the transactions of two writers alternate
        store.flush()
        assert store.fault is None, store.fault
        store.close_run(run_id, RunTotals("complete", AT))


def hold_lock(path: str, seconds: str) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("BEGIN IMMEDIATE")
        print("locked", flush=True)
        time.sleep(float(seconds))
        conn.execute("ROLLBACK")


def open_as_nobody(path: str) -> None:
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
    try:
        Store.open(Path(path))
    except StoreError as error:
        print(error)


_CHILD = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("store_child", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
getattr(module, sys.argv[2])(*sys.argv[3:])
"""


def child(function: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _CHILD, __file__, function, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def child_says(function: str, *arguments: object) -> str:
    with child(function, *arguments) as process:
        said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    return said


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "helmbench.db"


# --- several processes ---


def test_two_sessions_that_create_and_write_one_file_at_once_do_not_clash(path: Path) -> None:
    writers = [child("write_cases", path, 300) for _ in range(2)]
    for writer in writers:
        with writer:
            assert writer.wait(PATIENCE_S) == 0

    with contextlib.closing(sqlite3.connect(path)) as conn:
        runs = conn.execute("SELECT passed_tests, cost_usd FROM evaluation_runs").fetchall()
        assert runs == [(300, pytest.approx(30)), (300, pytest.approx(30))]
        for table in ("calls", "responses", "results"):
            assert conn.execute(f"SELECT count(DISTINCT id) FROM {table}").fetchone() == (600,)
        assert conn.execute("SELECT count(*) FROM requests").fetchone() == (300,)
        assert conn.execute("SELECT count(*) FROM benchmarks").fetchone() == (1,)


def test_no_run_begins_in_a_file_that_is_locked(path: Path) -> None:
    hint = "close the program that has a transaction open, or give another file with --helmbench-db=PATH"
    words = f"{path}: another process holds the write lock (database is locked)\n  hint: {hint}"
    with contextlib.closing(Store.open(path, busy_timeout_s=0.05, patience_s=0.1)) as store:
        with child("hold_lock", path, 60) as locker:
            assert locker.stdout is not None
            assert locker.stdout.readline() == "locked\n"
            with pytest.raises(StoreError) as at_open:
                Store.open(path, busy_timeout_s=0.05)
            with pytest.raises(StoreError) as at_run:
                open_run(store)
            locker.kill()
        assert str(at_run.value) == str(at_open.value) == words
        assert at_run.value is store.fault


# --- places and files ---


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter: pytest's own are closed to the user that the child becomes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


@posix
def test_a_read_only_folder_is_named_with_a_way_out(open_folder: Path) -> None:
    path = open_folder / "helmbench.db"
    open_folder.chmod(0o555)
    assert child_says("open_as_nobody", path) == (
        f"{path}: the file cannot be opened or created (unable to open database file)\n"
        "  hint: the folder must exist and be writable; give another place with --helmbench-db=PATH\n"
    )


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "helmbench.db"
    with pytest.raises(StoreError, match=r"cannot be opened or created .*\n  hint: the folder must exist"):
        Store.open(path)
    assert not path.parent.exists()


def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(path: Path) -> None:
    content = b"Dear diary, " * 100
    path.write_bytes(content)
    with pytest.raises(StoreError) as refused:
        Store.open(path)
    assert str(refused.value) == (
        f"{path}: not a SQLite database (file is not a database)\n"
        "  hint: give another file with --helmbench-db=PATH; this one was left as it is"
    )
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused_and_left_as_it_was(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as conn:
        conn.execute("CREATE TABLE results (mine)")
    content = path.read_bytes()
    with pytest.raises(StoreError) as refused:
        Store.open(path)
    assert str(refused.value) == (
        f"{path}: its tables are not those of pytest-helmbench\n"
        "  hint: give the file of a run, or a new one, with --helmbench-db=PATH"
    )
    assert path.read_bytes() == content


def test_a_file_of_another_version_is_refused_by_name(path: Path) -> None:
    Store.open(path).close()
    with contextlib.closing(sqlite3.connect(path)) as conn, conn:
        conn.executescript(
            f"PRAGMA user_version = {VERSION + 1}; DROP VIEW v_costs; CREATE VIEW v_costs AS SELECT 1"
        )
    with pytest.raises(StoreError) as refused:
        Store.open(path)
    assert str(refused.value) == (
        f"{path}: written by another version of pytest-helmbench (form {VERSION + 1}; this one knows form {VERSION})\n"
        "  hint: use the version that wrote it, or give another file with --helmbench-db=PATH"
    )


def test_an_empty_file_gets_its_tables_and_a_second_opening_changes_nothing(path: Path) -> None:
    path.touch()
    Store.open(path).close()
    content = path.read_bytes()
    Store.open(path).close()
    assert path.read_bytes() == content
    assert count(path, "v_results") == 0
    assert list(path.parent.iterdir()) == [path]  # the log is folded in


def test_a_record_of_an_unknown_run_is_a_fault_and_nothing_of_it_stays(path: Path) -> None:
    with contextlib.closing(Store.open(path)) as store:
        record_case(store, 99, 1)
        store.flush()
        assert str(store.fault).startswith(f"{path}: a row contradicts the rows it refers to (FOREIGN KEY")
        assert "please report it" in str(store.fault)
    assert count(path, "requests") == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_writer_that_breaks_down_keeps_nobody_waiting(path: Path) -> None:
    with contextlib.closing(Store.open(path)) as store:
        run_id = open_run(store)
        outcome = Outcome(Verdict.PASSED)
        store.record_result(ResultRecord(run_id, "CASE", "CASE", "sqe", 2**70, 0, 0, False, outcome))
        store.flush()
        with pytest.raises(StoreError) as refused:
            open_run(store)
    assert str(refused.value) == (
        f"{path}: the writer has broken down\n  hint: a fault of the program, please report the error above"
    )
    assert count(path, "results") == 0


def test_after_closing_records_are_dropped_and_questions_refused(path: Path) -> None:
    store = Store.open(path)
    store.close()
    store.close()
    record_case(store, 1, 1)
    store.flush()
    assert store.dropped == 2
    with pytest.raises(StoreError, match="the writer has ended\n  hint: open the database again"):
        open_run(store)
