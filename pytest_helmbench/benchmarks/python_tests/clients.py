"""Clients of the `openai` package for hand-written tests: they ask the relay of their test.

`openai` is imported when a test has asked for a client.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pytest_helmbench.benchmarks.python_tests.judge_fixture import AskedJudge
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.relay.relay import RelayAddress

if TYPE_CHECKING:
    import openai


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a test reaches its model.

    Args:
        address: Of the relay, until the test ends.
        judge: Returns what asks its marking model; the test is skipped where there is none.
    """

    model: str
    address: RelayAddress
    judge: Callable[[], AskedJudge]


def opened_client(connection: Connection) -> Iterator[openai.OpenAI]:
    """Yield a client of the relay."""
    library = _library()
    client: openai.OpenAI = library.OpenAI(**_options(connection, library.DefaultHttpxClient))
    try:
        yield client
    finally:
        client.close()


def opened_async_client(connection: Connection) -> Iterator[openai.AsyncOpenAI]:
    """Yield a client of the relay that keeps no connection: each would belong to an event loop of the test's."""
    library = _library()
    client: openai.AsyncOpenAI = library.AsyncOpenAI(
        **_options(connection, library.DefaultAsyncHttpxClient), default_headers={"Connection": "close"}
    )
    try:
        yield client
    finally:
        _close(client)


def _options(connection: Connection, http_client: Callable[..., Any]) -> dict[str, Any]:
    """Return what makes a client ours: retries, time limits and proxies are the gateway's business, not its."""
    # No certificate is trusted: the relay speaks plain HTTP, and loading those of the world takes 25 ms.
    no_certificates = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return {
        "base_url": connection.address.base_url,
        "api_key": connection.address.token,
        "max_retries": 0,
        "timeout": None,
        "http_client": http_client(trust_env=False, verify=no_certificates),
    }


def _library() -> ModuleType:
    import openai  # half a second, for tests that ask for a client

    return openai


def _close(client: openai.AsyncOpenAI) -> None:
    loop = asyncio.new_event_loop()
    try:
        # A connection that the test has left open belongs to a loop that has ended, and has gone with it.
        with suppress(RuntimeError):
            loop.run_until_complete(client.close())
    finally:
        loop.close()
