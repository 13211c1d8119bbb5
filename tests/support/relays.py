"""Items whose requests are not ours: conversations on a gateway, a relay before them, a record behind."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from gateways import GatewayFixture, StoppableWatch, endpoint_of, open_gateway
from openai import AsyncOpenAI

from pytest_helmbench.benchmarks.scenario_trees.tree import ScenarioTree
from pytest_helmbench.core.model import ModelEntry, Sampling
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.gateway.backend import CacheMode, LocalBackend, RecordedUse, ReplyCache
from pytest_helmbench.gateway.call import CaseClock, Origin
from pytest_helmbench.gateway.client import ChatClient
from pytest_helmbench.gateway.gateway import Gateway
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import ModelLimits, SessionLimits
from pytest_helmbench.gateway.relay.conversation import Conversation, ItemLine
from pytest_helmbench.gateway.relay.relay import Relay, RelayAddress
from pytest_helmbench.gateway.relay.server import RelayBounds
from pytest_helmbench.gateway.retries import RetryPolicy
from pytest_helmbench.pytest_side.workers.xdist_worker import RemoteBackend
from pytest_helmbench.run.coordinator import RecordedReplies
from pytest_helmbench.store.write.run_rows import RunRecord
from pytest_helmbench.store.write.writer import Store

__all__ = [
    "AT",
    "TOOLS",
    "RelayFixture",
    "RelayResponse",
    "body",
    "client_of",
    "converse",
    "error_of",
    "open_relay",
    "opened_store",
    "recording_gateway",
    "relay_before",
    "replay_in_worker",
    "with_sampling",
]

# It imports its HTTP library when a client is made. A session inside of a test forgets what was imported in it, and an
# import anew makes other exceptions, which the client would not know as its own.
AsyncOpenAI(base_url="http://127.0.0.1", api_key="none")

AT = "2026-07-04T12:00:00+00:00"
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Runs a command",
            "parameters": {
                "type": "object",
                "properties": {"command": {"enum": ["ls -la", "list all files"]}},
                "required": ["command"],
            },
        },
    }
]


def body(text: str = "Hello", **fields: Any) -> dict[str, Any]:
    """Return a request as a client writes it."""
    return {"model": "whatever", "messages": [{"role": "user", "content": text}], **fields}


def converse(
    gateway: Gateway, url: str, code: str = "ROW-1", entry: ModelEntry | None = None, **changes: Any
) -> Conversation:
    """Return the conversation of an item.

    Args:
        gateway: Where calls go.
        url: Of the provider.
        code: Of the item.
        entry: Model under test; None for a plain one.
        changes: `run_id`, `repetition`, `watch`, `grace_s`.
    """
    found = entry or ModelEntry("test/good")
    origin = Origin(changes.pop("run_id", 1), code, changes.pop("repetition", 1))
    line = ItemLine(origin, found, endpoint_of(found, url), "pack")
    watch = changes.pop("watch", None) or StoppableWatch()
    return Conversation(gateway, line, CaseClock(gateway.retry_policy), watch, **changes)


@dataclass(frozen=True, slots=True)
class RelayResponse:
    """An HTTP answer of the relay."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class RelayFixture:
    """A relay and everything behind it."""

    coordinator: GatewayFixture
    relay: Relay
    url: str
    web: aiohttp.ClientSession

    async def item(self, code: str = "ROW-1", **options: Any) -> tuple[Conversation, RelayAddress]:
        """Return the conversation of an item and its address."""
        conversation = converse(self.coordinator.gateway, self.url, code, **options)
        return conversation, await self.relay.open(conversation)

    async def send(
        self, address: RelayAddress, path: str = "/chat/completions", **options: Any
    ) -> RelayResponse:
        """Send a request with the item's token; `url`, `headers` and what aiohttp takes may be given."""
        headers = {"Authorization": f"Bearer {address.token}", **options.pop("headers", {})}
        url = options.pop("url", address.base_url) + path
        method = options.pop("method", "POST")
        async with self.web.request(method, url, headers=headers, **options) as response:
            return RelayResponse(response.status, dict(response.headers), await response.read())


@asynccontextmanager
async def open_relay(
    url: str,
    limits_by_model: Iterable[ModelLimits] = (ModelLimits("test/good", 8),),
    bounds: RelayBounds | None = None,
    **options: Any,
) -> AsyncIterator[RelayFixture]:
    """Open a relay; `options` go to `open_gateway`."""
    async with (
        open_gateway(limits_by_model, **options) as coordinator,
        aiohttp.ClientSession(auto_decompress=False) as web,
    ):
        relay = Relay(bounds)
        try:
            yield RelayFixture(coordinator, relay, url, web)
        finally:
            await relay.close()


def opened_store(path: Path) -> tuple[Store, int]:
    """Open a results file and a run in it."""
    store = Store.open(path)
    tree = ScenarioTree(Path("pack"), "pack", "1", "", "ab" * 32, (), (), {}, None, {}, {}, (), {})
    record = RunRecord(tree, "test/good", "test", None, "whole", 1, None, {}, "0.1.0", AT)
    (run_id,) = store.open_runs("session", [record])
    return store, run_id


def _recorded_use(mode: CacheMode, reads: bool) -> RecordedUse:
    if not reads:
        return RecordedUse.NEVER
    return RecordedUse.ONLY if mode is CacheMode.ONLY else RecordedUse.FIRST


@asynccontextmanager
async def recording_gateway(
    path: Path, mode: CacheMode = CacheMode.OFF, resumes: int | None = None
) -> AsyncIterator[tuple[Gateway, int]]:
    """Connect a gateway to a results file, as a session in one process does; also gives the run's id.

    Args:
        path: Results file.
        mode: `--helmbench-cache`.
        resumes: The run that goes on.
    """
    store, run_id = opened_store(path)
    with closing(store):
        run_id = run_id if resumes is None else resumes
        gate = Limiter(SessionLimits(8), time.monotonic)
        gate.add_models([ModelLimits("test/good", 8), ModelLimits("openai/gpt", 8)])
        may_use_recorded = mode.reads or resumes is not None
        memory = RecordedReplies(store, mode, () if resumes is None else (resumes,), print)
        with closing(memory):
            reply_cache = ReplyCache(memory, shares=mode is CacheMode.REUSE) if may_use_recorded else None
            backend = LocalBackend(gate, store.record_attempt, store.record_result, reply_cache)
            gateway = Gateway(
                backend,
                ChatClient(),
                RetryPolicy(max_retries=0),
                f"s{run_id}-",
                _recorded_use(mode, may_use_recorded),
            )
            try:
                yield gateway, run_id
            finally:
                await gateway.close()


@asynccontextmanager
async def relay_before(
    conversation: Conversation,
) -> AsyncIterator[Callable[[Any], Awaitable[RelayResponse]]]:
    """Open a relay before a conversation; gives what sends a body to it."""
    relay = Relay()
    async with aiohttp.ClientSession() as web:
        address = await relay.open(conversation)
        headers = {"Authorization": f"Bearer {address.token}"}

        async def send(sent: Any) -> RelayResponse:
            url = f"{address.base_url}/chat/completions"
            async with web.post(url, json=sent, headers=headers) as response:
                return RelayResponse(response.status, dict(response.headers), await response.read())

        try:
            yield send
        finally:
            await relay.close()


def replay_in_worker(channel: Any, url: str, code: str, mode: str, run_id: int) -> None:
    """Be a worker of xdist that sends the same request three times and reports the replies.

    Args:
        channel: To the controller.
        url: Of the provider.
        code: Of the item.
        mode: `--helmbench-cache`.
        run_id: Of the run.
    """
    loop = LoopThread()
    backend = RemoteBackend(
        loop, channel, lambda _start: None, lambda _model, _why: None, lambda _reason: None
    )

    async def asked() -> list[str]:
        gateway = Gateway(
            backend,
            ChatClient(),
            RetryPolicy(),
            f"{code}-",
            _recorded_use(CacheMode(mode), CacheMode(mode).reads),
        )
        try:
            async with relay_before(converse(gateway, url, code, run_id=run_id)) as send:
                return [(await send(body())).body.decode() for _ in range(3)]
        finally:
            await gateway.close()

    backend.send("note", json.dumps([code, loop.run(asked())]))
    backend.send("bye")
    loop.close()


def with_sampling(**options: Any) -> ModelEntry:
    """Return a model with sampling options of the user's."""
    return ModelEntry("test/good", sampling=Sampling(**options))


def client_of(address: RelayAddress) -> AsyncOpenAI:
    """Return a client of an item's address."""
    return AsyncOpenAI(base_url=address.base_url, api_key=address.token)


def error_of(answered: RelayResponse) -> Mapping[str, Any]:
    """Return the error that a client received."""
    error: Mapping[str, Any] = json.loads(answered.body)["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error
