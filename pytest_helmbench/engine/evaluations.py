"""Holding replies to their cases: at once where that is cheap, else away from the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar, cast

from pytest_helmbench.core.outcome import Outcome, Reply, Verdict
from pytest_helmbench.engine.host_lines import LineAddress, LineService
from pytest_helmbench.engine.judge_access import JudgeOffer
from pytest_helmbench.engine.judge_dispatch import Dispatch
from pytest_helmbench.engine.judging_costs import CostKey, JudgingCosts
from pytest_helmbench.engine.judging_tasks import Task
from pytest_helmbench.engine.rule_faults import held
from pytest_helmbench.engine.work import UnjudgedError
from pytest_helmbench.gateway.call import Watch
from pytest_helmbench.judging.case_evaluation import with_reply
from pytest_helmbench.judging.evaluator import NO_REPLY, Evaluator

__all__ = ["EvaluatedHere", "Evaluations"]

T = TypeVar("T")

_MOST_WAITING = 2_048
_MOST_CHARACTERS = 64_000_000
"""Of replies that wait to be judged. Where there are more, a case keeps its place, so that fewer calls are made."""

_SILENCE_S = 60.0
_LEAST_SILENCE_S = 5.0  # a busy session is not a dead one
_NOBODY = Outcome(Verdict.ERROR, "no_judges", "nobody judges beside this process")


class Evaluations:
    """Judges the replies of a session. Everything but `close` runs on the event loop.

    Args:
        offer: Who may judge beside this process; None for nobody.
        note: Takes a sentence for the summary, from any thread.
    """

    def __init__(self, offer: JudgeOffer | None, note: Callable[[str], object]) -> None:
        self._costs = JudgingCosts()
        self._offer = offer
        self._note = note
        self._dispatch: Dispatch | None = None
        self._waiting = 0
        self._characters = 0

    def expect(self, replies: int) -> None:
        """Take note that so many more will come, at most."""
        self._costs.expect(replies)

    async def of(self, evaluator: Evaluator[T], reply: Reply, watch: Watch) -> T:
        """See `Evaluating.of`."""
        key = self._costs.key(evaluator, reply)
        found: T | Outcome
        if self._costs.is_cheap(key) and not evaluator.takes_time(reply):
            began = time.thread_time()
            found = held(evaluator, reply)
            self._costs.took(key, (time.thread_time() - began) * 1000)
        else:
            found = await self._elsewhere(evaluator, reply, key, watch)
        return _verdict(found, reply)

    @property
    def has_hosts(self) -> bool:
        """See `Evaluating.has_hosts`."""
        return self._offer is not None and self._offer.has_hosts

    async def on_host(self, evaluator: Evaluator[T], reply: Reply, watch: Watch) -> T:
        """See `Evaluating.on_host`."""
        found = await self._elsewhere(evaluator, reply, self._costs.key(evaluator, reply), watch, bound=True)
        return _verdict(found, reply)

    @property
    def has_lines(self) -> bool:
        """See `Evaluating.has_lines`."""
        return self._offer is not None and self._offer.has_lines

    async def on_host_asking(
        self, service: LineService, evaluator: Callable[[LineAddress], Evaluator[T]], watch: Watch
    ) -> T:
        """See `Evaluating.on_host_asking`."""
        dispatch = self._dispatching()
        silence_s = _SILENCE_S if self._offer is None else max(_LEAST_SILENCE_S, self._offer.wait_s)
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        with watch.asleep(), dispatch.lines.opened(service, silence_s) as address:
            asks = evaluator(address)
            key = self._costs.key(asks, NO_REPLY)
            dispatch.add(Task(asks, NO_REPLY, key, future, bound=True, asks=True))
            found = cast("T | Outcome", await future)
        if isinstance(found, Outcome):
            raise UnjudgedError(found)
        return found

    def close(self) -> None:
        """End what was started for it, and wait for nothing. From any thread."""
        if self._dispatch is not None:
            self._dispatch.close()

    def _dispatching(self) -> Dispatch:
        if self._dispatch is None:
            self._dispatch = Dispatch(self._costs, self._offer, self._note)
        return self._dispatch

    async def _elsewhere(
        self, evaluator: Evaluator[T], reply: Reply, key: CostKey, watch: Watch, *, bound: bool = False
    ) -> T | Outcome:
        dispatch = self._dispatching()
        many = self._waiting >= _MOST_WAITING or self._characters >= _MOST_CHARACTERS
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        with nullcontext() if many else watch.asleep():
            self._waiting += 1
            self._characters += len(reply.text)
            try:
                dispatch.add(Task(evaluator, reply, key, future, bound=bound))
                return cast("T | Outcome", await future)
            finally:
                self._waiting -= 1
                self._characters -= len(reply.text)


class EvaluatedHere:
    """Judges in this process: for whoever has no session."""

    has_hosts = False
    has_lines = False

    async def of(self, evaluator: Evaluator[T], reply: Reply, watch: Watch) -> T:
        """See `Evaluating.of`."""
        del watch
        if evaluator.takes_time(reply):
            return _verdict(await asyncio.to_thread(held, evaluator, reply), reply)
        return _verdict(held(evaluator, reply), reply)

    async def on_host(self, evaluator: Evaluator[T], reply: Reply, watch: Watch) -> T:
        """See `Evaluating.on_host`: there is none."""
        del evaluator, reply, watch
        raise UnjudgedError(_NOBODY)

    async def on_host_asking(
        self, service: LineService, evaluator: Callable[[LineAddress], Evaluator[T]], watch: Watch
    ) -> T:
        """See `Evaluating.on_host_asking`: there is none."""
        del service, evaluator, watch
        raise UnjudgedError(_NOBODY)


def _verdict(found: T | Outcome, reply: Reply) -> T:
    if isinstance(found, Outcome):
        raise UnjudgedError(with_reply(found, reply))
    return found
