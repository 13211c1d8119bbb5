"""Which answer is whose fault, and what it means."""

from __future__ import annotations

import json
from email.utils import formatdate
from typing import Any

import pytest
from rights import granted

from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.gateway.error_answers import classify
from pytest_helmbench.gateway.faults import Fault, FaultKind
from pytest_helmbench.gateway.permits import failed_case
from pytest_helmbench.gateway.providers.endpoints import Endpoint, resolve_endpoint
from pytest_helmbench.gateway.retries import is_retried
from pytest_helmbench.gateway.stated_pauses import used_up_s

NOW = 1_763_700_000.0
KEY = "sk-hidden-SECRET-0123456789"


def endpoint(model: str = "vendor/m", base_url: str | None = None, key: str = KEY) -> Endpoint:
    found = resolve_endpoint(
        ModelEntry(model),
        default_base_url=granted(base_url),
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
@pytest.mark.parametrize("body", [b"", said("the request took too long"), said("load exceeds the limit")])
def test_what_passes_by_itself_is_tried_again(status: int, body: object) -> None:
    found = fault(status, body)
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
        (400, [said("API key not valid. Please pass one.", status="INVALID_ARGUMENT")], "bad_key"),
        (400, said("x.AuthenticationError: OpenAIException - Incorrect API key provided: x"), "bad_key"),
    ],
)
def test_a_fault_of_key_name_or_account_ends_the_model(status: int, body: object, reason: str) -> None:
    found = fault(status, body)
    assert (found.kind, found.reason) == (FaultKind.DEAD_MODEL, reason)
    assert not is_retried(found.kind)


@pytest.mark.parametrize("status", [300, 308, 400, 403, 405, 413, 422, 451])
def test_other_refusals_are_not_tried_again(status: int) -> None:
    found = fault(status)
    assert found.kind is FaultKind.REJECTED
    assert not is_retried(found.kind)
    assert found.retry_after_s is None


def test_a_rejected_schema_is_named_with_what_to_do() -> None:
    text = "response_format is not supported"
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
        (401, endpoint("a/b", "https://h/v1"), {}, "name its variable with --helmbench-api-key-env"),
        (404, ROUTER, {}, "name 'vendor/m' and the address https://openrouter.ai/api/v1"),
        (404, endpoint("ollama/llama3"), {}, "ollama pull llama3"),
        (413, ROUTER, {}, "shorten the prompt, or choose a model with a longer context"),
        (308, ROUTER, {"location": "https://x/v1"}, "has moved to https://x/v1: give the new one"),
    ],
)
def test_a_hint_says_what_to_do(status: int, at: Endpoint | None, headers: dict[str, str], hint: str) -> None:
    assert hint in fault(status, b"", headers, at=at).hint


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
        (said("error", metadata={"raw": json.dumps(said("busy"))}), "error: busy"),
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
        ({"retry-after": f"{NOW + 30:.0f}"}, 30.0),
        ({"retry-after": "1m 5s"}, 65.0),
        ({"retry-after": "nan"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "20ms"}, None),
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


_PAUSES: list[tuple[Any, float | None]] = [
    (said("Slow down. Please try again in 7.66s."), 7.66),
    (said("Rate limit reached for m: Limit 3 / min. Please try again in 2m59.56s."), 179.56),
    (said("Please retry after 12 seconds."), 12.0),
    (said("Too fast. Wait 1 minute and 30 seconds before the next request."), 90.0),
    (said("Please retry in 480 ms"), 0.48),
    (said("Try again in an hour."), 3600.0),
    (said("resets in 1.5 hrs"), 5400.0),
    (b"<p>Busy. Try again in 40 secs.</p>", 40.0),
    ([said("quota", details=[{"@type": "x"}, {"@type": "RetryInfo", "retryDelay": "17.5s"}])], 17.5),
    (said("quota", details=[{"retryDelay": {"seconds": "3", "nanos": 250_000_000}}]), 3.25),
    (said("busy", retry_after=9), 9.0),
    (said("busy", retry_after_ms=1500), 1.5),
    ({"detail": "busy", "retryAfter": "11 seconds"}, 11.0),
    ({"error": "loading", "estimated_time": 20.5}, 20.5),
    (said("busy", reset_in=NOW + 30), 30.0),
    (said("busy", resets_at=NOW + 40, resets_in_seconds=40), 40.0),
    (said("busy", quotaResetDelay="1m0.5s", wait_time=0), 60.5),
    (said("busy", retry_after=formatdate(NOW + 50, usegmt=True)), 50.0),
    (said("busy", metadata={"headers": {"Retry-After": "21"}}), 21.0),
    (said("busy", metadata={"raw": json.dumps(said("Please try again in 6s"))}), 6.0),
    (said("Retry later, in a few seconds"), None),
    (said("You have 20 seconds of audio; retry"), None),
    (said("busy", retry_after="soon"), None),
    (said("busy", retry_after=True), None),
]
"""Bodies, and the pause that each names; None for one that names none."""


@pytest.mark.parametrize(("body", "seconds"), _PAUSES)
def test_a_pause_in_a_body_is_waited_for(body: object, seconds: float | None) -> None:
    for status in (429, 503):
        assert fault(status, body).retry_after_s == pytest.approx(seconds)
    assert fault(429, body, {"retry-after": "2"}).retry_after_s == 2.0
    assert fault(429, body, {"retry-after": "0"}).retry_after_s == pytest.approx(seconds)
    assert fault(400, body).retry_after_s is None


_TOO_LONG, _GRAMMAR, _OUTPUT = "prompt_too_large", "schema_rejected", "broken_output"
_SINGLE = [
    (400, said("the request exceeds the available context size, try increasing it"), _TOO_LONG),
    (500, said("input exceeds the context window of the slot"), _TOO_LONG),
    (400, said("prompt is too long: 212345 tokens > 200000 maximum"), _TOO_LONG),
    (400, said("The input token count exceeds the maximum number of tokens allowed"), _TOO_LONG),
    (422, said("Please reduce the length of the messages or completion."), _TOO_LONG),
    (400, said("bad", code="context_length_exceeded"), _TOO_LONG),
    (422, said("`inputs` must have less than 1024 tokens. Given: 2000"), _TOO_LONG),
    (500, said("input is too large to process"), _TOO_LONG),
    (429, said("Request too large for m on TPM: limit 6000", code="rate_limit_exceeded"), _TOO_LONG),
    (500, said("failed to parse grammar"), _GRAMMAR),
    (400, said("Grammar error: unsupported type"), _GRAMMAR),
    (400, said("Invalid grammar specification", type="BadRequestError"), _GRAMMAR),
    (400, said("JSON schema conversion failed: unrecognized schema"), _GRAMMAR),
    (400, said("The model failed to generate valid JSON"), _OUTPUT),
    (500, said("error parsing tool call: raw='{'"), _OUTPUT),
    (502, said("Model generated invalid JSON"), _OUTPUT),
    (400, {"contentFilter": [{"level": 2}], "error": {"code": "1301", "message": "no"}}, "moderation"),
    (400, said("Content Exists Risk", type="invalid_request_error"), "moderation"),
    (400, said("no", code="SensitiveContentDetected.SevereViolation"), "moderation"),
    (403, said("Your input was flagged", metadata={"reasons": ["sexual"]}), "moderation"),
    (400, said("no", code="x", innererror={"code": "ResponsibleAIPolicyViolation"}), "moderation"),
    (400, said("x", metadata={"raw": json.dumps(said("no", code="content_filter"))}), "moderation"),
    (422, said("Input flagged by content policy"), "moderation"),
]
"""Status, body and reason of faults that say nothing of the model."""


@pytest.mark.parametrize(("status", "body", "reason"), _SINGLE)
def test_a_fault_of_a_single_request_is_not_tried_again_and_counts_for_no_streak(
    status: int, body: object, reason: str
) -> None:
    found = fault(status, body)
    assert (found.reason, is_retried(found.kind)) == (reason, False)
    assert failed_case("c", found).fault is None
    assert found.message.startswith("the provider's moderation refused") is (reason == "moderation")
    if reason == _TOO_LONG:
        assert found.hint == "shorten the prompt, or choose a model with a longer context"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, said("invalid model: check the grammar of its name")),
        (400, said("max_tokens is too large: 99999", param="max_tokens")),
        (404, said("no such deployment")),
        (400, said("no word of any table", code="never_heard_of")),
    ],
)
def test_a_fault_that_no_table_knows_counts(status: int, body: object) -> None:
    assert failed_case("c", fault(status, body)).fault is not None
