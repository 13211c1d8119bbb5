"""Shards on a Dask cluster: started, stored on this disk while they run, started again where a host is lost."""

from __future__ import annotations

import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from dask import config
from distributed import Client, Future, LocalCluster, Queue, Security, wait

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.shard import Shard
from pytest_helmbench.run.spread_session import run_shard, this_host
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.merge.shard_image import image_of, store_blocks
from pytest_helmbench.store.read.costs import costs
from pytest_helmbench.store.read.runs import runs_progress

_TURN_S = 0.5
_TRIES = 3
_PATIENCE_S = 60.0
_CLOSING_S = 10.0
_FAILURES = 1
_BROKEN = 3
"""pytest's exit code of a session that broke down; then, or below 0, a shard is tried again."""

_MISUSED = 4
_PROGRESS_S = 15.0
_OPEN = ("waiting", "running")


@dataclass(slots=True)
class _ShardTask:
    """One shard: its results file here, its last task, and the session (attempt) that may write the file."""

    shard: Shard
    path: Path
    future: Future | None = None
    attempt: str = ""
    host: str = ""
    tries: int = 0
    state: str = "waiting"
    problem: str = ""
    judged: int = 0
    cost_usd: float = 0.0

    def count(self) -> bool:
        """Count what its results file holds, and return whether its runs are complete.

        Raises:
            StoreError: The file is not a results file, or not yet.
        """
        runs = runs_progress(self.path).values()
        self.judged = sum(run.passed + run.failed for run in runs)
        self.cost_usd = sum(row.known_cost_usd for row in costs(self.path))
        return bool(runs) and all(run.status == "complete" for run in runs)

    def fail(self, problem: str) -> Mapping[str, object]:
        """Mark it as failed, and return the answer to its session."""
        place = f"{self.shard.name} on {self.host}" if self.host else self.shard.name
        self.state, self.problem = "failed", f"{place}: {_last_line(problem)}"
        return {"dropped": problem}


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Yield a connection to a cluster: `local:N` starts one of this machine, with certificates of its own.

    Raises:
        HelmbenchError: The cluster cannot be reached.
    """
    place, _, count = address.partition(":")
    if place == "local" and not (count.isdecimal() and int(count)):
        raise HelmbenchError(f"--dask={address}: the number of workers is missing\n  hint: --dask=local:2")
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(_local_cluster(int(count))) if place == "local" else address
            client = stack.enter_context(Client(cluster, timeout=_PATIENCE_S))
        except (OSError, ValueError, TypeError) as error:
            raise HelmbenchError(
                f"--dask={address}: the scheduler cannot be reached: {error}\n  hint: `dask scheduler` starts one"
            ) from error
        yield client


def _local_cluster(workers: int) -> LocalCluster:
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        security=Security.temporary(),
        memory_limit=0,
    )


def is_safe(address: str) -> bool:
    """Return whether a cluster may be at an address: Dask unpickles what it is sent, so no other user may send it."""
    host = urlsplit(address if "://" in address else f"tcp://{address}").hostname or ""
    with suppress(ValueError):
        return address.startswith("tls://") or ip_address(host).is_loopback
    return host in ("localhost", "local")


def hosts_of(client: Client) -> Mapping[str, tuple[str, str]]:
    """Return name and versions of each worker's host, by its address.

    Raises:
        HelmbenchError: No worker is connected, or one lacks this package.
    """
    try:
        client.wait_for_workers(1, timeout=_PATIENCE_S)
        hosts: dict[str, tuple[str, str]] = client.run(this_host)
    except TimeoutError:
        raise HelmbenchError(
            f"no worker came within {_PATIENCE_S:g} s\n  hint: `dask worker ADDRESS` starts one"
        ) from None
    except Exception as error:
        raise HelmbenchError(
            f"a worker cannot tell its versions: {error}\n  hint: install pytest-helmbench there, as it is here"
        ) from error
    return hosts


def refuse_others(hosts: Mapping[str, tuple[str, str]]) -> None:
    """Refuse workers that run other versions than this machine.

    Raises:
        HelmbenchError: One does.
    """
    _, here = this_host()
    for name, versions in hosts.values():
        if versions != here:
            raise HelmbenchError(
                f"{name} runs {versions}, this machine {here}\n  hint: install the same versions everywhere"
            )


class Spread:
    """Runs the shards of one session on a cluster.

    Args:
        folder: Where it runs: below the files, or an absolute path.
        files: What travels, as `spread_session.packed` made it; None for nothing.
        results: The shards' results files, in order; a session goes on with one that exists.
        report: Takes a line of progress now and then.

    Attributes:
        stopped_at: When the user stopped it (monotonic seconds), or pytest could not use its arguments.
        usage_problem: What pytest said about these arguments; empty for good ones.

    Raises:
        StoreError: A file that exists is not a results file.
    """

    def __init__(
        self,
        client: Client,
        arguments: Sequence[str],
        folder: str,
        files: bytes | None,
        results: Sequence[Path],
        report: Callable[[str], object],
    ) -> None:
        self.stopped_at: float | None = None
        self.usage_problem = ""
        self._client = client
        with config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
            # A task and not scattered data: Dask makes it again when its worker is lost.
            sent = None if files is None else client.submit(bytes, files)
        self._work = (arguments, folder, sent)
        self._report = report
        self._questions = Queue(f"helmbench-{uuid.uuid4().hex}", client=client)
        self._progress: tuple[str, float] = ("", 0.0)
        self._shards = [_ShardTask(Shard(n, len(results)), path) for n, path in enumerate(results, 1)]
        for shard in self._shards:
            if shard.path.is_file() and shard.count():
                shard.state = "done"
            else:
                self._submit(shard)

    @property
    def files(self) -> Mapping[Path, str]:
        """The results files that exist, with the host that each came from; empty for a file that is not new."""
        return {shard.path: shard.host for shard in self._shards if shard.path.is_file()}

    @property
    def problems(self) -> tuple[str, ...]:
        """The faults of shards, in sentences."""
        return tuple(shard.problem for shard in self._shards if shard.problem)

    @property
    def is_whole(self) -> bool:
        """Whether all shards ended well, failed tests included."""
        return all(shard.state == "done" for shard in self._shards)

    def run(self) -> None:
        """Wait until all have ended; Ctrl-C lets them end, and stores what they have recorded."""
        with ExitStack() as handlers:
            for number in (signal.SIGINT, signal.SIGTERM):
                handlers.callback(signal.signal, number, signal.signal(number, self._stop))
            while any(shard.state in _OPEN for shard in self._shards):
                time.sleep(_TURN_S)
                for message in self._questions.get(batch=True):
                    answers = Queue(f"{self._questions.name}-{message['attempt']}", client=self._client)
                    answers.put(self._answer(message))
                for shard in self._shards:
                    self._look_at(shard)
                self._report_progress()
        # Dask would log a task that still runs when its cluster closes.
        futures = (shard.future for shard in self._shards if shard.future is not None)
        with suppress(TimeoutError):
            wait([future for future in futures if not future.done()], timeout=_CLOSING_S)
        self._questions.close()

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        """Take the first Ctrl-C for a wish: raised anywhere it would lose a message."""
        if self.stopped_at is not None:
            raise KeyboardInterrupt
        self.stopped_at = time.monotonic()

    def _submit(self, shard: _ShardTask) -> None:
        shard.state, shard.problem = "waiting", ""
        queue = self._questions.name
        key = f"{queue}-{shard.shard.index}-{uuid.uuid4().hex[:8]}"
        shard.future = self._client.submit(run_shard, queue, shard.shard, *self._work, key=key, pure=False)

    def _answer(self, message: Mapping[str, Any]) -> Mapping[str, object]:
        shard: _ShardTask = self._shards[message["shard"] - 1]
        if shard.state not in _OPEN:
            return {"dropped": "it is not waited for any more"}
        if message.get("begins"):
            return self._begin(shard, message)
        if message["attempt"] != shard.attempt:
            return {"dropped": "another one has taken its place"}
        if message.get("blocks"):
            try:
                store_blocks(shard.path, message["size"], message["blocks"])
            except OSError as error:
                return shard.fail(f"its results file cannot be stored: {error}")
            with suppress(StoreError):  # the merge reports a file that stays like that
                shard.count()
        if "code" in message:
            self._end(shard, message["code"], message["output"])
        return {"stop": self.stopped_at is not None}

    def _begin(self, shard: _ShardTask, message: Mapping[str, Any]) -> Mapping[str, object]:
        shard.attempt, shard.host = str(message["attempt"]), str(message["host"])
        shard.tries += 1
        if message["versions"] != this_host()[1]:
            return shard.fail(f"it runs {message['versions']}")
        if self.stopped_at is not None:
            return shard.fail("stopped")
        if shard.tries > _TRIES:
            return shard.fail(f"it was lost {_TRIES} times")
        shard.state = "running"
        return {"image": image_of(shard.path)}

    def _end(self, shard: _ShardTask, code: int, output: str) -> None:
        if code:
            shard.fail(f"pytest ended {code}: {_last_line(output)}")
        if code in (0, _FAILURES):
            shard.state = "done"
        if code == _MISUSED:
            self.usage_problem = self.usage_problem or output
            self.stopped_at = self.stopped_at or time.monotonic()
        elif code < 0 or code == _BROKEN:
            self._try_again(shard)

    def _look_at(self, shard: _ShardTask) -> None:
        future, stopped_at, is_waiting = shard.future, self.stopped_at, shard.state == "waiting"
        if future is None or shard.state not in _OPEN:
            return
        if stopped_at is not None and (is_waiting or time.monotonic() - stopped_at > _PATIENCE_S):
            future.cancel()
            shard.fail("not begun" if is_waiting else "it has not ended")
        elif future.done():
            shard.tries += is_waiting
            shard.fail(
                str(future.exception()) if future.status == "error" else f"its task is {future.status}"
            )
            self._try_again(shard)

    def _try_again(self, shard: _ShardTask) -> None:
        if shard.tries < _TRIES and self.stopped_at is None:
            self._submit(shard)

    def _report_progress(self) -> None:
        states = Counter(shard.state for shard in self._shards)
        shards = ", ".join(f"{states[name]} {name}" for name in (*_OPEN, "done", "failed") if states[name])
        judged = sum(shard.judged for shard in self._shards)
        cost_usd = sum(shard.cost_usd for shard in self._shards)
        before, reported_at = self._progress
        if shards != before or time.monotonic() - reported_at > _PROGRESS_S:
            self._progress = (shards, time.monotonic())
            self._report(f"helmbench: shards: {shards}; {judged:,} cases judged; {cost_usd:.4f} USD")


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2].strip("= ")
