"""The gateway's HTTP face: an address of its own for every item whose code is not ours.

It knows addresses and tokens. The server behind them is loaded when the first address is asked for.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING

from pytest_helmbench.bench.problem import HelmbenchError
from pytest_helmbench.gateway.client_errors import ItemEndedError
from pytest_helmbench.gateway.conversation import Conversation

if TYPE_CHECKING:
    from pytest_helmbench.gateway.relay_server import RelayServer

__all__ = ["NotAdmittedError", "Relay", "RelayAddress", "RelayBounds"]

_LOOPBACK = "127.0.0.1"
_BEARER = "bearer "


class NotAdmittedError(HelmbenchError):
    """A request whose path and token do not belong together, or to nobody."""

    def __init__(self) -> None:
        super().__init__("this address takes only the bearer token that was given out with it")


@dataclass(frozen=True, slots=True)
class RelayBounds:
    """What a client may ask of us.

    Args:
        body_bytes: Largest request, decompressed.
        item_bytes: Of all requests of one item that are out at a time.
        body_s: For sending a request.
        write_s: For taking an answer, or one piece of a stream.
        heartbeat_s: Between two signs of life in a stream; a fault before the first is a plain HTTP error.
        idle_s: For which a connection without a request is kept.
    """

    body_bytes: int = 32 * 2**20
    item_bytes: int = 128 * 2**20
    body_s: float = 60.0
    write_s: float = 60.0
    heartbeat_s: float = 2.0
    idle_s: float = 120.0


@dataclass(frozen=True, slots=True)
class RelayAddress:
    """Where an item's code reaches its model.

    Args:
        base_url: With `/v1`; it answers without it too.
        token: To be sent as bearer token; of use with this address only, and until the item ends.
    """

    base_url: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Door:
    """An address that was given out; without a conversation once its item has ended."""

    token_hash: bytes = field(repr=False)
    conversation: Conversation | None


class Relay:
    """Gives out addresses, and knows whose they are. Used on the event loop only.

    Args:
        bounds: Of requests and answers.
    """

    def __init__(self, bounds: RelayBounds | None = None) -> None:
        self._bounds = bounds or RelayBounds()
        self._doors: dict[bytes, _Door] = {}
        self._ports: dict[str, int] = {}
        self._server: RelayServer | None = None
        self._starting = asyncio.Lock()

    async def open(self, conversation: Conversation, host: str = _LOOPBACK) -> RelayAddress:
        """Return an address that leads to a conversation until it ends.

        Args:
            conversation: Of the item.
            host: Address of this machine to listen at: loopback, or a bridge that containers are on.

        Raises:
            OSError: Nothing can listen there.
        """
        port = await self._listening(host)
        name, token = secrets.token_urlsafe(18), f"relay-{secrets.token_urlsafe(32)}"
        key = _hashed(name)
        self._doors[key] = _Door(_hashed(token), conversation)
        conversation.call_at_end(partial(self._shut, key))
        shown = f"[{host}]" if ":" in host else host
        return RelayAddress(f"http://{shown}:{port}/{name}/v1", token)

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
        door = self._doors.get(_hashed(name), _NO_DOOR)
        if not compare_digest(_hashed(token), door.token_hash):
            raise NotAdmittedError
        if door.conversation is None:
            raise ItemEndedError
        return door.conversation

    def _shut(self, key: bytes) -> None:
        self._doors[key] = _Door(self._doors[key].token_hash, None)

    async def _listening(self, host: str) -> int:
        async with self._starting:
            port = self._ports.get(host)
            if port is not None:
                return port
            if self._server is None:
                # The HTTP server takes longer to load than a small session to run.
                from pytest_helmbench.gateway.relay_server import RelayServer  # noqa: PLC0415

                self._server = RelayServer(self.admitted, self._bounds)
            self._ports[host] = await self._server.listen(host)
            return self._ports[host]


def _hashed(text: str) -> bytes:
    return sha256(text.encode("utf-8", "backslashreplace")).digest()


_NO_DOOR = _Door(bytes(32), None)
