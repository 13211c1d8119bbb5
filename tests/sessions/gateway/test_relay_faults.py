"""Faults on the way through the relay: the provider's, the client's and our own, each told in words."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import logging
import time
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
from gateways import chat_client
from provider import Answer, Provider
from relays import body, client_of, error_of, open_relay
from rights import granted
from waiting import until_async

from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import AttemptRecord, ResultRecord
from pytest_helmbench.gateway.backend import LocalBackend
from pytest_helmbench.gateway.faults import Patience
from pytest_helmbench.gateway.gateway import Gateway
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import ModelLimits, SessionLimits
from pytest_helmbench.gateway.relay.server import RelayBounds


@pytest.mark.parametrize(
    ("answer", "error", "code"),
    [
        (Answer(status=400), openai.BadRequestError, "rejected"),
        (
            Answer(status=404, body={"error": {"message": "No endpoints found that support tool use"}}),
            openai.BadRequestError,
            "unsupported_parameters",
        ),
        (Answer(status=500), openai.InternalServerError, "provider_error"),
        (Answer(status=429, retry_after=60), openai.InternalServerError, "model_stopped"),
        (Answer(body=b"<html>"), openai.InternalServerError, "not_json"),
        (Answer(finish_reason="content_filter"), openai.BadRequestError, "moderation"),
        (Answer(status=401), openai.InternalServerError, "model_stopped"),
    ],
)
async def test_faults_that_last_reach_the_client_as_its_own_errors(
    provider: Provider, answer: Answer, error: type[openai.APIStatusError], code: str
) -> None:
    provider.reply = lambda _request: answer

    patience = Patience(case_timeout_s=1.0, max_retries=0)
    limits = SessionLimits(8, longest_pause_s=patience.longest_pause_s)
    async with open_relay(provider.url, patience=patience, limits=limits) as setup:
        item, address = await setup.item()
        async with client_of(address) as client:
            with pytest.raises(error) as caught:
                await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        assert type(caught.value) is error
        assert caught.value.code == code
        assert caught.value.response.headers["x-should-retry"] == "false"
        assert urlsplit(provider.url).netloc not in caught.value.response.text
        assert item.sums.requests == 1  # the client has not tried again


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        (b'{"messages": [}', "the request body is no JSON: Expecting value: line 1 column 15 (char 14)"),
        (b"[]", "the request body is no JSON object"),
        (b'"\xff"', "the request body is not UTF-8"),
        (b'{"seed": NaN}', "the request body is no JSON: NaN is no number that it knows"),
        (b'{"seed": -1e999}', "the request body is no JSON: -1e999 is no number that it knows"),
        (b'{"a":' * 100_000, "the request body is nested too deeply"),
        (
            b'{"messages": [{"role": "user", "content": ' + b"[" * 2_000 + b"]" * 2_000 + b"}]}",
            "the request body is nested too deeply",
        ),
        (b"[" + b"[]," * 2_000_001, "the request body has more than 4,000,000 parts"),
    ],
    ids=["broken", "list", "latin", "nan", "inf", "deep", "deep messages", "parts"],
)
async def test_what_is_no_request_is_refused_with_a_sentence(
    provider: Provider, sent: bytes, sentence: str
) -> None:
    async with open_relay(provider.url) as setup:
        item, address = await setup.item()
        answered = await setup.send(address, data=io.BytesIO(sent))
        assert (answered.status, error_of(answered)["message"]) == (400, sentence)
        assert (item.sums.requests, [str(fault) for fault in item.sums.open_faults]) == (1, [sentence])
    assert provider.count == 0


async def test_an_item_holds_only_so_much_at_once(provider: Provider) -> None:
    provider.answers(times=1, hang=True)

    async with open_relay(provider.url, bounds=RelayBounds(item_bytes=2 * 2**20)) as setup:
        _, address = await setup.item(grace_s=0.0)
        _, other = await setup.item()
        large = json.dumps(body("x" * 2**20)).encode()
        holding = asyncio.create_task(setup.send(address, data=io.BytesIO(large)))
        await until_async(lambda: provider.in_flight)
        refused = await setup.send(address, data=io.BytesIO(large))
        assert refused.status == 429
        assert error_of(refused)["message"] == "the requests of this item hold more than 2 MiB at once"
        assert (await setup.send(other, data=io.BytesIO(large))).status == 200
        holding.cancel()
        server = setup.relay._server
        await until_async(lambda: server is not None and not server._held)
        await until_async(lambda: not setup.coordinator.gate.in_flight)
        assert (await setup.send(address, data=io.BytesIO(large))).status == 200


async def test_the_size_of_a_request_is_bounded(provider: Provider) -> None:
    async def chunked() -> Any:
        for _ in range(3):
            yield b" " * 2**20

    bounds = RelayBounds(body_bytes=2 * 2**20)
    async with open_relay(provider.url, bounds=bounds) as setup:
        _, address = await setup.item()
        bomb = gzip.compress(b" " * 3 * 2**20)
        for options in (
            {"data": io.BytesIO(b" " * 3 * 2**20)},
            {"data": chunked()},
            {"data": bomb, "headers": {"Content-Encoding": "gzip"}},
        ):
            answered = await setup.send(address, **options)
            assert answered.status == 413
            assert error_of(answered)["message"] == "the request body is larger than 2 MiB"
        answered = await setup.send(address, data=b"no gzip at all", headers={"Content-Encoding": "gzip"})
        assert (answered.status, error_of(answered)["message"]) == (400, "the request body is damaged")
        answered = await setup.send(address, json=body(), headers={"X": "y" * 10_000})
        assert answered.status == 400
        squeezed = gzip.compress(json.dumps(body()).encode())
        answered = await setup.send(address, data=squeezed, headers={"Content-Encoding": "gzip"})
        assert answered.status == 200
        assert (await setup.send(address, json=body(), expect100=True)).status == 200
    assert provider.count == 2


def test_an_error_of_our_own_reaches_item_and_client_and_no_log(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_record: AttemptRecord) -> None:
        raise MemoryError("no room for the record")

    async def check() -> None:
        async with open_relay(provider.url) as setup:
            gate = Limiter(SessionLimits(1), time.monotonic)
            gate.add_models([ModelLimits("test/good", 1)])
            results: list[ResultRecord] = []
            async with chat_client() as client:
                setup.coordinator.gateway = Gateway(
                    LocalBackend(gate, broken, results.append), client, Patience()
                )
                item, address = await setup.item()
                answered = await setup.send(address, json=body())
                assert (answered.status, error_of(answered)["code"]) == (500, "internal_error")
                with pytest.raises(MemoryError, match="no room for the record"):
                    await item.end()

    with caplog.at_level(logging.DEBUG):
        asyncio.run(check())
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_neither_bodies_nor_tokens_nor_keys_are_logged_or_told(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    entry = ModelEntry("test/good", api_key_env=granted("A_KEY"))

    async def check() -> str:
        async with open_relay(provider.url) as setup:
            _, address = await setup.item(entry=entry)
            answers = [
                await setup.send(address, json=body("a-secret-prompt")),
                await setup.send(address, json=body("a-secret-prompt", stream=True)),
                await setup.send(address, "/models", method="GET"),
                await setup.send(address, data=b"a-secret-prompt"),
                await setup.send(address, headers={"X": "a-secret-prompt" * 1000}),
            ]
            logged = "\n".join(f"{record.getMessage()} {record.exc_info}" for record in caplog.records)
            assert {record.levelno for record in caplog.records} <= {logging.DEBUG, logging.INFO}
            path = urlsplit(address.base_url).path.split("/")[1]
            for secret in (address.token, path, "a-secret-prompt"):
                assert secret not in logged
            return "".join(f"{answer.headers} {answer.body!r}" for answer in answers)

    with caplog.at_level(logging.DEBUG):
        told = asyncio.run(check())
    assert "key" not in told.lower().replace("keep-alive", "")
