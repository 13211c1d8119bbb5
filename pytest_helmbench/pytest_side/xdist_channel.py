"""pytest-xdist: one channel per worker, the limiter and the record in the controller, and our scheduler."""

from __future__ import annotations

import asyncio
import itertools
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_helmbench.core.outcome import AttemptRecord, Outcome, ResultRecord
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.gateway.backend import LocalBackend
from pytest_helmbench.gateway.limiter import (
    AttemptUsage,
    BudgetSpentError,
    Limiter,
    ModelStoppedError,
    NotStoredError,
    Permit,
    PermitRequest,
    RefusedError,
)
from pytest_helmbench.gateway.reply_cache import Recorded, Wanted
from pytest_helmbench.store.recorded_runs import CaseKey, RecordedCase

__all__ = ["ChannelServer", "RemoteBackend", "SliceScheduling", "Start", "Told"]

_AHEAD = 8  # items that xdist may hold per worker beside the running one
_REFUSALS: Mapping[str, type[RefusedError]] = {
    "budget": BudgetSpentError,
    "stopped": ModelStoppedError,
    "closing": RefusedError,
    "not_stored": NotStoredError,
}

# What travels is pickled: both ends are this program, and execnet itself knows no dataclasses, no enums and no
# lone surrogates.


@dataclass(frozen=True, slots=True)
class Start:
    """What a worker is told before its items.

    Args:
        run_ids: `evaluation_runs.id` by benchmark and model.
        indices: Items that it will be handed, in order: its prefetch list.
        known: Outcomes by node id that a crashed worker had already brought in.
        judged: Cases that the run being resumed has judged, by run, code and repetition.
        inherits: The items were a dead worker's: some of their calls may be answered.
    """

    run_ids: Mapping[tuple[str, str], int]
    indices: tuple[int, ...]
    known: Mapping[str, Outcome]
    judged: Mapping[CaseKey, RecordedCase]
    inherits: bool = False


class RemoteBackend:
    """The backend as a worker sees it: every word goes over the channel.

    Args:
        loop: Where the gateway lives.
        channel: To the controller.
        on_start: Told what to prefetch; on xdist's receiver thread.
        on_stop_model: Told of a model that does not work; on the loop.
        on_cancel: Told to end; on xdist's receiver thread.
    """

    def __init__(
        self,
        loop: LoopThread,
        channel: Any,
        on_start: Callable[[Start], None],
        on_stop_model: Callable[[str, str], None],
        on_cancel: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._channel = channel
        self._on_start = on_start
        self._on_stop_model = on_stop_model
        self._on_cancel = on_cancel
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Permit]] = {}
        self._looking_up: dict[int, asyncio.Future[Recorded | None]] = {}
        channel.setcallback(self._receive, endmarker=None)

    def send(self, *message: object) -> None:
        """Send a message; a controller that is gone is told nothing more. From any thread."""
        try:
            self._channel.send(pickle.dumps(message))
        except OSError:
            self._on_cancel("the controller is gone")

    async def acquire(self, wanted: PermitRequest) -> Permit:
        """See `Backend.acquire`."""
        number = next(self._numbers)
        waiter: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiter
        self.send("admit", number, wanted)
        try:
            return await waiter
        except asyncio.CancelledError:
            if not waiter.done() or waiter.cancelled():
                self.send("abandon", number)
            elif waiter.exception() is None:
                self.send("release", waiter.result())
            raise
        finally:
            self._waiting.pop(number, None)

    def settle(self, permit: Permit, used: AttemptUsage, record: AttemptRecord) -> None:
        """See `Backend.settle`."""
        self.send("settle", permit, used, record)

    def release(self, permit: Permit) -> None:
        """See `Backend.release`."""
        self.send("release", permit)

    async def look_up(self, wanted: Wanted) -> Recorded | None:
        """See `Backend.look_up`."""
        number = next(self._numbers)
        waiter: asyncio.Future[Recorded | None] = asyncio.get_running_loop().create_future()
        self._looking_up[number] = waiter
        self.send("recall", number, wanted)
        try:
            return await waiter
        finally:
            self._looking_up.pop(number, None)

    def give_up(self, wanted: Wanted) -> None:
        """See `Backend.give_up`."""
        self.send("give-up", wanted)

    def record_replay(self, record: AttemptRecord) -> None:
        """See `Backend.record_replay`."""
        self.send("replay", record)

    def record_result(self, record: ResultRecord) -> None:
        """See `Backend.record_result`."""
        self.send("result", record)

    def _receive(self, data: bytes | None) -> None:
        if data is None:
            self._on_cancel("the controller is gone")
            return
        message = pickle.loads(data)
        match message:
            case ("start", start):
                self._on_start(start)
            case ("cancel", reason):
                self._on_cancel(reason)
            case ("stop-model", model, sentence):
                self._loop.soon(self._on_stop_model, model, sentence)
            case ("grant", number, permit):
                self._loop.soon(self._granted, number, permit)
            case ("refuse", number, kind, sentence):
                self._loop.soon(self._refused, number, _REFUSALS[kind](sentence))
            case ("recalled", number, recorded):
                self._loop.soon(self._found, number, recorded)
            case ("unreadable", number, sentence):
                self._loop.soon(self._unreadable, number, sentence)

    def _granted(self, number: int, permit: Permit) -> None:
        waiter = self._waiting.get(number)
        if waiter is not None and not waiter.done():
            waiter.set_result(permit)
        else:
            self.send("release", permit)  # abandoned while the permit was on its way

    def _found(self, number: int, recorded: Recorded | None) -> None:
        waiter = self._looking_up.get(number)
        if waiter is not None and not waiter.done():
            waiter.set_result(recorded)

    def _unreadable(self, number: int, sentence: str) -> None:
        waiter = self._looking_up.get(number)
        if waiter is not None and not waiter.done():
            waiter.set_exception(HelmbenchError(sentence))

    def _refused(self, number: int, error: RefusedError) -> None:
        waiter = self._waiting.get(number)
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)


@dataclass(frozen=True, slots=True)
class Told:
    """Who is told what a worker says beside its calls; on xdist's receiver thread.

    Args:
        plan: Told what the worker has collected.
        note: Told a sentence for the summary.
        changed: Told the name of a case whose verdict on record is not that of now.
    """

    plan: Callable[[object], None]
    note: Callable[[str], None]
    changed: Callable[[str], None]


class ChannelServer:
    """The controller's end of one worker's channel.

    Args:
        loop: Where the limiter lives.
        channel: To the worker.
        told: Who is told what.
    """

    def __init__(self, loop: LoopThread, channel: Any, told: Told) -> None:
        self._loop = loop
        self._channel = channel
        self._told = told
        self._limiter: Limiter | None = None
        self._backend: LocalBackend | None = None
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._held: dict[int, Permit] = {}
        self._wanted: dict[tuple[str, int], Wanted] = {}
        self.ended = False
        channel.setcallback(self._receive, endmarker=None)

    def serve(self, limiter: Limiter, backend: LocalBackend) -> None:
        """Begin to answer: before this, a worker sends nothing but its plan."""
        self._limiter = limiter
        self._backend = backend

    @property
    def serving(self) -> bool:
        """Whether the worker has been told to begin."""
        return self._limiter is not None

    def send(self, *message: object) -> None:
        """Send a message; a worker that is gone is told nothing."""
        try:
            self._channel.send(pickle.dumps(message))
        except OSError:
            self.ended = True

    def _receive(self, data: bytes | None) -> None:
        if data is None:
            self.ended = True
            self._loop.soon(self._lost)
            return
        message = pickle.loads(data)
        match message:
            case ("plan", plan):
                self._told.plan(plan)
            case ("note", text):
                self._told.note(text)
            case ("changed", name):
                self._told.changed(name)
            case ("bye",):
                self.ended = True
            case _:
                self._loop.soon(self._handle, message)

    def _handle(self, message: tuple[Any, ...]) -> None:
        limiter, backend = self._limiter, self._backend
        if limiter is None or backend is None:
            return
        match message:
            case ("admit", number, wanted):
                task = asyncio.get_running_loop().create_task(self._acquire(limiter, number, wanted))
                self._asking[number] = task
                task.add_done_callback(lambda _: self._asking.pop(number, None))
            case ("abandon", number):
                # A permit that is on its way comes back as released.
                if number in self._asking:
                    self._asking[number].cancel()
            case ("release", permit):
                self._held.pop(permit.number, None)
                backend.release(permit)
            case ("settle", permit, used, record):
                self._held.pop(permit.number, None)
                backend.settle(permit, used, record)
                if record.reply_key is not None:
                    self._wanted.pop((record.request_hash, record.repetition), None)
            case ("recall", number, wanted):
                task = asyncio.get_running_loop().create_task(self._look_up(backend, number, wanted))
                self._asking[number] = task
                task.add_done_callback(lambda _: self._asking.pop(number, None))
            case ("give-up", wanted):
                self._forget(backend, wanted)
            case ("replay", record):
                backend.record_replay(record)
            case ("result", record):
                backend.record_result(record)

    async def _look_up(self, backend: LocalBackend, number: int, wanted: Wanted) -> None:
        try:
            recorded = await backend.look_up(wanted)
        except HelmbenchError as error:
            self.send("unreadable", number, str(error))
            return
        if recorded is None:
            self._wanted[wanted.key] = wanted
        self.send("recalled", number, recorded)

    def _forget(self, backend: LocalBackend, wanted: Wanted) -> None:
        if self._wanted.pop(wanted.key, None) is not None:
            backend.give_up(wanted)

    async def _acquire(self, limiter: Limiter, number: int, wanted: PermitRequest) -> None:
        try:
            permit = await limiter.acquire(wanted)
        except RefusedError as error:
            kind = next(name for name, refusal in _REFUSALS.items() if type(error) is refusal)
            self.send("refuse", number, kind, str(error))
        else:
            self._held[permit.number] = permit
            self.send("grant", number, permit)

    def _lost(self) -> None:
        """Take back everything a worker held that is gone."""
        for task in self._asking.values():
            task.cancel()
        held, self._held = self._held, {}
        if self._backend is not None:
            for permit in held.values():
                self._backend.release(permit)
            for wanted in tuple(self._wanted.values()):
                self._forget(self._backend, wanted)


class SliceScheduling:
    """Worker k runs the items k::n, in order; xdist is told of a few at a time.

    Each worker knows its whole slice beforehand and so keeps its calls in flight; that few are queued lets
    `-x`, `--maxfail` and Ctrl-C stop at once.

    Args:
        config: pytest's; other plugins look for it here.
        count: Workers that the session starts with.
        on_scheduled: Told once that every worker has collected, before anything runs.
        prefetch: Tells a worker what it will be handed: the indices, and the node ids when the items were another
            worker's before.
        on_difference: Told the first difference when two workers have not collected the same.
    """

    def __init__(
        self,
        config: pytest.Config,
        count: int,
        on_scheduled: Callable[[], None],
        prefetch: Callable[[Any, Sequence[int], Sequence[str]], None],
        on_difference: Callable[[str], None],
    ) -> None:
        self.config = config
        self._count = count
        self._on_scheduled = on_scheduled
        self._prefetch = prefetch
        self._on_difference = on_difference
        self._collections: dict[Any, tuple[str, ...]] = {}
        self._collection: tuple[str, ...] | None = None
        self._places: dict[str, int] | None = None
        self._unsent: dict[Any, deque[int]] = {}
        self._sent: dict[Any, list[int]] = {}
        self._reported: dict[Any, str] = {}
        self._pool: list[int] = []
        self._again: set[int] = set()
        self._broken = False

    @property
    def nodes(self) -> list[Any]:
        """Workers that are alive."""
        return list(self._sent)

    @property
    def collection_is_completed(self) -> bool:
        """Whether the first workers have all collected."""
        return self._collection is not None or len(self._collections) >= self._count

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left to hand out; workers run what they hold when they are told to shut down."""
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

    def add_node(self, node: Any) -> None:
        """Take note of a worker that has started."""
        self._sent[node] = []
        self._unsent[node] = deque()

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
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

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:  # noqa: ARG002 - xdist's
        """Take note that an item is done and send the next."""
        self._sent[node].remove(item_index)
        self._again.discard(item_index)
        self._top_up(node)

    def mark_reported(self, node: Any, item: str) -> None:
        """Take note that an item has its verdict: should its worker die now, it is not run again."""
        self._reported[node] = item

    def mark_test_pending(self, item: str) -> None:
        """Queue an item once more, whoever else has asked for that."""
        if self._places is None:
            self._places = {node_id: index for index, node_id in enumerate(self._collection or ())}
        index = self._places[item]
        if index in self._again:
            return
        self._again.add(index)
        self._pool.append(index)
        self._share_pool(self._takers())

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:
        """Do nothing: nothing is ever stolen."""

    def remove_node(self, node: Any) -> str | None:
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

    def _takers(self) -> list[Any]:
        return [node for node in self._collections if node in self._sent and not node.shutting_down]

    def _share_pool(self, nodes: Sequence[Any]) -> None:
        """Give what dead workers have left to others; without any it waits for a replacement."""
        if not nodes:
            return
        collection = self._collection or ()
        pool, self._pool = sorted(self._pool), []
        for number, node in enumerate(nodes):
            share = pool[number :: len(nodes)]
            self._give(node, share, [collection[index] for index in share])

    def _give(self, node: Any, indices: Iterable[int], node_ids: Sequence[str] = ()) -> None:
        slice_ = tuple(indices)
        if slice_:
            self._prefetch(node, slice_, node_ids)
        self._unsent[node].extend(slice_)
        self._top_up(node)

    def _top_up(self, node: Any) -> None:
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

    def _differ(self, node: Any, collection: Sequence[str], first: Sequence[str]) -> None:
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
