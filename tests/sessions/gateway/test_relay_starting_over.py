"""Code of an item that dies and starts over, gives up, or ends with requests open: its replies and counted calls."""

from __future__ import annotations

import asyncio

from gateways import open_gateway
from provider import Answer, Provider
from relays import body, converse
from waiting import until_async

from pytest_helmbench.gateway.call import ItemClock
from pytest_helmbench.gateway.faults import Patience
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.gateway.relay.conversation import ClientGaveUpError, Conversation


async def _told(item: Conversation, *texts: str) -> list[str]:
    return [getattr((await item.complete(body(text))).reply, "text", "") for text in texts]


async def _die_while_asking(item: Conversation, provider: Provider) -> None:
    """Let the code of an item die with a request on the wire, and start over."""
    dead = asyncio.ensure_future(item.complete(body()))
    await until_async(lambda: provider.in_flight)
    item.rewind()
    dead.cancel()
    await asyncio.sleep(0)


async def test_code_that_starts_over_is_given_its_replies_again(provider: Provider) -> None:
    numbers = iter(range(100))
    provider.reply = lambda _request: Answer(f"reply {next(numbers)}")

    async with (
        open_gateway([ModelLimits("test/good", 8)]) as coordinator,
        converse(coordinator.gateway, provider.url) as item,
    ):
        first = await _told(item, "a", "b", "a")
        before = item.sums
        item.rewind()
        assert await _told(item, "a", "a", "b", "a", "c") == [*first[::2], first[1], "reply 3", "reply 4"]
        assert first == ["reply 0", "reply 1", "reply 2"]
        assert (before.recalled, item.sums.recalled) == (0, 3)
        assert item.sums.answered == 5
        assert item.sums.usage.prompt_tokens == sum(
            record.usage.prompt_tokens or 0 for record in coordinator.attempts
        )
        item.rewind()
        assert await _told(item, "c", "a") == ["reply 4", "reply 0"]


async def test_a_request_that_is_open_at_the_end_of_its_item_is_told(provider: Provider) -> None:
    provider.answers(hang=True)

    async with (
        open_gateway([ModelLimits("test/good", 8)]) as coordinator,
        converse(coordinator.gateway, provider.url) as item,
    ):
        assert await item.settle() is None
        waiting = asyncio.ensure_future(item.complete(body()))
        await until_async(lambda: provider.in_flight)
        assert isinstance(await item.settle(), ClientGaveUpError)
        assert item.sums.open_faults == ()
        await item.end()
        await waiting


async def test_a_reply_that_came_while_its_code_was_dead_is_given_to_the_code_that_follows(
    provider: Provider,
) -> None:
    provider.reply = lambda _request: Answer("late", latency_s=0.2)

    async with (
        open_gateway([ModelLimits("test/good", 8)]) as coordinator,
        converse(coordinator.gateway, provider.url) as item,
    ):
        await _die_while_asking(item, provider)
        assert await _told(item, "Hello") == ["late"]
        assert provider.count == 1
        assert item.sums.open_faults == ()


async def test_a_request_that_its_client_gave_up_is_a_fault_until_the_same_is_answered(
    provider: Provider,
) -> None:
    provider.reply = lambda _request: Answer("slow", latency_s=0.2)

    async with (
        open_gateway([ModelLimits("test/good", 8)]) as coordinator,
        converse(coordinator.gateway, provider.url) as item,
    ):
        impatient = asyncio.ensure_future(item.complete(body()))
        await until_async(lambda: provider.in_flight)
        impatient.cancel()
        await asyncio.wait((impatient,))
        (fault,) = item.sums.open_faults
        assert "test/good had not answered when the code that asked gave up waiting" in str(fault)
        assert await _told(item, "Hello") == ["slow"]
        assert item.sums.open_faults == ()


def test_the_clock_of_an_item_leaves_out_what_its_requests_wait_for_leave() -> None:
    now = [0.0]
    clock = ItemClock(Patience(), lambda: now[0])
    clock.begin()
    now[0] = 1.0
    with clock.asking():
        now[0] = 11.0  # waits for leave
        with clock.asking(), clock.running():
            now[0] = 13.0  # one is on the wire, the other waits
        assert clock.used_s() == 3.0
        now[0] = 20.0
        assert clock.used_s() == 3.0
    now[0] = 21.0
    assert clock.used_s() == 4.0
    clock.begin()
    assert clock.used_s() == 0.0
