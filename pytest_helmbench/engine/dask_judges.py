"""Judges on a Dask cluster: parcels of bytes out, all that is done in one gather.

Dask's lists and its `result()` of each future cost as much as judging; a parcel is one value to it.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from contextlib import suppress
from typing import Any

from distributed import Client, KilledWorker, Security

from pytest_helmbench.core.judge_places import JudgeKind, JudgePlaces
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.dask_lines import LineListener
from pytest_helmbench.engine.host_lines import HostLines
from pytest_helmbench.engine.isolated_process import isolated_process, told_paths
from pytest_helmbench.engine.judge_access import JudgesGoneError, OpenedJudges
from pytest_helmbench.engine.parcels import judge, version

__all__ = ["dask_judges"]

_CONNECT_S = 10
_LOOK_S = 1.0
_END_S = 2.0


def dask_judges(places: JudgePlaces) -> OpenedJudges:
    """Reach a scheduler, or start a cluster of our own on this machine.

    Raises:
        HelmbenchError: Nobody answers.
    """
    # It writes into pytest's lines whoever comes and goes, and its client tracebacks of a scheduler that has gone.
    logging.getLogger("distributed").setLevel(logging.ERROR)
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    cluster: _OwnCluster | None = None
    address, security = places.target, None
    if places.kind is JudgeKind.DASK_LOCAL:
        cluster = _OwnCluster(places.count)
        address, security = cluster.address, cluster.security
    try:
        # Without a word of ours, the certificates are those of Dask's configuration.
        client = Client(
            address, timeout=_CONNECT_S, security=security, set_as_default=False, name="helmbench"
        )
    except Exception as error:
        if cluster is not None:
            cluster.close()
        raise HelmbenchError(f"no Dask scheduler answers at {address}: {error}") from error
    judges = _DaskJudges(client, cluster.close if cluster is not None else lambda: None)
    return OpenedJudges(judges.submit, judges.places, judges.close, made_by=version(), listen=judges.listen)


class _OwnCluster:
    """A scheduler with its workers in processes of their own, which have nothing of our environment.

    They speak TLS with certificates of the hour: whoever reached the scheduler otherwise would run code as its user.
    """

    def __init__(self, count: int) -> None:
        self._process = isolated_process("dask_cluster", str(count))
        try:
            told = json.loads(told_paths(self._process))
        except (EOFError, OSError):
            told = {"error": f"its process ended with {self._process.killed()}"}
        if "error" in told:
            self._process.end(_END_S)
            raise HelmbenchError(f"a Dask cluster could not be started here: {told['error']}")
        self.address: str = told["address"]
        self.security = Security(**told["security"])

    def close(self) -> None:
        """End scheduler and workers: their pipe is closed."""
        self._process.end(_END_S)


class _DaskJudges:
    """A client, a thread that collects what is done, and one that counts who is there.

    Args:
        client: Connected.
        end: Ends what was started beside it.
    """

    def __init__(self, client: Client, end: Callable[[], None]) -> None:
        self._client = client
        self._end = end
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._out: dict[str, tuple[Any, Future[bytes]]] = {}
        self._places = sum(client.nthreads().values())
        self._closed = threading.Event()
        self._listener: LineListener | None = None
        for work in (self._collect, self._count):
            threading.Thread(target=work, name="helmbench-dask", daemon=True).start()

    def submit(self, parcel: bytes) -> Future[bytes]:
        """Have a parcel judged.

        Raises:
            JudgesGoneError: The scheduler is not there.
        """
        if self._client.status != "running":
            raise JudgesGoneError("the Dask scheduler is gone")
        future: Future[bytes] = Future()
        task = self._client.submit(judge, parcel, pure=False)
        self._out[task.key] = (task, future)
        task.add_done_callback(self._done.put)
        return future

    def places(self) -> int:
        """Return the threads of all workers, as counted a second ago."""
        return self._places if self._client.status == "running" else 0

    def listen(self, lines: HostLines, loop: AbstractEventLoop) -> None:
        """Have what runs on the workers ask the session; once is enough."""
        if self._listener is None:
            self._listener = LineListener(self._client, lines, loop)

    def close(self) -> None:
        """Leave the cluster; one of our own is ended."""
        self._closed.set()
        self._done.put(None)
        if self._listener is not None:
            self._listener.close()
        with suppress(Exception):
            self._client.close(timeout=_END_S)
        self._end()

    def _count(self) -> None:
        while not self._closed.wait(_LOOK_S):
            try:
                self._places = sum(self._client.nthreads().values())
            except Exception:  # noqa: BLE001 - whatever a lost connection raises
                self._places = 0

    def _collect(self) -> None:
        while (task := self._done.get()) is not None:
            tasks = [task]
            with suppress(queue.Empty):
                while True:
                    tasks.append(self._done.get_nowait())
            if None in tasks:
                return
            finished = [one for one in tasks if one.status == "finished"]
            try:
                results = self._client.gather(finished) if finished else []
            except Exception:  # noqa: BLE001 - who held a result is gone: each is asked for by itself
                results = [None] * len(finished)
            for one, result in zip(finished, results, strict=True):
                if result is not None:
                    self._settle(one, result)
            for one in tasks:
                if one.key in self._out:
                    self._settle(one, None)

    def _settle(self, task: Any, result: bytes | None) -> None:
        _, future = self._out.pop(task.key)
        if not future.set_running_or_notify_cancel():
            return
        if result is not None:
            future.set_result(result)
            return
        try:
            future.set_result(task.result(timeout=_CONNECT_S))
        except KilledWorker as error:
            future.set_exception(BrokenExecutor(f"Dask: {error}"))
        except Exception as error:  # noqa: BLE001 - whatever the worker has raised
            gone = task.status in ("cancelled", "lost", "pending")
            future.set_exception(JudgesGoneError("the Dask scheduler is gone") if gone else error)
