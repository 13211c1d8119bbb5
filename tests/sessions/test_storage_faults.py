"""A session whose results file cannot take more: it says so, pays for nothing more, and can be resumed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from provider import Provider, Request
from records import answered_hashes, final_state, integrity
from trees import category, rows, run_tree, write_tree

_CASES = 60
_REPLY_CHARACTERS = 30_000
_workers = pytest.mark.parametrize("workers", ["-n0", "-n2"])
posix = pytest.mark.skipif(os.name != "posix", reason="POSIX limits")


def _long_reply(_request: Request) -> str:
    return '{"category": "RISK", "response": "' + "x" * _REPLY_CHARACTERS + '"}'


def _mount(folder: Path, options: str) -> bool:
    """Mount a small disk, or mount it anew; only root may."""
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    return mount is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not _mount(folder, "size=1m"):
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@_workers
def test_a_full_disk_stops_the_calls_and_a_resumed_session_asks_only_for_the_rest(
    pytester: pytest.Pytester, provider: Provider, disk: Path, workers: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * _CASES)})
    provider.reply = _long_reply
    provider.latency_s = 0.02
    undisturbed = run_tree(pytester, workers, "--helmbench-db=other.db", url=provider.url)
    undisturbed.assert_outcomes(passed=_CASES)
    provider.requests.clear()
    database = disk / "helmbench.db"
    arguments = (workers, f"--helmbench-db={database}", "--helmbench-concurrency=4")
    # Its end cannot be stored either: the run is closed when its process is gone.
    full = run_tree(pytester, *arguments, url=provider.url, apart=True)
    assert full.ret == pytest.ExitCode.TESTS_FAILED
    shown = full.stdout.str()
    assert f"NOT ALL IS STORED: {database}: the disk failed or is full (database or disk is full)" in shown
    assert "hint: what was stored before is intact; make room and continue with --helmbench-resume" in shown
    assert "replies cannot be stored, so nothing more is asked: " in shown
    assert "not everything was stored: " in shown
    assert "rows are lost" in shown
    assert "INTERNALERROR" not in shown
    # Only the requests in flight when the disk was full were paid in vain.
    stored = rows(database, "SELECT count(*) FROM responses")[0][0]
    assert 1 <= stored < _CASES / 2
    assert provider.count < _CASES - 10
    assert integrity(database) == "ok"
    assert full.parseoutcomes()["errors"] >= 10

    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
    answered = answered_hashes(database)
    asked = provider.count
    run_tree(pytester, *arguments, "--helmbench-resume", url=provider.url).assert_outcomes(passed=_CASES)
    assert provider.count - asked == _CASES - stored
    assert len(answered) == stored
    assert final_state(database) == final_state(pytester.path / "other.db")


@posix
def test_rows_that_are_lost_at_the_very_end_fail_a_session_in_which_all_passed(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})
    # When the last item has been reported, nothing more can be written.
    pytester.makeconftest(
        """
        import resource
        import time

        def pytest_runtest_logfinish(nodeid):
            if "PT2" in nodeid:
                time.sleep(0.5)
                resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        """
    )
    result = run_tree(pytester, url=provider.url, apart=True)
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "NOT ALL IS STORED: " in result.stdout.str()


@_workers
def test_a_disk_that_cannot_be_written_is_a_usage_error_before_the_first_call(
    pytester: pytest.Pytester, provider: Provider, disk: Path, workers: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})
    database = disk / "helmbench.db"
    run_tree(pytester, f"--helmbench-db={database}", url=provider.url).assert_outcomes(passed=2)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    result = run_tree(pytester, workers, f"--helmbench-db={database}", url=provider.url)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = result.stdout.str() + result.stderr.str()
    assert f"{database}: the file cannot be opened or created (unable to open database file)" in said
    assert "hint: the folder must exist and be writable; give another place with --helmbench-db=PATH" in said
    assert "INTERNALERROR" not in said
    assert provider.count == 2
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


@posix
def test_a_file_that_may_not_grow_stops_the_calls(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * _CASES)})
    pytester.makeconftest(
        """
        import resource

        def pytest_runtestloop():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
        """
    )
    provider.reply = _long_reply
    provider.latency_s = 0.02
    result = run_tree(pytester, "--helmbench-concurrency=4", url=provider.url, apart=True)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    shown = result.stdout.str()
    assert "NOT ALL IS STORED: " in shown
    assert "the disk failed or is full" in shown
    assert provider.count < _CASES - 10
    assert integrity(pytester.path / "helmbench.db") == "ok"
