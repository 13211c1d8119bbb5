"""A gateway with its gate, its record in lists, and a provider behind it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from said import said

from pytest_helmbench.core.case import Message
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import AttemptRecord, ResultRecord
from pytest_helmbench.gateway.backend import LocalBackend
from pytest_helmbench.gateway.call import Call, CallWatch, Origin
from pytest_helmbench.gateway.client import ChatClient
from pytest_helmbench.gateway.faults import Patience
from pytest_helmbench.gateway.gateway import Gateway
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import ModelLimits, SessionLimits
from pytest_helmbench.gateway.providers.endpoints import Endpoint, resolve_endpoint

__all__ = ["Onlooker", "Wired", "call_to", "chat_client", "endpoint_of", "resolved", "wired"]

_PATIENCE = Patience()
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
class Onlooker(CallWatch):
    """A watch that lets everything pass until it is told otherwise."""

    stopped: bool = False

    def check(self) -> None:
        """See `CallWatch.check`."""
        if self.stopped:
            raise asyncio.CancelledError


@dataclass(slots=True)
class Wired:
    """A gateway and everything it touches."""

    gate: Limiter
    backend: LocalBackend
    gateway: Gateway
    attempts: list[AttemptRecord] = field(default_factory=list)
    results: list[ResultRecord] = field(default_factory=list)


def endpoint_of(entry: ModelEntry, url: str) -> Endpoint:
    """Return where a model is reached behind a base URL."""
    found = resolve_endpoint(entry, default_base_url=said(url), default_key_env=None, environ={})
    assert isinstance(found, Endpoint)
    return found


def call_to(url: str, model: str = "test/good", text: str = "Hello", code: str = "P1-B1-S1-PT1") -> Call:
    """Return a plain question."""
    entry = ModelEntry(model)
    return Call(Origin(1, code, 1), entry, endpoint_of(entry, url), [Message("user", text)], None)


@asynccontextmanager
async def wired(
    limits_by_model: Iterable[ModelLimits] = (ModelLimits("test/good", 8),),
    patience: Patience = _PATIENCE,
    limits: SessionLimits = _LIMITS,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[Wired]:
    """Connect everything, as a session in one process does."""
    attempts: list[AttemptRecord] = []
    results: list[ResultRecord] = []

    def stop_model(model: str, why: str) -> None:
        gateway.stop_model(model, why)

    gate = Limiter(limits, time.monotonic, stop_model)
    gate.add_models(limits_by_model)
    backend = LocalBackend(gate, attempts.append, results.append)
    gateway = Gateway(backend, ChatClient(), patience, sleep=sleep, jitter=lambda: 0.0)
    try:
        yield Wired(gate, backend, gateway, attempts, results)
    finally:
        await gateway.close()


def resolved(model: str, **keys: str) -> Endpoint:
    """Return where a model is called; `keys` are the environment."""
    found = resolve_endpoint(ModelEntry(model), default_base_url=None, default_key_env=None, environ=keys)
    assert isinstance(found, Endpoint)
    return found
