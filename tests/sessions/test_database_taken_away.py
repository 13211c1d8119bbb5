"""A database that is deleted, moved, cut or replaced, or its log, is noticed with the next commit; no reply is lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from provider import Provider
from records import answered_hashes, integrity
from sessions import Session, until
from trees import category, rows, run_tree, write_tree

_CASES = 60
_CONCURRENCY = 4
_OPTIONS = ("-q", f"--helmbench-concurrency={_CONCURRENCY}")
_SUFFIXES = ("", "-wal", "-shm")


def _delete(database: Path) -> None:
    for suffix in _SUFFIXES:
        database.with_name(database.name + suffix).unlink()


def _delete_alone(database: Path) -> None:
    database.unlink()


def _move(database: Path) -> None:
    database.rename(database.with_name("elsewhere.db"))


def _replace(database: Path) -> None:
    other = database.with_name("other.db")
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE mine (value)")
    shutil.move(other, database)


def _delete_log(database: Path) -> None:
    database.with_name(database.name + "-wal").unlink()


def _cut(database: Path) -> None:
    os.truncate(database, 0)


def _cut_log(database: Path) -> None:
    log = database.with_name(database.name + "-wal")
    os.truncate(log, log.stat().st_size // 2)


# One process writes, with workers as without, and only there does it matter how the file went.
@pytest.mark.parametrize(
    ("take_away", "workers"),
    [
        (_delete, "-n0"),
        (_delete_alone, "-n0"),
        (_delete_log, "-n0"),
        (_move, "-n0"),
        (_replace, "-n0"),
        (_cut, "-n0"),
        (_cut_log, "-n0"),
        (_delete, "-n2"),
    ],
)
def test_the_session_stops_and_saves_what_it_holds_beside(
    pytester: pytest.Pytester, provider: Provider, take_away: Callable[[Path], None], workers: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * _CASES)})
    provider.latency_s = 0.1
    database = pytester.path / "helmbench.db"
    session = Session(pytester.path, provider.url, workers, *_OPTIONS)
    until(lambda: len(provider.requests) >= 20, "some are asked")
    take_away(database)
    asked = len(provider.requests)
    assert session.end() == pytest.ExitCode.TESTS_FAILED
    said = session.text
    recovered = pytester.path / "helmbench-recovered.db"
    assert (
        f"STOPPED: {database}: helmbench.db or its log was deleted, moved, cut or replaced while it" in said
    )
    assert f"hint: all that was answered is in {recovered}: go on with --helmbench-db={recovered}" in said
    assert "the session was stopped: its database could not be written any more" in said
    assert "INTERNALERROR" not in said
    # Few were sent before the next commit; everything that was answered is there.
    assert len(provider.requests) <= asked + 3 * _CONCURRENCY
    assert len(answered_hashes(recovered)) == len(provider.requests)
    assert integrity(recovered) == "ok"
    (status, passed) = rows(recovered, "SELECT status, passed_tests FROM evaluation_runs")[0]
    assert (status, passed) == ("partial", len(provider.requests))
    if take_away is _replace:
        assert rows(database, "SELECT count(*) FROM mine") == [(0,)]

    options = (workers, f"--helmbench-db={recovered}", "--helmbench-resume")
    run_tree(pytester, *options, url=provider.url).assert_outcomes(passed=_CASES)
    assert len(provider.requests) == _CASES


@pytest.mark.parametrize("statement", ["PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM"])
def test_another_program_may_tidy_up(pytester: pytest.Pytester, provider: Provider, statement: str) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * _CASES)})
    provider.latency_s = 0.1
    session = Session(pytester.path, provider.url, *_OPTIONS)
    until(lambda: len(provider.requests) >= 20, "some are asked")
    with closing(sqlite3.connect(pytester.path / "helmbench.db", timeout=60)) as other:
        other.execute(statement)
    assert session.end() == pytest.ExitCode.OK, session.text
    assert len(answered_hashes(pytester.path / "helmbench.db")) == _CASES


_SPOILS = """
import os, pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    if os.environ["SPOILT"] == "before":
        _spoil(session)
    yield
    _spoil(session)

def _spoil(session):
    for file in session.config.rootpath.glob("helmbench.db*"):
        if not file.name.endswith("-shm"):
            with file.open("r+b") as opened:
                opened.write(b"spoilt " * (file.stat().st_size // 7 + 1))
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_scores_that_cannot_be_read_are_said(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setenv("SPOILT", when)
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})
    (pytester.path / "spoils.py").write_text(_SPOILS, encoding="utf-8")
    session = Session(pytester.path, provider.url, "-p", "spoils", "-q")
    ended = session.end()
    assert "Traceback" not in session.text
    assert "INTERNALERROR" not in session.text
    if when == "before":
        assert ended == pytest.ExitCode.TESTS_FAILED, session.text
        assert "NOT ALL IS STORED: " in session.text
        assert "not everything was stored" in session.text


def test_a_folder_that_is_gone_is_said(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * _CASES)})
    provider.latency_s = 0.1
    folder = pytester.path / "results"
    folder.mkdir()
    session = Session(pytester.path, provider.url, *_OPTIONS, f"--helmbench-db={folder / 'helmbench.db'}")
    until(lambda: len(provider.requests) >= 20, "some are asked")
    shutil.rmtree(folder)
    assert session.end() == pytest.ExitCode.TESTS_FAILED
    assert "while it was written, and nothing could be saved beside it (" in session.text
    assert "INTERNALERROR" not in session.text
