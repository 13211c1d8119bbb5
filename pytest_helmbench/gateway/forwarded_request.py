"""A request of somebody else's code: sent on nearly as its client wrote it, and answered byte for byte."""

from __future__ import annotations

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.model import Sampling
from pytest_helmbench.gateway.http_answers import Sending
from pytest_helmbench.gateway.live_stream import ChunkTimes, LiveStream
from pytest_helmbench.gateway.other_replies import EMBEDDINGS
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.streamed_replies import is_stream
from pytest_helmbench.gateway.token_counts import bound_completion
from pytest_helmbench.gateway.wire import encode, passed_body, whole_body

__all__ = ["ForwardedRequest"]


class ForwardedRequest:
    """One request of code that is not ours, and what came back for it.

    Args:
        stated: Body as its client wrote it.
        path: `chat/completions`, `responses` or `embeddings`.
    """

    __slots__ = (
        "_encoded",
        "_sent",
        "answer",
        "live",
        "number",
        "path",
        "recalled",
        "stated",
        "stream",
        "times",
    )

    def __init__(self, stated: JsonObject, path: str = "chat/completions") -> None:
        self.stated = stated
        self.path = path
        self.number = 1
        """Which of several identical requests of its item it is, from 1."""
        self.answer: bytes | None = None
        """HTTP body of the reply, as received."""
        self.stream: bytes | None = None
        """The same, as a stream; None where it came as a whole."""
        self.times: ChunkTimes = ()
        """Of the events of the stream, where it is to be replayed as it came."""
        self.live = LiveStream() if stated.get("stream") is True and path != EMBEDDINGS else None
        """The stream that was asked for, as far as it has come; None where none was."""
        self.recalled = False
        """The reply was taken from the record."""
        self._sent: tuple[Endpoint, int | None, JsonObject, bool] | None = None
        self._encoded = b""

    def repeat(self, number: int) -> None:
        """Be that one of several identical requests."""
        self.number = number

    def sent(
        self, endpoint: Endpoint, sampling: Sampling, repetition: int, most_tokens: int | None = None
    ) -> tuple[JsonObject, bytes, bool]:
        """Return what goes out to an endpoint, decoded and encoded, and whether it was bounded; made once.

        Args:
            endpoint: Who is asked.
            sampling: Of the model.
            repetition: From 1.
            most_tokens: Bound of the completion where nobody states one; None for none.
        """
        if self._sent is None or self._sent[0] is not endpoint or self._sent[1] != most_tokens:
            body = passed_body(endpoint, sampling, self.stated, repetition=repetition, path=self.path)
            bounded = bound_completion(body, endpoint, most_tokens, self.path)
            self._encoded = encode(body)
            self._sent = (endpoint, most_tokens, body, bounded)
        return self._sent[2], self._encoded, self._sent[3]

    @property
    def begun(self) -> bool:
        """Whether the client has had a part of the reply: it cannot be asked for again."""
        return self.live is not None and self.live.begun

    def sending(self) -> Sending:
        """Return how it is sent, now."""
        if self.live is None:
            return Sending(self.path)
        self.live.begin()
        return Sending(self.path, self.live.add)

    def arrived(self, answer: bytes, *, recalled: bool = False, times: ChunkTimes = ()) -> None:
        """Take the HTTP body of the reply.

        Args:
            answer: As received.
            recalled: It was taken from the record.
            times: When its events came, where it is to be replayed so.
        """
        self.answer = whole_body(answer, self.path)
        self.stream = answer if is_stream(answer) else None
        self.times = times
        self.recalled = recalled
