"""Replies in forms that servers give them unasked: compressed, streamed, without a finish reason."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from typing import Any

import pytest
from gateways import StoppableWatch, call_to, open_gateway
from provider import Provider

from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.gateway.call import CaseClock
from pytest_helmbench.gateway.faults import is_unanswered
from pytest_helmbench.gateway.retries import CallFailedError, RetryPolicy

_REPLY = json.dumps(
    {"model": "m", "choices": [{"finish_reason": "stop", "message": {"content": "Grüße " * 50}}]}
).encode()


def _chunk(delta: dict[str, Any], reason: str | None = None, **more: object) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
    return b"data: " + json.dumps({"model": "m", "choices": choices, **more}).encode() + b"\n\n"


def _ask(provider: Provider, retries: int = 0, **answer: Any) -> Reply:
    provider.answers(**answer)

    async def ask() -> Reply:
        async with open_gateway(retry_policy=RetryPolicy(max_retries=retries)) as coordinator:
            clock = CaseClock(coordinator.gateway.retry_policy)
            return await coordinator.gateway.ask(call_to(provider.url), clock, StoppableWatch())

    return asyncio.run(ask())


def _id(value: object) -> str:
    """Return what a value is called in a test's name: bytes of gzip bear the time at which they were made."""
    return value if isinstance(value, str) else "body"


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("deflate", zlib.compress(_REPLY)),
        ("deflate", _raw_deflate(_REPLY)),
        ("gzip", gzip.compress(_REPLY)),
        ("x-gzip", gzip.compress(_REPLY)),
        ("gzip, deflate", zlib.compress(gzip.compress(_REPLY))),
    ],
    ids=_id,
)
def test_compressed_replies_are_read(provider: Provider, name: str, body: bytes) -> None:
    reply = _ask(provider, body=body, headers={"Content-Encoding": name})
    assert reply.text == "Grüße " * 50


@pytest.mark.parametrize(
    ("name", "body"),
    [("br", b"\x0b" + _REPLY), ("zstd", b"\x0b" + _REPLY), ("gzip", gzip.compress(_REPLY) * 2)],
    ids=_id,
)
def test_a_coding_that_cannot_be_read_is_named_and_paid_once(
    provider: Provider, name: str, body: bytes
) -> None:
    with pytest.raises(CallFailedError) as failed:
        _ask(provider, retries=3, body=body, headers={"Content-Encoding": name})
    assert (failed.value.fault.reason, provider.count) == ("content_encoding", 1)
    assert name in failed.value.fault.message
    assert is_unanswered(failed.value.fault)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("gzip", gzip.compress(_REPLY)[:60]),
        ("deflate", zlib.compress(_REPLY)[:60]),
        ("deflate", _raw_deflate(_REPLY)[:60]),
    ],
    ids=_id,
)
def test_a_compressed_reply_that_is_cut_off_is_asked_for_again(
    provider: Provider, name: str, body: bytes
) -> None:
    provider.answers(times=1, body=body, headers={"Content-Encoding": name})
    reply = _ask(provider, retries=1, body=_REPLY)
    assert (reply.text, provider.count) == ("Grüße " * 50, 2)


def test_an_unasked_stream_is_put_together(provider: Provider) -> None:
    body = (
        b": comment\n\n"
        + _chunk({"role": "assistant", "content": ""})
        + _chunk({"content": "Gr"})
        + _chunk({"content": "üße"})
        + _chunk({}, "stop")
        + b'data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2, "cost": 0.5}}\n\n'
        + b"data: [DONE]\n\n"
    )
    reply = _ask(provider, body=body, headers={"Content-Type": "text/event-stream"})
    assert (reply.text, reply.finish_reason, reply.provider_model) == ("Grüße", "stop", "m")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.cost_usd) == (7, 2, 0.5)


def test_a_stream_that_breaks_off_is_no_reply(provider: Provider) -> None:
    # Some servers count in every event: that says nothing of the end.
    half = _chunk({"content": "half"}, usage={"prompt_tokens": 7, "completion_tokens": 1})
    with pytest.raises(CallFailedError, match="a stream that breaks off"):
        _ask(provider, body=half, headers={"Content-Type": "text/event-stream"})
