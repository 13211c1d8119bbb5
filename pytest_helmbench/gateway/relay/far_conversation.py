"""The calls of an item as its code has them on another host: each goes over a line to the session that makes it."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Awaitable, Callable
from typing import cast

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.live_stream import LiveStream
from pytest_helmbench.gateway.other_replies import CHAT
from pytest_helmbench.gateway.relay.attempts import Answered, Begun
from pytest_helmbench.gateway.relay.client_errors import NotAdmittedError
from pytest_helmbench.gateway.relay.exchanges import RawReply
from pytest_helmbench.gateway.relay.sums import Sums

__all__ = ["FarConversation", "message_of"]

Asks = Callable[[bytes], Awaitable[bytes]]


def message_of(head: JsonObject, body: bytes = b"") -> bytes:
    """Return a message: a line of JSON, and what follows it."""
    return json.dumps(head).encode() + b"\n" + body


class FarConversation:
    """See `Forwarding`. A stream is given when it is whole.

    Args:
        ask: Brings a message to the session, and back its answer; raises where nobody answers.
        model_id: The model under test.
        begun: What the session said to its beginning.
    """

    def __init__(self, ask: Asks, model_id: str, begun: Begun) -> None:
        self._ask = ask
        self._model_id = model_id
        self._token = begun.token
        self._sums = begun.sums
        self._refusals: set[asyncio.Task[RawReply | None]] = set()
        self._on_end: list[Callable[[], None]] = []
        self._ended = False
        self.bug: BaseException | None = None
        """An error of our own code, that a request has met."""

    @staticmethod
    async def begin(ask: Asks, model_id: str) -> FarConversation | None:
        """Say that an attempt begins; None where it may not."""
        begun = cast("Begun", pickle.loads(await ask(message_of({"wanted": "begin"}))))
        return FarConversation(ask, model_id, begun) if begun.token else None

    @property
    def token(self) -> str:
        """Of the attempt."""
        return self._token

    @property
    def model_id(self) -> str:
        """See `Forwarding.model_id`."""
        return self._model_id

    @property
    def sums(self) -> Sums:
        """See `Forwarding.sums`."""
        return self._sums

    async def complete(
        self, body: JsonObject, path: str = CHAT, on_stream: Callable[[LiveStream], None] | None = None
    ) -> RawReply:
        """See `Forwarding.complete`."""
        del on_stream
        raw = await self._said({"wanted": "ask", "path": path}, json.dumps(body).encode())
        if raw is None:
            raise RuntimeError("the session has answered something else")
        return raw

    async def settled_sums(self) -> Sums:
        """See `Forwarding.settled_sums`."""
        if self._refusals:
            await asyncio.wait(self._refusals)
        await self._said({"wanted": "sums"})
        return self._sums

    def refuse(self, method: str, error: HelmbenchError) -> None:
        """See `Forwarding.refuse`; its code is not the user's own."""
        if isinstance(error, NotAdmittedError):
            return
        said = self._said({"wanted": "refuse", "method": method, "message": str(error)})
        self._refusals.add(asyncio.get_running_loop().create_task(said))

    def fail(self, bug: BaseException) -> None:
        """See `Forwarding.fail`."""
        self.bug = self.bug or bug

    def call_at_end(self, function: Callable[[], None]) -> None:
        """See `Forwarding.call_at_end`."""
        if self._ended:
            function()
        else:
            self._on_end.append(function)

    def end(self) -> None:
        """Lead nowhere from here on."""
        self._ended = True
        callbacks, self._on_end = self._on_end, []
        for function in callbacks:
            function()

    async def watch(self, silence_s: float) -> None:
        """Return when the session has been silent for so long, or its attempt counts no more."""
        while True:
            await asyncio.sleep(silence_s / 4)
            try:
                async with asyncio.timeout(silence_s):
                    await self._said({"wanted": "sums"})
            except Exception:  # noqa: BLE001 - whatever says that nobody answers
                return

    async def _said(self, head: JsonObject, body: bytes = b"") -> RawReply | None:
        message = message_of({**head, "token": self._token}, body)
        answered = cast("Answered", pickle.loads(await self._ask(message)))
        self._sums = answered.sums
        return answered.raw
