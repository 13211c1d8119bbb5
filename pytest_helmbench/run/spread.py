"""Shards on a Dask cluster: started, listened to, kept on this disk as they go, started again where a host is lost."""

from __future__ import annotations

import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from distributed import Client, Future, LocalCluster, Queue, Security

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.shard import Shard
from pytest_helmbench.run.spread_session import ShardedWork, run_shard, this_host
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.merge.shard_image import ReceivedImage
from pytest_helmbench.store.read.costs import costs
from pytest_helmbench.store.read.runs import pulses

_TURN_S = 1.0
_TRIES = 3
_OPENING_S = 60.0
_FAILURES = 1
_BROKEN = 3
"""pytest's exit code of a session that broke down; from here on, or below 0, a shard is tried again."""

_MISUSED = 4
_TELL_S = 15.0


@dataclass(slots=True)
class _Share:
    """One shard, as far as it is."""

    shard: Shard
    image: ReceivedImage
    future: Future | None = None
    attempt: str = ""
    host: str = ""
    tries: int = 0
    state: str = "waiting"
    code: int = 0
    said: str = ""
    judged: int = 0
    cost_usd: float = 0.0
    is_complete: bool = False

    def count(self) -> None:
        """Look into its results file.

        Raises:
            StoreError: It is none, or too young to be one.
        """
        found = pulses(self.image.path).values()
        self.is_complete = bool(found) and all(pulse.status == "complete" for pulse in found)
        self.judged = sum(pulse.passed + pulse.failed for pulse in found)
        self.cost_usd = sum(row.known_cost_usd for row in costs(self.image.path))

    def failed(self, why: str) -> Mapping[str, object]:
        """Mark it as failed, and return the answer to its task."""
        self.state, self.said = "failed", why
        return {"dropped": why}

    @property
    def problem(self) -> str | None:
        """What kept it from its end, in a sentence; None for nothing."""
        if self.state != "failed" and not self.code:
            return None
        last = self.said.strip().rpartition("\n")[2].strip("= ")
        ended = f"pytest ended {self.code}: {last}" if self.state == "done" else last
        return f"{self.shard.name}{f' on {self.host}' if self.host else ''}: {ended or 'no word'}"


@dataclass(frozen=True, slots=True)
class SpreadResult:
    """The result of a session on a cluster.

    Args:
        files: Of the shards of which something is there.
        problems: What was wrong with shards, in sentences.
        hosts: That they came from, by name of file.
        is_whole: All have come to their end.
        stopped: The user has stopped it.
        misused: What pytest said about arguments that it cannot use; empty for fine ones.
    """

    files: tuple[Path, ...]
    problems: tuple[str, ...]
    hosts: Mapping[str, str]
    is_whole: bool
    stopped: bool
    misused: str


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Yield a connection to a cluster: `local:N` starts one of this machine, with certificates of its own.

    Raises:
        HelmbenchError: It cannot be reached.
    """
    kind, _, count = address.partition(":")
    if kind == "local":
        if not count.isdecimal() or not int(count):
            raise HelmbenchError(f"--dask={address}: no number of workers\n  hint: --dask=local:2")
        with (
            LocalCluster(
                n_workers=int(count),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                security=Security.temporary(),
                memory_limit=0,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(address, timeout=_OPENING_S)
    except (OSError, ValueError, TypeError) as error:
        raise HelmbenchError(
            f"--dask={address}: the scheduler cannot be reached: {error}\n  hint: `dask scheduler` starts one"
        ) from error
    with client:
        yield client


def is_safe(address: str) -> bool:
    """Return whether a cluster may be at an address: Dask unpickles what it is sent, so no other user may send it."""
    host = urlsplit(address if "://" in address else f"tcp://{address}").hostname or ""
    with suppress(ValueError):
        return address.startswith("tls://") or ip_address(host).is_loopback
    return host in ("localhost", "local")


def hosts_of(client: Client) -> Mapping[str, tuple[str, str]]:
    """Return name and versions of each worker's host, by its address.

    Raises:
        HelmbenchError: There is none, or one has not installed what it takes.
    """
    try:
        client.wait_for_workers(1, timeout=_OPENING_S)
        found: dict[str, tuple[str, str]] = client.run(this_host)
    except TimeoutError:
        raise HelmbenchError(
            f"no worker came within {_OPENING_S:g} s\n  hint: `dask worker ADDRESS` starts one"
        ) from None
    except Exception as error:
        raise HelmbenchError(
            f"a worker cannot tell its versions: {error}\n  hint: install pytest-helmbench there, as it is here"
        ) from error
    return found


def refuse_others(hosts: Mapping[str, tuple[str, str]]) -> None:
    """See that all run what this machine runs.

    Raises:
        HelmbenchError: One does not.
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
        client: Of the cluster.
        work: What they run.
        files: What travels, as `spread_session.packed` made it; None for nothing.
        results: The shards' results files, in order; what is there already is gone on with.
        tell: Takes a line of progress now and then.

    Raises:
        StoreError: A file that is there is not a results file.
    """

    def __init__(
        self,
        client: Client,
        work: ShardedWork,
        files: bytes | None,
        results: Sequence[Path],
        tell: Callable[[str], object],
    ) -> None:
        self._client = client
        self._work = work
        self._files = files
        self._tell = tell
        self._questions = Queue(work.name, client=client)
        self._stopped_at: float | None = None
        self._misused = ""
        self._told: tuple[str, float] = ("", 0.0)
        self._shares = [_Share(Shard(n, work.of), ReceivedImage(path)) for n, path in enumerate(results, 1)]
        for share in self._shares:
            if share.image.path.is_file():
                share.count()
            if share.is_complete:
                share.state = "done"
            else:
                self._submit(share)

    def run(self) -> SpreadResult:
        """Wait until all have ended; Ctrl-C lets them end, and brings in what they have recorded."""
        with self._hearing():
            while any(share.state in ("waiting", "running") for share in self._shares):
                self._listen()
                for share in self._shares:
                    self._look_at(share)
                self._tell_progress()
        self._questions.close()
        problems = tuple(problem for share in self._shares if (problem := share.problem) is not None)
        there = [share for share in self._shares if share.image.path.is_file()]
        return SpreadResult(
            files=tuple(share.image.path for share in there),
            problems=problems,
            hosts={share.image.path.name: share.host for share in there if share.host},
            is_whole=all(share.state == "done" and share.code in (0, _FAILURES) for share in self._shares),
            stopped=self._stopped_at is not None,
            misused=self._misused,
        )

    @contextmanager
    def _hearing(self) -> Iterator[None]:
        """Take the first Ctrl-C for a wish: raised anywhere it would lose a message."""

        def stop(_number: int, _frame: FrameType | None) -> None:
            if self._stopped_at is not None:
                raise KeyboardInterrupt
            self._stopped_at = time.monotonic()

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _submit(self, share: _Share) -> None:
        share.state = "waiting"
        key = f"{self._work.name}-{share.shard.index}-{uuid.uuid4().hex[:8]}"
        share.future = self._client.submit(run_shard, self._work, share.shard, key=key, pure=False)

    def _listen(self) -> None:
        with suppress(TimeoutError):
            message: Mapping[str, Any] = self._questions.get(timeout=_TURN_S)
            while True:
                answers = Queue(f"{self._work.name}-{message.get('attempt')}", client=self._client)
                answers.put(self._answer(message))
                message = self._questions.get(timeout=0.01)

    def _answer(self, message: Mapping[str, Any]) -> Mapping[str, object]:
        share = self._shares[int(message["shard"]) - 1]
        if share.state in ("done", "failed"):
            return {"dropped": "it is not waited for any more"}
        if message["what"] == "begin":
            return self._begun(share, message)
        if message["attempt"] != share.attempt:
            return {"dropped": "another one has taken its place"}
        if message["what"] == "record":
            try:
                blocks = [(int(number), bytes(block)) for number, block in message["blocks"]]
                if blocks:
                    share.image.change(int(message["size"]), blocks)
                    with suppress(StoreError):  # the merge says so, should it stay like that
                        share.count()
            except (ValueError, TypeError, KeyError, OSError) as error:
                return share.failed(f"its results file could not be taken over: {error}")
            if "code" in message:
                self._ended(share, int(message["code"]), str(message["said"]))
        return {"stop": self._stopped_at is not None}

    def _begun(self, share: _Share, message: Mapping[str, Any]) -> Mapping[str, object]:
        share.attempt, share.host = str(message["attempt"]), str(message["host"])
        share.tries += 1
        if message["versions"] != this_host()[1]:
            return share.failed(f"it runs {message['versions']}")
        if self._stopped_at is not None:
            return share.failed("stopped")
        if share.tries > _TRIES:
            return share.failed(f"it was lost {_TRIES} times")
        share.state = "running"
        return {"image": share.image.begin(), "files": self._files if message["wants_files"] else None}

    def _look_at(self, share: _Share) -> None:
        future, stopped_at = share.future, self._stopped_at
        if future is None or share.state not in ("waiting", "running"):
            return
        if stopped_at is not None and (
            share.state == "waiting" or time.monotonic() - stopped_at > _OPENING_S
        ):
            future.cancel()
            share.failed("not begun" if share.state == "waiting" else "it has not ended")
        elif future.done():
            error = future.exception() if future.status == "error" else None
            share.failed(str(error) or type(error).__name__)
            self._try_again(share)

    def _ended(self, share: _Share, code: int, said: str) -> None:
        share.state, share.code, share.said = "done", code, said
        if code == _MISUSED:
            self._misused = self._misused or said
            self._stopped_at = self._stopped_at or time.monotonic()
        elif code < 0 or code == _BROKEN:
            self._try_again(share)

    def _try_again(self, share: _Share) -> None:
        if share.tries < _TRIES and self._stopped_at is None:
            share.code = 0
            self._submit(share)

    def _tell_progress(self) -> None:
        states = Counter(share.state for share in self._shares)
        names = [name for name in ("waiting", "running", "done", "failed") if states[name]]
        shards = ", ".join(f"{states[name]} {name}" for name in names)
        judged = sum(share.judged for share in self._shares)
        cost_usd = sum(share.cost_usd for share in self._shares)
        before, when = self._told
        if shards != before or time.monotonic() - when > _TELL_S:
            self._told = (shards, time.monotonic())
            self._tell(f"shards: {shards}; {judged:,} cases judged; {cost_usd:.4f} USD")
