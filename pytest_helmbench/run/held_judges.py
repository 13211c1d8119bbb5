"""The judges of a session held to the anchors of its benchmarks, before anything else is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_helmbench.core.anchor import JudgeHeld
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import AttemptRecord, ResultRecord
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.job import RunIds, Target
from pytest_helmbench.engine.work import RunnerSettings
from pytest_helmbench.gateway.backend import Backend, LocalBackend
from pytest_helmbench.gateway.faults import Patience
from pytest_helmbench.gateway.gateway import ClientOnDemand, Gateway
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import SessionLimits
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.judging.judge import load_template
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.results.judge_check import HeldTo, anchored_rules, hold_judges, refuse_judges
from pytest_helmbench.run.cost_estimate import PriceSpan, judge_price
from pytest_helmbench.run.library import Library
from pytest_helmbench.run.plan import Plan
from pytest_helmbench.run.targets import model_limits, session_concurrency
from pytest_helmbench.store.judge_rows import anchor_events
from pytest_helmbench.store.leases import iso_time
from pytest_helmbench.store.writer import Store


@dataclass(frozen=True, slots=True)
class PlannedAnchors:
    """The anchors of one benchmark of a session.

    Args:
        key: Of the first run of the benchmark that asks something; the calls are its.
        target: Of that run.
        held_to: The anchors.
    """

    key: tuple[str, str]
    target: Target
    held_to: HeldTo

    @property
    def calls(self) -> int:
        """Calls to all judges."""
        return self.held_to.calls * len(self.target.judges)

    @property
    def price(self) -> PriceSpan | None:
        """What they may cost; None where a price is unknown."""
        total = PriceSpan(0.0, 0.0, 0.0)
        for judge in self.target.judges:
            one = judge_price(judge, self.held_to.calls, self.held_to.characters)
            if one is None:
                return None
            total += one
        return total


def planned_anchors(
    plan: Plan, library: Library, targets: Mapping[tuple[str, str], Target], settings: Settings
) -> Iterator[PlannedAnchors]:
    """Yield the anchors of a plan's benchmarks whose judges can be asked, and may be.

    The embedded model that stands in for a judge where only embedded models are asked is held to nothing.

    Args:
        plan: What is left to ask. In a dry run the files are read, and nothing is yielded.
        library: Of the session.
        targets: Of the runs.
        settings: Of the session.

    Raises:
        UnreadableBenchmarkError: A file of anchors is broken.
    """
    seen = set()
    for run in plan.runs:
        if run.benchmark in seen or not run.may_ask_judge or not run.tests:
            continue
        if not plan.dry and not run.usable:
            continue
        seen.add(run.benchmark)
        held_to = anchored_rules(library.load(Path(run.benchmark)))
        target = targets[run.key]
        if held_to is None or plan.dry or not target.judges:
            continue
        if not stands_in(target, settings) and all(judge.usable for judge in target.judges):
            yield PlannedAnchors(run.key, target, held_to)


def stands_in(target: Target, settings: Settings) -> bool:
    """Return whether an embedded model stands in for a judge that nobody has named."""
    return not settings.marking_models and all(
        isinstance(judge.endpoint, Endpoint) and judge.endpoint.server.embedded for judge in target.judges
    )


def hold_planned(
    planned: PlannedAnchors,
    library: Library,
    backend: Backend,
    settings: Settings,
    run_ids: RunIds,
    store: Store | None,
) -> tuple[JudgeHeld, ...]:
    """Ask the judges of a benchmark, put their verdicts on record, and stop for one that may not go on.

    Raises:
        JudgeNotHeldError: There is one.
    """
    run_id = run_ids[planned.key]

    async def held() -> tuple[JudgeHeld, ...]:
        gateway = judge_gateway(backend, settings)
        try:
            return await hold_judges(
                planned.held_to, planned.target, gateway, judging_settings(settings), run_id
            )
        finally:
            await gateway.close()

    found = library.loop.run(held())
    at = iso_time(time.time())
    for event in (event for one in found for event in anchor_events(one, at)):
        if store is not None:
            store.record_event(run_id, event)
    refuse_judges(planned.held_to, found)
    return found


def judge_gateway(backend: Backend, settings: Settings) -> Gateway:
    """Return a gateway for judges alone. On the event loop only."""
    patience = Patience(settings.timeout_s, settings.case_timeout_s, settings.max_retries)
    return Gateway(backend, ClientOnDemand(), patience, "anchors:", recorded=settings.recorded_use)


def judging_settings(settings: Settings) -> RunnerSettings:
    """Return how the cases of a session are judged.

    Raises:
        HelmbenchError: The judge's template cannot be read.
    """
    return RunnerSettings(
        settings.system_prompt,
        settings.strict_json,
        load_template(settings.judge_template),
    )


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
