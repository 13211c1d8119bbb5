"""Judge processes of this machine, as an executor.

Not `ProcessPoolExecutor`: its processes import the program that pytest was started by, have our environment, and when
one dies, all that was under way is lost and nobody knows by what.
"""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any

from pytest_helmbench.core.piped_process import PipedProcess
from pytest_helmbench.engine.isolated_process import isolated_process, told_paths
from pytest_helmbench.engine.parcels import judge
from pytest_helmbench.engine.pipe_frames import read_frame, write_frame

__all__ = ["JudgeDiedError", "LocalJudges"]

_END_S = 1.0
_LIMIT_S = 120.0
"""After so long over one parcel a process is taken for one that never ends."""


class JudgeDiedError(BrokenExecutor):
    """A judge process died over a parcel."""


class LocalJudges(Executor):
    """Processes that judge parcels, each started when there is work for it.

    Args:
        count: Most processes.
    """

    def __init__(self, count: int) -> None:
        self._waiting: queue.SimpleQueue[tuple[Future[bytes], bytes] | None] = queue.SimpleQueue()
        self._count = count
        self._lock = threading.Lock()
        self._idle = 0
        self._open = 0
        self._judges: list[_Judge] = []
        self._closed = False

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that live, in the order in which they were started."""
        return tuple(judge.process.pid for judge in self._judges if judge.process is not None)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a parcel judged; nothing else is run here.

        Raises:
            RuntimeError: It is closed.
        """
        if fn is not judge or kwargs:
            raise TypeError("judge processes judge parcels")
        (parcel,) = args
        future: Future[bytes] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the judges are gone")
            self._open += 1
            if self._open > len(self._judges) and len(self._judges) < self._count:
                self._judges.append(_Judge(self._waiting))
        future.add_done_callback(self._ended)
        self._waiting.put((future, parcel))
        return future

    def _ended(self, _future: Future[bytes]) -> None:
        with self._lock:
            self._open -= 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes at once, whatever they are at; what waits for one is lost."""
        del cancel_futures
        with self._lock:
            self._closed = True
            judges = tuple(self._judges)
        for _ in judges:
            self._waiting.put(None)
        for one in judges:
            one.kill()
        if wait:
            ends = time.monotonic() + _END_S
            for one in judges:
                one.join(max(0.0, ends - time.monotonic()))


class _Judge:
    """One process, and the thread that speaks with it; after a death it is started again."""

    def __init__(self, waiting: queue.SimpleQueue[tuple[Future[bytes], bytes] | None]) -> None:
        self._waiting = waiting
        self._ending = False
        self.process: PipedProcess | None = None
        self._thread = threading.Thread(target=self._serve, name="helmbench-judge", daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """End the process, and do not start it again."""
        self._ending = True
        process = self.process
        if process is not None:
            process.kill()

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended."""
        self._thread.join(timeout_s)

    def _serve(self) -> None:
        while (taken := self._waiting.get()) is not None:
            future, parcel = taken
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._judged(parcel))
            except Exception as error:  # noqa: BLE001 - whoever waits is told
                self._end()
                future.set_exception(error)
        self._end()

    def _judged(self, parcel: bytes) -> bytes:
        if self._ending:
            raise RuntimeError("the judges are gone")
        process = self.process or self._started()
        limit = threading.Timer(_LIMIT_S, process.kill)
        limit.daemon = True
        limit.start()
        try:
            write_frame(process.questions, parcel)
            return read_frame(process.answers)
        except (EOFError, OSError):
            late = f" after {_LIMIT_S:g} s" if limit.finished.is_set() else ""
            raise JudgeDiedError(f"a judge process {_how(process.killed())}{late}") from None
        finally:
            limit.cancel()

    def _started(self) -> PipedProcess:
        process = self.process = isolated_process("judge_process")
        if self._ending:
            process.kill()
        try:
            told_paths(process)
        except (EOFError, OSError):
            raise RuntimeError(f"a judge process could not start: it {_how(process.killed())}") from None
        return process

    def _end(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.end()


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
