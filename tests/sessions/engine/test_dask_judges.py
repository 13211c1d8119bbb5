"""Replies that are judged on a real Dask cluster, whose parts are killed."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import pytest
from clusters import opened_cluster
from dispatched import Dispatched, lives, pids, texts
from evaluators import Timed
from sessions import until

from pytest_helmbench.core.judge_places import JudgeKind, JudgePlaces
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.users_word import UsersWord
from pytest_helmbench.engine.executors import judge_offer, open_judges

# Not imported here: a second, for every worker that collects.
pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="the extra `dask` is not installed")


def _dispatched(given: str, wait_s: float) -> Dispatched:
    """Return a session whose judges are there already: a cluster takes seconds to start on a busy machine."""
    offer = judge_offer(JudgePlaces.parse(UsersWord(given)), wait_s)
    assert offer is not None
    opened = [offer.open()]
    until(opened[0].places, "somebody judges")
    return Dispatched(replace(offer, open=lambda: opened.pop() if opened else offer.open()))


def test_a_cluster_of_our_own_has_no_keys_and_ends_with_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    session = _dispatched("dask:local:1", 30.0)
    found = session.judged([(Timed(20), str(number)) for number in range(40)])
    elsewhere = pids(found) - {os.getpid()}
    assert texts(found) == [str(number) for number in range(40)]
    assert len(elsewhere) == 1, session.notes
    assert not [
        one
        for one in found
        if not isinstance(one, BaseException) and "OPENAI_API_KEY" in one[2] and one[0] in elsewhere
    ]
    until(lambda: not any(map(lives, elsewhere)), "the workers end with the session")
    assert session.notes == []


def test_a_cluster_that_cannot_start_says_why() -> None:
    with pytest.raises(HelmbenchError, match="could not be started here: ValueError: invalid literal"):
        open_judges(JudgePlaces(JudgeKind.DASK_LOCAL, cast(int, "none")))


def test_a_worker_joins_late_the_first_is_killed_and_then_the_scheduler(tmp_path: Path) -> None:
    with opened_cluster(tmp_path) as cluster:
        first = cluster.worker()
        session = _dispatched(cluster.address, 60.0)
        seen: set[int] = set()
        late: list[int] = []

        def judged_by(pid: int) -> None:
            seen.add(pid)
            if pid == first.pid and not late:
                late.append(cluster.worker().pid)
                first.kill()

        session.on_found = judged_by
        asked = [(Timed(30), str(number)) for number in range(60)]
        assert texts(session.judged(asked)) == [text for _, text in asked]
        assert {first.pid, *late} <= seen
        assert session.notes == []

        session = _dispatched(cluster.address, 0.0)
        session.on_found = lambda pid: cluster.scheduler.kill() if pid in late else None
        found = session.judged(asked)
    assert texts(found) == [text for _, text in asked]
    assert late[0] in pids(found)
