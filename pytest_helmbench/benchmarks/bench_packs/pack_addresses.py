"""The addresses that a Bench Pack is told: of its model, behind the relay, and of its verifiers."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

from pytest_helmbench.benchmarks.bench_packs.verifiers.verifiers import OpenVerifiers, Verifiers
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.engine.work import UnjudgedError
from pytest_helmbench.gateway.relay.conversation import Conversation
from pytest_helmbench.gateway.relay.relay import Relay, RelayAddress, RelayRoute
from pytest_helmbench.sandbox.fence import Door

__all__ = ["AddressLender", "PackAddresses"]

_TRIES = 3


@dataclass(frozen=True, slots=True)
class PackAddresses:
    """The addresses that a prepared pack knows.

    Args:
        route: Leads from the model's address to the scenario whose turn it is.
        address: Of the model, for the pack's own code.
        docker_base_url: The same as a container reaches it; empty for nowhere.
        verifiers: Each behind an address of its own.
        doors: The ports in all of them.
    """

    route: RelayRoute
    address: RelayAddress
    docker_base_url: str
    verifiers: OpenVerifiers
    doors: tuple[Door, ...]


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
        """Close the addresses that scenarios share."""
        await self._shared.aclose()

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
        relay = Door(urlsplit(address.base_url).port or 0, self._relay.serve, self._relay)
        await self._verifiers.admit(relay)
        return PackAddresses(route, address, docker, verifiers, (relay, *verifiers.doors))

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
            if all(one.status == "running" for one in opened.endpoints if one.required):
                return opened
            await opened.close()
        raise UnjudgedError(Outcome(Verdict.ERROR, "verifier", "a required verifier does not stay up"))
