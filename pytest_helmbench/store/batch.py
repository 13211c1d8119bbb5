"""Jobs for the writer of the store, one value per kind of job, and the batch of one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import field

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import AttemptRecord, Event, ResultRecord, RunStatement
from pytest_helmbench.store.run_rows import RunTotals


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of a run."""

    run_id: int
    totals: RunTotals


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of a run that belongs to no result."""

    run_id: int
    event: Event


@dataclass(frozen=True, slots=True)
class Stated:
    """What a kind makes of a run."""

    run_id: int
    statement: RunStatement


@dataclass(frozen=True, slots=True)
class Sent:
    """A call that is about to go, with what the budget has reserved for it.

    Args:
        number: Of the call, in its session's process.
        run_id: `evaluation_runs.id`.
        code: Case code.
        reserved_usd: What it may cost.
    """

    number: int
    run_id: int
    code: str
    reserved_usd: float


@dataclass(frozen=True, slots=True)
class Returned:
    """A call that is out no more.

    Args:
        number: Of the call.
    """

    number: int


@dataclass(frozen=True, slots=True)
class Beat:
    """Asks for a heartbeat, nothing else."""


class Task:
    """A question that its asker waits for.

    Args:
        action: Run inside a transaction; may run again after a rollback.
    """

    __slots__ = ("_answer", "action")

    def __init__(self, action: Callable[[sqlite3.Connection], tuple[int, ...]]) -> None:
        self.action = action
        self._answer: tuple[int, ...] | None = None

    @property
    def answer(self) -> tuple[int, ...] | None:
        """What the action returned; None until its transaction is on disk."""
        return self._answer

    def settle(self, answer: tuple[int, ...]) -> None:
        """Take the answer: the transaction is on disk."""
        self._answer = answer


Record = AttemptRecord | ResultRecord | Happened | Stated
Job = Record | Closing | Beat | Task | Sent | Returned


def is_loss(job: Job) -> bool:
    """Return whether something is lost with a job: a reply, a verdict, what a kind has said.

    That a case was not asked, or a call not answered, is no loss: nothing was paid for it, and it can be asked again.
    """
    if isinstance(job, AttemptRecord):
        return job.response_body is not None
    if isinstance(job, ResultRecord):
        return job.outcome.judged
    return isinstance(job, Happened | Stated)


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs sorted by kind. A result only refers to calls that came before it, a closing to results,
    a call that has returned to one that was sent."""

    attempts: list[AttemptRecord] = field(default_factory=list)
    results: list[ResultRecord] = field(default_factory=list)
    happened: list[Happened] = field(default_factory=list)
    stated: list[Stated] = field(default_factory=list)
    closings: list[Closing] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    returned: list[Returned] = field(default_factory=list)

    @classmethod
    def of(cls, jobs: Sequence[Job]) -> Batch:
        """Return the jobs by kind, each in the order they came."""
        batch = cls()
        for job in jobs:
            if isinstance(job, AttemptRecord):
                batch.attempts.append(job)
            elif isinstance(job, ResultRecord):
                batch.results.append(job)
            elif isinstance(job, Happened):
                batch.happened.append(job)
            elif isinstance(job, Stated):
                batch.stated.append(job)
            elif isinstance(job, Closing):
                batch.closings.append(job)
            elif isinstance(job, Task):
                batch.tasks.append(job)
            elif isinstance(job, Sent):
                batch.sent.append(job)
            elif isinstance(job, Returned):
                batch.returned.append(job)
        return batch
