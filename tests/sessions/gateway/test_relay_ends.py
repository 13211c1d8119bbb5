"""How connections to the relay end: clients that hang up or take nothing, items and sessions that end."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import aiohttp
import pytest
from gateways import StoppableWatch
from provider import Provider
from relays import body, error_of, open_relay
from waiting import until_async

from pytest_helmbench.gateway.relay.server import RelayBounds


async def test_path_and_token_must_belong_together_and_end_with_the_item(provider: Provider) -> None:
    async with open_relay(provider.url) as setup:
        first, mine = await setup.item("ROW-1")
        _, other = await setup.item("ROW-2")
        assert mine.token not in repr(mine)
        assert len({mine.base_url, other.base_url, mine.token, other.token}) == 4

        sentence = "this address takes only the bearer token that was given out with it"
        strangers = (
            {"url": other.base_url},
            {"url": mine.base_url.replace("/v1", "x/v1")},
            {"url": f"http://{urlsplit(mine.base_url).netloc}"},
            {"headers": {"Authorization": ""}},
            {"headers": {"Authorization": mine.token}},
            {"headers": {"Authorization": f"Basic {mine.token}"}},
            {"headers": {"Authorization": "Bearer "}},
            {"headers": {"Authorization": f"Bearer {mine.token}x"}},
        )
        for options in strangers:
            for path in ("/chat/completions", "/models"):
                answered = await setup.send(mine, path, json=body(), **options)
                assert answered.status == 401
                assert error_of(answered)["message"] == sentence
        lower = {"Authorization": f"bearer  {mine.token} "}
        assert (await setup.send(mine, json=body(), headers=lower)).status == 200

        await first.end()
        answered = await setup.send(mine, json=body())
        assert answered.status == 410
        assert error_of(answered)["message"] == "the item that this address was made for has ended"
        assert (await setup.send(mine, "/models", method="GET")).status == 410
        assert (await setup.relay.open(first)).token != mine.token
        assert (await setup.send(await setup.relay.open(first), json=body())).status == 410
        assert (await setup.send(mine, headers={"Authorization": "Bearer x"})).status == 401
        assert (await setup.send(other, json=body())).status == 200
    assert provider.count == 2


async def test_a_client_that_hangs_up_ends_its_call(provider: Provider) -> None:
    provider.answers(times=2, hang=True)

    async with open_relay(provider.url, bounds=RelayBounds(heartbeat_s=0.01)) as setup:
        item, address = await setup.item(grace_s=0.02)
        for stream in (False, True):
            sending = asyncio.create_task(setup.send(address, json=body(stream=stream)))
            await until_async(lambda: provider.in_flight)
            sending.cancel()
            await until_async(lambda: not setup.coordinator.gate.in_flight and not provider.in_flight)
        assert [record.error for record in setup.coordinator.attempts] == ["cancelled"] * 2
        for stream in (False, True):
            assert (await setup.send(address, json=body(stream=stream))).status == 200
        assert not item.sums.open_faults


async def test_the_end_of_an_item_ends_what_its_clients_wait_for(provider: Provider) -> None:
    provider.answers(hang=True)

    async with open_relay(provider.url, bounds=RelayBounds(heartbeat_s=0.01)) as setup:
        item, address = await setup.item()
        waiting = [
            asyncio.create_task(setup.send(address, json=body(stream=stream))) for stream in (False, True)
        ]
        await until_async(lambda: provider.in_flight == 2)
        await asyncio.sleep(0.03)
        await item.end()
        plain, streamed = await asyncio.gather(*waiting)
        assert (plain.status, error_of(plain)["code"]) == (410, "item_ended")
        assert streamed.body.endswith(b'"code": "item_ended"}}\n\n')


async def test_the_end_of_the_session_is_told_and_then_the_port_is_closed(provider: Provider) -> None:
    async with open_relay(provider.url) as setup:
        item, address = await setup.item()
        item._watch = StoppableWatch(stopped=True)
        answered = await setup.send(address, json=body())
        assert (answered.status, error_of(answered)["message"]) == (
            503,
            "the session makes no more calls",
        )
        await setup.relay.close()
        with pytest.raises(aiohttp.ClientConnectionError):
            await setup.send(address, json=body())


async def test_connections_beyond_the_bound_are_refused(provider: Provider) -> None:
    async with open_relay(provider.url, bounds=RelayBounds(connections=2)) as all_of_it:
        _, address = await all_of_it.item()
        port = int(address.base_url.split(":")[2].split("/")[0])
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        await asyncio.sleep(0.3)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        for one in (writer, *(pair[1] for pair in held)):
            one.close()
        await asyncio.sleep(0.3)
        assert (await all_of_it.send(address, json=body())).status == 200
