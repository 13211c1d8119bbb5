"""How requests to the relay end early: clients that hang up, code that dies, items and sessions that end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from gateways import GatewayFixture, StoppableWatch, open_gateway
from provider import Provider
from relays import body, converse, error_of, open_relay
from waiting import until_async

from pytest_helmbench.gateway.call import ItemClock
from pytest_helmbench.gateway.relay.conversation import ClientGaveUpError, Conversation, RawReply
from pytest_helmbench.gateway.relay.server import RelayBounds
from pytest_helmbench.gateway.retries import RetryPolicy


@asynccontextmanager
async def _item(provider: Provider, **options: Any) -> AsyncIterator[tuple[GatewayFixture, Conversation]]:
    async with open_gateway() as gateway, converse(gateway.gateway, provider.url, **options) as item:
        yield gateway, item


async def _ask(item: Conversation, provider: Provider) -> asyncio.Task[RawReply]:
    """Return a request that is on the wire."""
    request = asyncio.create_task(item.complete(body()))
    await until_async(lambda: provider.in_flight)
    return request


async def _text(item: Conversation) -> str:
    return getattr((await item.complete(body())).reply, "text", "")


async def test_path_and_token_must_belong_together_and_end_with_the_item(provider: Provider) -> None:
    async with open_relay(provider.url) as relay:
        first, mine = await relay.item("ROW-1")
        _, other = await relay.item("ROW-2")
        assert mine.token not in repr(mine)
        assert len({mine.base_url, other.base_url, mine.token, other.token}) == 4
        urls = (
            other.base_url,
            mine.base_url.replace("/v1", "x/v1"),
            f"http://{urlsplit(mine.base_url).netloc}",
        )
        tokens = ("", mine.token, f"Basic {mine.token}", "Bearer ", f"Bearer {mine.token}x")
        strangers = (
            ({"url": url} for url in urls),
            ({"headers": {"Authorization": token}} for token in tokens),
        )
        for options in (one for several in strangers for one in several):
            for path in ("/chat/completions", "/models"):
                answered = await relay.send(mine, path, json=body(), **options)
                sentence = "this address takes only the bearer token that was given out with it"
                assert (answered.status, error_of(answered)["message"]) == (401, sentence)
        lower = {"Authorization": f"bearer  {mine.token} "}
        assert (await relay.send(mine, json=body(), headers=lower)).status == 200

        await first.end()
        answered = await relay.send(mine, json=body())
        sentence = "the item that this address was made for has ended"
        assert (answered.status, error_of(answered)["message"]) == (410, sentence)
        assert (await relay.send(mine, "/models", method="GET")).status == 410
        anew = await relay.relay.open(first)
        assert anew.token != mine.token
        assert (await relay.send(anew, json=body())).status == 410
        assert (await relay.send(mine, headers={"Authorization": "Bearer x"})).status == 401
        assert (await relay.send(other, json=body())).status == 200
    assert provider.count == 2


async def test_a_client_that_hangs_up_ends_its_call(provider: Provider) -> None:
    provider.answers(times=2, hang=True)
    async with open_relay(provider.url, bounds=RelayBounds(heartbeat_s=0.01)) as relay:
        item, address = await relay.item(grace_s=0.02)
        for stream in (False, True):
            sending = asyncio.create_task(relay.send(address, json=body(stream=stream)))
            await until_async(lambda: provider.in_flight)
            sending.cancel()
            await until_async(lambda: not relay.coordinator.gate.in_flight and not provider.in_flight)
        assert [record.error for record in relay.coordinator.attempts] == ["cancelled"] * 2
        for stream in (False, True):
            assert (await relay.send(address, json=body(stream=stream))).status == 200
        assert not item.totals.open_faults


async def test_the_end_of_an_item_ends_its_requests_and_that_of_the_session_its_port(
    provider: Provider,
) -> None:
    provider.answers(hang=True)
    async with open_relay(provider.url, bounds=RelayBounds(heartbeat_s=0.01)) as relay:
        item, address = await relay.item()
        requests = [relay.send(address, json=body(stream=stream)) for stream in (False, True)]
        waiting = [asyncio.create_task(request) for request in requests]
        await until_async(lambda: provider.in_flight == 2)
        await asyncio.sleep(0.03)
        await item.end()
        plain, streamed = await asyncio.gather(*waiting)
        assert (plain.status, error_of(plain)["code"]) == (410, "item_ended")
        assert streamed.body.endswith(b'"code": "item_ended"}}\n\n')

        _, address = await relay.item(watch=StoppableWatch(stopped=True))
        answered = await relay.send(address, json=body())
        assert (answered.status, error_of(answered)["message"]) == (503, "the session makes no more calls")
        await relay.relay.close()
        with pytest.raises(aiohttp.ClientConnectionError):
            await relay.send(address, json=body())


async def test_connections_and_bytes_at_once_are_bounded(provider: Provider) -> None:
    bounds = RelayBounds(connections=2, item_bytes=2 * 2**20)
    provider.answers(times=1, hang=True)
    large = json.dumps(body("x" * 2**20)).encode()
    async with open_relay(provider.url, bounds=bounds) as relay:
        _, address = await relay.item(grace_s=0.0)
        _, other = await relay.item()
        holding = asyncio.create_task(relay.send(address, data=BytesIO(large)))
        await until_async(lambda: provider.in_flight)
        refused = await relay.send(address, data=BytesIO(large))
        sentence = "the requests of this item hold more than 2 MiB at once"
        assert (refused.status, error_of(refused)["message"]) == (429, sentence)
        assert (await relay.send(other, data=BytesIO(large))).status == 200
        holding.cancel()
        server = relay.relay._server
        await until_async(lambda: server is not None and not server._held_bytes)
        await until_async(lambda: not relay.coordinator.gate.in_flight)
        assert (await relay.send(address, data=BytesIO(large))).status == 200

    async with open_relay(provider.url, bounds=bounds) as relay:
        _, address = await relay.item()
        port = urlsplit(address.base_url).port
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        await asyncio.sleep(0.3)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        for one in (writer, *(pair[1] for pair in held)):
            one.close()
        await asyncio.sleep(0.3)
        assert (await relay.send(address, json=body())).status == 200


async def test_a_client_that_hangs_up_pays_once_and_may_come_back_for_the_reply(provider: Provider) -> None:
    provider.answers(times=1, text="late", held=True)
    async with _item(provider) as (gateway, item):
        for _ in range(2):  # the second takes the first one's call over, and hangs up too
            request = await _ask(item, provider)
            request.cancel()
            with pytest.raises(asyncio.CancelledError):
                await request
        (fault,) = item.totals.open_faults
        assert "test/good had not answered when the code that asked gave up waiting" in str(fault)
        provider.let_go()
        await until_async(lambda: gateway.attempts)
        assert item.totals.answered == 1
        assert await _text(item) == "late"
        assert (provider.count, item.totals.open_faults) == (1, ())
        assert await _text(item) == "ok"
        assert gateway.attempts[0].request_hash != gateway.attempts[1].request_hash


async def test_code_that_starts_over_gets_the_reply_to_the_request_that_it_died_in(
    provider: Provider,
) -> None:
    provider.answers(times=1, text="late", held=True)
    async with _item(provider) as (_, item):
        request = await _ask(item, provider)
        item.rewind()
        request.cancel()
        await asyncio.sleep(0)
        provider.let_go()
        assert await _text(item) == "late"
        assert (provider.count, item.totals.open_faults) == (1, ())


async def test_a_request_that_is_open_at_the_end_of_its_item_is_a_fault(provider: Provider) -> None:
    provider.answers(hang=True)
    async with _item(provider) as (_, item):
        assert await item.settle() is None
        request = await _ask(item, provider)
        assert isinstance(await item.settle(), ClientGaveUpError)
        assert item.totals.open_faults == ()
        await item.end()
        await request


async def test_an_item_holds_its_place_while_one_of_its_calls_sleeps(provider: Provider) -> None:
    class Sleepless(StoppableWatch):
        def asleep(self) -> Any:
            raise AssertionError("the item's own code runs on")

    provider.answers(times=1, status=429, retry_after=0.01)
    async with _item(provider, watch=Sleepless()) as (gateway, item):
        assert await _text(item) == "ok"
        assert [record.status_code for record in gateway.attempts] == [429, 200]


def test_the_clock_of_an_item_leaves_out_the_time_that_its_requests_wait_for_permits() -> None:
    now = [0.0]
    clock = ItemClock(RetryPolicy(), lambda: now[0])
    clock.begin()
    now[0] = 1.0
    with clock.asking():
        now[0] = 11.0  # waits for a permit
        with clock.asking(), clock.running():
            now[0] = 13.0  # one is on the wire, the other waits
        assert clock.used_s() == 3.0
        now[0] = 20.0
        assert clock.used_s() == 3.0
    now[0] = 21.0
    assert clock.used_s() == 4.0
    clock.begin()
    assert clock.used_s() == 0.0
