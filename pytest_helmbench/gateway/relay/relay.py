"""Addresses and tokens of the relay: one for every item whose own code calls its model over HTTP.

The server behind them is loaded when the first address is asked for.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import socket
from base64 import urlsafe_b64encode
from dataclasses import field
from hashlib import blake2b, sha256
from hmac import compare_digest
from typing import TYPE_CHECKING

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.relay.conversation import Conversation, NotAdmittedError
from pytest_helmbench.gateway.relay.refusals import ItemEndedError

if TYPE_CHECKING:
    from pytest_helmbench.gateway.relay.server import RelayBounds, RelayServer

_LOOPBACK = "127.0.0.1"
_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class RelayAddress:
    """Where an item's code reaches its model.

    Args:
        base_url: With `/v1`; it answers without it too.
        token: To be sent as bearer token; of use with this address only, and until the item ends.
    """

    base_url: str
    token: str = field(repr=False)


@dataclass(slots=True, eq=False)
class RelayRoute:
    """The conversation behind an address: none before its item begins and after it has ended."""

    conversation: Conversation | None = None

    def lead_to(self, conversation: Conversation) -> None:
        """Lead to an item's conversation, until that ends."""
        self.conversation = conversation
        conversation.call_at_end(self._lead_nowhere)

    def _lead_nowhere(self) -> None:
        self.conversation = None


class Relay:
    """Gives out addresses, and knows whose they are. Used on the event loop only."""

    def __init__(self, bounds: RelayBounds | None = None) -> None:
        self._bounds = bounds
        self._addresses: dict[bytes, tuple[bytes, RelayRoute]] = {}
        # Asking the system for each address takes longer than all the rest of opening it.
        self._seed = secrets.token_bytes(32)
        self._numbers = itertools.count()
        self._ports: dict[str, int] = {}
        self._server: RelayServer | None = None
        self._starting = asyncio.Lock()

    async def open(self, conversation: Conversation, host: str = _LOOPBACK) -> RelayAddress:
        """Return an address that leads to a conversation until it ends; see `open_route`."""
        route = RelayRoute()
        route.lead_to(conversation)
        return await self.open_route(route, host)

    async def open_route(self, route: RelayRoute, host: str = _LOOPBACK) -> RelayAddress:
        """Return an address that leads where a route leads.

        Args:
            route: Items may take turns in it.
            host: Address of this machine to listen at: loopback, or a bridge that containers are on.

        Raises:
            OSError: Nothing can listen there.
        """
        number = next(self._numbers)
        name, token = self._secret(f"name {number}", 18), f"relay-{self._secret(f'token {number}', 32)}"
        base_url = await self._base_url(name, host)
        self._addresses[_hashed(name)] = _hashed(token), route
        return RelayAddress(base_url, token)

    async def also_at(self, address: RelayAddress, host: str) -> RelayAddress:
        """Return the same address, with its token, as another host reaches it; see `open_route`."""
        name = address.base_url.split("/")[-2]
        return RelayAddress(await self._base_url(name, host), address.token)

    async def serve(self, listening: socket.socket) -> None:
        """Answer at a further socket, such as one of another network; addresses are those that were given out."""
        if self._server is not None:
            await self._server.serve(listening)

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        server, self._server = self._server, None
        self._ports.clear()
        if server is not None:
            await server.stop()

    def admitted(self, name: str, authorization: str | None) -> Conversation:
        """Return the conversation that a path and an `Authorization` header lead to.

        Raises:
            NotAdmittedError: They lead to none.
            ItemEndedError: They did.
        """
        stated = authorization or ""
        token = stated[len(_BEARER) :].strip() if stated[: len(_BEARER)].lower() == _BEARER else ""
        # Hashes are looked up and compared: how long either takes says nothing of a name or token.
        wanted, route = self._addresses.get(_hashed(name), (bytes(32), RelayRoute()))
        if not compare_digest(_hashed(token), wanted):
            raise NotAdmittedError(route.conversation)
        if route.conversation is None:
            raise ItemEndedError
        return route.conversation

    def _secret(self, purpose: str, size: int) -> str:
        """Return a text that looks random, and that is the same for no other purpose."""
        made = blake2b(purpose.encode(), key=self._seed, digest_size=size)
        return urlsafe_b64encode(made.digest()).rstrip(b"=").decode()

    async def _base_url(self, name: str, host: str) -> str:
        async with self._starting:
            if self._server is None:
                # The HTTP server takes longer to load than a small session to run.
                from pytest_helmbench.gateway.relay.server import RelayServer

                self._server = RelayServer(self.admitted, self._bounds)
            if host not in self._ports:
                self._ports[host] = await self._server.listen(host)
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self._ports[host]}/{name}/v1"


def _hashed(text: str) -> bytes:
    return sha256(text.encode("utf-8", "backslashreplace")).digest()
