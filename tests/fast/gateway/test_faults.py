"""Which answer is whose fault, and what it means."""

from __future__ import annotations

import json
from email.utils import formatdate
from typing import Any

import pytest
from said import said as users

from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.gateway.error_answers import classify
from pytest_helmbench.gateway.faults import Fault, FaultKind, is_retried, used_up_s
from pytest_helmbench.gateway.providers.endpoints import Endpoint, resolve_endpoint

NOW = 1_763_700_000.0
KEY = "sk-hidden-SECRET-0123456789"


def endpoint(model: str = "vendor/m", base_url: str | None = None, key: str = KEY) -> Endpoint:
    found = resolve_endpoint(
        ModelEntry(model),
        default_base_url=users(base_url),
        default_key_env=None,
        environ={"OPENROUTER_API_KEY": key},
    )
    assert isinstance(found, Endpoint)
    return found


ROUTER = endpoint()


def fault(
    status: int,
    body: object = b"",
    headers: dict[str, str] | None = None,
    *,
    at: Endpoint | None = ROUTER,
    sent_schema: bool = False,
) -> Fault:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return classify(status, headers or {}, raw, at, sent_schema=sent_schema, clock=lambda: NOW)


def said(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize("status", [408, 409, 425, 500, 502, 503, 504, 520, 529])
def test_what_passes_by_itself_is_tried_again(status: int) -> None:
    found = fault(status)
    assert (found.kind, found.status) == (FaultKind.TRANSIENT, status)
    assert is_retried(found.kind)


def test_a_message_says_whose_fault_it_was() -> None:
    assert fault(503, said("overloaded")).text() == "the provider answered 503 (overloaded)"
    assert fault(503).text() == "the provider answered 503 (service unavailable)"
    assert fault(520).text() == "the provider answered 520"


def test_a_quota_per_minute_is_waited_for() -> None:
    text = "You exceeded your current quota, please check your plan and billing details."
    assert fault(429, [said(text, code=429, status="RESOURCE_EXHAUSTED")]).kind is FaultKind.RATE_LIMITED


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (401, said("bad key"), "bad_key"),
        (402, b"", "no_credit"),
        (404, said("no such model"), "unknown_model"),
        (403, said("Key limit exceeded (total limit)", code=403), "no_access"),
        (429, said("You exceeded your current quota", code="insufficient_quota"), "no_credit"),
        (400, said("Your credit balance is too low to access the API"), "no_credit"),
        (400, said("gpt is not a valid model ID"), "unknown_model"),
        (
            400,
            [said("API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT")],
            "bad_key",
        ),
        (
            400,
            said("litellm.AuthenticationError: OpenAIException - Incorrect API key provided: x"),
            "bad_key",
        ),
    ],
)
def test_a_fault_of_key_name_or_account_ends_the_model(status: int, body: object, reason: str) -> None:
    found = fault(status, body)
    assert (found.kind, found.reason) == (FaultKind.DEAD_MODEL, reason)
    assert not is_retried(found.kind)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (403, said("x requires moderation. Your input was flagged", metadata={"reasons": ["sexual"]})),
        (400, said("filtered", code="content_filter")),
        (400, said("no", code="x", innererror={"code": "ResponsibleAIPolicyViolation"})),
        (
            400,
            said("Provider returned error", metadata={"raw": json.dumps(said("no", code="content_filter"))}),
        ),
    ],
)
def test_moderation_blocks_that_case_only(status: int, body: object) -> None:
    found = fault(status, body)
    assert (found.kind, found.reason) == (FaultKind.BLOCKED, "moderation")
    assert found.message.startswith(f"the provider's moderation refused the prompt: it answered {status} (")


@pytest.mark.parametrize("status", [300, 308, 400, 403, 405, 413, 422, 451])
def test_other_refusals_are_not_tried_again(status: int) -> None:
    found = fault(status)
    assert found.kind is FaultKind.REJECTED
    assert not is_retried(found.kind)
    assert found.retry_after_s is None


@pytest.mark.parametrize(
    "text",
    [
        "response_format is not supported",
    ],
)
def test_a_rejected_schema_is_named_with_what_to_do(text: str) -> None:
    found = fault(400, said(text), sent_schema=True)
    assert found.reason == "schema_rejected"
    assert found.text() == (
        f"the provider answered 400 ({text})\n"
        "  hint: it rejects the response schema: choose a model with structured outputs, or change the "
        "scenario's schema file (strict mode wants every property in `required` and "
        "`additionalProperties: false`)"
    )
    assert fault(400, said(text), sent_schema=False).reason == "rejected"


def test_the_parameter_at_fault_is_told() -> None:
    found = fault(400, said("Unsupported value", param="temperature", code="unsupported_value"))
    assert (found.kind, found.parameter) == (FaultKind.REJECTED, "temperature")


@pytest.mark.parametrize(
    ("status", "at", "headers", "hint"),
    [
        (401, ROUTER, {}, "check the key in OPENROUTER_API_KEY"),
        (
            401,
            endpoint("a/b", "https://h/v1"),
            {},
            "no key was sent: name its variable with --helmbench-api-key-env",
        ),
        (
            404,
            ROUTER,
            {},
            "check the model's name 'vendor/m' and the address https://openrouter.ai/api/v1",
        ),
        (404, endpoint("ollama/llama3"), {}, "ollama pull llama3"),
        (413, ROUTER, {}, "shorten the prompt, or choose a model with a longer context"),
        (
            308,
            ROUTER,
            {"location": "https://x/v1"},
            "the base URL has moved to https://x/v1: give the new one",
        ),
        (500, ROUTER, {}, ""),
    ],
)
def test_a_hint_says_what_to_do(status: int, at: Endpoint | None, headers: dict[str, str], hint: str) -> None:
    assert fault(status, b"", headers, at=at).hint == hint


def test_a_refused_request_that_quotes_its_prompt_says_nothing_of_the_key() -> None:
    text = "Bad request: 'The server said my API key is invalid. What shall I do with an invalid api key?'"
    assert fault(400, said(text)).kind is FaultKind.REJECTED


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (said("one\n two\x1b[31m"), "one two\\x1b[31m"),
        ({"error": "plain"}, "plain"),
        ({"detail": [{"msg": "field required"}]}, '[{"msg": "field required"}]'),
        (b"<html><title>502 Bad Gateway</title></html>", "502 Bad Gateway"),
        (
            said("Provider returned error", metadata={"raw": json.dumps(said("busy"))}),
            "Provider returned error: busy",
        ),
        (b"[" * 50_000, "[" * 199 + "…"),
        (said("x" * 500), "x" * 199 + "…"),
    ],
)
def test_foreign_text_is_found_in_every_form_scrubbed_and_cut(body: object, shown: str) -> None:
    assert fault(500, body).message == f"the provider answered 500 ({shown})"


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {KEY}.",
        "Incorrect API key provided: sk-hidde*******6789.",
        "x" * 190 + f" {KEY}",
    ],
)
def test_a_key_is_never_repeated(text: str) -> None:
    shown = fault(401, said(text)).message
    assert "hid" not in shown
    assert "6789" not in shown


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": formatdate(NOW + 30, usegmt=True)}, 30.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "nan"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        (
            {
                "x-ratelimit-remaining-requests": "5",
                "x-ratelimit-reset-requests": "6m0s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "20ms",
            },
            0.02,
        ),
    ],
)
def test_how_long_to_wait_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    for status in (429, 503):
        assert fault(status, b"", headers).retry_after_s == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("1h2m3.5s", 3723.5),
        (f"{NOW + 60:.0f}", 60.0),
        ("2025-11-21T04:41:00Z", 60.0),
        ("later", None),
    ],
)
def test_a_reset_is_a_duration_or_a_moment(text: str, seconds: float | None) -> None:
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": text}
    found = used_up_s(headers, NOW)
    assert found == (None if seconds is None else pytest.approx(seconds))
