"""The role of an xdist worker: cases run here, limiter and record are the controller's."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence

from pytest_helmbench.core.outcome import Outcome
from pytest_helmbench.engine.case_engine import CaseEngine, Resumed
from pytest_helmbench.engine.engine import CancelledRunError, Engine
from pytest_helmbench.engine.job import CaseJob
from pytest_helmbench.pytest_side.case_engines import CaseEngines, composed
from pytest_helmbench.pytest_side.role import (
    GRACE_S,
    INTERRUPTED,
    INTERRUPTED_AGAIN,
    SessionRole,
    grace_after,
)
from pytest_helmbench.pytest_side.xdist_channel import Channel, RemoteBackend, Start
from pytest_helmbench.run.plan import Plan


class XdistWorker(SessionRole):
    """An engine whose backend is at the far end of a channel.

    Args:
        engines: Makes the case engine.
        channel: To the controller.
        tick: Called about once a second while somebody waits.
    """

    def __init__(self, engines: CaseEngines, channel: Channel, tick: Callable[[], None]) -> None:
        self._engines = engines
        self._tick = tick
        self._lock = threading.Lock()
        self._jobs: Sequence[CaseJob | None] = ()
        self._known: dict[str, Outcome] = {}
        self._cases: CaseEngine | None = None
        self._cancelled: str | None = None
        self._backend = RemoteBackend(
            engines.library.loop, channel, self._start, self._stop_model, self.cancel
        )

    def collected(self, jobs: Sequence[CaseJob | None], plan: Plan) -> None:
        """Tell the controller what was collected; calls start when it says so."""
        self._jobs = jobs
        self._backend.send("plan", plan)

    def begin(self) -> None:
        """Do nothing: the controller says what to start, and when."""

    def obtain(self, job: CaseJob) -> Outcome:
        """See `SessionRole.obtain`."""
        if self._cancelled is not None:
            raise CancelledRunError(self._cancelled)
        known = self.known(job)
        if known is not None:
            return known
        if self._cases is None:
            return composed(job, self._engines.settings.system_prompt)
        return self._cases.obtain(job, self._tick)

    @property
    def engine(self) -> Engine[CaseJob] | None:
        """See `SessionRole.engine`."""
        return self._cases.engine if self._cases is not None else None

    def known(self, job: CaseJob) -> Outcome | None:
        """See `SessionRole.known`."""
        return self._known.pop(job.node_id, None)

    def cancel(self, reason: str) -> None:
        """See `SessionRole.cancel`; the controller says so too, on xdist's receiver thread."""
        with self._lock:
            self._cancelled = self._cancelled or reason
        if self._cases is None:
            return
        self._cases.engine.drop_queued(reason, grace_after(reason))
        if reason == INTERRUPTED_AGAIN:
            self._cases.engine.hurry()

    def interrupted(self, _by: str) -> None:
        """See `SessionRole.interrupted`; the session ends with any of its workers."""
        self._backend.send("interrupted", _by)
        self.cancel(INTERRUPTED)

    def end(self, *, interrupted: bool) -> None:
        """See `SessionRole.end`; the controller knows by itself whether the session was interrupted."""
        if self._cases is not None:
            self._cases.end("the session has ended", GRACE_S)
        library = self._engines.library
        library.loop.run_last(library.close())
        self._backend.send("bye")
        library.loop.close()
        if interrupted or self._cancelled is not None or (self._jobs and all(self._jobs)):
            # pytest and the interpreter each search everything for garbage before the process may end, and
            # the session waits for it. Nothing of that is needed when no test of somebody else's was run.
            gc.freeze()

    def _start(self, start: Start) -> None:
        """Begin with a slice of the items: the own one, or what a dead worker has left."""
        self._known.update(start.known)
        if self._cases is None:
            resumed = Resumed(start.run_ids, start.judged, lambda name: self._backend.send("changed", name))
            self._cases = self._engines.make(self._backend, resumed)
        if start.inherits:
            self._cases.gateway.use_recorded()
        jobs = (self._jobs[index] for index in start.indices)
        self._cases.start([job for job in jobs if job is not None and job.node_id not in self._known])

    def _stop_model(self, model: str, sentence: str) -> None:
        if self._cases is not None:
            self._cases.gateway.stop_model(model, sentence)
