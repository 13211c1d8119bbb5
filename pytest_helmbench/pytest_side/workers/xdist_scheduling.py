"""Scheduling for xdist: items go to workers by slices, a few at a time; a crash leaves its rest to others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import pytest

_AHEAD = 8  # items that xdist may hold per worker beside the running one


class _Named(Protocol):
    @property
    def id(self) -> str:
        """Name of the worker: `gw0`, …"""


class WorkerNode(Protocol):
    """A worker as xdist's controller knows it."""

    @property
    def gateway(self) -> _Named:
        """execnet's gateway to the worker, which has its name."""

    @property
    def shutting_down(self) -> bool:
        """Whether it takes no more items."""

    def send_runtest_some(self, indices: list[int]) -> None:
        """Have it run items; raises `OSError` when it is gone."""

    def shutdown(self) -> None:
        """Have it end after its queued items."""


class SliceScheduling:
    """Worker k runs the items k::n, in order; xdist gets a few of them at a time.

    Each worker knows its whole slice beforehand and so keeps its calls in flight; that few are queued lets
    `-x`, `--maxfail` and Ctrl-C stop at once.

    Args:
        config: Other plugins look for pytest's config here.
        count: Number of workers at the start.
        on_scheduled: Called once, when every worker has collected and before anything runs.
        prefetch: Called with a worker, the places of its items, and their node ids where they were another worker's.
        on_difference: Called with the first difference between the collections of two workers.
    """

    def __init__(
        self,
        config: pytest.Config,
        count: int,
        on_scheduled: Callable[[], None],
        prefetch: Callable[[WorkerNode, Sequence[int], Sequence[str]], None],
        on_difference: Callable[[str], None],
    ) -> None:
        self.config = config
        self._count = count
        self._on_scheduled = on_scheduled
        self._prefetch = prefetch
        self._on_difference = on_difference
        self._collections: dict[WorkerNode, tuple[str, ...]] = {}
        self._collection: tuple[str, ...] | None = None
        self._places: dict[str, int] | None = None
        self._unsent: dict[WorkerNode, deque[int]] = {}
        self._sent: dict[WorkerNode, list[int]] = {}
        self._reported: dict[WorkerNode, str] = {}
        self._pool: list[int] = []
        self._again: set[int] = set()
        self._broken = False

    @property
    def nodes(self) -> list[WorkerNode]:
        """Workers that are alive."""
        return list(self._sent)

    @property
    def collection_is_completed(self) -> bool:
        """Whether the first workers have all collected."""
        return self._collection is not None or len(self._collections) >= self._count

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left to hand out; workers run their queued items before they shut down."""
        if self._collection is None:
            return self._broken
        if self._pool or any(self._unsent.values()):
            return False
        return all(len(sent) < 2 for sent in self._sent.values())

    @property
    def has_pending(self) -> bool:
        """Whether any item has not been completed."""
        return self.left_over > 0

    @property
    def left_over(self) -> int:
        """How many items have not been completed."""
        return len(self._pool) + sum(map(len, self._unsent.values())) + sum(map(len, self._sent.values()))

    def add_node(self, node: WorkerNode) -> None:
        """Take note of a worker that has started."""
        self._sent[node] = []
        self._unsent[node] = deque()

    def add_node_collection(self, node: WorkerNode, collection: Sequence[str]) -> None:
        """Take note of what a worker has collected."""
        if self._collection is not None and tuple(collection) != self._collection:
            self._differ(node, tuple(collection), self._collection)
            return
        self._collections[node] = tuple(collection) if self._collection is None else self._collection

    def schedule(self) -> None:
        """Hand out slices, or what a lost worker has left."""
        if self._broken:
            return
        if self._collection is None:
            first = next(iter(self._collections.values()))
            for node, collection in list(self._collections.items())[1:]:
                if collection != first:
                    self._differ(node, collection, first)
                    return
            self._collection = first
            self._collections = dict.fromkeys(self._collections, first)
            self._on_scheduled()
            nodes = [node for node in self._collections if node in self._sent]
            for number, node in enumerate(nodes):
                self._give(node, range(number, len(first), len(nodes)))
            return
        self._share_pool([node for node in self._takers() if not self._sent[node]])

    def mark_test_complete(self, node: WorkerNode, item_index: int, duration: float = 0) -> None:  # noqa: ARG002 - xdist's
        """Take note that an item is done and send the next."""
        self._sent[node].remove(item_index)
        self._again.discard(item_index)
        self._top_up(node)

    def mark_reported(self, node: WorkerNode, item: str) -> None:
        """Take note that an item has its verdict: should its worker die now, it is not run again."""
        self._reported[node] = item

    def mark_test_pending(self, item: str) -> None:
        """Queue an item once more, even if another plugin has done so."""
        if self._places is None:
            self._places = {node_id: index for index, node_id in enumerate(self._collection or ())}
        index = self._places[item]
        if index in self._again:
            return
        self._again.add(index)
        self._pool.append(index)
        self._share_pool(self._takers())

    def remove_pending_tests_from_node(self, node: WorkerNode, indices: Sequence[int]) -> None:
        """Do nothing: nothing is ever stolen."""

    def remove_node(self, node: WorkerNode) -> str | None:
        """Forget a worker; return the item it was running, if any.

        Raises:
            KeyError: The worker is unknown.
        """
        sent = self._sent.pop(node)
        unsent = self._unsent.pop(node)
        reported = self._reported.pop(node, None)
        self._collections.pop(node, None)
        if self._collection is None or not (sent or unsent):
            return None
        crashed = None
        if sent:
            first, *sent = sent
            self._again.discard(first)
            # It may have died between two items.
            crashed = self._collection[first] if self._collection[first] != reported else None
        self._pool += [*sent, *unsent]
        self._share_pool(self._takers())
        return crashed

    def _takers(self) -> list[WorkerNode]:
        return [node for node in self._collections if node in self._sent and not node.shutting_down]

    def _share_pool(self, nodes: Sequence[WorkerNode]) -> None:
        """Give the items of dead workers to others; without any, the items wait for a replacement."""
        if not nodes:
            return
        collection = self._collection or ()
        pool, self._pool = sorted(self._pool), []
        for number, node in enumerate(nodes):
            share = pool[number :: len(nodes)]
            self._give(node, share, [collection[index] for index in share])

    def _give(self, node: WorkerNode, indices: Iterable[int], node_ids: Sequence[str] = ()) -> None:
        slice_ = tuple(indices)
        if slice_:
            self._prefetch(node, slice_, node_ids)
        self._unsent[node].extend(slice_)
        self._top_up(node)

    def _top_up(self, node: WorkerNode) -> None:
        unsent, sent = self._unsent[node], self._sent[node]
        if node.shutting_down:
            return
        more = [unsent.popleft() for _ in range(min(len(unsent), _AHEAD + 1 - len(sent)))]
        if more:
            sent.extend(more)
            try:
                node.send_runtest_some(more)
            except OSError:
                return  # it has died, and what it was to run is shared out when xdist says so
        if not unsent and not self._pool and len(sent) < 2:
            # A worker runs its last item only when it knows that nothing follows.
            node.shutdown()

    def _differ(self, node: WorkerNode, collection: Sequence[str], first: Sequence[str]) -> None:
        self._broken = True
        index = next(
            (i for i, (a, b) in enumerate(zip(collection, first, strict=False)) if a != b),
            min(len(collection), len(first)),
        )
        theirs, ours = (ids[index] if index < len(ids) else "nothing" for ids in (collection, first))
        self._on_difference(
            f"workers have collected different items: {node.gateway.id} has {len(collection)}, another {len(first)};"
            f" the first difference is item {index + 1}: {theirs!r}, not {ours!r}\n"
            "  hint: something makes collection random (a set, the time, unseeded sampling)"
        )


def crash_report(report: pytest.TestReport, *, again: bool) -> None:
    """Shape the report of an item whose worker died: silent when it runs once more, else an error."""
    report.when = "setup"
    if again:
        report.outcome = "passed"
        report.longrepr = None
    else:
        report.longrepr = f"{report.longrepr}, for the second time\n  not a model failure: never judged"
