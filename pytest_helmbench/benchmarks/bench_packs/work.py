"""Running scenarios of a Bench Pack: its own code works and judges, every model call passes the relay."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from pytest_helmbench.benchmarks.bench_packs.bench_pack import (
    BENCH_PACK,
    BenchPackManifest,
    BenchPackRule,
    PackStatus,
    ScenarioResult,
)
from pytest_helmbench.benchmarks.bench_packs.node.answers import MalformedAnswerError, result_of
from pytest_helmbench.benchmarks.bench_packs.node.bridge import Bridge, BridgePlace, PackFailedError
from pytest_helmbench.benchmarks.bench_packs.node.host_context import (
    ItemEndpoints,
    host_context,
    merged_generation,
    run_input,
)
from pytest_helmbench.benchmarks.bench_packs.verifiers.verifiers import OpenVerifiers, Verifiers
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.outcome import Evaluation, Event, Outcome, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.engine.work import CaseContext, UnjudgedError, fault_outcome, with_sums
from pytest_helmbench.gateway.attempt import utc_now
from pytest_helmbench.gateway.providers.endpoints import Endpoint, Unusable
from pytest_helmbench.gateway.relay.conversation import Conversation, ItemLine
from pytest_helmbench.gateway.relay.item_clock import ItemClock
from pytest_helmbench.gateway.relay.relay import Relay, RelayAddress, RelayRoute
from pytest_helmbench.gateway.relay.sums import Sums
from pytest_helmbench.sandbox.workspace import SandboxError

__all__ = ["BenchPackSettings", "BenchPackTools", "BenchPackWork", "item_limits_name"]

_MOST_EVENTS = 1_000
_REQUESTS_PER_ITEM = 3
_TRIES = 3
_TIMEOUT_KEY = "request_timeout_seconds"


@dataclass(frozen=True, slots=True)
class BenchPackSettings:
    """How Bench Packs are run.

    Args:
        timeout_s: Of a request, where neither pack nor user says otherwise.
        stated_timeout_s: Of a request, as the user says; None when he does not.
        case_timeout_s: Of a scenario; None for three times that of a request.
        once: Packs are prepared once per model, not for every scenario.
        most_at_once: Scenarios of a pack at a time; None for 1 with local servers, else no bound.
    """

    timeout_s: float
    stated_timeout_s: float | None
    case_timeout_s: float | None
    once: bool
    most_at_once: int | None


@dataclass(frozen=True, slots=True)
class BenchPackTools:
    """What a pack is run with in this process.

    Args:
        relay: Where its model calls arrive.
        place: Where it is, and where it may write.
        bridge: Its Node processes.
        verifiers: The services that check its answers.
        hint: What helps where it failed, from its words; empty for nothing.
    """

    relay: Relay
    place: BridgePlace
    bridge: Bridge
    verifiers: Verifiers
    hint: Callable[[str], str]


MakeTools = Callable[[Callable[[Mapping[str, Any]], None]], BenchPackTools]
"""Makes the tools, given what takes `verifier_preparing` events."""


@dataclass(frozen=True, slots=True)
class _Addresses:
    """The addresses that a prepared pack knows."""

    route: RelayRoute
    address: RelayAddress
    docker_base_url: str
    verifiers: OpenVerifiers


@dataclass(frozen=True, slots=True)
class _Told:
    """What a scenario's run is told."""

    addresses: _Addresses
    generation: Mapping[str, Any]


def item_limits_name(manifest: BenchPackManifest, model: str) -> str:
    """Return the name of the limits that the scenarios of a pack hold places in."""
    return f"{manifest.root}: scenarios on {model}"


class BenchPackWork:
    """Runs the scenarios of one pack.

    Args:
        manifest: Of the pack.
        settings: Of the session.
        tools: Makes those of the process, when the first scenario runs; or why nothing can run, as a skip.
        note: Says something in the summary.
    """

    def __init__(
        self,
        manifest: BenchPackManifest,
        settings: BenchPackSettings,
        tools: MakeTools | Outcome,
        note: Callable[[str], None],
    ) -> None:
        self.manifest = manifest
        self._settings = settings
        self._made: BenchPackTools | MakeTools | Outcome = tools
        self._note = note
        self._news: list[Event] = []
        self._places: dict[int, BridgePlace] = {}
        self._shared = AsyncExitStack()
        self._prepared: dict[str, _Addresses] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

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
        local = isinstance(endpoint, Endpoint) and endpoint.local
        return self._settings.most_at_once or (1 if local else None)

    async def perform(self, case: Case, context: CaseContext) -> Outcome:
        """See `Work.perform`."""
        rule = case.rule
        if not isinstance(rule, BenchPackRule):
            raise TypeError(f"{case.code}: no scenario of a Bench Pack")
        if self.refusal is not None:
            self._note(f"{self.manifest.id} was skipped: {self.refusal.message}")
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
            await self._shared.aclose()
            await self._made.verifiers.close()

    def news(self) -> tuple[Event, ...]:
        """Return what has happened to the verifiers since it was last asked for."""
        news, self._news = tuple(self._news), []
        return news

    def _preparing(self, event: Mapping[str, Any]) -> None:
        self._news.append(Event("verifier_preparing", event, utc_now()))

    async def _run(self, rule: BenchPackRule, context: CaseContext) -> Outcome:
        settings = self._settings
        generation = merged_generation(
            self.manifest.sampling_defaults,
            context.entry.sampling,
            settings.timeout_s,
            user_timeout_s=settings.stated_timeout_s,
        )
        request_s = _request_s(generation, settings.timeout_s)
        limit_s = settings.case_timeout_s or _REQUESTS_PER_ITEM * request_s
        line = ItemLine(context.origin, context.entry, context.endpoint, "pack", request_s)
        clock = ItemClock(replace(context.gateway.patience, case_timeout_s=limit_s))
        async with (
            Conversation(context.gateway, line, clock, context.watch, journal=True) as conversation,
            self._addresses(conversation) as (addresses, prepared),
        ):
            item = _Item(self, rule, conversation, clock, _Told(addresses, generation))
            try:
                answer = await self._tools.bridge.run(item, limit_s, prepared)
                result = result_of(answer, rule.scenario.id)
            except PackFailedError as error:
                hint = self._tools.hint(str(error))
                message = f"{error}\n  hint: {hint}" if hint else str(error)
                return item.failed(error.reason, message, error.words)
            except MalformedAnswerError as error:
                return item.failed("malformed", f"the result of runScenario() cannot be used: {error}")
            return item.judged(result, await conversation.settle())

    @asynccontextmanager
    async def _addresses(self, conversation: Conversation) -> AsyncIterator[tuple[_Addresses, str | None]]:
        """Lend a scenario its addresses: its own, or those of all scenarios of its model, one at a time."""
        if not self._settings.once:
            route = RelayRoute()
            route.lead_to(conversation)
            async with AsyncExitStack() as stack:
                yield await self._opened(route, stack), None
            return
        model = conversation.line.entry.id
        async with self._turns[model]:
            if model not in self._prepared:
                self._prepared[model] = await self._opened(RelayRoute(), self._shared)
            addresses = self._prepared[model]
            addresses.route.lead_to(conversation)
            try:
                yield addresses, addresses.address.base_url
            finally:
                if addresses.verifiers.fault is not None:
                    # It may be started again elsewhere: who comes next is prepared anew.
                    del self._prepared[model]
                    await addresses.verifiers.close()

    async def _opened(self, route: RelayRoute, stack: AsyncExitStack) -> _Addresses:
        verifiers = await stack.enter_async_context(await self._running_verifiers())
        bridge_host = await self._tools.verifiers.bridge_address()
        relay = self._tools.relay
        address = await relay.open_route(route)
        docker = "" if bridge_host is None else (await relay.also_at(address, bridge_host)).base_url
        return _Addresses(route, address, docker, verifiers)

    async def _running_verifiers(self) -> OpenVerifiers:
        """Open the verifiers for an item, now: one that was well before it waited may have died since.

        Raises:
            UnjudgedError: A required one does not run, so nothing does.
        """
        verifiers = self._tools.verifiers
        for _ in range(_TRIES):
            missing = await verifiers.ready()
            if missing is not None:
                self._note(f"{self.manifest.id} was skipped: {missing}")
                raise UnjudgedError(Outcome(Verdict.SKIPPED, "no_verifier", missing))
            opened = await verifiers.open()
            if all(one.status == "running" for one in opened.endpoints if one.required):
                return opened
            await opened.close()
        raise UnjudgedError(Outcome(Verdict.ERROR, "verifier", "a required verifier does not stay up"))

    def context(self, conversation: Conversation, addresses: _Addresses) -> Mapping[str, Any]:
        """Return the HostContext of a scenario."""
        line = conversation.line
        endpoints = ItemEndpoints(
            model=line.entry.id,
            base_url=addresses.address.base_url,
            token=addresses.address.token,
            docker_base_url=addresses.docker_base_url,
        )
        place = self._place_of(line.origin.run_id)
        return host_context(self.manifest, place, endpoints, addresses.verifiers.endpoints)

    def _place_of(self, run_id: int) -> BridgePlace:
        if run_id not in self._places:
            place = self._tools.place
            self._places[run_id] = replace(place, runs_dir=place.runs_dir / str(run_id))
            self._places[run_id].runs_dir.mkdir(exist_ok=True)
        return self._places[run_id]


class _Item:
    """One scenario on its way through its pack."""

    def __init__(
        self,
        work: BenchPackWork,
        rule: BenchPackRule,
        conversation: Conversation,
        clock: ItemClock,
        told: _Told,
    ) -> None:
        self._work = work
        self._rule = rule
        self._conversation = conversation
        self._clock = clock
        self._addresses = told.addresses
        self._generation = told.generation
        self._begun = False
        self._progress: list[Event] = []
        scenario = rule.scenario
        self._started = _event(
            "scenario_started",
            scenarioId=scenario.id,
            title=scenario.title,
            index=rule.number,
            total=rule.total,
        )

    # What the bridge asks (`Attempt`)

    async def begin(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """See `Attempt.begin`; a pack that starts over is given the replies that it had."""
        conversation = self._conversation
        if self._begun:
            conversation.rewind()
            self._progress.clear()
        self._begun = True
        context = self._work.context(conversation, self._addresses)
        origin = conversation.line.origin
        run = run_input(
            f"{self._work.manifest.id}-{origin.run_id}",
            self._work.manifest,
            self._rule.scenario,
            conversation.line.entry.id,
            self._generation,
        )
        self._clock.begin()
        return context, run

    def spent_s(self) -> float:
        """See `Attempt.spent_s`: what its requests wait for our own limits is not counted."""
        return self._clock.used_s()

    def emitted(self, event: Mapping[str, Any]) -> None:
        """See `Attempt.emitted`; what only a host may say is kept apart."""
        if len(self._progress) < _MOST_EVENTS:
            stated = event.get("type")
            kind = stated if stated in ("model_progress", "log") else "pack_event"
            self._progress.append(Event(str(kind), event, utc_now()))

    # What comes of it

    def failed(self, reason: str, message: str, output: str = "") -> Outcome:
        """Return an error: the pack broke down. A fault that it was told comes first: it is the cause."""
        outcome = self._fault() or Outcome(
            Verdict.ERROR, reason, message, excerpt=output, excerpt_of="output"
        )
        return self._complete(outcome, ())

    def judged(self, result: ScenarioResult, unanswered: HelmbenchError | None) -> Outcome:
        """Return the verdict, or the error that leaves it without worth.

        Args:
            result: As the pack says.
            unanswered: A request that the pack has not waited for: what it calls a failure may be an outage.
        """
        sums = self._conversation.sums
        result = replace(result, timings_valid=not sums.recalled)
        stated = _event(
            "scenario_result",
            modelId=self._conversation.line.entry.id,
            scenarioId=result.scenario,
            result=result.stated,
        )
        outcome = self._fault() or self._unasked(sums)
        if outcome is None and unanswered is not None and result.status is not PackStatus.PASS:
            outcome = fault_outcome(unanswered)
        if outcome is None:
            outcome = _verdict(self._rule, result, self._addresses.verifiers.absent)
        return replace(self._complete(outcome, (stated,)), statement=result)

    def _fault(self) -> Outcome | None:
        faults = self._conversation.sums.open_faults
        if faults:
            return fault_outcome(faults[0])
        verifier = self._addresses.verifiers.fault
        return None if verifier is None else Outcome(Verdict.ERROR, "verifier", verifier)

    def _unasked(self, sums: Sums) -> Outcome | None:
        if sums.answered:
            return None
        message = (
            "the pack gave a result, but its model has answered no request of this scenario"
            "\n  hint: the pack must call the address in its HostContext; what it says without that is no verdict"
        )
        return Outcome(Verdict.ERROR, "no_model_call", message)

    def _complete(self, outcome: Outcome, stated: tuple[Event, ...]) -> Outcome:
        scenario = self._rule.scenario.id
        if not outcome.judged:
            stated = (*stated, _event("scenario_error", scenarioId=scenario, message=outcome.message))
        finished = _event("scenario_finished", scenarioId=scenario)
        events = (*self._work.news(), self._started, *self._progress, *stated, finished)
        return replace(with_sums(outcome, self._conversation.sums), events=events)


def _request_s(generation: Mapping[str, Any], default_s: float) -> float:
    """Return how long a request may take; a pack's own default may be no number of seconds at all."""
    stated = generation.get(_TIMEOUT_KEY)
    if isinstance(stated, int | float) and not isinstance(stated, bool) and 0 < stated < inf:
        return float(stated)
    return default_s


def _verdict(rule: BenchPackRule, result: ScenarioResult, absent: Sequence[str]) -> Outcome:
    """Return what a result counts as; verifiers that were absent are stated with it."""
    passed = rule.partial.passes(result)
    evaluation = Evaluation(
        criterion="",
        rule=BENCH_PACK,
        rule_hash=rule.hash,
        passed=passed,
        credit=1.0 if passed else 0.0,
        reason=None if passed else str(result.status),
        parse=None,
        expected=_expected(rule),
        observed=_observed(result),
        justification="\n".join(absent) or None,
    )
    return Outcome(
        Verdict.PASSED if passed else Verdict.FAILED,
        None if passed else str(result.status),
        evaluations=(evaluation,),
        score=evaluation.credit,
        excerpt="" if passed else excerpt("\n".join(filter(None, (result.summary, result.note)))),
        excerpt_of="pack",
    )


def _expected(rule: BenchPackRule) -> str:
    policy = str(rule.partial)
    if policy == "fail":
        return "pass"
    return "pass or partial" if policy == "pass" else f"pass, or partial with a score of at least {policy}"


def _observed(result: ScenarioResult) -> str:
    shown = "" if result.score is None else f" (score {result.score:g})"
    return f"{PackStatus(result.status)}{shown}"


def _event(kind: str, **payload: Any) -> Event:
    return Event(kind, {"type": kind, **payload}, utc_now())
