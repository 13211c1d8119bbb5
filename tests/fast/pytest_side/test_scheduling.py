"""Which worker runs what, as xdist asks for it; nodes that record their orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_helmbench.pytest_side.workers.xdist_scheduling import SliceScheduling


@dataclass(eq=False)
class _Gateway:
    id: str


@dataclass(eq=False)
class _Node:
    """A worker as the scheduler sees it."""

    name: str
    queue: list[int] = field(default_factory=list)
    prefetched: list[int] = field(default_factory=list)
    taken_over: list[str] = field(default_factory=list)
    shutting_down: bool = False
    dead: bool = False

    @property
    def gateway(self) -> _Gateway:
        return _Gateway(self.name)

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        if self.dead:
            raise OSError("cannot send (already closed?)")
        self.queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True


class _Session:
    """Does what xdist does."""

    def __init__(self, config: pytest.Config, items: int, workers: int = 2) -> None:
        self.ids = [f"test_x.py::item{number}" for number in range(items)]
        self.said: list[str] = []
        self.scheduled = 0
        self.nodes: list[_Node] = []
        self.ran: list[int] = []
        self.scheduling = SliceScheduling(config, workers, self._scheduled, self._prefetch, self.said.append)
        for number in range(workers):
            self.join(f"gw{number}")

    def _scheduled(self) -> None:
        self.scheduled += 1

    def _prefetch(self, node: Any, indices: Sequence[int], node_ids: Sequence[str]) -> None:
        assert self.scheduled == 1
        node.prefetched += indices
        node.taken_over += node_ids

    def join(self, name: str, ids: Sequence[str] | None = None) -> _Node:
        node = _Node(name)
        self.nodes.append(node)
        self.scheduling.add_node(node)
        self.scheduling.add_node_collection(node, self.ids if ids is None else ids)
        if self.scheduling.collection_is_completed:
            self.scheduling.schedule()
        return node

    def run(self, node: _Node, count: int = 1) -> None:
        """Complete items as a worker does: never the last one it knows of before the order to shut down."""
        for _ in range(count):
            assert len(node.queue) > 1 or node.shutting_down, "the worker would wait for ever"
            index = node.queue.pop(0)
            self.ran.append(index)
            self.scheduling.mark_reported(node, self.ids[index])
            self.scheduling.mark_test_complete(node, index)

    def run_all(self) -> None:
        while any(node.queue for node in self.nodes):
            for node in self.nodes:
                if node.queue:
                    self.run(node)

    def die(self, node: _Node) -> str | None:
        node.shutting_down = True  # xdist knows before it says so
        node.queue.clear()
        self.nodes.remove(node)
        return self.scheduling.remove_node(node)


def test_each_worker_gets_its_slice_to_prefetch_and_a_few_items_at_a_time(
    pytestconfig: pytest.Config,
) -> None:
    session = _Session(pytestconfig, 100)
    first, second = session.nodes
    assert first.prefetched == list(range(0, 100, 2))
    assert second.prefetched == list(range(1, 100, 2))
    assert first.queue == list(range(0, 18, 2))
    assert first.taken_over == []
    session.run(first)
    assert first.queue == list(range(2, 20, 2))


@pytest.mark.parametrize("items", [0, 1, 2, 3, 17, 18, 19, 40])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_item_runs_once_and_every_worker_is_told_when_nothing_follows(
    pytestconfig: pytest.Config, items: int, workers: int
) -> None:
    session = _Session(pytestconfig, items, workers)
    session.run_all()
    assert sorted(session.ran) == list(range(items))
    assert all(node.shutting_down for node in session.nodes)
    assert session.scheduling.tests_finished
    assert not session.scheduling.has_pending
    for node in session.nodes:
        assert session.scheduling.remove_node(node) is None


def test_what_a_dead_worker_leaves_goes_to_the_living_and_is_named(pytestconfig: pytest.Config) -> None:
    session = _Session(pytestconfig, 40)
    dead, alive = session.nodes
    session.run(dead, 3)
    assert session.die(dead) == session.ids[6]
    assert alive.prefetched[20:] == list(range(8, 40, 2))
    assert alive.taken_over == [session.ids[index] for index in range(8, 40, 2)]
    session.scheduling.mark_test_pending(session.ids[6])
    session.scheduling.mark_test_pending(session.ids[6])  # another plugin wants it again, too
    session.run_all()
    assert sorted(session.ran) == list(range(40))


def test_a_worker_that_dies_between_two_items_has_crashed_on_none(pytestconfig: pytest.Config) -> None:
    session = _Session(pytestconfig, 10)
    dead, _ = session.nodes
    session.scheduling.mark_reported(dead, session.ids[0])
    assert session.die(dead) is None
    session.run_all()
    assert sorted(session.ran) == list(range(1, 10))  # item 0 has its report already


def test_what_is_left_waits_for_a_replacement_when_all_others_are_about_to_end(
    pytestconfig: pytest.Config,
) -> None:
    session = _Session(pytestconfig, 12)
    dead, alive = session.nodes
    session.run(alive, 6)
    assert alive.shutting_down
    assert session.die(dead) == session.ids[0]
    session.scheduling.mark_test_pending(session.ids[0])
    assert not session.scheduling.tests_finished
    assert session.scheduling.left_over == 6
    session.join("gw2")
    session.run_all()
    assert sorted(session.ran) == list(range(12))
    assert session.scheduling.tests_finished


def test_a_worker_whose_pipe_has_broken_keeps_its_items_until_xdist_says_so(
    pytestconfig: pytest.Config,
) -> None:
    session = _Session(pytestconfig, 40)
    broken, _ = session.nodes
    broken.dead = True
    session.run(broken)
    broken.queue.clear()
    assert session.die(broken) == session.ids[2]
    session.run_all()
    assert sorted(session.ran) == sorted({*range(40)} - {2})


def test_workers_that_collect_differently_are_told_apart_before_anything_runs(
    pytestconfig: pytest.Config,
) -> None:
    session = _Session(pytestconfig, 3, workers=1)
    odd = SliceScheduling(pytestconfig, 2, session._scheduled, session._prefetch, session.said.append)
    for name, ids in (("gw0", ["a", "b", "c"]), ("gw1", ["a", "c"])):
        node = _Node(name)
        odd.add_node(node)
        odd.add_node_collection(node, ids)
    odd.schedule()
    assert session.said == [
        "workers have collected different items: gw1 has 2, another 3; the first difference is item 2: 'c', not 'b'\n"
        "  hint: something makes collection random (a set, the time, unseeded sampling)"
    ]
    assert session.scheduled == 1  # that of the other session
    assert odd.tests_finished


def test_a_replacement_that_collects_something_else_is_refused(pytestconfig: pytest.Config) -> None:
    session = _Session(pytestconfig, 20)
    session.die(session.nodes[0])
    session.join("gw2", session.ids[:-1])
    assert "gw2 has 19, another 20; the first difference is item 20: 'nothing'" in session.said[0]
