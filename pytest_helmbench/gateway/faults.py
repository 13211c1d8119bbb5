"""What went wrong with a call, and what that means: retry, this case only, or no further call of the model."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.gateway.providers.endpoints import Endpoint

__all__ = ["Fault", "FaultKind", "RateHeaders", "classify", "error_fault", "excerpt", "rate_headers"]

_SHOWN = 200
_READ = 20_000  # characters of an error body that are looked at
_HIDDEN = "[key]"
_LIKE_A_KEY = re.compile(r"\b(?:sk|pk|gsk|xai|key)[-_][\w*.…-]{8,}|\bBearer\s+\S+|\bAIza[\w-]{20,}")


class FaultKind(StrEnum):
    """Class of a fault, by what it means for the call, the case and the model."""

    RATE_LIMITED = "rate_limited"
    TRANSIENT = "transient"
    TIMEOUT = "timeout"
    DEAD_MODEL = "dead_model"
    BLOCKED = "blocked"
    REJECTED = "rejected"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"

    @property
    def retries(self) -> bool:
        """Whether another attempt may succeed."""
        return self in _RETRIED


_RETRIED = frozenset(
    {FaultKind.RATE_LIMITED, FaultKind.TRANSIENT, FaultKind.TIMEOUT, FaultKind.MALFORMED},
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an attempt brought no reply.

    Args:
        kind: What it means.
        status: HTTP status; None when no answer came.
        reason: One stable word for tables: `overloaded`, `bad_key`, `moderation`, …
        message: One sentence for people that says whose fault it was; foreign text cut and scrubbed.
        retry_after_s: How long the provider asked to wait; None when it did not say.
        hint: What to do; empty when there is nothing to add.
        parameter: Request parameter that the provider named as the culprit.
        usage: What the provider counted nevertheless (a reply that its moderation cut is paid).
        finish_reason: Of such a reply.
    """

    kind: FaultKind
    status: int | None
    reason: str
    message: str
    retry_after_s: float | None = None
    hint: str = ""
    parameter: str | None = None
    usage: Usage = Usage()
    finish_reason: str | None = None

    def text(self) -> str:
        """Return the message, and the hint on a line of its own."""
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


@dataclass(frozen=True, slots=True)
class RateHeaders:
    """What a provider says about its limits; None where it does not.

    Args:
        limit_requests: Requests per window.
        remaining_requests: Left in this window.
        reset_requests_s: Seconds until the window of requests starts anew.
        limit_tokens: Tokens per window.
        remaining_tokens: Left in this window.
        reset_tokens_s: Seconds until the window of tokens starts anew.
    """

    limit_requests: float | None = None
    remaining_requests: float | None = None
    reset_requests_s: float | None = None
    limit_tokens: float | None = None
    remaining_tokens: float | None = None
    reset_tokens_s: float | None = None


def classify(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    endpoint: Endpoint | None,
    *,
    sent_schema: bool,
    clock: Callable[[], float] = time.time,
) -> Fault:
    """Return the fault behind an answer that is no reply.

    Args:
        status: HTTP status.
        headers: Names in lower case.
        body: As received.
        endpoint: Who was asked; None when unknown (a stored answer).
        sent_schema: The request had a response schema.
        clock: Seconds since 1970, for dates in headers.
    """
    said = _read_body(body)
    return _fault_of(_Answer(status, status, headers), said, endpoint, sent_schema, clock)


def error_fault(
    status: int,
    headers: Mapping[str, str],
    error: object,
    endpoint: Endpoint | None,
    *,
    sent_schema: bool,
    clock: Callable[[], float] = time.time,
) -> Fault:
    """Return the fault that an `error` inside a successful answer describes: the class of its code."""
    said = _read_document({"error": error})
    code = said.status if said.status is not None else _status_of_words(said.words)
    return _fault_of(_Answer(status, code, headers), said, endpoint, sent_schema, clock)


def excerpt(text: str, endpoint: Endpoint | None = None) -> str:
    """Return foreign text for a message: one line, no key, no control characters, at most 200 characters."""
    short = text[:_READ]
    if endpoint is not None and endpoint.key:
        short = short.replace(endpoint.key, _HIDDEN)
    # Before the cut: half a key must not survive it.
    line = scrub(" ".join(_LIKE_A_KEY.sub(_HIDDEN, short).split()))
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


# --- the body of an error ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Said:
    """What an error body says, whatever its form."""

    message: str = ""
    words: frozenset[str] = frozenset()
    status: int | None = None
    parameter: str | None = None
    moderated: bool = False


def _read_body(body: bytes) -> _Said:
    text = body[: 4 * _READ].decode("utf-8", "replace")
    try:
        document = json.loads(body) if len(body) <= 4 * _READ else None
    except (ValueError, RecursionError):
        document = None
    if document is None:
        return _Said(re.sub(r"<[^<>]*>", " ", text[:_READ]))
    return _read_document(document)


def _read_document(document: object) -> _Said:
    """Read the error forms of OpenAI, OpenRouter, Google (a list), Azure, FastAPI and Ollama."""
    if isinstance(document, list):
        document = document[0] if document else None
    if not isinstance(document, dict):
        return _Said(document if isinstance(document, str) else "")
    error = document.get("error")
    if not isinstance(error, dict):
        error = {**document, "message": error} if isinstance(error, str) else document
    metadata = _mapping(error.get("metadata"))
    upstream = _read_upstream(metadata.get("raw"))
    message = _first_text(error.get("message"), error.get("detail"), error.get("msg"))
    if upstream.message and upstream.message not in message:
        message = f"{message}: {upstream.message}" if message else upstream.message
    parameter = error.get("param")
    return _Said(
        message=message,
        words=frozenset(_words(error)) | upstream.words,
        status=_as_status(error.get("code")) or _as_status(error.get("status")),
        parameter=parameter if isinstance(parameter, str) else upstream.parameter,
        moderated="flagged_input" in metadata or upstream.moderated,
    )


def _read_upstream(raw: object) -> _Said:
    """Read what a router passes on of the server behind it."""
    if not isinstance(raw, str) or not raw:
        return _Said()
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return _Said(raw)
    said = _read_document(document)
    return said if said.message or said.words else _Said(raw)


def _words(error: Mapping[str, Any]) -> Iterator[str]:
    details = error.get("details")
    inner = [item for item in details if isinstance(item, dict)] if isinstance(details, list) else []
    for source in (error, _mapping(error.get("innererror")), *inner):
        for key in ("code", "type", "status", "reason"):
            value = source.get(key)
            if isinstance(value, str):
                yield value.lower()


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _first_text(*values: object) -> str:
    for value in values:
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list | dict) and value:
            return json.dumps(value)[:_READ]
    return ""


def _as_status(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[3-5]\d\d", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 300 <= value <= 599:
        return value
    return None


# --- the class of a fault ---------------------------------------------------------------------------------

_NO_CREDIT = frozenset(
    {
        "insufficient_quota",
        "insufficient_credits",
        "insufficient_balance",
        "billing_not_active",
        "billing_hard_limit_reached",
        "billing_error",
        "payment_required",
        "exceeded_current_quota_error",
    }
)
_BAD_KEY = frozenset(
    {
        "invalid_api_key",
        "incorrect_api_key",
        "api_key_invalid",
        "invalid_authentication_error",
        "authentication_error",
        "account_deactivated",
        "account_disabled",
        "permission_error",
        "unauthenticated",
    }
)
_UNKNOWN_MODEL = frozenset(
    {
        "model_not_found",
        "model_not_available",
        "model_decommissioned",
        "unknown_model",
        "invalid_model",
        "deploymentnotfound",
    }
)
_MODERATION = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "responsibleaipolicyviolation",
        "moderation_blocked",
        "moderation",
        "data_inspection_failed",
        "invalid_prompt",
        "content_filtered",
    }
)
_CODE_OF_WORD: Mapping[str, int] = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "rate_limited": 429,
    "too_many_requests": 429,
    "resource_exhausted": 429,
    "invalid_request_error": 400,
    "invalid_argument": 400,
    "bad_request": 400,
    "not_found_error": 404,
    "not_found": 404,
    "permission_denied": 403,
}
_NO_CREDIT_TEXT = re.compile(
    r"credit balance is too low|exceeded your current quota, please check your plan", re.IGNORECASE
)
_BAD_KEY_TEXT = re.compile(
    r"\bapi[ _-]?key (?:is )?(?:not valid|invalid|expired|not found)|invalid api[ _-]?key", re.IGNORECASE
)
_UNKNOWN_MODEL_TEXT = re.compile(r"is not a valid model id", re.IGNORECASE)
_MODERATION_TEXT = re.compile(
    r"\bflagged\b|\bmoderation\b|content[ _-](?:policy|filter|management)|usage polic|safety (?:system|filter|polic)",
    re.IGNORECASE,
)
_ABOUT_THE_KEY = re.compile(
    r"\bkeys?\b|credential|authori[sz]|authenticat|permission|access|not allowed|not available in|country|region"
    r"|quota|billing|account|suspended|disabled|limit",
    re.IGNORECASE,
)
_NO_SUCH_PARAMETERS = re.compile(r"no endpoints found that (?:can handle|support)", re.IGNORECASE)
_ABOUT_THE_SCHEMA = re.compile(
    r"response_?format|json_?schema|schema|structured[ _]output|guided_json", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int  # of HTTP
    code: int | None  # what it stands for: the code of an error body inside a 200
    headers: Mapping[str, str]


def _fault_of(
    answer: _Answer,
    said: _Said,
    endpoint: Endpoint | None,
    sent_schema: bool,
    clock: Callable[[], float],
) -> Fault:
    kind, reason = _class_of(answer.code, said)
    if kind is FaultKind.REJECTED and sent_schema and _ABOUT_THE_SCHEMA.search(said.message):
        reason = "schema_rejected"
    retry_after_s = _asked_pause_s(answer.headers, clock()) if kind.retries else None
    return Fault(
        kind=kind,
        status=answer.status,
        reason=reason,
        message=_sentence(answer, said, kind, endpoint),
        retry_after_s=retry_after_s,
        hint=_hint(reason, answer, endpoint),
        parameter=excerpt(said.parameter, endpoint) if said.parameter else None,
    )


def _class_of(code: int | None, said: _Said) -> tuple[FaultKind, str]:
    """Return the class and its word, by body first and then by status."""
    text = said.message[:_READ]
    asked_wrong = code is not None and 400 <= code < 500 and code != 429
    if said.words & _NO_CREDIT or code == 402 or (asked_wrong and _NO_CREDIT_TEXT.search(text)):
        return FaultKind.DEAD_MODEL, "no_credit"
    if said.words & _BAD_KEY or code == 401 or (asked_wrong and _BAD_KEY_TEXT.search(text)):
        return FaultKind.DEAD_MODEL, "bad_key"
    if said.moderated or said.words & _MODERATION or (code in (400, 403) and _MODERATION_TEXT.search(text)):
        return FaultKind.BLOCKED, "moderation"
    if said.words & _UNKNOWN_MODEL or (asked_wrong and _UNKNOWN_MODEL_TEXT.search(text)):
        return FaultKind.DEAD_MODEL, "unknown_model"
    if code is None:
        return FaultKind.TRANSIENT, "provider_error"
    return _class_of_status(code, text)


def _class_of_status(code: int, text: str) -> tuple[FaultKind, str]:
    match code:
        case 403:
            about_key = _ABOUT_THE_KEY.search(text) is not None
            return (FaultKind.DEAD_MODEL, "no_access") if about_key else (FaultKind.REJECTED, "forbidden")
        case 404 if _NO_SUCH_PARAMETERS.search(text):
            return FaultKind.REJECTED, "unsupported_parameters"
        case 404:
            return FaultKind.DEAD_MODEL, "unknown_model"
        case 429:
            return FaultKind.RATE_LIMITED, "rate_limited"
        case 503 | 529:
            return FaultKind.TRANSIENT, "overloaded"
        case 408 | 409 | 425:
            return FaultKind.TRANSIENT, "provider_error"
        case 413:
            return FaultKind.REJECTED, "prompt_too_large"
        case _ if code >= 500:
            return FaultKind.TRANSIENT, "provider_error"
        case _ if code < 400:
            return FaultKind.REJECTED, "redirected"
        case _:
            return FaultKind.REJECTED, "rejected"


def _status_of_words(words: frozenset[str]) -> int | None:
    return next((code for word, code in _CODE_OF_WORD.items() if word in words), None)


def _sentence(answer: _Answer, said: _Said, kind: FaultKind, endpoint: Endpoint | None) -> str:
    what = str(answer.status)
    if answer.status != answer.code:
        what += f" with an error{'' if answer.code is None else f' {answer.code}'}"
    detail = excerpt(said.message, endpoint) or _phrase(answer.code)
    detail = f" ({detail})" if detail else ""
    if kind is FaultKind.BLOCKED:
        return f"the provider's moderation refused the prompt: it answered {what}{detail}"
    return f"the provider answered {what}{detail}"


def _phrase(code: int | None) -> str:
    try:
        return HTTPStatus(code).phrase.lower() if code is not None else ""
    except ValueError:
        return ""


def _hint(reason: str, answer: _Answer, endpoint: Endpoint | None) -> str:
    match reason:
        case "bad_key" | "no_access" if endpoint is not None and endpoint.key_env is None:
            return "no key was sent: name its variable with --helmbench-api-key-env"
        case "bad_key" | "no_access":
            return f"check the key in {endpoint.key_env}" if endpoint else "check the key"
        case "no_credit":
            return "add credit with the provider, or choose another model"
        case "unknown_model" if endpoint is not None and endpoint.provider == "ollama":
            return f"ollama pull {endpoint.wire_model}"
        case "unknown_model" if endpoint is not None:
            return f"check the model's name {endpoint.wire_model!r} and the address {endpoint.base_url}"
        case "schema_rejected":
            return (
                "it rejects the response schema: choose a model with structured outputs, or change the "
                "scenario's schema file (strict mode wants every property in `required` and "
                "`additionalProperties: false`)"
            )
        case "unsupported_parameters":
            return "no server of this model takes the schema or sampling options: leave them out, or change the model"
        case "redirected":
            target = excerpt(answer.headers.get("location", ""), endpoint)
            return f"the base URL has moved{f' to {target}' if target else ''}: give the new one"
        case "prompt_too_large":
            return "shorten the prompt, or choose a model with a longer context"
        case _:
            return ""


# --- waiting ----------------------------------------------------------------------------------------------

_DURATION = re.compile(
    r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?"
)
_UNITS_S = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)


def rate_headers(headers: Mapping[str, str], now: float | None = None) -> RateHeaders:
    """Read `x-ratelimit-*`.

    Args:
        headers: Names in lower case.
        now: Seconds since 1970, for providers that send a point in time; None for the system's clock.
    """
    at = time.time() if now is None else now

    def number(*names: str) -> float | None:
        return next((value for name in names if (value := _number(headers.get(name))) is not None), None)

    def reset(*names: str) -> float | None:
        return next((value for name in names if (value := _reset_s(headers.get(name), at)) is not None), None)

    return RateHeaders(
        limit_requests=number("x-ratelimit-limit-requests", "x-ratelimit-limit"),
        remaining_requests=number("x-ratelimit-remaining-requests", "x-ratelimit-remaining"),
        reset_requests_s=reset("x-ratelimit-reset-requests", "x-ratelimit-reset"),
        limit_tokens=number("x-ratelimit-limit-tokens"),
        remaining_tokens=number("x-ratelimit-remaining-tokens"),
        reset_tokens_s=reset("x-ratelimit-reset-tokens"),
    )


def _asked_pause_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return how long to wait: `retry-after-ms`, `Retry-After`, else the reset of what is used up."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    stated = headers.get("retry-after")
    seconds = _number(stated)
    if seconds is None and stated:
        seconds = _seconds_until(stated, now)
    if seconds is not None:
        return seconds
    rates = rate_headers(headers, now)
    used_up = (
        (rates.remaining_requests, rates.reset_requests_s),
        (rates.remaining_tokens, rates.reset_tokens_s),
    )
    return max((reset for left, reset in used_up if left == 0 and reset is not None), default=None)


def _seconds_until(date: str, now: float) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    # A date without a zone is UTC: HTTP knows no other.
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, aware.timestamp() - now)


def _reset_s(text: str | None, now: float) -> float | None:
    value = _number(text)
    if value is not None:
        moment = value / 1000 if value > 1e11 else value
        return max(0.0, moment - now) if moment > 1e9 else value
    if not text:
        return None
    match = _DURATION.fullmatch(text.strip())
    if match and any(match.groups()):
        return sum(float(part) * unit for part, unit in zip(match.groups(), _UNITS_S, strict=True) if part)
    try:
        moment_at = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    # Without a zone nobody knows which moment is meant.
    return max(0.0, moment_at.timestamp() - now) if moment_at.tzinfo else None


def _number(text: str | None) -> float | None:
    """Return a finite number that is at least 0."""
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
