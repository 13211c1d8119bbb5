"""Judge processes of this machine, as an executor.

Not `ProcessPoolExecutor`: its processes import the program that pytest was started by, have our environment, and when
one dies, all that was under way is lost and nobody knows by what.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_helmbench.engine.parcels import judge
from pytest_helmbench.engine.pipe_frames import read_frame, write_frame

__all__ = ["JudgeDiedError", "LocalJudges", "clean_environment"]

_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT")
_END_S = 1.0
_LIMIT_S = 120.0
"""After so long over one parcel a process is taken for one that never ends."""

_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from pytest_helmbench.engine.judge_process import main; main()"
)


class JudgeDiedError(BrokenExecutor):
    """A judge process died over a parcel."""


def clean_environment() -> dict[str, str]:
    """Return the variables that a judge process has: none that a key could stand in."""
    return {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}


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
        self.process: subprocess.Popen[bytes] | None = None
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
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the process has no pipes")
        limit = threading.Timer(_LIMIT_S, process.kill)
        limit.daemon = True
        limit.start()
        try:
            write_frame(process.stdin, parcel)
            return read_frame(process.stdout)
        except (EOFError, OSError):
            process.kill()
            late = f" after {_LIMIT_S:g} s" if limit.finished.is_set() else ""
            raise JudgeDiedError(f"a judge process {_how(process.wait())}{late}") from None
        finally:
            limit.cancel()

    def _started(self) -> subprocess.Popen[bytes]:
        options = ["-I", *(["-B"] if sys.dont_write_bytecode else [])]
        process = self.process = subprocess.Popen(
            [sys.executable, *options, "-c", _PROGRAM, str(Path(__file__).parents[2])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=clean_environment(),
            cwd=Path(sys.executable).anchor,
            start_new_session=True,  # Ctrl-C is ours
        )
        if self._ending:
            process.kill()
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the process has no pipes")
        try:
            paths = [path for path in sys.path if Path(path).is_absolute()]
            write_frame(process.stdin, pickle.dumps(paths))
            read_frame(process.stdout)
        except (EOFError, OSError):
            process.kill()
            raise RuntimeError(f"a judge process could not start: it {_how(process.wait())}") from None
        return process

    def _end(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
