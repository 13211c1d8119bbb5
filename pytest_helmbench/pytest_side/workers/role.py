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
from pytest_helmbench.gateway.faults import Patience
from pytest_helmbench.judging.judge import JudgeTemplate
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.run.library import Library
from pytest_helmbench.run.plan import Plan
from pytest_helmbench.run.targets import model_limits

GRACE_S = 0.3
"""How long calls on the wire may go on when a session ends."""

INTERRUPT_GRACE_S = 5.0
"""How long calls on the wire are waited for after Ctrl-C: they may be paid."""

INTERRUPTED = "interrupted"
INTERRUPTED_AGAIN = "interrupted again"
"""Ends the grace."""


def grace_after(reason: str) -> float:
    """Return how long calls on the wire are waited for when a session is cancelled for a reason."""
    return INTERRUPT_GRACE_S if reason == INTERRUPTED else GRACE_S


class SessionRole:
    """What the hooks of a session ask of the role of their process; by itself it runs no items."""

    def collected(self, jobs: Sequence[CaseJob | None], plan: Plan) -> None:
        """Take note of what was selected.

        Args:
            jobs: That of each selected item, in run order; None where nothing is to be started ahead.
            plan: What will be asked.
        """

    def begin(self) -> None:
        """Start on the selected items, when pytest begins to run them; some wait for a controller to say so.

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
    def engine(self) -> JobQueue[CaseJob] | None:
        """What runs cases in this process; None where nothing is called."""
        return None

    def known(self, _job: CaseJob) -> Outcome | None:
        """Return, once, the outcome that a worker had brought in before it died."""
        return None

    @property
    def left_over(self) -> int:
        """How many items were never run, because their worker died and no other took them."""
        return 0

    def cancel(self, reason: str) -> None:
        """Begin to stop: nothing new is sent, and who waits is woken."""

    def interrupted(self, _by: str) -> None:
        """Begin to stop because of Ctrl-C or a signal.

        Args:
            _by: What this process was sent.
        """
        self.cancel(INTERRUPTED)

    def hurry(self) -> None:
        """Let calls on the wire have no more grace, and the disk no more than a moment. In a signal's handler."""
        if self.engine is not None:
            self.engine.hurry()

    def end(self, *, interrupted: bool) -> None:
        """Stop, and put everything on disk."""


@dataclass(frozen=True, slots=True)
class CaseEngines:
    """Makes the case engine of a process.

    Args:
        settings: Of the session.
        library: Its benchmarks.
        template: The judge's wording.
        share: What the process has of its session.
    """

    settings: Settings
    library: Library
    template: JudgeTemplate
    share: Share

    def make(self, backend: Backend, resumed: Resumed) -> CaseEngine:
        """Return a case engine, ready to start.

        Args:
            backend: The session's limiter and record.
            resumed: The runs that the cases belong to.
        """
        settings = self.settings
        targets = (target for item in self.library.loaded for target in item.targets)
        shared = CaseEngineSettings(
            runner=RunnerSettings(settings.strict_json, self.template),
            patience=Patience(settings.timeout_s, settings.case_timeout_s, settings.max_retries),
            recorded=settings.recorded_use,
            limits=model_limits(targets, settings),
        )
        return CaseEngine(self.library.loop, backend, shared, self.share, resumed)


def composed(job: CaseJob) -> Outcome:
    """Return the outcome of a dry run: the prompt was composed, nothing was called; what cannot run says why."""
    if job.skip_reason is not None:
        return Outcome(Verdict.SKIPPED, "unsupported", job.skip_reason)
    job.case(job.system_prompt)
    return Outcome(Verdict.SKIPPED, "dry run", "dry run")


class SingleProcess(SessionRole):
    """Coordinator and engine in one process.

    Args:
        coordinator: Limiter and record.
        engines: Makes the case engine.
        announce: Called with the plan before the first call; may end the session.
        tick: Called about once a second while an item waits.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        engines: CaseEngines,
        announce: Callable[[Plan], None],
        tick: Callable[[], None],
    ) -> None:
        self._coordinator = coordinator
        self._engines = engines
        self._announce = announce
        self._tick = tick
        self._selected: tuple[Sequence[CaseJob | None], Plan] | None = None
        self._cases: CaseEngine | None = None

    def collected(self, jobs: Sequence[CaseJob | None], plan: Plan) -> None:
        """See `SessionRole.collected`."""
        self._selected = (jobs, plan)

    def begin(self) -> None:
        """See `SessionRole.begin`."""
        if self._selected is None:
            return
        jobs, plan = self._selected
        coordinator = self._coordinator
        coordinator.prepare(plan)
        self._announce(plan)
        if plan.dry:
            coordinator.note_dry_resume()
            return
        backend = coordinator.open(plan, lambda _record: None, self._stop_model)
        self._cases = self._engines.make(backend, coordinator.resumed())
        self._cases.start([job for job in jobs if job is not None])

    def obtain(self, job: CaseJob) -> Outcome:
        """See `SessionRole.obtain`."""
        if self._cases is None:
            return composed(job)
        return self._cases.obtain(job, self._tick)

    @property
    def engine(self) -> JobQueue[CaseJob] | None:
        """See `SessionRole.engine`."""
        return self._cases.engine if self._cases is not None else None

    def cancel(self, reason: str) -> None:
        """See `SessionRole.cancel`."""
        if self._cases is not None:
            self._cases.engine.drop_queued(reason, grace_after(reason))

    def end(self, *, interrupted: bool) -> None:
        """See `SessionRole.end`."""
        if self._cases is not None:
            self._cases.end("the session has ended", GRACE_S)
            self._cases = None
        self._coordinator.close(interrupted=interrupted, tick=self._tick)

    def hurry(self) -> None:
        """See `SessionRole.hurry`."""
        super().hurry()
        self._coordinator.hurry()

    def _stop_model(self, model: str, sentence: str) -> None:
        if self._cases is not None:
            self._cases.gateway.stop_model(model, sentence)
