"""Exact bodies, and what answers say."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from rights import granted

from pytest_helmbench.core.case import Message
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.model import ModelEntry, Sampling
from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.gateway.faults import Fault, FaultKind
from pytest_helmbench.gateway.http_answers import RawAnswer
from pytest_helmbench.gateway.providers.endpoints import Endpoint, resolve_endpoint
from pytest_helmbench.gateway.replies import encode, failed_generation, parse_reply
from pytest_helmbench.gateway.requests import request_body, request_hash, with_estimates
from pytest_helmbench.gateway.retries import is_retried

FORMAT: JsonObject = {
    "type": "json_schema",
    "json_schema": {"name": "S1", "strict": True, "schema": {"type": "object"}},
}
HELLO = (Message("system", "Be brief."), Message("user", "Grüße"))
WIRE_HELLO = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße"}]


def endpoint(model: str, base_url: str | None = None, **environ: str) -> Endpoint:
    found = resolve_endpoint(
        ModelEntry(model), default_base_url=granted(base_url), default_key_env=None, environ=environ
    )
    assert isinstance(found, Endpoint)
    return found


ROUTER = endpoint("vendor/m", OPENROUTER_API_KEY="k")
OTHER = endpoint("test/good", "http://127.0.0.1:9/v1")


def reply(**changes: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}
    return {"model": "vendor/m-1", "choices": [choice], **changes}


def parsed(document: object) -> Reply:
    found = parse_reply(200, json.dumps(document).encode())
    assert isinstance(found, Reply)
    return found


def fault(document: object) -> Fault:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    found = parse_reply(200, body)
    assert isinstance(found, Fault)
    return found


def choice(**changes: Any) -> dict[str, Any]:
    return reply(choices=[{**reply()["choices"][0], **changes}])


def test_only_what_is_set_is_sent() -> None:
    assert request_body(OTHER, Sampling(), HELLO, None, repetition=1) == {
        "model": "test/good",
        "messages": WIRE_HELLO,
    }


def test_every_sampling_option_has_its_key_and_the_seed_counts_repetitions() -> None:
    sampling = Sampling(
        temperature=0.0,
        top_p=0.9,
        top_k=40,
        min_p=0.1,
        repetition_penalty=1.1,
        seed=7,
        max_tokens=100,
        reasoning_effort="low",
    )
    body = request_body(OTHER, sampling, HELLO, None, repetition=3)
    assert body == {
        "model": "test/good",
        "messages": WIRE_HELLO,
        "temperature": 0.0,
        "top_p": 0.9,
        "top_k": 40,
        "min_p": 0.1,
        "repetition_penalty": 1.1,
        "seed": 9,
        "max_tokens": 100,
        "reasoning_effort": "low",
    }


def test_extra_body_goes_over_everything_but_keeps_the_routers_promise() -> None:
    sampling = Sampling(
        temperature=0.5, extra_body={"temperature": 1, "logit_bias": {"1": 2}, "provider": {"order": ["a"]}}
    )
    body = request_body(ROUTER, sampling, HELLO, FORMAT, repetition=1)
    assert body["temperature"] == 1
    assert body["logit_bias"] == {"1": 2}
    assert body["provider"] == {"require_parameters": True, "order": ["a"]}


def test_bodies_are_compact_utf_8_and_survive_lone_surrogates() -> None:
    assert encode({"a": "ü", "b": [1, None]}) == '{"a":"ü","b":[1,null]}'.encode()
    assert encode({"a": "ü\ud83d"}) == b'{"a":"\\u00fc\\ud83d"}'
    assert request_hash(b"{}") == hashlib.sha256(b"{}").hexdigest()


def test_a_reply_is_read_with_its_usage() -> None:
    usage = {
        "prompt_tokens": 12,
        "completion_tokens": 4.0,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2},
        "cost": 0.001,
    }
    found = parsed(reply(usage=usage))
    assert found == Reply("hi", None, "stop", Usage(12, 4, 3, 2, 0.001), 0.0, "vendor/m-1", "")


_USAGES: list[tuple[dict[str, Any], Usage]] = [
    ({"usage": {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}}, Usage(9, 4)),
    (
        {
            "usage": {
                "input_tokens": 9,
                "output_tokens": 4,
                "input_tokens_details": {"cached_tokens": 3},
                "output_tokens_details": {"reasoning_tokens": 2},
            }
        },
        Usage(9, 4, 3, 2),
    ),
    (
        {
            "usage": {
                "input_tokens": 9,
                "output_tokens": 4,
                "cache_read_input_tokens": 30,
                "cache_creation_input_tokens": 5,
            }
        },
        Usage(44, 4, 30, written_tokens=5),
    ),
    (
        {"usage": {"prompt_tokens": 44, "completion_tokens": 4, "cache_read_input_tokens": 30}},
        Usage(44, 4, 30),
    ),
    (
        {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 20}},
        Usage(9, 11),
    ),
    (
        {"usage": {"inputTokens": 9, "outputTokens": 4, "cacheWriteInputTokens": 2}},
        Usage(11, 4, written_tokens=2),
    ),
    ({"usage": {"prompt_tokens": 9, "completion_tokens": 4, "prompt_cache_hit_tokens": 6}}, Usage(9, 4, 6)),
    ({"usage": {"prompt_tokens": 9, "completion_tokens": 4, "input_tokens": 0}}, Usage(9, 4)),
    (
        {"usage": {"prompt_tokens": 0, "completion_tokens": 0, "input_tokens": 9, "output_tokens": 4}},
        Usage(9, 4),
    ),
    ({"usage": {"tokens": {"input_tokens": 9, "output_tokens": 4}}}, Usage(9, 4)),
    ({"usage": {"prompt_tokens": 9, "total_tokens": 13}}, Usage(9, 4)),
    ({"usage": {}, "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4}}, Usage(9, 4)),
    ({"x_groq": {"usage": {"prompt_tokens": 9, "completion_tokens": 4}}}, Usage(9, 4)),
    ({"prompt_eval_count": 9, "eval_count": 4}, Usage(9, 4)),
    (
        {"usage": {"prompt_tokens": 9, "completion_tokens": 4, "cost": {"total_cost": 0.5}}},
        Usage(9, 4, cost_usd=0.5),
    ),
    (
        {"usage": {"prompt_tokens": 9, "completion_tokens": 4, "cost_usd_total": 0.5}},
        Usage(9, 4, cost_usd=0.5),
    ),
    ({"usage": {"units_in": 9, "units_out": 4}}, Usage()),
    (
        {"usage": {"prompt_tokens": 9, "completion_tokens": 4, "reasoning_tokens": 90}},
        Usage(9, 94, reasoning_tokens=90, upper_bound=True),
    ),
    (
        {"usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 103, "reasoning_tokens": 90}},
        Usage(9, 94, reasoning_tokens=90),
    ),
    (
        {"usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13, "reasoning_tokens": 90}},
        Usage(9, 94, reasoning_tokens=90, upper_bound=True),
    ),
    (
        {
            "usage": {
                "input_tokens": 9,
                "output_tokens": 4,
                "output_tokens_details": {"reasoning_tokens": 90},
            }
        },
        Usage(9, 94, reasoning_tokens=90, upper_bound=True),
    ),
    (
        {"usage": {"prompt_tokens": 44, "completion_tokens": 4, "cache_creation_input_tokens": 30}},
        Usage(74, 4, written_tokens=30, upper_bound=True),
    ),
    (
        {
            "usage": {
                "prompt_tokens": 44,
                "completion_tokens": 4,
                "total_tokens": 48,
                "cache_creation_input_tokens": 30,
            }
        },
        Usage(44, 4, written_tokens=30),
    ),
    (
        {"usage": {"prompt_tokens": 4, "completion_tokens": 4, "cache_read_input_tokens": 30}},
        Usage(34, 4, 30, upper_bound=True),
    ),
    (
        {"usage": {"prompt_tokens": 9, "completion_tokens": 4, "reasoning_tokens": 90, "cost": 0.5}},
        Usage(9, 4, reasoning_tokens=90, cost_usd=0.5),
    ),
]
"""Answers, and what each counts; nothing where the names are in no table."""


@pytest.mark.parametrize(("stated", "usage"), _USAGES)
def test_usage_is_read_in_every_shape(stated: dict[str, Any], usage: Usage) -> None:
    assert parsed(reply(**stated)).usage == usage


@pytest.mark.parametrize(
    ("headers", "cost_usd"),
    [
        ({"x-litellm-response-cost": "0.000415"}, 0.000415),
        ({"x-proxy-total-cost-usd": "1e-5"}, 1e-5),
        ({"x-litellm-response-cost": "0.0"}, None),  # a proxy that knows no price says so
        ({"x-litellm-response-cost": "None"}, None),
        ({"x-litellm-key-spend": "9.0"}, None),
    ],
)
def test_a_proxy_names_the_cost_beside_the_reply(headers: dict[str, str], cost_usd: float | None) -> None:
    body = json.dumps(reply(usage={"prompt_tokens": 9, "completion_tokens": 4})).encode()
    found = parse_reply(200, body, headers=headers)
    assert isinstance(found, Reply)
    assert found.usage.cost_usd == cost_usd
    own = parse_reply(200, json.dumps(reply(usage={"cost": 0.25})).encode(), headers=headers)
    assert isinstance(own, Reply)
    assert own.usage.cost_usd == 0.25


_QUOTED = {
    "code": "json_validate_failed",
    "message": "Failed to generate JSON.",
    "failed_generation": '{"a": ',
}


@pytest.mark.parametrize(
    ("error", "text", "reason"),
    [
        (_QUOTED, '{"a": ', "stop"),
        ({**_QUOTED, "failed_generation": ""}, "", "stop"),
        ({"code": "json_validate_failed", "message": "no"}, "", "stop"),
        ({**_QUOTED, "message": "max completion tokens reached before a valid document"}, '{"a": ', "length"),
        (
            {"message": "Provider returned error", "metadata": {"raw": json.dumps({"error": _QUOTED})}},
            '{"a": ',
            "stop",
        ),
        ({"message": f"litellm.BadRequestError: x - {json.dumps({'error': _QUOTED})}"}, '{"a": ', "stop"),
    ],
)
def test_a_refusal_of_what_the_model_has_written_is_its_reply(
    error: dict[str, Any], text: str, reason: str
) -> None:
    answer = failed_generation(RawAnswer(400, {}, json.dumps({"error": error}).encode(), 1.0))
    found = parse_reply(answer.status, answer.body)
    assert isinstance(found, Reply)
    assert (found.text, found.finish_reason) == (text, reason)


def test_other_answers_stay_as_they_are() -> None:
    for document in (reply(note="failed_generation"), {"error": {"message": "no failed_generation"}}):
        answer = RawAnswer(200, {}, json.dumps(document).encode(), 1.0)
        assert failed_generation(answer) is answer


@pytest.mark.parametrize("wrong", ["7", True, -1, 1.5, float("nan"), float("inf"), None])
def test_a_number_of_the_wrong_kind_is_unknown_never_zero(wrong: object) -> None:
    usage = {"prompt_tokens": wrong, "prompt_tokens_details": wrong, "completion_tokens": 1}
    found = parsed(reply(usage=usage)).usage
    assert found == Usage(completion_tokens=1)
    cost = parsed(reply(usage={"cost": wrong})).usage.cost_usd
    assert cost == (1.5 if wrong == 1.5 else None)


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 0, "completion_tokens": 0}, (5, 2, True)),
        ({"prompt_tokens": 3, "completion_tokens": 0}, (3, 2, True)),
        ({"prompt_tokens": 3, "completion_tokens": 4}, (3, 4, False)),
        ({"prompt_tokens": 10**15, "completion_tokens": 4}, (5, 4, True)),
        ({"prompt_tokens": 0, "completion_tokens": 0, "cost": 0.25}, (0, 0, False)),
    ],
)
def test_tokens_that_cannot_be_are_counted_here(
    usage: dict[str, float], counted: tuple[int, int, bool]
) -> None:
    found = parsed(reply(usage=usage))
    told = with_estimates(found.usage, b"x" * 20, {"role": "assistant", "content": "12345678"})
    assert (told.prompt_tokens, told.completion_tokens, told.estimated) == counted


@pytest.mark.parametrize(
    ("message", "text", "refusal"),
    [
        ({"content": None}, "", None),
        ({"content": "a\ud83d"}, "a\ud83d", None),
        ({"content": None, "refusal": "No."}, "", "No."),
        ({"content": [{"type": "text", "text": "a"}, "b", {"type": "image"}]}, "ab", None),
        ({"content": [{"type": "refusal", "refusal": "No."}]}, "", "No."),
    ],
)
def test_content_may_be_nothing_a_string_or_parts(
    message: dict[str, Any], text: str, refusal: str | None
) -> None:
    found = parsed(choice(message=message))
    assert (found.text, found.refusal) == (text, refusal)


def test_a_broken_byte_spoils_only_its_own_character() -> None:
    body = json.dumps(reply()).encode().replace(b"hi", b"h\xff")
    found = parse_reply(200, body)
    assert isinstance(found, Reply)
    assert found.text == "h�"


@pytest.mark.parametrize(
    ("document", "reason", "message"),
    [
        (
            b"<html>gateway \x1b[31m</html>",
            "not_json",
            "the provider answered 200 with something that is not a JSON object: '<html>gateway \\\\x1b[31m</html>'",
        ),
        (
            b"[" * 100_000,
            "not_json",
            "the provider answered 200 with something that is not a JSON object: '[",
        ),
        ({}, "no_choices", "the provider answered 200 without choices"),
        (
            choice(finish_reason=None, message={"content": ""}),
            "no_finish_reason",
            "the provider answered 200 without text and finish reason",
        ),
        (choice(message=None), "no_message", "the provider answered 200 without a message that can be read"),
    ],
)
def test_an_answer_that_is_no_reply_is_tried_again(document: object, reason: str, message: str) -> None:
    found = fault(document)
    assert (found.kind, found.reason, found.status) == (FaultKind.MALFORMED, reason, 200)
    assert found.message.startswith(message)
    assert is_retried(found.kind)


def test_a_reply_that_moderation_cut_is_blocked_and_still_paid() -> None:
    document = {**choice(finish_reason="content_filter"), "usage": {"cost": 0.5, "prompt_tokens": 3}}
    found = fault(document)
    assert found.kind is FaultKind.BLOCKED
    assert found.message == "the provider's moderation cut the reply (finish reason content_filter)"
    assert found.usage == Usage(prompt_tokens=3, cost_usd=0.5)
    assert found.finish_reason == "content_filter"


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            {"message": "Slow down", "code": 429},
            FaultKind.RATE_LIMITED,
            "the provider answered 200 with an error 429 (Slow down)",
        ),
        (
            {"message": "No", "code": "401"},
            FaultKind.DEAD_MODEL,
            "the provider answered 200 with an error 401 (No)",
        ),
        (
            {"message": "Bad", "type": "invalid_request_error"},
            FaultKind.REJECTED,
            "the provider answered 200 with an error 400 (Bad)",
        ),
        ({"code": 502}, FaultKind.TRANSIENT, "the provider answered 200 with an error 502 (bad gateway)"),
    ],
)
def test_an_error_inside_a_200_takes_the_class_of_its_code(
    error: object, kind: FaultKind, message: str
) -> None:
    for document in ({"error": error}, {"choices": [{"error": error, "finish_reason": "error"}]}):
        found = fault(document)
        assert (found.kind, found.message, found.status) == (kind, message, 200)
