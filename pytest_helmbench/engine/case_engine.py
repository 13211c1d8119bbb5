"""Gateway, runner and engine of one process, put together: jobs go in, outcomes come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome
from pytest_helmbench.engine.engine import Engine
from pytest_helmbench.engine.job import CaseJob, RunIds
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.engine.runner import CaseKey, CaseRunner, JudgedBefore
from pytest_helmbench.engine.work import RunnerSettings
from pytest_helmbench.gateway.backend import Backend, RecordedUse
from pytest_helmbench.gateway.faults import Patience
from pytest_helmbench.gateway.gateway import ClientOnDemand, Gateway

__all__ = ["CaseEngine", "CaseEngineSettings", "Resumed", "Share"]

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
        """Cases that wait for leave beside those that have it, so that the limiter always finds somebody."""
        return 0 if self.few_ahead else max(4, self.concurrency // 4)


@dataclass(frozen=True, slots=True)
class CaseEngineSettings:
    """What the cases of a session share.

    Args:
        runner: How a case is run.
        patience: Limits of time and attempts.
        recorded: Whether replies on record may stand for calls.
        calls_in_flight: Most calls in flight by model id.
        at_recorded_times: Streams on record are replayed as slowly as they came.
        servers: The user's own server that serves it, by model id: it is asked for one model after the other.
    """

    runner: RunnerSettings
    patience: Patience
    recorded: RecordedUse = RecordedUse.NEVER
    calls_in_flight: Mapping[str, int] = field(default_factory=dict)
    at_recorded_times: bool = False
    servers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resumed:
    """The runs that cases belong to.

    Args:
        run_ids: `evaluation_runs.id` by benchmark and model.
        judged: Cases with a verdict on record, by run, code and repetition; empty unless a session goes on.
        on_changed: Told the name of a case whose verdict on record is not that of now.
    """

    run_ids: RunIds
    judged: Mapping[CaseKey, JudgedBefore]
    on_changed: Callable[[str], None]


class CaseEngine:
    """Runs the cases of a process ahead of the items that wait for them.

    Args:
        loop: Where everything runs; not closed here.
        backend: The session's limiter and record.
        settings: Shared by all cases.
        share: Of this process.
        resumed: The runs that the cases belong to.
    """

    def __init__(
        self,
        loop: LoopThread,
        backend: Backend,
        settings: CaseEngineSettings,
        share: Share,
        resumed: Resumed,
    ) -> None:
        self._loop = loop
        self.gateway = loop.run(_gateway(backend, settings, share.name))
        runner = CaseRunner(
            self.gateway,
            backend,
            settings.runner,
            resumed.run_ids,
            resumed.judged,
            resumed.on_changed,
        )

        most_of = dict(settings.calls_in_flight)
        for model_id, server in settings.servers.items():
            most_of[server] = max(most_of.get(server, 1), most_of.get(model_id, 1))

        def width(queue_name: str) -> int:
            most = most_of.get(queue_name, share.concurrency)
            return share.slack + min(most, share.concurrency)

        def queue_of(model_id: str) -> str:
            return settings.servers.get(model_id, model_id)

        self.engine: Engine[CaseJob] = Engine(loop, runner.run, width, share.window, queue_of)

    def start(self, jobs: Sequence[CaseJob | None]) -> None:
        """Begin with these jobs, in this order; None stands for one that is not started ahead."""
        begun = [job for job in jobs if job is not None]
        self.engine.start(begun)

    def obtain(self, job: CaseJob, tick: Callable[[], None]) -> Outcome:
        """Wait for an outcome; see `Engine.obtain`."""
        return self.engine.obtain(job, tick)

    def end(self, reason: str, grace_s: float) -> None:
        """Cancel what is left; calls on the wire get a grace, which Ctrl-C cuts short. Then close the client."""
        try:
            self.engine.cancel(reason, grace_s)
        except KeyboardInterrupt:
            self.engine.hurry()
            self.engine.cancel(reason, 0.0)
        self._loop.run_last(self.gateway.close())


async def _gateway(backend: Backend, settings: CaseEngineSettings, name: str) -> Gateway:
    gateway = Gateway(backend, ClientOnDemand(), settings.patience, name, recorded=settings.recorded)
    if settings.at_recorded_times:
        gateway.replay_at_recorded_times()
    return gateway
