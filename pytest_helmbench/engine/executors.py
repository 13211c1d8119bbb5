"""Those who judge parcels, as the session sees them: processes of this machine, Dask, or the user's own executor."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from concurrent.futures import Executor
from importlib.util import find_spec
from pathlib import Path

from pytest_helmbench.core.judge_places import JudgeKind, JudgePlaces
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.judge_access import JudgeOffer, OpenedJudges
from pytest_helmbench.engine.parcels import judge, version

__all__ = ["judge_offer", "open_judges", "refuse_missing", "usable_cpus"]

_GROUP_LIMIT = Path("/sys/fs/cgroup/cpu.max")


def usable_cpus(group_limit: Path = _GROUP_LIMIT) -> int:
    """Return the processors that this process may use: what its group is given, never those of the machine alone."""
    known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = group_limit.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return known
    return known if quota == "max" else max(1, min(known, int(quota) // int(period)))


def open_judges(places: JudgePlaces) -> OpenedJudges:
    """Start or reach those who judge.

    Raises:
        HelmbenchError: They cannot be had.
    """
    if places.kind in (JudgeKind.DASK, JudgeKind.DASK_LOCAL):
        from pytest_helmbench.engine.dask_judges import dask_judges

        return dask_judges(places)
    if places.kind is JudgeKind.FACTORY:
        return _of_factory(places.target)
    return _processes(places.count or usable_cpus())


def _processes(count: int) -> OpenedJudges:
    from pytest_helmbench.engine.local_judges import LocalJudges

    executor = LocalJudges(count)
    return OpenedJudges(
        lambda parcel: executor.submit(judge, parcel),
        lambda: count,
        executor.shutdown,
        is_local=True,
    )


def judge_offer(places: JudgePlaces, wait_s: float) -> JudgeOffer | None:
    """Return who may judge for a session that has no workers; None for nobody but itself."""
    alone = places.kind is JudgeKind.AUTO and usable_cpus() == 1
    if alone or not places.asks_others:
        return None
    return JudgeOffer(
        open=lambda: open_judges(places),
        fallback=lambda: _processes(usable_cpus()),
        only_if_worth=places.kind is JudgeKind.AUTO,
        wait_s=wait_s,
        has_hosts=places.kind not in (JudgeKind.AUTO, JudgeKind.PROCESSES),
        has_lines=places.kind in (JudgeKind.DASK, JudgeKind.DASK_LOCAL),
    )


_PACKAGES = {
    JudgeKind.DASK: ("distributed",),
    JudgeKind.DASK_LOCAL: ("distributed", "cryptography"),  # its certificates are made here
}


def refuse_missing(places: JudgePlaces) -> None:
    """Look before a session begins whether what judges can be imported.

    Raises:
        HelmbenchError: It cannot.
    """
    if places.kind is JudgeKind.FACTORY:
        _factory(places.target)
    for package in _PACKAGES.get(places.kind, ()):
        if find_spec(package) is None:
            raise HelmbenchError(
                f"--helmbench-judges=dask:… needs the package {package}\n  hint: pip install 'pytest-helmbench[dask]'"
            )


def _factory(target: str) -> Callable[[], Executor]:
    name, _, attribute = target.partition(":")
    try:
        found: object = importlib.import_module(name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise HelmbenchError(
            f"--helmbench-judges=python:{target}: {error}\n"
            "  hint: a module that Python finds, and a function in it that returns a concurrent.futures.Executor"
        ) from error
    if not callable(found):
        raise HelmbenchError(
            f"--helmbench-judges=python:{target}: {attribute} cannot be called\n"
            "  hint: it is to return a concurrent.futures.Executor"
        )
    return found


def _of_factory(target: str) -> OpenedJudges:
    executor = _factory(target)()
    if not isinstance(executor, Executor):
        raise HelmbenchError(
            f"--helmbench-judges=python:{target} gave a {type(executor).__name__}\n"
            "  hint: it is to return a concurrent.futures.Executor"
        )
    known = getattr(executor, "_max_workers", None)
    count = known if isinstance(known, int) and known > 0 else usable_cpus()
    return OpenedJudges(
        lambda parcel: executor.submit(judge, parcel),
        lambda: count,
        lambda: executor.shutdown(wait=False, cancel_futures=True),
        made_by=version(),
    )
