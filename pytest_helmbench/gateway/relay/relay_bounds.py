"""Limits of the relay: sizes of requests, timeouts, and connections of its clients."""

from __future__ import annotations

from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["RelayBounds"]


@dataclass(frozen=True, slots=True)
class RelayBounds:
    """What a client may ask of us.

    Args:
        body_bytes: Largest request, decompressed.
        item_bytes: Of all requests of one item that are out at a time.
        body_s: For sending a request.
        write_s: For taking an answer, or one piece of a stream.
        heartbeat_s: Between two signs of life in a stream that waits for leave; a fault before the first is a plain
            HTTP error.
        silence_s: Between two signs of life while the model is silent. It is long, since a client may measure when
            its first bytes arrive.
        idle_s: For which a connection without a request is kept.
        connections: Open at a time, of all items; more are refused.
    """

    body_bytes: int = 32 * 2**20
    item_bytes: int = 128 * 2**20
    body_s: float = 60.0
    write_s: float = 60.0
    heartbeat_s: float = 2.0
    silence_s: float = 15.0
    idle_s: float = 120.0
    connections: int = 512
