"""The last reply of a model to an external agent."""

from __future__ import annotations

from collections.abc import Callable

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.http_answers import LiveStream
from pytest_helmbench.gateway.relay.exchanges import Forwarding, RawReply, Sums
from pytest_helmbench.gateway.replies import CHAT

__all__ = ["LastReply"]


class LastReply:
    """See `Forwarding`. Leaves everything to another one, and keeps the text of the last reply."""

    def __init__(self, conversation: Forwarding) -> None:
        self._conversation = conversation
        self.text = ""
        """Empty while there is none with a text."""

    @property
    def model_id(self) -> str:
        """See `Forwarding.model_id`."""
        return self._conversation.model_id

    @property
    def sums(self) -> Sums:
        """See `Forwarding.sums`."""
        return self._conversation.sums

    async def complete(
        self, body: JsonObject, path: str = CHAT, on_stream: Callable[[LiveStream], None] | None = None
    ) -> RawReply:
        """See `Forwarding.complete`."""
        raw = await self._conversation.complete(body, path, on_stream)
        if raw.reply is not None and raw.reply.text.strip():
            self.text = raw.reply.text
        return raw

    async def settled_sums(self) -> Sums:
        """See `Forwarding.settled_sums`."""
        return await self._conversation.settled_sums()

    def refuse(self, method: str, error: HelmbenchError) -> None:
        """See `Forwarding.refuse`."""
        self._conversation.refuse(method, error)

    def fail(self, bug: BaseException) -> None:
        """See `Forwarding.fail`."""
        self._conversation.fail(bug)

    def call_at_end(self, function: Callable[[], None]) -> None:
        """See `Forwarding.call_at_end`."""
        self._conversation.call_at_end(function)
