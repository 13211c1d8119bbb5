"""A request of somebody else's code: sent on nearly as its client wrote it, and answered byte for byte."""

from __future__ import annotations

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.model import Sampling
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.token_counts import bound_completion
from pytest_helmbench.gateway.wire import encode, passed_body

__all__ = ["ForwardedRequest"]


class ForwardedRequest:
    """One request of code that is not ours, and what came back for it.

    Args:
        stated: Body as its client wrote it.
    """

    __slots__ = ("_encoded", "_sent", "answer", "number", "recalled", "stated")

    def __init__(self, stated: JsonObject) -> None:
        self.stated = stated
        self.number = 1
        """Which of several identical requests of its item it is, from 1."""
        self.answer: bytes | None = None
        """HTTP body of the reply, as received."""
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
            body = passed_body(endpoint, sampling, self.stated, repetition=repetition)
            bounded = bound_completion(body, endpoint, most_tokens)
            self._encoded = encode(body)
            self._sent = (endpoint, most_tokens, body, bounded)
        return self._sent[2], self._encoded, self._sent[3]

    def arrived(self, answer: bytes, *, recalled: bool = False) -> None:
        """Take the HTTP body of the reply; `recalled` when it was taken from the record."""
        self.answer = answer
        self.recalled = recalled
