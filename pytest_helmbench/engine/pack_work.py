"""How rows of a pack are run and judged: rules for text, sandboxes for code, agents for workspaces."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_helmbench.bench.case import Case
from pytest_helmbench.bench.outcome import Evaluation, Outcome, Reply, Verdict
from pytest_helmbench.bench.pack import PackRule
from pytest_helmbench.engine.sandboxes import Sandboxes
from pytest_helmbench.engine.work import Bench
from pytest_helmbench.evaluate.packs import evaluate_row
from pytest_helmbench.sandbox.box import Engine, Unavailable

__all__ = ["PackSettings", "PackWork"]


@dataclass(frozen=True, slots=True)
class PackSettings:
    """How packs are run and judged.

    Args:
        parity: By the published rules instead of those made for what models really write.
        show_hidden: Verdicts may show hidden values.
        allow_commands: Dangerous commands that a row may need.
        agent: Command of an external agent; None for the built-in one.
    """

    parity: bool = False
    show_hidden: bool = False
    allow_commands: tuple[str, ...] = ()
    agent: str | None = None


class PackWork:
    """Runs and judges rows.

    Args:
        settings: Of the session.
        sandboxes: Of the process.
    """

    def __init__(self, settings: PackSettings, sandboxes: Sandboxes) -> None:
        self.settings = settings
        self._sandboxes = sandboxes

    async def obstacle(self, case: Case) -> Outcome | None:
        """See `Work.obstacle`."""
        rule = case.rule
        if not isinstance(rule, PackRule) or rule.task.family is None or not rule.task.family.runs_code:
            return None
        engine = await self._sandboxes.engine()
        found = engine if isinstance(engine, Unavailable) else await self._obstacle_in(engine, rule)
        return None if found is None else Outcome(Verdict.SKIPPED, "no_sandbox", found.reason)

    async def _obstacle_in(self, engine: Engine, rule: PackRule) -> Unavailable | None:
        return await engine.obstacle(rule.task.environment.image)

    async def evaluate(self, case: Case, reply: Reply) -> tuple[Evaluation, ...]:
        """See `Work.evaluate`."""
        rule = case.rule
        if not isinstance(rule, PackRule):
            raise TypeError(f"{case.code}: no row of a pack")
        return (evaluate_row(rule, reply, show_hidden=self.settings.show_hidden),)

    async def perform(self, case: Case, bench: Bench) -> Outcome | None:
        """See `Work.perform`."""
        return None
