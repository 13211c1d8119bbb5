"""Asking judges who they are: their processes, versions, and what a parcel takes."""

from __future__ import annotations

import os
import pickle
import platform
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.judge_access import OpenedJudges
from pytest_helmbench.engine.parcels import Packer, version

__all__ = ["Judged", "PresentJudge", "probed"]

_NOTHING = Reply("", None, "stop", Usage(), 0.0, None, "")
_EACH_S = 0.05  # so long that a parcel keeps a judge from taking the next
_PARCELS = 4  # for each place
_ALONE = 5


@dataclass(frozen=True, slots=True)
class PresentJudge:
    """A judge process that has answered.

    Args:
        host: Its machine.
        process: Its number there.
        version: See `parcels.version`.
        parcels: That it was given.
    """

    host: str
    process: int
    version: str
    parcels: int


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of asking.

    Args:
        judges: Who has answered.
        parcel_ms: From sending an empty parcel until its findings are here; the median of a few.
    """

    judges: tuple[PresentJudge, ...]
    parcel_ms: float

    @property
    def others(self) -> tuple[PresentJudge, ...]:
        """Those who run another version."""
        return tuple(one for one in self.judges if one.version != version())


@dataclass(frozen=True, slots=True)
class _Presence:
    """An evaluator that says where it runs."""

    seconds: float
    group: str = "presence"
    shared: tuple[object, ...] = ()

    def takes_time(self, _reply: Reply) -> bool:
        return False

    def evaluate(self, _reply: Reply) -> tuple[str, int, str]:
        time.sleep(self.seconds)
        return platform.node(), os.getpid(), version()


def probed(judges: OpenedJudges, wait_s: float) -> Judged:
    """Ask whoever is there.

    Raises:
        HelmbenchError: Nobody answers in time.
    """
    ends = time.monotonic() + wait_s
    while not judges.places():
        if time.monotonic() > ends:
            raise HelmbenchError(f"no judge was there within {wait_s:g} s")
        time.sleep(0.1)
    counts = Counter(_answers([_sent(judges, _EACH_S) for _ in range(_PARCELS * judges.places())], ends))
    walls_ms = []
    for _ in range(_ALONE):
        began = time.perf_counter()
        list(_answers([_sent(judges, 0.0)], ends))
        walls_ms.append((time.perf_counter() - began) * 1000)
    found = (PresentJudge(*who, parcels) for who, parcels in sorted(counts.items()))
    return Judged(tuple(found), statistics.median(walls_ms))


def _sent(judges: OpenedJudges, seconds: float) -> Future[bytes]:
    return judges.submit(Packer().parcel([(_Presence(seconds), _NOTHING)]))


def _answers(sent: list[Future[bytes]], ends: float) -> Iterator[tuple[str, int, str]]:
    for future in sent:
        try:
            (finding,) = pickle.loads(future.result(max(1.0, ends - time.monotonic())))
        except Exception as error:
            raise HelmbenchError(f"a judge does not judge: {error or type(error).__name__}") from error
        yield finding.found
