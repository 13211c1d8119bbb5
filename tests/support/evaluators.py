"""Evaluators that take their time, die, or cannot travel: judge processes import them from here."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from pytest_helmbench.core.outcome import Outcome, Reply, Usage, Verdict
from pytest_helmbench.engine.local_judges import LocalJudges

__all__ = ["Deadly", "Faulty", "Holding", "Timed", "Unmovable", "hosts", "opened_hosts", "pool", "reply"]


def reply(text: str = "hello") -> Reply:
    """Return a reply with nothing particular."""
    return Reply(text, None, "stop", Usage(), 1.0, None, "key")


def pool() -> ProcessPoolExecutor:
    """Return an executor as a user's own module would."""
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


def hosts() -> LocalJudges:
    """Return processes that stand for hosts of judges; none where the file `JUDGES_GONE` is."""
    if Path(os.environ.get("JUDGES_GONE", "/nowhere")).exists():
        raise OSError("the hosts are gone")
    opened_hosts.append(LocalJudges(2))
    return opened_hosts[-1]


opened_hosts: list[LocalJudges] = []


@dataclass(frozen=True)
class Timed:
    """Takes CPU time, and says in which process.

    Args:
        ms: CPU milliseconds.
        place: File to which the process writes its number when it begins.
    """

    ms: float
    common: tuple[str, ...] = ("a part", "of many")
    place: Path | None = None

    group = "timed"

    @property
    def shared(self) -> tuple[object, ...]:
        return (self.common,)

    def takes_time(self, _reply: Reply) -> bool:
        return False

    def evaluate(self, reply: Reply) -> tuple[int, str, dict[str, str]] | Outcome:
        if self.place is not None:
            self.place.write_text(str(os.getpid()))
        ends = time.thread_time() + self.ms / 1000
        while time.thread_time() < ends:
            pass
        return os.getpid(), reply.text, dict(os.environ)


@dataclass(frozen=True)
class Deadly(Timed):
    """Ends the process that judges a certain reply, unless it is the one that must live."""

    text: str = "poison"
    spares: int = 0

    def evaluate(self, reply: Reply) -> tuple[int, str, dict[str, str]] | Outcome:
        if reply.text == self.text and os.getpid() != self.spares:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().evaluate(reply)


@dataclass(frozen=True)
class Faulty(Timed):
    """Raises, or finds no verdict."""

    group = "faulty"

    def evaluate(self, reply: Reply) -> tuple[int, str, dict[str, str]] | Outcome:
        if reply.text == "none":
            return Outcome(Verdict.ERROR, "rule_timeout", "too long")
        raise LookupError(f"{reply.text} in {os.getpid()}")


@dataclass(frozen=True)
class Holding:
    """Holds its place until a file is there.

    Args:
        folder: Gets a file `held` when it begins; a file `free` ends it.
    """

    folder: Path
    group: str = "holding"
    shared: tuple[object, ...] = ()

    def takes_time(self, _reply: Reply) -> bool:
        return True

    def evaluate(self, _reply: Reply) -> int:
        (self.folder / "held").touch()
        while not (self.folder / "free").exists():
            time.sleep(0.01)
        return os.getpid()


@dataclass(frozen=True)
class Unmovable(Timed):
    """Cannot be pickled."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    group = "unmovable"
