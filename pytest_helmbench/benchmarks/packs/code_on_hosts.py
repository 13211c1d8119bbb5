"""Replies of code that are judged on the host of a judge, in a sandbox there."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from pytest_helmbench.benchmarks.packs.families.registry import family_of
from pytest_helmbench.benchmarks.packs.format.pack_files import PackFiles
from pytest_helmbench.benchmarks.packs.judge_host import SandboxWishes, host_loop, host_sandboxes
from pytest_helmbench.benchmarks.packs.row_tools import PackSettings, RowTools
from pytest_helmbench.benchmarks.packs.task import PackRule
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply
from pytest_helmbench.engine.work import CaseContext, Evaluating, UnjudgedError
from pytest_helmbench.gateway.call import Unwatched
from pytest_helmbench.judging.evaluator import NO_REPLY
from pytest_helmbench.sandbox.box import Unavailable

__all__ = ["CodeEvaluator", "CodeOnHosts", "ObstacleThere"]

_NO_FILES = PackFiles(Path(os.devnull), "", "")
"""Code and its tests travel with the row."""


@dataclass(frozen=True, slots=True)
class CodeEvaluator:
    """A row whose tests run against the code of a reply. Its sandboxes are those of the host that judges.

    Args:
        rule: The row.
        settings: How the session judges packs.
        wishes: Which sandboxes the user wants.
    """

    rule: PackRule
    settings: PackSettings
    wishes: SandboxWishes
    shared: tuple[object, ...] = ()

    @property
    def group(self) -> str:
        """See `Evaluator.group`."""
        return self.rule.task.task_type

    def takes_time(self, _reply: Reply) -> bool:
        """See `Evaluator.takes_time`."""
        return True

    def evaluate(self, reply: Reply) -> Evaluation | Outcome:
        """See `Evaluator.evaluate`."""
        family = family_of(self.rule.task)
        if family is None:
            raise TypeError(f"{self.rule.task.id}: no row of a pack")
        tools = RowTools(self.settings, _NO_FILES, host_sandboxes(self.wishes))
        try:
            return host_loop().run(family.evaluate(self.rule, reply, tools))
        except UnjudgedError as stop:
            return stop.outcome


@dataclass(frozen=True, slots=True)
class ObstacleThere:
    """Says why code cannot run in an image on a judge's host; None where it can.

    Args:
        image: Of a row; None for programs of the host.
        wishes: Which sandboxes the user wants.
    """

    image: str | None
    wishes: SandboxWishes
    group: str = "obstacle"
    shared: tuple[object, ...] = ()

    def takes_time(self, _reply: Reply) -> bool:
        """See `Evaluator.takes_time`."""
        return True

    def evaluate(self, _reply: Reply) -> Unavailable | None:
        """See `Evaluator.evaluate`."""
        return host_loop().run(self._found())

    async def _found(self) -> Unavailable | None:
        engine = await host_sandboxes(self.wishes).engine()
        return engine if isinstance(engine, Unavailable) else await engine.obstacle(self.image)


class CodeOnHosts:
    """The session's side: what it has judges do with rows whose replies are code.

    Args:
        wishes: Which sandboxes the user wants.
    """

    def __init__(self, wishes: SandboxWishes) -> None:
        self._wishes = wishes
        self._obstacles: dict[str | None, asyncio.Task[Unavailable | None]] = {}

    async def obstacle(self, image: str | None, evaluations: Evaluating) -> Unavailable | None:
        """Return why code cannot run in an image where the judges are; one of them is asked for all.

        Raises:
            UnjudgedError: No judge could be had.
        """
        asking = self._obstacles.get(image)
        if asking is None or (asking.done() and asking.exception() is not None):
            asking = self._obstacles[image] = asyncio.create_task(self._ask(image, evaluations))
        return await asyncio.shield(asking)

    async def _ask(self, image: str | None, evaluations: Evaluating) -> Unavailable | None:
        try:
            return await evaluations.on_host(ObstacleThere(image, self._wishes), NO_REPLY, Unwatched())
        except UnjudgedError as stop:  # without what belongs to the reply that nobody has given
            found = stop.outcome
            raise UnjudgedError(Outcome(found.verdict, found.reason, found.message)) from stop

    async def evaluation(
        self, rule: PackRule, settings: PackSettings, reply: Reply, context: CaseContext
    ) -> Evaluation:
        """Return the evaluation of a reply.

        Raises:
            UnjudgedError: It could not be judged, through no fault of the model.
        """
        evaluator = CodeEvaluator(rule, settings, self._wishes)
        return await context.evaluations.on_host(evaluator, reply, context.watch)
