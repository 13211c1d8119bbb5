"""HTTP answers of providers, the error of one that did not come, and the protocol of the client that gets them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.faults import Fault
from pytest_helmbench.gateway.live_stream import ChunkTimes
from pytest_helmbench.gateway.providers.endpoints import Endpoint

__all__ = ["PLAIN", "Client", "RawAnswer", "Sending", "TransportError"]


class TransportError(Exception):
    """No whole answer came: no connection, no time left, or too many bytes.

    Args:
        fault: Its class, and why in words.
    """

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """A whole HTTP answer.

    Args:
        status: HTTP status.
        headers: Names in lower case; of a repeated header the last.
        body: As received and decompressed; a key of ours that the server repeats is cut out.
        latency_ms: From sending to the last byte.
        times: Of the events of a stream that was passed on.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    latency_ms: float
    times: ChunkTimes = ()


@dataclass(frozen=True, slots=True)
class Sending:
    """How a body is sent.

    Args:
        path: Behind the base URL.
        on_event: Takes each event of a stream as it arrives; None to have the whole answer only.
    """

    path: str = "chat/completions"
    on_event: Callable[[bytes], None] | None = None


PLAIN = Sending()
"""A chat completion, as a whole."""


class Client(Protocol):
    """Sends bodies to endpoints."""

    async def post(
        self, endpoint: Endpoint, body: bytes, timeout_s: float, sending: Sending = PLAIN
    ) -> RawAnswer:
        """Send a body and return the whole answer, whatever its status.

        Args:
            endpoint: Where to.
            body: JSON.
            timeout_s: Bound of everything: connecting, waiting, reading.
            sending: Where to, and who takes it as it arrives.

        Raises:
            TransportError: No whole answer came.
        """

    async def close(self) -> None:
        """Close every connection."""
