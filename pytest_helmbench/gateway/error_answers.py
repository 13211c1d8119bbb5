"""Error answers: the class of a fault from the words of any provider, with its sentence and its hint."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus

from pytest_helmbench.core.json_types import JsonObject, decoded_json, json_object, json_objects
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.faults import Fault, FaultKind, excerpt
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.retries import is_retried
from pytest_helmbench.gateway.stated_pauses import asked_pause_s, stated_pause_s, worded_pause_s

LONGEST_READ = 20_000
"""Characters of an error that are looked at."""
_CODES = {
    429: "rate_limit_exceeded rate_limit_error rate_limited too_many_requests resource_exhausted",
    400: "invalid_request_error invalid_argument bad_request",
    404: "not_found_error not_found",
    403: "permission_denied",
}
_CODE_OF_WORD = {word: code for code, words in _CODES.items() for word in words.split()}
_Codes = frozenset[int | None]
_ANY: _Codes = frozenset({None, *range(600)} - {429})
_ASKED_WRONG: _Codes = frozenset({*range(400, 500)} - {429})
_RULES: tuple[tuple[FaultKind, str, str, str, _Codes], ...] = (
    (
        FaultKind.DEAD_MODEL,
        "no_credit",
        "=402 insufficient_quota insufficient_credits insufficient_balance billing_not_active"
        " billing_hard_limit_reached billing_error payment_required exceeded_current_quota_error",
        r"credit balance is too low|exceeded your current quota, please check your plan",
        _ASKED_WRONG,
    ),
    (
        FaultKind.DEAD_MODEL,
        "bad_key",
        "=401 invalid_api_key incorrect_api_key api_key_invalid invalid_authentication_error"
        " authentication_error account_deactivated account_disabled permission_error unauthenticated",
        # At the beginning, behind names of classes alone: what follows may quote the prompt.
        r"\A(?:[\w. ]{0,80}(?:Error|Exception)\s*[:-]+\s*)*(?:(?:the|your) )?"
        r"(?:api[ _-]?key (?:is )?(?:not valid|invalid|expired|not found)|(?:invalid|incorrect) (?:x-)?api[ _-]?key)",
        _ASKED_WRONG,
    ),
    (
        FaultKind.BLOCKED,
        "moderation",
        "content_filter content_policy_violation responsibleaipolicyviolation moderation_blocked"
        " moderation data_inspection_failed invalid_prompt content_filtered",
        r"\bflagged\b|\bmoderation\b|content[ _-]?(?:policy|filter|management)|usage polic|content exists risk"
        r"|safety (?:system|filter|polic|reasons)|(?<!case[- ])sensitive|inappropriate content|prohibited[ _]content"
        r"|high[ -]risk|敏感|不安全|违规",
        frozenset({400, 403, 422, 451}),
    ),
    (
        FaultKind.REJECTED,
        "prompt_too_large",
        "context_length_exceeded exceed_context_size_error string_above_max_length prompt_too_long",
        r"context[ _-]?(?:length|window|size)|\bn_ctx\b|maximum context|\binputs?`? (?:length|tokens?)\b"
        r"|\b(?:prompt|input|message|request|text|content|context|sequence|string|length)s?(?: \([^)]*\))?(?: is| are)?"
        r" too (?:long|large)\b|too many (?:input )?tokens"
        r"|\b(?:prompt|input|tokens?|count|length|messages?)\b[^.\n]{0,60}\bexceeds?\b|less than \d+ tokens"
        r"|(?:reduce|shorten) (?:the |your )?(?:length|prompt|input)",
        _ANY,
    ),
    (FaultKind.REJECTED, "prompt_too_large", "", r"\brequest too large for\b", frozenset({429})),
    (
        FaultKind.REJECTED,
        "schema_rejected",
        "invalid_json_schema invalid_response_format",
        r"(?:parse|compile|convert|invalid|unsupported) (?:\w+ ){0,2}grammar|\bgrammar\b[^.\n]{0,30}(?:error|invalid"
        r"|fail|unsupported|not supported)|failed to initialize samplers|xgrammar|json schema conversion failed",
        _ANY,
    ),
    (
        FaultKind.REJECTED,
        "broken_output",
        "json_validate_failed tool_use_failed output_parse_failed",
        r"failed to (?:generate|produce) (?:a )?(?:valid )?json"
        r"|\b(?:model|output|generated?)\b[^.\n]{0,40}\b(?:invalid|not (?:valid|be parsed as)) json"
        r"|pars(?:e|ing) (?:the )?(?:tool call|model(?:'s)? output)",
        _ANY,
    ),
    (
        FaultKind.DEAD_MODEL,
        "unknown_model",
        "model_not_found model_not_available model_decommissioned unknown_model invalid_model deploymentnotfound",
        r"is not a valid model id",
        _ASKED_WRONG,
    ),
)
"""Kind and reason by what providers say: codes and types (`=401`: that status), and words of messages and codes, with
the status with which these count. Where no row fits, the status decides."""
# Gateways such as LiteLLM answer 500 with the class of what their own provider has refused.
_PERMANENT_TEXT = re.compile(
    r"\b(?:Authentication|PermissionDenied|NotFound|BadRequest|UnprocessableEntity|UnsupportedParams)Error\b"
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
_PHRASES: Mapping[int, str] = {one.value: one.phrase.lower() for one in HTTPStatus}
_OF_STATUS: Mapping[int, tuple[FaultKind, str]] = {
    404: (FaultKind.DEAD_MODEL, "unknown_model"),
    413: (FaultKind.REJECTED, "prompt_too_large"),
    429: (FaultKind.RATE_LIMITED, "rate_limited"),
    **dict.fromkeys((408, 409, 425), (FaultKind.TRANSIENT, "provider_error")),
    **dict.fromkeys((501, 505), (FaultKind.REJECTED, "rejected")),
    **dict.fromkeys((503, 529), (FaultKind.TRANSIENT, "overloaded")),
}
_HINTS = {
    "no_credit": "add credit with the provider, or choose another model",
    "schema_rejected": "it rejects the response schema: choose a model with structured outputs, or change the"
    " scenario's schema file (strict mode wants every property in `required` and `additionalProperties: false`)",
    "unsupported_parameters": "no server of this model takes the schema or sampling options: leave them out, or change"
    " the model",
    "prompt_too_large": "shorten the prompt, or choose a model with a longer context",
}


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The contents of an error body of any form.

    Args:
        message: For people; foreign text.
        words: Its codes, types and reasons, in lower case.
        status: The HTTP status that it names itself.
        parameter: Request parameter that it blames.
        pause_s: How long it asks to wait; None where it does not say.
    """

    message: str = ""
    words: frozenset[str] = frozenset()
    status: int | None = None
    parameter: str | None = None
    pause_s: float | None = None


def read_error_body(body: bytes, now: float) -> ErrorBody:
    """Return what the body of an HTTP error says: JSON of a known form, else text without tags."""
    text = body[: 4 * LONGEST_READ].decode("utf-8", "replace")
    document = decoded_json(body) if len(body) <= 4 * LONGEST_READ else None
    if document is None:
        return ErrorBody(re.sub(r"<[^<>]*>", " ", text[:LONGEST_READ]), pause_s=worded_pause_s(text))
    return read_error(document, now)


def read_error(document: object, now: float) -> ErrorBody:
    """Read the error forms of OpenAI, OpenRouter, Google (a list), Azure, FastAPI, Ollama and Zhipu."""
    if isinstance(document, list):
        document = document[0] if document else None
    if not isinstance(document, dict):
        return ErrorBody(document if isinstance(document, str) else "")
    error = document.get("error")
    if not isinstance(error, dict):
        error = {**document, "message": error} if isinstance(error, str) else document
    metadata = json_object(error.get("metadata"))
    upstream = _read_upstream(metadata.get("raw"), now)
    message = _first_text(error.get("message"), error.get("detail"), error.get("msg"))
    if upstream.message and upstream.message not in message:
        message = f"{message}: {upstream.message}" if message else upstream.message
    parameter = error.get("param")
    return ErrorBody(
        message=message,
        words=frozenset(_said_words(error, document, metadata)) | upstream.words,
        status=_as_status(error.get("code")) or _as_status(error.get("status")),
        parameter=parameter if isinstance(parameter, str) else upstream.parameter,
        pause_s=stated_pause_s(document, now) or upstream.pause_s or worded_pause_s(message),
    )


def _read_upstream(raw: object, now: float) -> ErrorBody:
    """Read what a router passes on of the server behind it."""
    if not isinstance(raw, str) or not raw:
        return ErrorBody()
    said = read_error(decoded_json(raw), now)
    return said if said.message or said.words else ErrorBody(raw)


def _said_words(error: JsonObject, around: JsonObject, metadata: JsonObject) -> Iterator[str]:
    names = (key.lower().replace("_", "") for source in (error, around) for key in source)
    if "flagged_input" in metadata or any(name.startswith("contentfilter") for name in names):
        yield "moderation"
    for source in (error, json_object(error.get("innererror")), *json_objects(error.get("details"))):
        for key in ("code", "type", "status", "reason"):
            value = source.get(key)
            if isinstance(value, str):
                yield value.lower()


def _first_text(*values: object) -> str:
    for value in values:
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list | dict) and value:
            return json.dumps(value)[:LONGEST_READ]
    return ""


def _as_status(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[3-5]\d\d", value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 300 <= value <= 599:
        return value
    return None


def classify(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    endpoint: Endpoint | None,
    *,
    sent_schema: bool,
    error: object = None,
    clock: Callable[[], float] = time.time,
) -> Fault:
    """Return the fault behind an error answer.

    Args:
        headers: Names in lower case.
        endpoint: Who was asked; None when unknown (a stored answer).
        sent_schema: The request had a response schema.
        error: What a successful answer holds as its `error`: the class is that of its code.
        clock: Seconds since 1970, for dates in headers.
    """
    now = clock()
    said = read_error({"error": error}, now) if error else read_error_body(body, now)
    code: int | None = status
    if error:
        of_words = next((code for word, code in _CODE_OF_WORD.items() if word in said.words), None)
        code = said.status if said.status is not None else of_words
    kind, reason = _class_of(code, said)
    if kind is FaultKind.REJECTED and sent_schema and _ABOUT_THE_SCHEMA.search(said.message):
        reason = "schema_rejected"
    answered = str(status) if status == code else f"{status} with an error {code or ''}".rstrip()
    detail = excerpt(said.message, endpoint) or _PHRASES.get(code or 0, "")
    detail = f" ({detail})" if detail else ""
    refused = "'s moderation refused the prompt: it" if kind is FaultKind.BLOCKED else ""
    return Fault(
        kind=kind,
        status=status,
        reason=reason,
        message=f"the provider{refused} answered {answered}{detail}",
        retry_after_s=(asked_pause_s(headers, now) or said.pause_s) if is_retried(kind) else None,
        hint=_hint(reason, headers, endpoint),
        code=excerpt(" ".join(sorted(said.words)), endpoint),
        parameter=excerpt(said.parameter, endpoint) if said.parameter else None,
    )


def _class_of(code: int | None, said: ErrorBody) -> tuple[FaultKind, str]:
    """Return the class and its word, by body first and then by status."""
    text, named = said.message[:LONGEST_READ], said.words | {f"={code}"}
    both = f"{text}\n{' '.join(sorted(said.words))}"
    for kind, reason, words, pattern, codes in _RULES:
        if not named.isdisjoint(words.split()) or (
            code in codes and re.search(pattern, both, re.IGNORECASE) is not None
        ):
            return kind, reason
    if code is None:
        return FaultKind.TRANSIENT, "provider_error"
    if code >= 500 and _PERMANENT_TEXT.search(text):
        return FaultKind.REJECTED, "rejected"
    return _class_of_status(code, text)


def _class_of_status(code: int, text: str) -> tuple[FaultKind, str]:
    if code == 403:
        about_key = _ABOUT_THE_KEY.search(text) is not None
        return (FaultKind.DEAD_MODEL, "no_access") if about_key else (FaultKind.REJECTED, "forbidden")
    if code == 404 and _NO_SUCH_PARAMETERS.search(text):
        return FaultKind.REJECTED, "unsupported_parameters"
    if code >= 500:
        return _OF_STATUS.get(code, (FaultKind.TRANSIENT, "provider_error"))
    return _OF_STATUS.get(code, (FaultKind.REJECTED, "redirected" if code < 400 else "rejected"))


def _hint(reason: str, headers: Mapping[str, str], endpoint: Endpoint | None) -> str:
    match reason:
        case "bad_key" | "no_access" if endpoint is not None and endpoint.key_env is None:
            if endpoint.empty_variable:
                return f"no key was sent: the variable {endpoint.empty_variable} is not set, or empty"
            return "no key was sent: name its variable with --helmbench-api-key-env"
        case "bad_key" | "no_access":
            return f"check the key in {endpoint.key_env}" if endpoint else "check the key"
        case "unknown_model" if endpoint is not None:
            return endpoint.server.unknown_model_hint(endpoint.wire_model, endpoint.base_url)
        case "redirected":
            target = excerpt(headers.get("location", ""), endpoint)
            return f"the base URL has moved{f' to {target}' if target else ''}: give the new one"
        case _:
            return _HINTS.get(reason, "")
