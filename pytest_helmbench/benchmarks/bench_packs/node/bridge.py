"""A Bench Pack as the engine uses it: its scenarios, its runs, its score, whatever its processes do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from pytest_helmbench.benchmarks.bench_packs.node.child import Child
from pytest_helmbench.benchmarks.bench_packs.node.command import BridgePlace, Node, PackCommand
from pytest_helmbench.benchmarks.bench_packs.node.process import BridgeBounds, ChildLostError, PackFailedError
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.sandbox.fence import Fence, OpenPort

_BOUNDS = BridgeBounds()
_SHORTEST_WAIT_S = 0.01


class PackAttempt(Protocol):
    """One item on its way through the pack; begun anew when its process died under it."""

    async def begin(self) -> tuple[JsonObject, JsonObject]:
        """Return the HostContext (without `logger`) and the ScenarioRunInput (without `abortSignal`)."""

    def lost(self) -> None:
        """Take note that the process died: it begins anew, when its turn comes."""

    def open_ports(self) -> Iterable[OpenPort]:
        """Return the ports of ours that it may reach."""

    def spent_s(self) -> float:
        """Return the item's time used since it began, as the caller counts it."""

    def emitted(self, event: JsonObject) -> None:
        """Take a progress event of the pack, or a line of its log: type `log`, `level`, `message`, `meta`."""


class Bridge:
    """A Bench Pack in a Node process, which is replaced as often as it takes.

    Args:
        fence: What keeps it in; None to run it with our rights.
        bounds: How long it is waited for.
    """

    def __init__(
        self, node: Node, place: BridgePlace, *, fence: Fence | None, bounds: BridgeBounds = _BOUNDS
    ) -> None:
        self._command = PackCommand(node, place, fence)
        self._bounds = bounds
        self._current: asyncio.Task[Child] | None = None
        self._children: set[Child] = set()
        self._retiring: set[asyncio.Task[None]] = set()
        self._serial_child: Child | None = None
        """Runs what was in a process that was lost, one by one."""
        self._turn = asyncio.Lock()
        self._again = 0
        self._unloadable: PackFailedError | None = None  # until it has been loaded once
        self._was_loaded = False
        self._closed = False

    async def scenarios(self) -> JsonValue:
        """Return the JSON of `listScenarios()`.

        Raises:
            PackFailedError: It gives none.
        """
        return await self._asked({"op": "list"}, "listScenarios()")

    async def score(self, results: Sequence[JsonObject]) -> JsonValue:
        """Return the JSON of `scoreModelResults()`.

        Raises:
            PackFailedError: It gives none.
        """
        message: JsonObject = {"op": "score", "results": [dict(result) for result in results]}
        return await self._asked(message, "scoreModelResults()")

    async def run(self, attempt: PackAttempt, limit_s: float, prepared: str | None = None) -> JsonValue:
        """Run a scenario and return the JSON of what the pack made of it, unchecked.

        Args:
            limit_s: Time it may use up, by its own count.
            prepared: Items of the same key share one `prepare()` per process, and the caller runs them one by one;
                None for one of its own, disposed of after the run.

        Raises:
            PackFailedError: This item failed; others go on.
            asyncio.CancelledError: The item was cancelled, and the caller does not wait for it.
        """

        async def act(child: Child, freeze_s: float) -> JsonValue:
            context, given = await attempt.begin()
            await child.open(attempt.open_ports())
            message: JsonObject = {
                "op": "run",
                "key": prepared,
                "context": dict(context),
                "input": dict(given),
            }
            asked = child.ask(message, min(freeze_s, limit_s), attempt.emitted)
            return await self._within(child, asked, limit_s, attempt.spent_s, "the scenario")

        return await self._done(act, "this scenario", attempt.lost)

    async def close(self) -> None:
        """Dispose of what is prepared, within bounds, and end all processes."""
        self._closed = True
        if self._current is not None:
            self._current.cancel()
            await asyncio.gather(self._current, return_exceptions=True)
        await asyncio.gather(*(child.close() for child in tuple(self._children)))
        await asyncio.gather(*self._retiring)
        self._children.clear()

    async def _asked(self, message: JsonObject, what: str) -> JsonValue:
        seconds = self._bounds.answer_s

        async def act(child: Child, freeze_s: float) -> JsonValue:
            started = time.monotonic()
            asked = child.ask(message, min(freeze_s, seconds))
            return await self._within(child, asked, seconds, lambda: time.monotonic() - started, what)

        return await self._done(act, what)

    async def _done(
        self,
        act: Callable[[Child, float], Awaitable[JsonValue]],
        what: str,
        start_over: Callable[[], None] = lambda: None,
    ) -> JsonValue:
        """Do something beside others; when the process is lost, do it again, one by one.

        Args:
            act: Does it in a process, whose silence is borne so many seconds.
            start_over: Called when a process was lost and another tries.
        """
        child = await self._shared()
        try:
            with child.used():
                return await act(child, self._bounds.freeze_s)
        except ChildLostError as lost:
            if lost.alone:
                raise _culprit(lost, what) from None
        finally:
            if child.is_spent and not child.users:
                self._retire(child)
        start_over()
        self._again += 1
        try:
            async with self._turn:
                return await self._done_alone(act, what, start_over)
        finally:
            self._again -= 1
            if not self._again and self._serial_child is not None:
                self._retire(self._serial_child)

    async def _done_alone(
        self, act: Callable[[Child, float], Awaitable[JsonValue]], what: str, start_over: Callable[[], None]
    ) -> JsonValue:
        """Do something in the process that does one thing after the other, until it is done or is to blame.

        A process that did something else before may be lost to what that has left behind: then a fresh one decides.
        """
        while True:
            child = self._serial_child
            if child is None or child.is_spent:
                if child is not None:
                    self._retire(child)
                child = self._serial_child = await self._started()
            patience_s = self._bounds.alone_freeze_s if not child.questions else self._bounds.freeze_s
            try:
                return await act(child, patience_s)
            except ChildLostError as lost:
                if lost.alone:
                    raise _culprit(lost, what) from None
                start_over()

    async def _within(
        self,
        child: Child,
        asked: tuple[int, asyncio.Future[JsonValue]],
        limit_s: float,
        spent_s: Callable[[], float],
        what: str,
    ) -> JsonValue:
        """Wait for an answer as long as it may take, by a clock that may stand still; then abort it."""
        number, answer = asked
        try:
            while (left := limit_s - spent_s()) > 0:
                await asyncio.wait((answer,), timeout=max(left, _SHORTEST_WAIT_S))
                if answer.done():
                    return answer.result()
            child.abort(number)
            await asyncio.wait((answer,), timeout=self._bounds.grace_s)
        except asyncio.CancelledError:
            child.abandon(number)
            raise
        if answer.done():
            if isinstance(lost := answer.exception(), ChildLostError):
                raise lost
            ending = "it ended when it was aborted"
        elif child.silent_s() >= min(self._bounds.grace_s, 3 * self._bounds.heartbeat_s):
            raise child.freeze()
        else:
            child.taint()
            ending = "it ignored the abort signal"
        message = f"{what} gave no result within {limit_s:g} s, and {ending}"
        raise PackFailedError("too_slow", message, child.output())

    async def _shared(self) -> Child:
        """Return the process that takes new items, started when there is none."""
        if self._current is None or self._is_spent(self._current):
            self._current = asyncio.create_task(self._started())
            # How a start ended is looked at, since the call that waited for it may be gone.
            self._current.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._current)

    @staticmethod
    def _is_spent(current: asyncio.Task[Child]) -> bool:
        if not current.done():
            return False
        if current.cancelled() or current.exception() is not None:
            return True
        return current.result().is_spent

    async def _started(self) -> Child:
        if (known := self._unloadable) is not None:
            raise PackFailedError(known.reason, known.message, known.output, known.stack)
        if self._closed:
            raise PackFailedError("crashed", "the Bench Pack is closed already")
        child = Child(self._command, self._bounds)
        self._children.add(child)
        try:
            await child.start()
        except BaseException as error:
            await asyncio.shield(self._ended(child))
            if isinstance(error, PackFailedError) and not self._was_loaded:
                self._unloadable = error
            raise
        self._was_loaded = True
        return child

    def _retire(self, child: Child) -> None:
        """End a process without waiting for it."""
        if child in self._children:
            task = asyncio.create_task(self._ended(child))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

    async def _ended(self, child: Child) -> None:
        self._children.discard(child)
        await child.close()


def _culprit(lost: ChildLostError, what: str) -> PackFailedError:
    loss = lost.loss
    return PackFailedError(loss.reason, f"{loss.message} while {what} ran alone", loss.output, loss.stack)
