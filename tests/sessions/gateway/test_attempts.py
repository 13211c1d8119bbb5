"""An item whose code runs on another host: of its attempts only the last counts, and nothing is asked twice."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable

import pytest
from provider import Provider
from relayed import body, converse, relayed, until
from said import said
from wired import Onlooker, Wired, wired

from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.gateway.call import Origin
from pytest_helmbench.gateway.case_clock import CaseClock
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.gateway.providers.endpoints import Endpoint, resolve_endpoint
from pytest_helmbench.gateway.relay.attempts import Attempts, VoidAttemptError
from pytest_helmbench.gateway.relay.client_errors import BadRequestError
from pytest_helmbench.gateway.relay.conversation import Conversation, ItemLine
from pytest_helmbench.gateway.relay.far_conversation import FarConversation

_KEY = "sk-0123456789abcdef"
_LIMITS = (ModelLimits("test/good", 8),)


def _asking(attempts: Attempts) -> Callable[[bytes], Awaitable[bytes]]:
    async def ask(message: bytes) -> bytes:
        head, _, sent = message.partition(b"\n")
        return await attempts.answer(json.loads(head), sent)

    return ask


def _attempts(coordinator: Wired, url: str, most: int = 2) -> tuple[Conversation, Attempts]:
    conversation = converse(coordinator.gateway, url, journal=True, grace_s=60.0)
    return conversation, Attempts(conversation, most)


async def _begun(attempts: Attempts) -> FarConversation:
    begun = await FarConversation.begin(_asking(attempts), "test/good")
    assert begun is not None
    return begun


def test_a_newer_attempt_voids_the_older_one_and_takes_over_what_is_on_the_wire(provider: Provider) -> None:
    held = threading.Event()

    def reply(request: object) -> str:
        if provider.count == 2:
            held.wait(30)
        return f"reply {provider.count}"

    provider.reply = reply

    async def run() -> None:
        async with wired(_LIMITS) as coordinator:
            conversation, attempts = _attempts(coordinator, provider.url)
            async with conversation:
                older = await _begun(attempts)
                first = await older.complete(body("one"))
                waiting = asyncio.create_task(older.complete(body("two")))
                await until(lambda: provider.count == 2)
                newer = await _begun(attempts)
                with pytest.raises(VoidAttemptError):
                    await waiting
                with pytest.raises(VoidAttemptError):
                    await older.complete(body("three"))
                assert attempts.counts(newer.token)
                assert not attempts.counts(older.token)
                assert (await newer.complete(body("one"))).body == first.body
                again = asyncio.create_task(newer.complete(body("two")))
                await asyncio.sleep(0)
                held.set()
                assert (await again).reply is not None
                assert (await newer.settled_sums()).answered == 2
                assert newer.sums.open_faults == ()
                assert await FarConversation.begin(_asking(attempts), "test/good") is None
                assert attempts.refused

    asyncio.run(run())
    assert len({request.raw for request in provider.requests}) == provider.count == 2


def test_no_attempt_counts_when_its_item_has_ended(provider: Provider) -> None:
    async def run() -> None:
        async with wired(_LIMITS) as coordinator:
            conversation, attempts = _attempts(coordinator, provider.url)
            async with conversation:
                attempt = await _begun(attempts)
            with pytest.raises(VoidAttemptError):
                await attempt.complete(body())
            assert await FarConversation.begin(_asking(attempts), "test/good") is None
            assert not attempts.refused
            silent = asyncio.create_task(attempt.watch(0.01))
            await asyncio.wait_for(silent, 30)

    asyncio.run(run())
    assert provider.count == 0


def test_a_token_that_was_not_given_out_is_refused(provider: Provider) -> None:
    async def run() -> None:
        async with wired(_LIMITS) as coordinator:
            conversation, attempts = _attempts(coordinator, provider.url)
            async with conversation:
                for token in ("", "guessed"):
                    with pytest.raises(VoidAttemptError):
                        await attempts.answer({"wanted": "ask", "token": token}, b"{}")
                    await _begun(attempts)

    asyncio.run(run())
    assert provider.count == 0


def test_no_answer_holds_a_key_and_no_path_leads_elsewhere(provider: Provider) -> None:
    entry = ModelEntry("test/good")
    endpoint = resolve_endpoint(
        entry, default_base_url=said(provider.url), default_key_env=said("KEY"), environ={"KEY": _KEY}
    )
    assert isinstance(endpoint, Endpoint)
    answers: list[bytes] = []

    async def run() -> None:
        async with wired(_LIMITS) as coordinator:
            line = ItemLine(Origin(1, "ROW-1", 1), entry, endpoint, "agent")
            clock = CaseClock(coordinator.gateway.patience)
            async with Conversation(
                coordinator.gateway, line, clock, Onlooker(), journal=True
            ) as conversation:
                attempts = Attempts(conversation, 2)
                ask = _asking(attempts)

                async def heard(message: bytes) -> bytes:
                    answers.append(await ask(message))
                    return answers[-1]

                attempt = await FarConversation.begin(heard, "test/good")
                assert attempt is not None
                await attempt.complete(body("fine"))
                provider.answers(status=401, body={"error": {"message": f"bad key {_KEY}"}})
                await attempt.complete(body("refused"))
                with pytest.raises(ValueError, match="no path of a model"):
                    await attempt.complete(body(), "../../files")

    asyncio.run(run())
    assert provider.requests[0].headers["authorization"] == f"Bearer {_KEY}"
    assert len(answers) == 3
    assert not [answer for answer in answers if _KEY.encode() in answer or provider.url.encode() in answer]


def test_errors_and_refusals_are_told_as_they_are_here(provider: Provider) -> None:
    provider.answers(
        status=400, body={"error": {"message": "no tools here", "type": "invalid_request_error"}}
    )

    async def run() -> None:
        async with relayed(provider.url) as relay:
            conversation, attempts = _attempts(relay.coordinator, provider.url)
            async with conversation:
                attempt = await _begun(attempts)
                here = await conversation.complete(body("x"))
                there = await attempt.complete(body("x"))
                assert there.error is not None
                assert (type(there.error), str(there.error)) == (type(here.error), str(here.error))
                assert (there.status, there.body) == (here.status, here.body)
                address = await relay.relay.open(attempt)
                answered = await relay.send(address, "/files", json={})
                assert answered.status == 404
                faults = (await attempt.settled_sums()).open_faults
                assert [type(fault) for fault in faults if isinstance(fault, BadRequestError)] == [
                    BadRequestError
                ]
                attempt.end()
                assert (await relay.send(address, json=body())).status == 410

    asyncio.run(run())
