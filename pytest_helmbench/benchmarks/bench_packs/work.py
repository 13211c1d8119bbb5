"""Running scenarios of a Bench Pack: its own code works and judges, every model call passes the relay."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from math import inf

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BenchPackManifest, BenchPackRule
from pytest_helmbench.benchmarks.bench_packs.node.answers import MalformedAnswerError, result_of
from pytest_helmbench.benchmarks.bench_packs.node.bridge import Bridge
from pytest_helmbench.benchmarks.bench_packs.node.command import BridgePlace
from pytest_helmbench.benchmarks.bench_packs.node.host_context import (
    host_context,
    merged_generation,
    run_input,
)
from pytest_helmbench.benchmarks.bench_packs.node.process import PackFailedError
from pytest_helmbench.benchmarks.bench_packs.scenario_run import AddressLender, ScenarioRun
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Event, Outcome, Verdict
from pytest_helmbench.engine.work import CaseContext, UnjudgedError
from pytest_helmbench.gateway.attempt import utc_now
from pytest_helmbench.gateway.call import ItemClock
from pytest_helmbench.gateway.providers.endpoints import Endpoint, Unusable
from pytest_helmbench.gateway.relay.conversation import Conversation, ItemLine
from pytest_helmbench.options.declarations import Options
from pytest_helmbench.sandbox.workspace import SandboxError

_REQUESTS_PER_ITEM = 3
_TIMEOUT_KEY = "request_timeout_seconds"


@dataclass(frozen=True, slots=True)
class BenchPackTools:
    """The tools that run a pack in this process.

    Args:
        place: Where it is, and where it may write.
        bridge: Its Node processes.
        lender: Lends its scenarios the addresses of model and verifiers.
        hint: What helps where it failed, from its words; empty for nothing.
        begins: Called before a scenario runs.
    """

    place: BridgePlace
    bridge: Bridge
    lender: AddressLender
    hint: Callable[[str], str]
    begins: Callable[[], None]


MakeTools = Callable[[Callable[[JsonObject], None]], BenchPackTools]
"""Makes the tools, given what takes `verifier_preparing` events."""


def item_limits_name(manifest: BenchPackManifest, model: str) -> str:
    """Return the name of the limits that the scenarios of a pack hold places in."""
    return f"{manifest.root}: scenarios on {model}"


class BenchPackWork:
    """Runs the scenarios of one pack.

    Args:
        manifest: Of the pack.
        settings: Of the session.
        tools: Makes those of the process, when the first scenario runs; or why nothing can run, as a skip.
    """

    def __init__(self, manifest: BenchPackManifest, settings: Options, tools: MakeTools | Outcome) -> None:
        self.manifest = manifest
        self._settings = settings
        self._made: BenchPackTools | MakeTools | Outcome = tools
        self._news: list[Event] = []
        self._places: dict[int, BridgePlace] = {}

    @property
    def refusal(self) -> Outcome | None:
        """Why nothing of the pack can run here, as a skip; None when it can."""
        return self._made if isinstance(self._made, Outcome) else None

    @property
    def _tools(self) -> BenchPackTools:
        if isinstance(self._made, Outcome):
            raise TypeError(f"{self.manifest.root}: it cannot be run here")
        if not isinstance(self._made, BenchPackTools):
            self._made = self._made(self._preparing)
        return self._made

    def most_at_once(self, endpoint: Endpoint | Unusable) -> int | None:
        """Return how many scenarios run at a time on a model, in all processes; None for no bound."""
        local = isinstance(endpoint, Endpoint) and endpoint.server.local
        # A verifier that is asked about many scenarios at once answers late, and packs make a bad mark of that.
        alone = local or bool(self.manifest.verifiers)
        return self.manifest.most_at_once or (1 if alone else None)

    async def perform(self, case: Case, context: CaseContext) -> Outcome:
        rule = case.rule
        if not isinstance(rule, BenchPackRule):
            raise TypeError(f"{case.code}: not a scenario of a Bench Pack")
        if self.refusal is not None:
            return self.refusal
        async with AsyncExitStack() as held:
            if self.most_at_once(context.endpoint) is not None:
                await held.enter_async_context(
                    context.gateway.place(item_limits_name(self.manifest, context.entry.id))
                )
            try:
                return await self._run(rule, context)
            except (OSError, SandboxError) as error:
                message = f"the Bench Pack cannot be run on this machine: {error}"
                raise UnjudgedError(Outcome(Verdict.ERROR, "machine", message)) from error

    async def close(self) -> None:
        """End the pack's verifiers, and the addresses that its scenarios share."""
        if isinstance(self._made, BenchPackTools):
            await self._made.lender.close()

    def _taken_news(self) -> tuple[Event, ...]:
        """Return what has happened to the verifiers since it was last asked for."""
        news, self._news = tuple(self._news), []
        return news

    def _preparing(self, event: JsonObject) -> None:
        self._news.append(Event("verifier_preparing", event, utc_now()))

    async def _run(self, rule: BenchPackRule, context: CaseContext) -> Outcome:
        settings = self._settings
        generation = merged_generation(
            self.manifest.sampling_defaults,
            context.entry.sampling,
            settings.timeout_s,
            user_timeout_s=settings.timeout_s if "timeout" in settings.stated else None,
        )
        request_s = _request_s(generation, settings.timeout_s)
        limit_s = settings.case_timeout_s or _REQUESTS_PER_ITEM * request_s
        line = ItemLine(context.origin, context.entry, context.endpoint, "pack", request_s)
        clock = ItemClock(
            replace(context.gateway.retry_policy, case_timeout_s=limit_s), context.clock.seconds
        )
        tools = self._tools
        async with (
            Conversation(context.gateway, line, clock, context.watch) as conversation,
            tools.lender.lend(conversation) as (addresses, prepared),
        ):
            model, run_id = context.entry.id, context.origin.run_id
            given = (
                host_context(
                    self.manifest,
                    self._place_of(run_id),
                    model,
                    addresses.address,
                    addresses.docker_base_url,
                    addresses.verifiers.endpoints,
                ),
                run_input(f"{self.manifest.id}-{run_id}", self.manifest, rule.scenario, model, generation),
            )
            run = ScenarioRun(self.manifest, given, addresses, rule, conversation, clock, self._taken_news)
            try:
                tools.begins()
                answer = await tools.bridge.run(run, limit_s, prepared)
                result = result_of(answer, rule.scenario.id)
            except PackFailedError as error:
                hint = tools.hint(str(error))
                message = f"{error}\n  hint: {hint}" if hint else str(error)
                return run.failed(error.reason, message, error.words)
            except MalformedAnswerError as error:
                return run.failed("malformed", f"the result of runScenario() cannot be used: {error}")
            return run.judged(result, await conversation.settle())

    def _place_of(self, run_id: int) -> BridgePlace:
        if run_id not in self._places:
            place = self._tools.place
            self._places[run_id] = replace(place, runs_dir=place.runs_dir / str(run_id))
            self._places[run_id].runs_dir.mkdir(exist_ok=True)
        return self._places[run_id]


def _request_s(generation: JsonObject, default_s: float) -> float:
    """Return how long a request may take; a pack's own default need not be a number of seconds."""
    stated = generation.get(_TIMEOUT_KEY)
    if isinstance(stated, int | float) and not isinstance(stated, bool) and 0 < stated < inf:
        return float(stated)
    return default_s
