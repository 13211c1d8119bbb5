"""The role of a process in its session: alone (here), an xdist worker, or the controller of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.engine.case_engine import CaseEngine, CaseEngineSettings, Resumed, Share
from pytest_helmbench.engine.job import CaseJob
from pytest_helmbench.engine.job_queue import CancelledRunError, JobQueue
from pytest_helmbench.engine.work import RunnerSettings
from pytest_helmbench.gateway.backend import Backend
from pytest_helmbench.gateway.retries import RetryPolicy
from pytest_helmbench.judging.judge import JudgeTemplate
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.run.library import Library
from pytest_helmbench.run.plan import Plan
from pytest_helmbench.run.targets import batched_models, model_limits

GRACE_S = 0.3
"""How long calls in flight may go on when a session ends."""

INTERRUPT_GRACE_S = 5.0
"""How long a session waits for calls in flight after Ctrl-C: they may be billed."""

INTERRUPTED = "interrupted"
INTERRUPTED_AGAIN = "interrupted again"
"""Ends that wait."""


def grace_after(reason: str) -> float:
    """Return how long a session that is cancelled for a reason waits for calls in flight."""
    return INTERRUPT_GRACE_S if reason == INTERRUPTED else GRACE_S


class SessionRole:
    """The role of a process, as the hooks of its session call it. The base runs no items."""

    cases: CaseEngine | None = None
    """Runs cases in this process; None where nothing is called."""

    def collected(self, jobs: Sequence[CaseJob | None], plan: Plan) -> None:
        """Keep the selected jobs in run order, None where nothing is to be started ahead, and the plan."""

    def begin(self) -> None:
        """Start the selected items, when pytest begins to run them; a worker waits for its controller.

        Raises:
            HelmbenchError: The session cannot be run.
        """

    def obtain(self, job: CaseJob) -> Outcome:
        """Wait for an outcome.

        Raises:
            CancelledRunError: The session is ending, or the role has no items.
        """
        raise CancelledRunError(f"{job.name}: this process runs no items")

    @property
    def queue(self) -> JobQueue[CaseJob] | None:
        """The queue of the case engine; None where nothing is called."""
        return None if self.cases is None else self.cases.queue

    def known(self, _job: CaseJob) -> Outcome | None:
        """Return, once, the outcome that a worker had sent before it died."""
        return None

    @property
    def left_over(self) -> int:
        """Number of items that never ran, because their worker died and no other took them."""
        return 0

    def cancel(self, reason: str) -> None:
        """Begin to stop: send no more calls, and wake all waiting items."""

    def interrupted(self, _by: str) -> None:
        """Begin to stop because of Ctrl-C or a signal."""
        self.cancel(INTERRUPTED)

    def hurry(self) -> None:
        """Wait no longer for calls in flight, and only a moment for the disk. In a signal's handler."""
        if self.queue is not None:
            self.queue.hurry()

    def end(self, *, interrupted: bool) -> None:
        """Stop, and put everything on disk."""

    def stop_model(self, model: str, sentence: str) -> None:
        """Send no more calls to a model that does not work."""
        if self.cases is not None:
            self.cases.gateway.stop_model(model, sentence)


@dataclass(frozen=True, slots=True)
class CaseEngines:
    """Makes the case engine of a process."""

    settings: Settings
    library: Library
    template: JudgeTemplate
    share: Share

    def make(self, backend: Backend, resumed: Resumed) -> CaseEngine:
        """Return a case engine, ready to start."""
        settings = self.settings
        targets = [target for item in self.library.loaded for target in item.targets]
        shared = CaseEngineSettings(
            runner=RunnerSettings(settings.strict_json, self.template),
            retry_policy=RetryPolicy(settings.timeout_s, settings.case_timeout_s, settings.max_retries),
            recorded=settings.recorded_use,
            limits=model_limits(targets, settings),
            batched=frozenset(batched_models(targets, settings)),
        )
        return CaseEngine(self.library.loop, backend, shared, self.share, resumed)


def dry_run_outcome(job: CaseJob) -> Outcome:
    """Compose the prompt of a case and return its outcome in a dry run."""
    if job.skip_reason is not None:
        return Outcome(Verdict.SKIPPED, "unsupported", job.skip_reason)
    job.case(job.system_prompt)
    return Outcome(Verdict.SKIPPED, "dry run", "dry run")


@dataclass(eq=False)
class SingleProcess(SessionRole):
    """Coordinator and engine in one process.

    Args:
        announce: Called with the plan before the first call; may end the session.
        tick: Called about once a second while an item waits.
    """

    coordinator: Coordinator
    engines: CaseEngines
    announce: Callable[[Plan], None]
    tick: Callable[[], None]
    _selected: tuple[Sequence[CaseJob | None], Plan] | None = None

    def collected(self, jobs: Sequence[CaseJob | None], plan: Plan) -> None:
        self._selected = (jobs, plan)

    def begin(self) -> None:
        if self._selected is None:
            return
        jobs, plan = self._selected
        coordinator = self.coordinator
        coordinator.prepare(plan)
        self.announce(plan)
        if plan.dry:
            coordinator.note_dry_resume()
            return
        backend = coordinator.open(plan, lambda _record: None, self.stop_model)
        self.cases = self.engines.make(backend, coordinator.resumed())
        self.cases.queue.start([job for job in jobs if job is not None])

    def obtain(self, job: CaseJob) -> Outcome:
        if self.cases is None:
            return dry_run_outcome(job)
        return self.cases.queue.obtain(job, self.tick)

    def cancel(self, reason: str) -> None:
        if self.cases is not None:
            self.cases.queue.drop_queued(reason, grace_after(reason))

    def end(self, *, interrupted: bool) -> None:
        if self.cases is not None:
            self.cases.end("the session has ended", GRACE_S)
            self.cases = None
        self.coordinator.close(interrupted=interrupted, tick=self.tick)

    def hurry(self) -> None:
        super().hurry()
        self.coordinator.hurry()
