"""A reply is on disk before it is judged or reported, however slow the disk, and few may wait for it."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from provider import Provider
from records import answered_hashes
from sessions import Session, until
from trees import category, rows, write_tree

_CASES = 120
_CONCURRENCY = 8
_SLACK = 4  # cases that wait for leave beside those that have it
_OPTIONS = ("-q", f"--helmbench-concurrency={_CONCURRENCY}")
_workers = pytest.mark.parametrize("workers", ["-n0", "-n2"])


@pytest.fixture
def folder(pytester: pytest.Pytester, provider: Provider) -> Path:
    """A benchmark whose calls take 20 ms."""
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * _CASES)})
    provider.latency_s = 0.02
    return pytester.path


@contextlib.contextmanager
def _locked(database: Path) -> Iterator[None]:
    """Hold the write lock, as another process would."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None, timeout=30)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def _most_unstored(workers: str) -> int:
    """Return how many replies may wait for the disk: those that were out, and who had leave already."""
    return 2 * _CONCURRENCY + _SLACK * (2 if workers == "-n2" else 1)


@pytest.mark.parametrize(("workers", "asked"), [("-n0", 10), ("-n0", 70), ("-n2", 40)])
def test_a_killed_session_has_on_record_what_it_was_answered(
    folder: Path, provider: Provider, workers: str, asked: int
) -> None:
    """However busy the machine is: what was sent and is not on record was out, or waited for the disk."""
    database = folder / "helmbench.db"
    session = Session(folder, provider.url, workers, *_OPTIONS)
    until(lambda: provider.count >= asked, "some are asked")
    assert session.kill_all()
    assert provider.count - len(answered_hashes(database)) <= _most_unstored(workers)

    for name in ("helmbench.db", "helmbench.db-wal", "helmbench.db-shm"):
        (folder / name).unlink(missing_ok=True)
    provider.requests.clear()
    session = Session(folder, provider.url, workers, *_OPTIONS)
    until(lambda: provider.count >= asked, "some are asked")
    provider.hold()
    # Nothing that was answered waits for anything but the disk.
    until(
        lambda: len(answered_hashes(database)) == provider.count - provider.in_flight, "the rest is on record"
    )
    assert session.kill_all()
    provider.let_go()


@_workers
def test_a_locked_database_holds_the_calls_back_and_a_kill_costs_few(
    folder: Path, provider: Provider, workers: str
) -> None:
    database = folder / "helmbench.db"
    session = Session(folder, provider.url, workers, "-v", *_OPTIONS[1:])
    until(lambda: session.text.count("PASSED") >= 10, "some are judged")
    with _locked(database):
        stored = len(answered_hashes(database))
        time.sleep(2)
        asked = len(provider.requests)
        assert asked <= stored + _most_unstored(workers)
        session.kill_all()
    assert len(answered_hashes(database)) >= stored
    assert asked < _CASES / 2
    # Every verdict that was shown is on record.
    assert 0 < session.text.count("PASSED") <= rows(database, "SELECT count(*) FROM results")[0][0]


_IMPATIENT = """
import pytest_helmbench.run.session_runs as book
from pytest_helmbench.store.write.writer import Store

class Impatient:
    @staticmethod
    def open(path):
        return Store.open(path, patience_s=2.0)

book.Store = Impatient
"""


@_workers
def test_a_database_that_stays_locked_ends_the_session_and_all_is_written_beside_it(
    folder: Path, provider: Provider, workers: str
) -> None:
    database, recovered = folder / "helmbench.db", folder / "helmbench-recovered.db"
    (folder / "impatient.py").write_text(_IMPATIENT, encoding="utf-8")
    session = Session(folder, provider.url, workers, "-p", "impatient", *_OPTIONS)
    until(lambda: len(provider.requests) >= 20, "some are asked")
    with _locked(database):
        stored = len(answered_hashes(database))
        assert session.end() == pytest.ExitCode.TESTS_FAILED
    assert f"STOPPED: {database}: helmbench.db was locked by another process for" in session.text
    assert f"go on with --helmbench-db={recovered} --helmbench-resume" in session.text
    assert "the session was stopped: its database could not be written any more" in session.text
    assert "INTERNALERROR" not in session.text
    assert len(provider.requests) <= stored + _most_unstored(workers)
    assert len(answered_hashes(database)) == stored
    assert len(answered_hashes(recovered)) == len(provider.requests)


@_workers
def test_an_end_that_waits_for_the_disk_says_so_and_a_second_ctrl_c_writes_all_beside_it(
    folder: Path, provider: Provider, workers: str
) -> None:
    database, recovered = folder / "helmbench.db", folder / "helmbench-recovered.db"
    session = Session(folder, provider.url, workers, *_OPTIONS)
    until(lambda: len(provider.requests) >= 20, "some are asked")
    with _locked(database):
        time.sleep(0.5)
        session.interrupt(everybody=False)
        until(lambda: "results are not on disk yet" in session.text, "it says what it waits for")
        asked = len(provider.requests)
        session.interrupt(everybody=False)
        assert session.end() == pytest.ExitCode.INTERRUPTED, session.text
    assert f"helmbench: waiting for {database}: " in session.text
    assert f"--helmbench-db={recovered} --helmbench-resume" in session.text
    assert len(provider.requests) == asked
    assert len(answered_hashes(recovered)) == asked


def test_a_standstill_is_said_and_then_waited_out(folder: Path, provider: Provider) -> None:
    database = folder / "helmbench.db"
    (folder / "said_soon.py").write_text("import pytest_helmbench.run.commits as it\nit._LONG_S = 2.0\n")
    session = Session(folder, provider.url, "-p", "said_soon", *_OPTIONS)
    until(lambda: len(provider.requests) >= 20, "some are asked")
    with _locked(database):
        until(lambda: "nothing could be written" in session.text, "it is said")
        asked = len(provider.requests)
        assert asked < _CASES / 2
    assert session.end() == pytest.ExitCode.OK, session.text
    assert session.text.count(f"helmbench: nothing could be written to {database} for 2 s: ") == 1
    assert f"and while more than {_CONCURRENCY} do, nothing new is sent" in session.text
    assert len(provider.requests) == _CASES
    assert rows(database, "SELECT status, passed_tests FROM evaluation_runs") == [("complete", _CASES)]
