"""The protocol of whoever passes the requests of one item on: its conversation, or the far end of a line to that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.live_stream import LiveStream
from pytest_helmbench.gateway.other_replies import CHAT
from pytest_helmbench.gateway.relay.exchanges import RawReply
from pytest_helmbench.gateway.relay.sums import Sums

__all__ = ["Forwarding"]


class Forwarding(Protocol):
    """Passes requests on and keeps count of them. Used on one event loop only."""

    @property
    def model_id(self) -> str:
        """The model under test; whatever is asked for, this one answers."""

    @property
    def sums(self) -> Sums:
        """What the calls came to, as far as it is known here."""

    async def complete(
        self, body: JsonObject, path: str = CHAT, on_stream: Callable[[LiveStream], None] | None = None, /
    ) -> RawReply:
        """See `Conversation.complete`."""

    async def settled_sums(self) -> Sums:
        """Return what all calls came to, once nothing asks any more."""

    def refuse(self, method: str, error: HelmbenchError, /) -> None:
        """See `Conversation.refuse`."""

    def fail(self, bug: BaseException, /) -> None:
        """See `Conversation.fail`."""

    def call_at_end(self, function: Callable[[], None], /) -> None:
        """See `Conversation.call_at_end`."""
