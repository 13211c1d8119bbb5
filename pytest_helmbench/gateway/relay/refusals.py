"""Requests that the relay refuses, and errors in the form that clients of the OpenAI interface read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from urllib.parse import urlsplit

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.gateway.faults import Fault, FaultKind
from pytest_helmbench.gateway.gateway import NOT_ON_RECORD
from pytest_helmbench.gateway.permits import BudgetSpentError, ModelStoppedError, RefusedError
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.retries import CallFailedError

Refusal = tuple[str, str]
"""A field, and why it is not passed on."""

_OTHER_MODEL = "would have another model answer than the one under test"
_OTHER_PLACE = "would have the request answered elsewhere, or with another key"
_OTHER_PRICE = "would have the provider bill more than the price list says"
_OTHER_PROMPT = "would have another prompt answered"
_FETCHED = "would let the provider fetch what the request does not hold"
_CONTENTS = ("messages", "prediction")
_ADDRESS = re.compile(
    r"\s*(?:(?!data:)[a-z][a-z0-9+.-]*:|[/\\]{2}[^/\\]*\.)", re.IGNORECASE
)  # no base64 has a dot
_ADDRESSES = frozenset(("imageurl", "videourl", "audiourl", "fileurl", "documenturl", "url", "uri", "path"))
"""Fields that always hold an address."""
_STORED = frozenset(("fileid", "imageid", "videoid", "audioid"))
_STORED_PARTS = frozenset(("audio", "file", "image", "video", "inputaudio", "container"))
"""Parts whose `id` names what the provider keeps."""
_SCHEMAS = ("response_format", "tools", "functions", "json_schema", "structured_outputs", "guided_json")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_NO_CLIENT_TOOL = "is not a tool that the client runs (type function or custom)"
_CLIENT_TOOLS = ("function", "custom")
_CHOICES = (*_CLIENT_TOOLS, "allowed_tools", "auto", "any", "none", "required", "tool")
_TYPES: Mapping[int, str] = {401: "authentication_error", 402: "insufficient_quota", 429: "rate_limit_error"}
_ACCOUNT_STATUSES = (401, 402, 404, 407, 408, 429)
_MOST_PARTS = 4_000_000  # a decoded part takes many times the bytes that it is written in
_OF_REASONS: Mapping[str, int] = {NOT_ON_RECORD: 404, "record_unreadable": 500}
_OF_KINDS: Mapping[FaultKind, int] = {
    FaultKind.RATE_LIMITED: 429,
    FaultKind.TIMEOUT: 504,
    FaultKind.TRANSIENT: 503,
    FaultKind.MALFORMED: 502,
    FaultKind.TOO_LARGE: 502,
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _denied(why: str, names: str) -> dict[str, str]:
    return dict.fromkeys(map(_plain, _words(names)), why)


def _plain(name: str) -> str:
    """Return a field's name as servers that take no notice of case and joints read it."""
    return name.strip().casefold().replace("_", "").replace("-", "")


_DECIDED = {
    **_denied(
        _OTHER_MODEL,
        "models route preset fallbacks context_window_fallbacks content_policy_fallbacks model_list mock_response",
    ),
    **_denied(
        _OTHER_PLACE,
        "api_base base_url api_key api_version api_type custom_llm_provider user_config litellm_credential_name"
        " litellm_params extra_body extra_headers extra_query default_headers headers organization",
    ),
}
"""Denied to all code, the user's own tests too."""
_BEYOND = {
    **_denied(
        _FETCHED, "plugins web_search_options search_parameters previous_response_id conversation prompt"
    ),
    **_denied(_OTHER_PRICE, "service_tier best_of"),
}
_OF_STATED = {
    **_BEYOND,
    **_DECIDED,
    **_denied(_OTHER_MODEL, "model"),
    **_denied(_OTHER_PROMPT, "messages input instructions"),
    **_denied(_FETCHED, "tools background"),
}
_OF_FOREIGN = {**_BEYOND, **_DECIDED, **_denied(_OTHER_PLACE, "provider")}
_REPLACED = _words(
    "model messages prediction tools tool_choice functions n stream response_format"
    " max_tokens max_completion_tokens max_output_tokens"
)
"""Fields that are replaced, counted or looked into: in another spelling (`Model`) they would escape that."""
_TEXTS = _words(
    "text content input output arguments name title filename id toolcallid role type status detail format mediatype"
    " mimetype language refusal reasoning reasoningcontent thinking thought signature summary description"
    " annotations toolcalls functioncall reasoningdetails logprobs"
)
"""Fields whose texts the model reads as they are, or has written itself."""
_TOOL_FIELDS = _words(
    "type function custom name description parameters strict format input_schema cache_control metadata"
)


def refusals(stated: JsonObject, allowed: Collection[str]) -> Iterator[Refusal]:
    """Yield what is refused in a request of a pack or an agent; fields that the user has set for the model pass."""
    for name, value in stated.items():
        plain = _plain(name)
        if value is None or name in allowed:
            continue
        if plain in _OF_FOREIGN:
            yield name, _OF_FOREIGN[plain]
        elif name not in _REPLACED and plain in map(_plain, _REPLACED):
            yield name, "is a field in another spelling"
    tools = stated.get("tools") if "tools" not in allowed else None
    for number, tool in enumerate(tools if isinstance(tools, list) else () if tools is None else (tools,)):
        kind = (
            tool.get("type", "function") if isinstance(tool, dict) and tool.keys() <= _TOOL_FIELDS else None
        )
        if kind not in _CLIENT_TOOLS:
            yield f"tools[{number}]", _NO_CLIENT_TOOL
    choice = stated.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type", "function") not in _CHOICES:
        yield "tool_choice", _NO_CLIENT_TOOL
    for name in _CONTENTS:
        yield from _fetched_parts(name, name, stated.get(name))
    for name in _SCHEMAS:
        yield from _fetched_schemas(name, stated.get(name))


def refusals_of_trusted(stated: JsonObject, allowed: Collection[str]) -> Iterator[Refusal]:
    """Yield what is refused in a request of the user's own code: what changes the address, the key or the model."""
    named = (name for name, value in stated.items() if value is not None and name not in allowed)
    return ((name, _DECIDED[_plain(name)]) for name in named if _plain(name) in _DECIDED)


def refusals_of_stated(extra_body: JsonObject) -> Iterator[Refusal]:
    """Yield what a benchmark may not have merged into every request.

    That is what changes address, key, model, prompt or price, and what the provider would fetch.
    """
    return ((name, _OF_STATED[_plain(name)]) for name in extra_body if _plain(name) in _OF_STATED)


def _fetched_parts(place: str, key: str, value: JsonValue) -> Iterator[Refusal]:
    """Yield the parts of messages that name what the provider would have to fetch; what is in the request passes."""
    if isinstance(value, str):
        away = (
            not value.lower().startswith("data:") if key in _ADDRESSES else _ADDRESS.match(value) is not None
        )
        if away and key not in _TEXTS:
            yield place, f"{_FETCHED}: send it as data:"
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _fetched_parts(f"{place}[{number}]", key, part)
    elif isinstance(value, dict):
        for own, part in value.items():
            plain = _plain(own)
            if part is not None and (plain in _STORED or (plain == "id" and key in _STORED_PARTS)):
                yield f"{place}.{own}", _FETCHED
            elif plain not in _TEXTS or plain in ("content", "output"):
                yield from _fetched_parts(f"{place}.{own}", plain, part)


def _fetched_schemas(place: str, value: JsonValue) -> Iterator[Refusal]:
    """Yield references of schemas that lead out of the request."""
    parts = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for key, part in parts:
        if key in _REFERENCES and isinstance(part, str) and _ADDRESS.match(part):
            yield f"{place}.{key}", _FETCHED
        else:
            yield from _fetched_schemas(f"{place}.{key}", part)


class BadRequestError(HelmbenchError):
    """A request that is not passed on, through the fault of the code that makes it.

    Args:
        message: What is wrong with it, for the author of the client.
        parameter: Field at fault; None for the body as a whole.
        code: Of the error in the answer.
    """

    def __init__(
        self, message: str, parameter: str | None = None, *, status: int = 400, code: str = "bad_request"
    ) -> None:
        self.parameter = parameter
        self.status = status
        self.code = code
        super().__init__(message)


class ItemEndedError(HelmbenchError):
    """A request of an item that has ended."""

    def __init__(self) -> None:
        super().__init__("the item that this address was made for has ended")


def read_request(raw: bytes) -> dict[str, JsonValue]:
    """Return a decoded request body.

    Raises:
        BadRequestError: It is not a JSON object, holds a number that JSON does not have, or has too many parts.
    """
    if sum(map(raw.count, (b",", b"[", b"{"))) > _MOST_PARTS:
        raise BadRequestError(f"the request body has more than {_MOST_PARTS:,} parts")
    try:
        body: JsonValue = json.loads(raw.decode(), parse_constant=_finite, parse_float=_finite)
    except RecursionError:
        raise BadRequestError("the request body is nested too deeply") from None
    except UnicodeDecodeError:
        raise BadRequestError("the request body is not UTF-8") from None
    except ValueError as error:
        raise BadRequestError(f"the request body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise BadRequestError("the request body is not a JSON object")
    return body


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is not a number of JSON")
    return value


def check_request(stated: JsonObject, allowed: Collection[str] = (), *, trusted: bool = False) -> None:
    """Refuse what cannot be passed on.

    Args:
        stated: Decoded body of a chat completion.
        allowed: Fields that the user has set for this model: they pass.
        trusted: The code is the user's own: every field passes but those that change the address, key or model.

    Raises:
        BadRequestError: With the field.
    """
    messages = stated.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequestError("messages: a list with at least one message is wanted", "messages")
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise BadRequestError(f"messages[{number}]: an object with a role is wanted", "messages")
    if stated.get("n") not in (None, 1):
        raise BadRequestError("n: one choice per request is answered here; ask again for another", "n")
    for name, why in (refusals_of_trusted if trusted else refusals)(stated, allowed):
        shown = excerpt(name, 200)
        raise BadRequestError(f"{shown}: refused, since it {why}", re.split(r"[.\[]", shown, maxsplit=1)[0])


def error_body(status: int, message: str, code: str, parameter: str | None = None) -> bytes:
    """Return an error as JSON."""
    kind = _TYPES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")
    return json.dumps(
        {"error": {"message": message, "type": kind, "param": parameter, "code": code}}
    ).encode()


def failure_of(error: HelmbenchError, endpoint: Endpoint) -> tuple[int, bytes]:
    """Return the HTTP status and the body that tell a client of an error.

    They name no key, no variable, no address of a provider, and nothing that another item has met.
    """
    message, parameter = str(error), None
    match error:
        case BadRequestError():
            status, code, parameter = error.status, error.code, error.parameter
        case ItemEndedError():
            status, code = 410, "item_ended"
        case BudgetSpentError():
            status, code = 402, "budget_spent"
        case ModelStoppedError():
            status, code = 503, "model_stopped"
            message = "the model under test cannot be called: its provider refuses every call of this session"
        case CallFailedError():
            fault = error.fault
            status, code, parameter = _status_of(fault), fault.reason, fault.parameter
            message = _without_address(fault.message, endpoint)
        case RefusedError():
            status, code, message = 503, "session_ending", "the session makes no more calls"
        case _:
            status, code, message = 500, "internal_error", "the request could not be passed on"
    return status, error_body(status, message, code, parameter)


def _status_of(fault: Fault) -> int:
    status = fault.status or 0
    if fault.kind is FaultKind.TRANSIENT and 500 <= status < 600:
        return status
    known = _OF_REASONS.get(fault.reason) or _OF_KINDS.get(fault.kind)
    # A fault of our key, name or account is not one of the client's.
    own = 400 <= status < 500 and status not in _ACCOUNT_STATUSES
    return known or (status if own else 400)


def _without_address(text: str, endpoint: Endpoint) -> str:
    """Return a message without the provider's address: a client of ours knows but ours."""
    parts = urlsplit(endpoint.base_url)
    for address in (endpoint.base_url, parts.netloc, parts.hostname):
        if address:
            text = re.sub(re.escape(address), "[address]", text, flags=re.IGNORECASE)
    return text
