"""One question to one reply, against a real server: retries, limits of time, models that stop, cancellation."""

from __future__ import annotations

import asyncio
import time

import pytest
from gateways import GatewayFixture, StoppableWatch, call_to, chat_client, open_gateway
from provider import Provider, Request
from waiting import until_async

from pytest_helmbench.core.outcome import AttemptRecord, Reply, ResultRecord
from pytest_helmbench.gateway.backend import LocalBackend
from pytest_helmbench.gateway.call import CaseClock
from pytest_helmbench.gateway.client import ChatClient
from pytest_helmbench.gateway.gateway import Gateway
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import (
    ModelFoundStoppedError,
    ModelLimits,
    ModelStoppedError,
    PermitRequest,
    SessionLimits,
)
from pytest_helmbench.gateway.retries import CallFailedError, RetryPolicy


async def _ask(
    coordinator: GatewayFixture, url: str, model: str = "test/good", watch: StoppableWatch | None = None
) -> Reply:
    clock = CaseClock(coordinator.gateway.retry_policy)
    return await coordinator.gateway.ask(call_to(url, model), clock, watch or StoppableWatch())


async def _never(_seconds: float) -> None:
    raise AssertionError("it waits")


async def _no_sleep(_seconds: float) -> None:
    await asyncio.sleep(0)


async def test_a_reply_comes_with_its_cost_and_stands_on_record(provider: Provider) -> None:
    provider.answers(text="Grüße")

    async with open_gateway() as coordinator:
        reply = await _ask(coordinator, provider.url)
    assert reply.text == "Grüße"
    assert reply.usage.cost_usd == 0.001
    assert reply.provider_model == "test/good"
    (record,) = coordinator.attempts
    assert (record.status_code, record.attempt, record.reply_key) == (200, 1, reply.key)
    assert record.request_body == provider.requests[0].raw
    assert record.error is None
    assert coordinator.gate.in_flight == 0


async def test_429s_are_waited_out_for_as_long_as_asked_and_use_up_no_retry(provider: Provider) -> None:
    provider.answers(times=3, status=429, retry_after=0.2)

    async with open_gateway(retry_policy=RetryPolicy(max_retries=0)) as coordinator:
        await _ask(coordinator, provider.url)
    assert [record.status_code for record in coordinator.attempts] == [429, 429, 429, 200]
    gaps = [b.at - a.at for a, b in zip(provider.requests, provider.requests[1:], strict=False)]
    assert min(gaps) >= 0.2


async def test_what_keeps_failing_is_retried_with_growing_pauses_and_then_given_up(
    provider: Provider,
) -> None:
    provider.answers(status=503)
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async with open_gateway(retry_policy=RetryPolicy(max_retries=3), sleep=sleep) as coordinator:
        with pytest.raises(CallFailedError, match=r"503 .*after 4 attempts"):
            await _ask(coordinator, provider.url)
        assert coordinator.gate.in_flight == 0
    assert [record.attempt for record in coordinator.attempts] == [1, 2, 3, 4]
    assert pauses == [0.25, 0.5, 1.0]
    assert provider.count == 4


async def test_a_case_that_has_used_up_its_time_sends_nothing_more(provider: Provider) -> None:
    now = 0.0
    async with open_gateway(retry_policy=RetryPolicy(case_timeout_s=5)) as coordinator:
        clock = CaseClock(coordinator.gateway.retry_policy, lambda: now)
        with clock.running():
            now = 6.0
        with pytest.raises(CallFailedError) as caught:
            await coordinator.gateway.ask(call_to(provider.url), clock, StoppableWatch())
        assert str(caught.value) == "the case has used up its 5 s\n  hint: raise --helmbench-case-timeout"
    assert provider.count == 0


async def test_time_in_our_own_queue_does_not_count_against_a_case(provider: Provider) -> None:
    provider.latency_s = 0.1

    async with open_gateway(
        retry_policy=RetryPolicy(case_timeout_s=1.0), limits=SessionLimits(1)
    ) as coordinator:
        await asyncio.gather(*(_ask(coordinator, provider.url) for _ in range(12)))
    assert provider.max_in_flight == 1


async def test_a_refused_key_ends_every_call_of_its_model_at_once_and_no_other(provider: Provider) -> None:
    def is_bad(request: Request) -> bool:
        return request.model.endswith("bad")

    provider.answers(times=1, status=503, when=is_bad)  # this one sleeps before its next attempt
    provider.answers(times=2, hang=True, when=is_bad)
    provider.answers(times=1, status=401, when=is_bad)
    provider.answers(when=lambda request: not is_bad(request), latency_s=0.2)

    async def sleep(_seconds: float) -> None:
        await asyncio.Event().wait()

    models = [ModelLimits("x/bad", 4), ModelLimits("x/good", 4)]
    async with open_gateway(models, sleep=sleep, retry_policy=RetryPolicy(grace_s=0.2)) as coordinator:
        good = asyncio.create_task(_ask(coordinator, provider.url, "x/good"))
        bad = []
        for count in range(1, 5):
            bad.append(asyncio.create_task(_ask(coordinator, provider.url, "x/bad")))
            await until_async(lambda count=count: provider.count == count + 1)  # type: ignore[misc]
        ends = await asyncio.gather(*bad, return_exceptions=True)
        assert [type(end) for end in ends] == [ModelStoppedError] * 3 + [ModelFoundStoppedError]
        assert len({str(end) for end in ends}) == 1
        assert "401" in str(ends[0])
        with pytest.raises(ModelStoppedError):
            await _ask(coordinator, provider.url, "x/bad")
        assert (await good).text == "ok"
        assert coordinator.gate.in_flight == 0
    errors = sorted(str(record.error).split(":")[0] for record in coordinator.attempts if record.error)
    assert errors[1:3] == ["cancelled", "cancelled"]
    assert len(coordinator.attempts) == provider.count == 5


@pytest.mark.parametrize("more", [0, 1])
async def test_one_401_of_a_model_that_has_answered_is_tried_again_once(
    provider: Provider, more: int
) -> None:
    retry_policy = RetryPolicy(max_retries=0)
    async with (
        open_gateway(retry_policy=retry_policy, sleep=_no_sleep) as coordinator,
        chat_client() as client,
    ):
        # Its answers to another worker count too.
        other = Gateway(coordinator.backend, client, retry_policy)
        await other.ask(call_to(provider.url), CaseClock(retry_policy), StoppableWatch())
        provider.answers(times=1 + more, status=401)
        asked = asyncio.create_task(_ask(coordinator, provider.url))
        if more:
            with pytest.raises(ModelStoppedError, match="401"):
                await asked
        else:
            assert (await asked).text == "ok"
    assert provider.count == 3


async def test_a_cancelled_call_gives_its_ticket_back_and_stays_cancelled(provider: Provider) -> None:
    provider.answers(hang=True)

    async with open_gateway() as coordinator:
        task = asyncio.create_task(_ask(coordinator, provider.url))
        await until_async(lambda: provider.in_flight)
        # Both in one turn: a cancel from outside must be obeyed.
        coordinator.gateway.stop_model("test/good", "its key is wrong")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert coordinator.gate.in_flight == 0
        (record,) = coordinator.attempts
        assert (record.error, record.reply_key) == ("cancelled", None)


async def test_nothing_is_sent_once_the_run_is_cancelled(provider: Provider) -> None:
    provider.answers(times=1, status=503)

    async with open_gateway(sleep=_no_sleep, limits=SessionLimits(1)) as coordinator:
        blocker = await coordinator.gate.acquire(_blocking_ask())
        watch = StoppableWatch()
        waiting = asyncio.create_task(_ask(coordinator, provider.url, watch=watch))
        await asyncio.sleep(0.01)
        watch.stopped = True
        coordinator.backend.release(blocker)  # lets the other one go, but too late
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert coordinator.gate.in_flight == 0
        assert coordinator.attempts == []
    assert provider.count == 0


async def test_no_ticket_is_lost_when_the_record_breaks(provider: Provider) -> None:
    def broken(_record: AttemptRecord) -> None:
        raise MemoryError("no room for the record")

    gate = Limiter(SessionLimits(1), time.monotonic)
    gate.add_models([ModelLimits("test/good", 1)])
    results: list[ResultRecord] = []
    gateway = Gateway(LocalBackend(gate, broken, results.append), ChatClient(), RetryPolicy())
    for _ in range(3):
        with pytest.raises(MemoryError):
            await gateway.ask(call_to(provider.url), CaseClock(RetryPolicy()), StoppableWatch())
    assert gate.in_flight == 0
    await gateway.close()
    assert provider.count == 3


def _blocking_ask() -> PermitRequest:
    return PermitRequest("test/good", 0, None, urgent=False)
