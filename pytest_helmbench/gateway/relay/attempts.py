"""The calls of an item whose code runs on another host: the session's end, which knows one attempt from the next."""

from __future__ import annotations

import asyncio
import json
import pickle
import secrets
from hmac import compare_digest

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.other_replies import PATHS
from pytest_helmbench.gateway.relay.client_errors import BadRequestError
from pytest_helmbench.gateway.relay.conversation import Conversation
from pytest_helmbench.gateway.relay.exchanges import RawReply
from pytest_helmbench.gateway.relay.sums import Sums

__all__ = ["Answered", "Attempts", "Begun", "VoidAttemptError"]


class VoidAttemptError(HelmbenchError):
    """A message of an attempt that counts no more: a newer one has begun, or the item has ended."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What an attempt is told when it begins.

    Args:
        token: That it says with everything; empty where it may not begin.
        sums: Of the item so far.
    """

    token: str
    sums: Sums = Sums()


@dataclass(frozen=True, slots=True)
class Answered:
    """What a request gets.

    Args:
        raw: Its answer; None where it wanted to know the sums alone.
        sums: Of the item, this request included.
    """

    raw: RawReply | None
    sums: Sums


class Attempts:
    """Answers the attempts of one item, of which only the last one counts.

    An attempt begins with a word: those before it are void from then on, and it is given the replies that they had.
    So it does no harm when an item's code is started twice, whoever does that.

    Args:
        conversation: Of the item; it keeps a journal.
        most: Attempts that may begin.
    """

    def __init__(self, conversation: Conversation, most: int) -> None:
        self._conversation = conversation
        self._most = most
        self._token = ""
        self._asking: set[asyncio.Task[RawReply]] = set()
        self.begun = 0
        self.refused = False
        """One more has asked to begin than may."""

    def counts(self, token: str) -> bool:
        """Return whether a token is that of the attempt that counts."""
        return bool(self._token) and compare_digest(token.encode(), self._token.encode())

    async def answer(self, head: JsonObject, body: bytes) -> bytes:
        """Return the answer to a message.

        Args:
            head: What is wanted: `begin`, `ask`, `refuse` or `sums`, and the attempt's token.
            body: Of a request.

        Raises:
            VoidAttemptError: It comes from an attempt that counts no more.
        """
        wanted = head.get("wanted")
        if wanted == "begin":
            return pickle.dumps(await self._begin())
        self.check(head)
        raw: RawReply | None = None
        if wanted == "ask":
            raw = await self._ask(body, str(head.get("path")))
        elif wanted == "refuse":
            self._conversation.refuse(str(head.get("method")), BadRequestError(str(head.get("message"))))
        self.check(head)  # it may have become void meanwhile
        return pickle.dumps(Answered(raw, self._conversation.sums))

    def check(self, head: JsonObject) -> None:
        """Refuse a message of an attempt that counts no more.

        Raises:
            VoidAttemptError: It is one.
        """
        if not self.counts(str(head.get("token", ""))) or self._conversation.ended:
            raise VoidAttemptError("the attempt counts no more")

    async def _begin(self) -> Begun:
        self._token = ""
        asking = tuple(self._asking)
        for task in asking:
            task.cancel()  # its call goes on, and whoever asks the same takes it over
        if asking:
            await asyncio.wait(asking)
        if self._conversation.ended or self.begun == self._most:
            self.refused = not self._conversation.ended
            return Begun("")
        if self.begun:
            self._conversation.rewind()
        self.begun += 1
        self._token = secrets.token_urlsafe(24)
        return Begun(self._token, self._conversation.sums)

    async def _ask(self, body: bytes, path: str) -> RawReply:
        if path not in PATHS:
            raise ValueError(f"{path!r} is no path of a model")
        asking = asyncio.get_running_loop().create_task(self._conversation.complete(json.loads(body), path))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        await asyncio.wait((asking,))
        if asking.cancelled():
            raise VoidAttemptError("the attempt counts no more")
        return asking.result()
