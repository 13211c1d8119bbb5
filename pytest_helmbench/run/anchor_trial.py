"""Judges held to anchors outside of a session: nothing else is asked, and nothing is put on record."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.core.anchor import JudgeHeld
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import AttemptRecord, ResultRecord
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.backend import LocalBackend
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import SessionLimits
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.results.anchor_rules import anchored_rules
from pytest_helmbench.results.judge_check import hold_judges
from pytest_helmbench.run.held_judges import judge_gateway, judging_settings, stands_in
from pytest_helmbench.run.library import Library
from pytest_helmbench.run.targets import model_limits, session_concurrency

__all__ = ["AnchorTrial", "try_anchors"]


@dataclass(frozen=True, slots=True)
class AnchorTrial:
    """How the judges of a benchmark stood to its anchors, and what that cost.

    Args:
        root: Folder of the benchmark.
        judges: In order.
        calls: That were sent.
        cost_usd: None where the cost of one is unknown.
    """

    root: Path
    judges: tuple[JudgeHeld, ...]
    calls: int
    cost_usd: float | None

    @property
    def holds(self) -> bool:
        """Whether all judges may judge."""
        return all(held.holds for held in self.judges)


def try_anchors(root: Path, settings: Settings, environ: Mapping[str, str]) -> AnchorTrial:
    """Hold the judges of a benchmark to its anchors.

    Args:
        root: Folder of the benchmark.
        settings: As of a session.
        environ: Where keys are looked up.

    Raises:
        HelmbenchError: It has no anchors or no judge, or cannot be read.
    """
    library = Library(settings, environ, lambda _sentence: None)
    try:
        loaded = library.load(root)
        held_to = anchored_rules(loaded)
        if held_to is None:
            raise HelmbenchError(
                f"{root} has no anchors.yml\n  hint: docs/benchmarks.md says what stands in it"
            )
        target = loaded.targets[0]
        if not target.judges or stands_in(target, settings):
            raise HelmbenchError(
                f"{root}: no judge is named\n  hint: give --marking-model ID, or marking_model in models.yml"
            )
        sent: list[AttemptRecord] = []
        limiter = Limiter(_limits(settings), time.monotonic)
        limiter.add_models(model_limits(loaded.targets, settings).values())
        backend = LocalBackend(limiter, sent.append, _no_result, None, None)

        async def held() -> tuple[JudgeHeld, ...]:
            gateway = judge_gateway(backend, settings)
            try:
                return await hold_judges(held_to, target, gateway, judging_settings(settings), 0)
            finally:
                await gateway.close()

        judges = library.loop.run(held())
    finally:
        library.end()
    costs = [one.usage.cost_usd for one in sent if one.reply_key is not None or one.unanswered]
    known = [cost for cost in costs if cost is not None]
    return AnchorTrial(root, judges, len(sent), sum(known) if len(known) == len(costs) else None)


def _limits(settings: Settings) -> SessionLimits:
    return SessionLimits(
        concurrency=session_concurrency(settings),
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
        max_cost_usd=settings.max_cost_usd,
    )


def _no_result(_record: ResultRecord) -> None:
    """No case is run."""
