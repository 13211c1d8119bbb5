"""The variables by which schedulers tell a process which of several it is: `--helmbench-shard=auto`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.shard import Shard

__all__ = ["SHARDS", "ShardError", "shard_of_environment"]

SHARDS = "HELMBENCH_SHARDS"
"""How many shards there are, where the scheduler says only which one this is."""

_SAY = "give --helmbench-shard=K/N, with K from 1 to N"


class ShardError(HelmbenchError):
    """The environment does not say which shard this is, or the session cannot run as a shard."""


@dataclass(frozen=True, slots=True)
class _Scheduler:
    """Where a scheduler says which process this is.

    Args:
        index: Variable of the number of this process.
        total: Variable of how many there are; empty where `SHARDS` has to say it.
        first: The number of the first process.
    """

    name: str
    index: str
    total: str
    first: int


_SCHEDULERS = (
    _Scheduler("GitLab", "CI_NODE_INDEX", "CI_NODE_TOTAL", 1),
    _Scheduler("CircleCI", "CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0),
    _Scheduler("Buildkite", "BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0),
    _Scheduler("Bazel", "TEST_SHARD_INDEX", "TEST_TOTAL_SHARDS", 0),
    _Scheduler("Kubernetes", "JOB_COMPLETION_INDEX", "", 0),
)


def shard_of_environment(environ: Mapping[str, str]) -> Shard:
    """Return the shard that the scheduler says this process is.

    Raises:
        ShardError: No variable says so, or some contradict each other.
    """
    found = dict(_said(environ))
    several = {name: shard for name, shard in found.items() if shard.of > 1} or found
    if not several:
        known = ", ".join(scheduler.name for scheduler in _SCHEDULERS)
        raise ShardError(
            "--helmbench-shard=auto: no variable of the environment says which shard this is"
            f" (looked for those of {known}, Slurm arrays)\n  hint: {_SAY}"
        )
    if len(set(several.values())) > 1:
        said = ", ".join(f"{name} {shard.text}" for name, shard in several.items())
        raise ShardError(
            f"--helmbench-shard=auto: the environment says different things: {said}\n  hint: {_SAY}"
        )
    if "Bazel" in found and (status := environ.get("TEST_SHARD_STATUS_FILE")):
        Path(status).touch()  # else Bazel takes the program for one that knows no shards
    return next(iter(several.values()))


def _said(environ: Mapping[str, str]) -> Iterator[tuple[str, Shard]]:
    for scheduler in _SCHEDULERS:
        if environ.get(scheduler.index):
            yield scheduler.name, _shard(scheduler, environ)
        elif scheduler.total and environ.get(scheduler.total) == "1":
            yield scheduler.name, Shard(1, 1)  # GitLab says so in jobs that are not parallel
    if environ.get("SLURM_ARRAY_TASK_ID"):
        yield "Slurm", _slurm(environ)


def _shard(scheduler: _Scheduler, environ: Mapping[str, str]) -> Shard:
    total = scheduler.total or SHARDS
    if not environ.get(total):
        raise ShardError(
            f"--helmbench-shard=auto: {scheduler.name} says which shard this is ({scheduler.index}), but {total} does"
            f" not say of how many\n  hint: set {total} to how many there are, or {_SAY}"
        )
    index, of = _number(environ, scheduler.index) - scheduler.first + 1, _number(environ, total)
    if not 1 <= index <= of:
        raise ShardError(
            f"--helmbench-shard=auto: {scheduler.index} is {environ[scheduler.index]} and {total} is {environ[total]}:"
            f" there is no such shard\n  hint: {_SAY}"
        )
    return Shard(index, of)


def _slurm(environ: Mapping[str, str]) -> Shard:
    number = _number(environ, "SLURM_ARRAY_TASK_ID")
    first, last, count = (_number(environ, f"SLURM_ARRAY_TASK_{name}") for name in ("MIN", "MAX", "COUNT"))
    step = _number(environ, "SLURM_ARRAY_TASK_STEP") if environ.get("SLURM_ARRAY_TASK_STEP") else 1
    place, rest = divmod(number - first, max(step, 1))
    if count < 2 or rest or (last - first) // max(step, 1) + 1 != count or not 0 <= place < count:
        raise ShardError(
            f"--helmbench-shard=auto: task {number} of a Slurm array of {count} from {first} to {last}:"
            " the share is unknown, as when only some tasks of an array run again\n"
            "  hint: --helmbench-shard=$SLURM_ARRAY_TASK_ID/8 for an array 1-8"
        )
    return Shard(place + 1, count)


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise ShardError(f"--helmbench-shard=auto: {name} is {text!r}, which is not a number\n  hint: {_SAY}")
    return int(text)
