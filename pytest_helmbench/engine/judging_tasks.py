"""Replies that wait for their finding, and parcels of them that are out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import field

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.engine.judge_access import OpenedJudges
from pytest_helmbench.engine.judging_costs import CostKey
from pytest_helmbench.judging.evaluator import Evaluator

__all__ = ["Sent", "Task"]


@dataclass(slots=True, eq=False)
class Task:
    """A reply that waits for its finding.

    Args:
        evaluator: What it is held to.
        reply: The reply.
        key: What it is like.
        future: Of the finding.
        deaths: Judges that died while it was with them.
        refusals: Times that whoever should judge it could not.
        since: When it began to wait.
        bound: It runs code: it is judged on a judge's own host, or nowhere.
        asks: It asks the session meanwhile, and so may take hours.
    """

    evaluator: Evaluator[object]
    reply: Reply
    key: CostKey
    future: asyncio.Future[object]
    deaths: int = 0
    refusals: int = 0
    since: float = field(default_factory=time.monotonic)
    bound: bool = False
    asks: bool = False

    def count_death(self) -> None:
        """Take note that a judge has died over it."""
        self.deaths += 1

    def count_refusal(self) -> None:
        """Take note that a judge could not judge it."""
        self.refusals += 1


@dataclass(frozen=True, slots=True)
class Sent:
    """A parcel that is out.

    Args:
        tasks: What is in it.
        alone: Nothing else is out: who judges it is ended by it, if by anything of ours.
        judges: Who has it.
    """

    tasks: Sequence[Task]
    alone: bool
    judges: OpenedJudges

    @property
    def runs_code(self) -> bool:
        """Whether it may take as long as somebody's code does."""
        return any(task.bound for task in self.tasks)

    @property
    def asks(self) -> bool:
        """Whether it asks the session meanwhile."""
        return any(task.asks for task in self.tasks)
