"""Relayed conversations whose item, client or session ends, or whose time is up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from gateways import StoppableWatch, open_gateway
from provider import Provider
from relays import body, converse
from waiting import until_async


async def test_who_hangs_up_pays_once_and_may_come_back_for_the_reply(provider: Provider) -> None:
    async with open_gateway() as coordinator, converse(coordinator.gateway, provider.url) as item:
        provider.answers(times=1, text="late", held=True)
        for _ in range(2):  # the second takes the first one's call over, and hangs up too
            waiting = asyncio.create_task(item.complete(body()))
            await until_async(lambda: provider.in_flight)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        provider.let_go()
        await until_async(lambda: coordinator.attempts)
        assert item.sums.answered == 1
        raw = await item.complete(body())
        assert raw.reply is not None
        assert raw.reply.text == "late"
        assert provider.count == 1
        assert getattr((await item.complete(body())).reply, "text", "") == "ok"
        assert coordinator.attempts[0].request_hash != coordinator.attempts[1].request_hash


async def test_an_item_holds_its_place_while_one_of_its_calls_sleeps(provider: Provider) -> None:
    class Sleepless(StoppableWatch):
        def asleep(self) -> Any:
            raise AssertionError("the item's own code runs on")

    provider.answers(times=1, status=429, retry_after=0.01)

    async with (
        open_gateway() as coordinator,
        converse(coordinator.gateway, provider.url, watch=Sleepless()) as item,
    ):
        assert (await item.complete(body())).status == 200
    assert [record.status_code for record in coordinator.attempts] == [429, 200]
