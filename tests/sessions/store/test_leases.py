"""Leases of a process that stood still."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from pathlib import Path

from small_runs import open_run
from waiting import PATIENCE_S

from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.gateway.permits import NotStoredError
from pytest_helmbench.run.commits import Commits
from pytest_helmbench.store.write.writer import Store


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
        # The same pause, in which another session has gone on with the run.
        late_s[0] = 132.0
        with closing(Store.open(path, now=lambda: time.time() + late_s[0])) as other:
            other.take_session(1, take_over=True)
            assert "the run was taken over by process" in _ask(commits, loop)
