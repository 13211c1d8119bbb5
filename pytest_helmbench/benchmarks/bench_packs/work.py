"""Running scenarios of a Bench Pack: its own code works and judges, every model call passes the relay."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import field, replace
from math import inf
from urllib.parse import urlsplit

from pytest_helmbench.benchmarks.bench_packs.bench_pack import (
    BENCH_PACK,
    BenchPackManifest,
    BenchPackRule,
    PackStatus,
    ScenarioResult,
)
from pytest_helmbench.benchmarks.bench_packs.node.answers import MalformedAnswerError, result_of
from pytest_helmbench.benchmarks.bench_packs.node.bridge import Bridge
from pytest_helmbench.benchmarks.bench_packs.node.command import BridgePlace
from pytest_helmbench.benchmarks.bench_packs.node.host_context import (
    host_context,
    merged_generation,
    run_input,
)
from pytest_helmbench.benchmarks.bench_packs.node.process import PackFailedError
from pytest_helmbench.benchmarks.bench_packs.verifiers.verifiers import OpenVerifiers, Verifiers
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.json_types import JsonObject, JsonValue, is_number
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Event, Outcome, Verdict, utc_now
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.engine.work import CaseContext, UnjudgedError, fault_outcome, with_totals
from pytest_helmbench.gateway.call import ItemClock
from pytest_helmbench.gateway.providers.endpoints import Endpoint, Unusable
from pytest_helmbench.gateway.relay.conversation import CallTotals, Conversation, ItemLine
from pytest_helmbench.gateway.relay.relay import Relay, RelayAddress, RelayRoute
from pytest_helmbench.options.declarations import Options
from pytest_helmbench.options.option import least_score_text
from pytest_helmbench.sandbox.fence import OpenPort
from pytest_helmbench.sandbox.workspace import SandboxError

_REQUESTS_PER_ITEM = 3
_TIMEOUT_KEY = "request_timeout_seconds"
_MOST_EVENTS = 1_000
_TRIES = 3


@dataclass(frozen=True, slots=True)
class BenchPackTools:
    """The tools that run a pack in this process.

    Args:
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
        self._news.append(Event("verifier_preparing", event))

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
    return float(stated) if is_number(stated) and 0 < stated < inf else default_s


@dataclass(frozen=True, slots=True)
class PackAddresses:
    """The addresses that a prepared pack knows.

    Args:
        route: Leads from the model's address to the scenario whose turn it is.
        address: Of the model, for the pack's own code.
        docker_base_url: The same as a container reaches it; empty for nowhere.
        verifiers: Each behind an address of its own.
        open_ports: The ports in all of them.
    """

    route: RelayRoute
    address: RelayAddress
    docker_base_url: str
    verifiers: OpenVerifiers
    open_ports: tuple[OpenPort, ...]


class AddressLender:
    """Lends the scenarios of one pack their addresses.

    Args:
        relay: Where model calls arrive.
        verifiers: The services that check the pack's answers.
        once: The scenarios of a model share their addresses and take turns.
    """

    def __init__(self, relay: Relay, verifiers: Verifiers, *, once: bool) -> None:
        self._relay = relay
        self._verifiers = verifiers
        self._once = once
        self._shared = AsyncExitStack()
        self._prepared: dict[str, PackAddresses] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def close(self) -> None:
        """Close the addresses that scenarios share, and end the verifiers."""
        await self._shared.aclose()
        await self._verifiers.close()

    @asynccontextmanager
    async def lend(self, conversation: Conversation) -> AsyncIterator[tuple[PackAddresses, str | None]]:
        """Lend a scenario its addresses: its own, or those of all scenarios of its model, one at a time.

        Yields:
            The addresses, and the key under which the pack is prepared with them; None for one of its own.

        Raises:
            UnjudgedError: A required verifier does not run, so nothing does.
        """
        if not self._once:
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

    async def _opened(self, route: RelayRoute, stack: AsyncExitStack) -> PackAddresses:
        verifiers = await stack.enter_async_context(await self._running_verifiers())
        bridge_host = await self._verifiers.bridge_address()
        address = await self._relay.open_route(route)
        docker = "" if bridge_host is None else (await self._relay.also_at(address, bridge_host)).base_url
        relay = OpenPort(urlsplit(address.base_url).port or 0, self._relay.serve, self._relay)
        await self._verifiers.open_port(relay)
        return PackAddresses(route, address, docker, verifiers, (relay, *verifiers.open_ports))

    async def _running_verifiers(self) -> OpenVerifiers:
        """Open the verifiers for an item, now: one that was well before it waited may have died since.

        Raises:
            UnjudgedError: A required one does not run, so nothing does.
        """
        for _ in range(_TRIES):
            missing = await self._verifiers.ready()
            if missing is not None:
                raise UnjudgedError(Outcome(Verdict.SKIPPED, "no_verifier", missing))
            opened = await self._verifiers.open()
            if all(one["status"] == "running" for one in opened.endpoints if one["required"]):
                return opened
            await opened.close()
        raise UnjudgedError(Outcome(Verdict.ERROR, "verifier", "a required verifier does not stay up"))


@dataclass(slots=True)
class ScenarioRun:
    """A run of one scenario; a `PackAttempt` for the bridge.

    Args:
        given: The HostContext and the input that its pack is given.
        news: Returns what has happened to the verifiers since it was last asked.
    """

    manifest: BenchPackManifest
    given: tuple[JsonObject, JsonObject]
    addresses: PackAddresses
    rule: BenchPackRule
    conversation: Conversation
    clock: ItemClock
    news: Callable[[], tuple[Event, ...]]
    progress: list[Event] = field(default_factory=list)
    started_at: str = field(default_factory=utc_now)

    async def begin(self) -> tuple[JsonObject, JsonObject]:
        self.clock.begin()
        return self.given

    def lost(self) -> None:
        """See `PackAttempt.lost`: its pack starts over, and is given the replies that it had or waited for."""
        self.conversation.rewind()
        self.progress.clear()

    def open_ports(self) -> Iterable[OpenPort]:
        return self.addresses.open_ports

    def spent_s(self) -> float:
        """See `PackAttempt.spent_s`: what its requests wait for our own limits is not counted."""
        return self.clock.used_s()

    def emitted(self, event: JsonObject) -> None:
        """See `PackAttempt.emitted`; what only a host may say is kept apart."""
        if len(self.progress) < _MOST_EVENTS:
            stated = event.get("type")
            kind = stated if stated in ("model_progress", "log") else "pack_event"
            self.progress.append(Event(str(kind), event))

    def failed(self, reason: str, message: str, output: str = "") -> Outcome:
        """Return an error: the pack broke down. A fault that reached it comes first: it is the cause."""
        outcome = self._fault() or Outcome(
            Verdict.ERROR, reason, message, excerpt=output, excerpt_of="output"
        )
        return self._complete(outcome, ())

    def judged(self, result: ScenarioResult, unanswered: HelmbenchError | None) -> Outcome:
        """Return the verdict, or the error that leaves it without worth.

        Args:
            unanswered: A request that the pack has not waited for: what it calls a failure may be an outage.
        """
        totals = self.conversation.totals
        result = replace(result, timings_valid=not totals.recalled)
        stated = pack_event(
            "scenario_result",
            modelId=self.conversation.line.entry.id,
            scenarioId=result.scenario,
            result=dict(result.stated),
        )
        outcome = self._fault() or self._unasked(totals) or self._unmeasured(totals)
        if outcome is None and unanswered is not None and result.status is not PackStatus.PASS:
            outcome = fault_outcome(unanswered)
        if outcome is None:
            outcome = _verdict(self.rule, result, self.addresses.verifiers.absent)
        return replace(self._complete(outcome, (stated,)), statement=result)

    def _fault(self) -> Outcome | None:
        faults = self.conversation.totals.open_faults
        if faults:
            return fault_outcome(faults[0])
        verifier = self.addresses.verifiers.fault
        return None if verifier is None else Outcome(Verdict.ERROR, "verifier", verifier)

    def _unasked(self, totals: CallTotals) -> Outcome | None:
        if totals.answered:
            return None
        message = (
            "the pack gave a result, but its model has answered no request of this scenario"
            "\n  hint: the pack must call the address in its HostContext; what it says without that is not a verdict"
        )
        return Outcome(Verdict.ERROR, "no_model_call", message)

    def _unmeasured(self, totals: CallTotals) -> Outcome | None:
        """Return a skip for a speed that was read off a record."""
        if not (totals.recalled and self.manifest.measures_speed):
            return None
        message = (
            "a speed is not a measurement when replies are stored ones: this one is not judged"
            " (measure in a session of its own, with --helmbench-cache=off)"
        )
        return Outcome(Verdict.SKIPPED, "not_measured", message)

    def _complete(self, outcome: Outcome, stated: tuple[Event, ...]) -> Outcome:
        scenario = self.rule.scenario
        started = pack_event(
            "scenario_started",
            scenarioId=scenario.id,
            title=scenario.title,
            index=self.rule.number,
            total=self.rule.total,
        )
        if not outcome.judged:
            stated = (*stated, pack_event("scenario_error", scenarioId=scenario.id, message=outcome.message))
        finished = pack_event("scenario_finished", scenarioId=scenario.id)
        begun = replace(started, at=self.started_at)
        events = (*self.news(), begun, *self.progress, *stated, finished)
        return replace(with_totals(outcome, self.conversation.totals), events=events)


def _verdict(rule: BenchPackRule, result: ScenarioResult, absent: Sequence[str]) -> Outcome:
    """Return what a result counts as; verifiers that were absent are stated with it."""
    passed = rule.passes(result)
    evaluation = Evaluation(
        criterion="",
        rule=BENCH_PACK,
        rule_hash=rule.hash,
        passed=passed,
        credit=1.0 if passed else 0.0,
        reason=None if passed else str(result.status),
        parse=None,
        expected=_expected(rule),
        observed=str(result.status) if result.score is None else f"{result.status} (score {result.score:g})",
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
    policy = least_score_text(rule.least)
    if policy == "fail":
        return "pass"
    return "pass or partial" if policy == "pass" else f"pass, or partial with a score of at least {policy}"


def pack_event(kind: str, **payload: JsonValue) -> Event:
    """Return an event in the protocol's form, whose payload names its type."""
    return Event(kind, {"type": kind, **payload})
