"""Gateways that record attempts and results in lists, and the endpoints and calls that tests send through them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from rights import granted

from pytest_helmbench.core.case import Message
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import AttemptRecord, ResultRecord
from pytest_helmbench.gateway.backend import LocalBackend
from pytest_helmbench.gateway.call import Call, CallWatch, Origin
from pytest_helmbench.gateway.client import ChatClient
from pytest_helmbench.gateway.gateway import Gateway
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import ModelLimits, SessionLimits
from pytest_helmbench.gateway.providers.endpoints import Endpoint, resolve_endpoint
from pytest_helmbench.gateway.retries import RetryPolicy

__all__ = [
    "GatewayFixture",
    "StoppableWatch",
    "call_to",
    "chat_client",
    "endpoint_from",
    "endpoint_of",
    "open_gateway",
]

_RETRY_POLICY = RetryPolicy()
_LIMITS = SessionLimits(8)


@asynccontextmanager
async def chat_client() -> AsyncIterator[ChatClient]:
    """Lend a client."""
    client = ChatClient()
    try:
        yield client
    finally:
        await client.close()


@dataclass(slots=True)
class StoppableWatch(CallWatch):
    """A watch that cancels calls once `stopped` is set."""

    stopped: bool = False

    def check(self) -> None:
        """Cancel the call when `stopped` is set."""
        if self.stopped:
            raise asyncio.CancelledError


@dataclass(slots=True)
class GatewayFixture:
    """A gateway with its limiter and backend, and the lists that they record in."""

    gate: Limiter
    backend: LocalBackend
    gateway: Gateway
    attempts: list[AttemptRecord] = field(default_factory=list)
    results: list[ResultRecord] = field(default_factory=list)


def endpoint_of(entry: ModelEntry, url: str) -> Endpoint:
    """Return the endpoint of a model behind a base URL."""
    found = resolve_endpoint(entry, default_base_url=granted(url), default_key_env=None, environ={})
    assert isinstance(found, Endpoint)
    return found


def call_to(url: str, model: str = "test/good", text: str = "Hello", code: str = "P1-B1-S1-PT1") -> Call:
    """Return a call with one message."""
    entry = ModelEntry(model)
    return Call(Origin(1, code, 1), entry, endpoint_of(entry, url), [Message("user", text)], None)


@asynccontextmanager
async def open_gateway(
    limits_by_model: Iterable[ModelLimits] = (ModelLimits("test/good", 8),),
    retry_policy: RetryPolicy = _RETRY_POLICY,
    limits: SessionLimits = _LIMITS,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[GatewayFixture]:
    """Open a gateway with its limiter and backend, as a session in one process does."""
    attempts: list[AttemptRecord] = []
    results: list[ResultRecord] = []

    def stop_model(model: str, why: str) -> None:
        gateway.stop_model(model, why)

    gate = Limiter(limits, time.monotonic, stop_model)
    gate.add_models(limits_by_model)
    backend = LocalBackend(gate, attempts.append, results.append)
    gateway = Gateway(backend, ChatClient(), retry_policy, sleep=sleep, jitter=lambda: 0.0)
    try:
        yield GatewayFixture(gate, backend, gateway, attempts, results)
    finally:
        await gateway.close()


def endpoint_from(model: str, **keys: str) -> Endpoint:
    """Return the endpoint of a model; `keys` are the environment."""
    found = resolve_endpoint(ModelEntry(model), default_base_url=None, default_key_env=None, environ=keys)
    assert isinstance(found, Endpoint)
    return found
