"""Loop, gateway, runner and engine put together: one assembly per process that runs cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_helmbench.engine.engine import Engine
from pytest_helmbench.engine.job import CaseJob
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.engine.runner import CaseRunner, RunnerSettings
from pytest_helmbench.gateway.backend import Backend
from pytest_helmbench.gateway.client import ChatClient
from pytest_helmbench.gateway.gateway import Gateway, Patience

__all__ = ["Assembly", "Share"]

_WIDE_WINDOW = 10_000


@dataclass(frozen=True, slots=True)
class Share:
    """What a process has of its session.

    Args:
        concurrency: Calls in flight in the whole session.
        few_ahead: At most `concurrency` outcomes wait (the session stops at a failure).
        workers: Processes that the session has.
        name: Of this process, in reply keys.
    """

    concurrency: int
    few_ahead: bool
    workers: int = 1
    name: str = ""

    @property
    def window(self) -> int:
        """Most outcomes that may wait for their items here."""
        return max(1, self.concurrency // self.workers) if self.few_ahead else _WIDE_WINDOW

    @property
    def slack(self) -> int:
        """Cases that wait for leave beside those that have it, so that the gate always finds somebody."""
        return 0 if self.few_ahead else max(4, self.concurrency // 4)


class Assembly:
    """An engine that is ready to start.

    Args:
        loop: Where everything runs; not closed here.
        backend: The session's limiter and record.
        patience: Limits of time and attempts.
        settings: Shared by all cases.
        share: Of this process.
        calls_in_flight_of: Most calls in flight, by model id.
    """

    def __init__(
        self,
        loop: LoopThread,
        backend: Backend,
        patience: Patience,
        settings: RunnerSettings,
        share: Share,
        calls_in_flight_of: Callable[[str], int],
    ) -> None:
        self._loop = loop
        self.gateway = loop.run(_gateway(backend, patience, share.name))
        self.runner = CaseRunner(self.gateway, backend, settings)

        def width(model_id: str) -> int:
            return share.slack + min(calls_in_flight_of(model_id), share.concurrency)

        self.engine: Engine[CaseJob] = Engine(loop, self.runner.run, width, share.window)

    def end(self, reason: str, grace_s: float) -> None:
        """Cancel what is left; calls on the wire get a short grace. Then close the client."""
        self.engine.cancel(reason, grace_s)
        self._loop.run(self.gateway.close())


async def _gateway(backend: Backend, patience: Patience, name: str) -> Gateway:
    return Gateway(backend, ChatClient(), patience, name)
