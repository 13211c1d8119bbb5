"""Leases between two processes, one of which stands still or is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import small_runs
from small_runs import open_run
from waiting import PATIENCE_S

import pytest_helmbench
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.gateway.permits import NotStoredError
from pytest_helmbench.run.commits import Commits
from pytest_helmbench.store.leases import RunHeldError
from pytest_helmbench.store.writer import Store

_OWNER = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from pytest_helmbench.store.writer import Store
from small_runs import open_run, record_case

store = Store.open(Path(sys.argv[1]))
run_id = open_run(store)
print("open", flush=True)
for _ in sys.stdin:
    record_case(store, run_id, 1)
    store.flush()
    print(str(store.fault).splitlines()[0], flush=True)
"""


@contextmanager
def _owner(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has opened a run and writes a case for each line that it is given."""
    process = subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(path), str(Path(small_runs.__file__).parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(pytest_helmbench.__file__).parents[1])},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def _says(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline()


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes are stopped")
def test_who_is_silent_loses_the_run_to_who_takes_it_over_and_no_sooner(tmp_path: Path) -> None:
    path, late_s = tmp_path / "helmbench.db", [0.0]

    with _owner(path) as owner:
        assert _says(owner) == "None\n"
        owner.send_signal(signal.SIGSTOP)
        with closing(Store.open(path, now=lambda: time.time() + late_s[0])) as store:
            for late_s[0], take_over, words in (
                (0.0, True, f"run 1 is still being written, by process {owner.pid} on "),
                (61.0, False, f"run 1 belongs to process {owner.pid} on .* silent for 6"),
            ):
                with pytest.raises(RunHeldError, match=words):
                    store.take_session(1, take_over=take_over)
            assert store.take_session(1, take_over=True) == (1,)
            owner.send_signal(signal.SIGCONT)
            assert "the run was taken over by process" in _says(owner)


def test_the_run_of_a_process_that_is_gone_passes_on_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "helmbench.db"
    with _owner(path) as owner:
        owner.kill()
        owner.wait()
        with closing(Store.open(path)) as store:
            assert store.mark_dead_runs_interrupted() == (1,)
            assert store.take_session(None, take_over=False) == (1,)


def _ask(commits: Commits, loop: LoopThread) -> str:
    async def room() -> str:
        try:
            await commits.room()
        except NotStoredError as error:
            return str(error)
        return "goes"

    return loop.run(asyncio.wait_for(room(), PATIENCE_S))


def test_nothing_is_sent_on_an_old_lease_before_it_is_renewed(tmp_path: Path) -> None:
    late_s = [0.0]
    path = tmp_path / "helmbench.db"
    with (
        closing(Store.open(path, now=lambda: time.time() + late_s[0])) as store,
        closing(LoopThread()) as loop,
    ):
        open_run(store)
        commits = Commits(store, loop, 8, lambda _error: None)
        assert _ask(commits, loop) == "goes"
        late_s[0] = 16.0  # as after a pause of the process
        assert store.lease_is_old
        assert _ask(commits, loop) == "goes"
        assert not store.lease_is_old
        # The same pause, in which somebody else has gone on with the run.
        late_s[0] = 132.0
        with closing(Store.open(path, now=lambda: time.time() + late_s[0])) as other:
            other.take_session(1, take_over=True)
            assert "the run was taken over by process" in _ask(commits, loop)
