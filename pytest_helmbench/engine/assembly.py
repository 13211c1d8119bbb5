"""Loop, gateway, runner and engine put together: one assembly per process that runs cases."""

from __future__ import annotations

from collections.abc import Callable

from pytest_helmbench.engine.engine import Engine
from pytest_helmbench.engine.jobs import CaseJob
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.engine.runner import CaseRunner, RunnerSettings
from pytest_helmbench.gateway.client import ChatClient
from pytest_helmbench.gateway.gateway import Gateway, Patience
from pytest_helmbench.gateway.hub import Hub

__all__ = ["Assembly"]

_WIDE_WINDOW = 10_000


class Assembly:
    """An engine that is ready to start.

    Args:
        loop: Where everything runs; not closed here.
        hub: The session's gate and record.
        patience: Limits of time and attempts.
        settings: Shared by all cases.
        concurrency: Calls in flight in the whole session.
        lane_width: Calls in flight per model.
        few_ahead: At most `concurrency` outcomes wait (the session stops at a failure).
        name: Of this process, in reply keys.
    """

    def __init__(
        self,
        loop: LoopThread,
        hub: Hub,
        patience: Patience,
        settings: RunnerSettings,
        *,
        concurrency: int,
        lane_width: Callable[[str], int],
        few_ahead: bool,
        name: str = "",
    ) -> None:
        self._loop = loop
        self.gateway = loop.run(_gateway(hub, patience, name))
        runner = CaseRunner(self.gateway, hub, settings)
        # A few more than may send, so that the gate always finds somebody waiting.
        slack = 0 if few_ahead else max(4, concurrency // 4)

        def width(lane: str) -> int:
            return slack + (min(lane_width(lane), concurrency) if lane else concurrency)

        window = concurrency if few_ahead else _WIDE_WINDOW
        self.engine: Engine[CaseJob] = Engine(loop, runner.run, width, window)

    def end(self, reason: str, grace_s: float) -> None:
        """Cancel what is left; calls on the wire get a short grace. Then close the client."""
        self.engine.cancel(reason, grace_s)
        self._loop.run(self.gateway.close())


async def _gateway(hub: Hub, patience: Patience, name: str) -> Gateway:
    return Gateway(hub, ChatClient(), patience, name)
