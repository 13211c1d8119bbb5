"""Sessions whose replies are judged by processes: killed judges, a killed session, and what is asked again of it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from dispatched import lives
from perf.workload import write_heavy_schema
from perf.workload import write_tree as write_large_tree
from provider import Provider, Request
from records import final_state
from sessions import Session, run_undisturbed, until
from trees import category, clear_environment, rows, run_tree, write_tree

_CASES = 120


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def test_killed_judges_and_a_killed_session_cost_no_call(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    folder = pytester.path
    write_large_tree(folder, _CASES)
    right = write_heavy_schema(folder).read_text(encoding="utf-8")
    wrong = right.replace("HANDOFF", "OTHER", 1)

    def reply(request: Request) -> str:
        return wrong if "Message 3." in request.prompt else right

    provider.reply = reply
    options = ["-n0", "-q", "--helmbench-concurrency=64"]
    undisturbed = run_undisturbed(
        pytester,
        provider.url,
        *options,
        "--helmbench-judges=0",
        f"--helmbench-db={folder / 'undisturbed.db'}",
    )
    assert undisturbed.ret == pytest.ExitCode.TESTS_FAILED
    provider.requests.clear()

    database = folder / "helmbench.db"
    session = Session(folder, provider.url, *options, "--helmbench-judges=2")
    until(lambda: session.judges, "a judge has started")
    (first, *_) = session.judges
    until(lambda: _count(database, "results") > 5, "some are judged")
    os.kill(first, signal.SIGKILL)
    until(lambda: _count(database, "responses") == _CASES, "all replies are on record")
    ours = session.judges
    assert ours
    session.kill()
    judged = _count(database, "results")
    until(lambda: not any(map(lives, ours)), "the judges end with their session")
    assert len(provider.requests) == _CASES
    assert judged < _CASES

    resumed = Session(folder, provider.url, *options, "--helmbench-judges=2", "--helmbench-resume")
    assert resumed.end() == pytest.ExitCode.TESTS_FAILED
    assert len(provider.requests) == _CASES, "nothing on record is asked again"
    assert final_state(database) == final_state(folder / "undisturbed.db")
    assert not resumed.judges


def test_judges_that_cannot_be_used_end_the_session_before_it_begins(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    for options, words in (
        (("-n0", "--helmbench-judges=dask:tcp://10.0.0.7:8786"), "*beyond this machine and speaks no TLS*"),
        (("-n2", "--helmbench-judges=2"), "*--helmbench-judges and the workers of -n*"),
        (("-n0", "--helmbench-judges=python:nowhere:x"), "*No module named 'nowhere'*"),
    ):
        result = run_tree(pytester, *options, url=provider.url)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([words])
    assert provider.count == 0


def _count(database: Path, table: str) -> int:
    try:
        return int(rows(database, f"select count(*) from {table}")[0][0])
    except Exception:  # noqa: BLE001 - the file is not there yet
        return 0
