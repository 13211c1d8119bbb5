"""The role of a process that runs its session alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_helmbench.core.outcome import Outcome, ResultRecord
from pytest_helmbench.engine.case_engine import CaseEngine
from pytest_helmbench.engine.job import CaseJob
from pytest_helmbench.engine.job_queue import JobQueue
from pytest_helmbench.pytest_side.role import GRACE_S, CaseEngines, SessionRole, composed, grace_after
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.run.plan import Plan


class SingleProcess(SessionRole):
    """Coordinator and engine in one process.

    Args:
        coordinator: Limiter and record.
        engines: Makes the case engine.
        announce: Called with the plan before the first call; may end the session.
        tick: Called about once a second while somebody waits.
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
        backend = coordinator.open(plan, _ignore, self._stop_model)
        coordinator.hold_judges(backend)
        self._cases = self._engines.make(backend, coordinator.resumed())
        self._cases.start([job for job in jobs if job is not None])

    def obtain(self, job: CaseJob) -> Outcome:
        """See `SessionRole.obtain`."""
        if self._cases is None:
            return composed(job, self._coordinator.settings.system_prompt)
        return self._cases.obtain(job, self._tick)

    @property
    def engine(self) -> JobQueue[CaseJob] | None:
        """See `SessionRole.engine`."""
        return self._cases.engine if self._cases is not None else None

    def known(self, job: CaseJob) -> Outcome | None:
        """Return None: nobody has died."""

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


def _ignore(_record: ResultRecord) -> None:
    """Nobody else waits for the outcomes."""
