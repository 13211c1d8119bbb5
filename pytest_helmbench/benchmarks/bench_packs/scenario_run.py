"""One scenario on its way through its Bench Pack: the addresses that it is lent, its run, and its result."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

from pytest_helmbench.benchmarks.bench_packs.bench_pack import (
    BENCH_PACK,
    BenchPackManifest,
    BenchPackRule,
    PackStatus,
    ScenarioResult,
)
from pytest_helmbench.benchmarks.bench_packs.verifiers.verifiers import OpenVerifiers, Verifiers
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Event, Outcome, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.engine.work import UnjudgedError, fault_outcome, with_totals
from pytest_helmbench.gateway.attempt import utc_now
from pytest_helmbench.gateway.call import ItemClock
from pytest_helmbench.gateway.relay.conversation import CallTotals, Conversation
from pytest_helmbench.gateway.relay.relay import Relay, RelayAddress, RelayRoute
from pytest_helmbench.options.option import least_score_text
from pytest_helmbench.sandbox.fence import OpenPort

_MOST_EVENTS = 1_000
_TRIES = 3


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


class ScenarioRun:
    """A run of one scenario; a `PackAttempt` for the bridge.

    Args:
        manifest: Of its pack.
        given: The HostContext and the input that its pack is given.
        addresses: Of its model and its verifiers.
        rule: The rule for the scenario.
        conversation: Its model calls.
        clock: Its time.
        news: Returns what has happened to the verifiers since it was last asked.
    """

    def __init__(
        self,
        manifest: BenchPackManifest,
        given: tuple[JsonObject, JsonObject],
        addresses: PackAddresses,
        rule: BenchPackRule,
        conversation: Conversation,
        clock: ItemClock,
        news: Callable[[], tuple[Event, ...]],
    ) -> None:
        self._manifest = manifest
        self._given = given
        self._addresses = addresses
        self._rule = rule
        self._conversation = conversation
        self._clock = clock
        self._news = news
        self._progress: list[Event] = []
        scenario = rule.scenario
        self._started = _event(
            "scenario_started",
            scenarioId=scenario.id,
            title=scenario.title,
            index=rule.number,
            total=rule.total,
        )

    async def begin(self) -> tuple[JsonObject, JsonObject]:
        self._clock.begin()
        return self._given

    def lost(self) -> None:
        """See `PackAttempt.lost`: its pack starts over, and is given the replies that it had or waited for."""
        self._conversation.rewind()
        self._progress.clear()

    def open_ports(self) -> Iterable[OpenPort]:
        return self._addresses.open_ports

    def spent_s(self) -> float:
        """See `PackAttempt.spent_s`: what its requests wait for our own limits is not counted."""
        return self._clock.used_s()

    def emitted(self, event: JsonObject) -> None:
        """See `PackAttempt.emitted`; what only a host may say is kept apart."""
        if len(self._progress) < _MOST_EVENTS:
            stated = event.get("type")
            kind = stated if stated in ("model_progress", "log") else "pack_event"
            self._progress.append(Event(str(kind), event, utc_now()))

    def failed(self, reason: str, message: str, output: str = "") -> Outcome:
        """Return an error: the pack broke down. A fault that reached it comes first: it is the cause."""
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
        totals = self._conversation.totals
        result = replace(result, timings_valid=not totals.recalled)
        stated = _event(
            "scenario_result",
            modelId=self._conversation.line.entry.id,
            scenarioId=result.scenario,
            result=dict(result.stated),
        )
        outcome = self._fault() or self._unasked(totals) or self._unmeasured(totals)
        if outcome is None and unanswered is not None and result.status is not PackStatus.PASS:
            outcome = fault_outcome(unanswered)
        if outcome is None:
            outcome = _verdict(self._rule, result, self._addresses.verifiers.absent)
        return replace(self._complete(outcome, (stated,)), statement=result)

    def _fault(self) -> Outcome | None:
        faults = self._conversation.totals.open_faults
        if faults:
            return fault_outcome(faults[0])
        verifier = self._addresses.verifiers.fault
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
        if not (totals.recalled and self._manifest.measures_speed):
            return None
        message = (
            "a speed is not a measurement when replies are stored ones: this one is not judged"
            " (measure in a session of its own, with --helmbench-cache=off)"
        )
        return Outcome(Verdict.SKIPPED, "not_measured", message)

    def _complete(self, outcome: Outcome, stated: tuple[Event, ...]) -> Outcome:
        scenario = self._rule.scenario.id
        if not outcome.judged:
            stated = (*stated, _event("scenario_error", scenarioId=scenario, message=outcome.message))
        finished = _event("scenario_finished", scenarioId=scenario)
        events = (*self._news(), self._started, *self._progress, *stated, finished)
        return replace(with_totals(outcome, self._conversation.totals), events=events)


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


def _event(kind: str, **payload: JsonValue) -> Event:
    return Event(kind, {"type": kind, **payload}, utc_now())
