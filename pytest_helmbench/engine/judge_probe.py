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
from typing import TypeAlias

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.judge_access import OpenedJudges
from pytest_helmbench.engine.parcels import Packer, version
from pytest_helmbench.judging.evaluator import NO_REPLY, Evaluator

__all__ = ["Judged", "PresentJudge", "probed"]

_EACH_S = 0.05  # so long that a parcel keeps a judge from taking the next
_PARCELS = 4  # for each place
_ALONE = 5

_Who: TypeAlias = "tuple[str, int, str, tuple[str, ...]]"


@dataclass(frozen=True, slots=True)
class PresentJudge:
    """A judge process that has answered.

    Args:
        host: Its machine.
        process: Its number there.
        version: See `parcels.version`.
        sandboxes: What its host has for cases that need more than a process, or why it has nothing.
        parcels: That it was given.
    """

    host: str
    process: int
    version: str
    sandboxes: tuple[str, ...]
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
    """An evaluator that says where it runs, and what others say there."""

    seconds: float = 0.0
    asks: tuple[Evaluator[str], ...] = ()
    group: str = "presence"
    shared: tuple[object, ...] = ()

    def takes_time(self, _reply: Reply) -> bool:
        return False

    def evaluate(self, reply: Reply) -> _Who:
        time.sleep(self.seconds)
        return platform.node(), os.getpid(), version(), tuple(str(one.evaluate(reply)) for one in self.asks)


def probed(judges: OpenedJudges, wait_s: float, asks: tuple[Evaluator[str], ...] = ()) -> Judged:
    """Ask whoever is there.

    Args:
        judges: Whom to ask.
        wait_s: For how long.
        asks: What each says of its host.

    Raises:
        HelmbenchError: Nobody answers in time.
    """
    ends = time.monotonic() + wait_s
    while not judges.places():
        if time.monotonic() > ends:
            raise HelmbenchError(f"no judge was there within {wait_s:g} s")
        time.sleep(0.1)
    counts = Counter(_answers(_round(judges, _Presence(_EACH_S)), ends))
    there: dict[tuple[str, int], tuple[str, ...]] = {}
    if asks and all(made_by == version() for _, _, made_by, _ in counts):
        answers = _answers(_round(judges, _Presence(_EACH_S, asks)), ends)
        there = {(host, process): said for host, process, _, said in answers}
    walls_ms = []
    for _ in range(_ALONE):
        began = time.perf_counter()
        list(_answers([_sent(judges, _Presence())], ends))
        walls_ms.append((time.perf_counter() - began) * 1000)
    found = (
        PresentJudge(host, process, made_by, there.get((host, process), ()), parcels)
        for (host, process, made_by, _), parcels in sorted(counts.items())
    )
    return Judged(tuple(found), statistics.median(walls_ms))


def _round(judges: OpenedJudges, presence: _Presence) -> list[Future[bytes]]:
    return [_sent(judges, presence) for _ in range(_PARCELS * judges.places())]


def _sent(judges: OpenedJudges, presence: _Presence) -> Future[bytes]:
    return judges.submit(Packer().parcel([(presence, NO_REPLY)]))


def _answers(sent: list[Future[bytes]], ends: float) -> Iterator[_Who]:
    for future in sent:
        try:
            (finding,) = pickle.loads(future.result(max(1.0, ends - time.monotonic())))
        except Exception as error:
            raise HelmbenchError(f"a judge does not judge: {error or type(error).__name__}") from error
        if finding.raised:
            raise HelmbenchError(f"a judge does not judge: it raised {finding.raised}")
        yield finding.found
