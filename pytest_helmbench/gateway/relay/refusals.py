"""Requests that the relay refuses, and errors in the form that clients of the OpenAI interface read."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from urllib.parse import urlsplit

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.gateway.faults import CallFailedError, FaultKind
from pytest_helmbench.gateway.gateway import NOT_ON_RECORD
from pytest_helmbench.gateway.permits import BudgetSpentError, ModelStoppedError, RefusedError
from pytest_helmbench.gateway.providers.endpoints import Endpoint

Refusal = tuple[str, str]
"""A field, and why it is not passed on."""

_OTHER_MODEL = "would have another model answer than the one under test"
_OTHER_PLACE = "would have the request answered elsewhere, or with another key"
_OTHER_PRICE = "would have the provider bill more than the price list says"
_OTHER_PROMPT = "would have another prompt answered"
_FETCHED = "would let the provider fetch what the request does not hold"
_AS_DATA = f"{_FETCHED}: send it as data:"
_NO_CLIENT_TOOL = "is no tool that the client runs (type function or custom)"


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
_AS_SPELLED = {
    _plain(name): name
    for name in _words(
        "model messages input instructions prediction tools tool_choice functions background n stream"
        " max_tokens max_completion_tokens max_output_tokens response_format text"
    )
}
"""Fields that are replaced, counted or looked into: under another spelling (`Model`) they would escape that."""
_CONTENTS = ("messages", "input", "instructions", "prediction")
_SCHEMAS = (
    *("response_format", "text", "tools", "functions", "format"),
    *("json_schema", "structured_outputs", "guided_json"),
)

_ADDRESS = re.compile(
    r"\s*(?:(?!data:)[a-z][a-z0-9+.-]*:|[/\\]{2}[^/\\]*\.)", re.IGNORECASE
)  # no base64 has a dot
_ADDRESSES = frozenset(("imageurl", "videourl", "audiourl", "fileurl", "documenturl", "url", "uri", "path"))
"""Fields that hold an address, whatever it looks like."""
_STORED = frozenset(("fileid", "imageid", "videoid"))
_TEXTS = _words(
    "text content input output arguments name title filename id itemid callid toolcallid role type status detail"
    " format mediatype mimetype language refusal reasoning reasoningcontent thinking thought signature summary"
    " encryptedcontent instructions description query context"
)
"""Fields whose texts the model reads as they are, and names that no server looks up."""
_SAID = frozenset(("annotations", "toolcalls", "functioncall", "arguments", "reasoningdetails", "logprobs"))
"""What a model has said before, which no provider reads as an address."""
_REFERENCES = frozenset(("$ref", "$dynamicRef", "$recursiveRef"))
_CLIENT_TOOLS = ("function", "custom")
_CHOICES = (*_CLIENT_TOOLS, "allowed_tools", "auto", "any", "none", "required", "tool")
_TOOL_FIELDS = _words(
    "type function custom name description parameters strict format input_schema cache_control metadata"
)


def refusals(stated: JsonObject, allowed: Collection[str]) -> Iterator[Refusal]:
    """Yield what is refused in a request of a pack or an agent.

    Args:
        stated: Decoded body.
        allowed: Fields that the user has set for this model: they pass.
    """
    for name, value in stated.items():
        plain = _plain(name)
        if value is None or name in allowed:
            continue
        if plain in _OF_FOREIGN:
            yield name, _OF_FOREIGN[plain]
        elif _AS_SPELLED.get(plain, name) != name:
            yield name, f"is {_AS_SPELLED[plain]} in another spelling"
    if stated.get("background") not in (None, False) and "background" not in allowed:
        yield "background", "would have the reply fetched later"
    if "tools" not in allowed:
        yield from _provider_tools(stated)
    for name in _CONTENTS:
        if name in stated:
            yield from _fetched_parts(name, stated[name])
    for name in _SCHEMAS:
        if name in stated:
            yield from _fetched_schemas(name, stated[name])


def refusals_of_trusted(stated: JsonObject, allowed: Collection[str]) -> Iterator[Refusal]:
    """Yield what is refused in a request of the user's own code: what changes the address, the key or the model."""
    for name, value in stated.items():
        why = _DECIDED.get(_plain(name))
        if value is not None and why is not None and name not in allowed:
            yield name, why


def refusals_of_stated(extra_body: JsonObject) -> Iterator[Refusal]:
    """Yield what a benchmark may not have merged into every request.

    That is what changes address, key, model, prompt or price, and what the provider would fetch.
    """
    for name in extra_body:
        why = _OF_STATED.get(_plain(name))
        if why is not None:
            yield name, why


def _fetched_parts(name: str, contents: JsonValue) -> Iterator[Refusal]:
    """Yield the parts of messages that name what the provider would have to fetch; what is in the request passes."""
    if isinstance(contents, list):
        # An item that is an id alone is one that the provider has kept.
        yield from (
            (f"{name}[{number}]", _FETCHED)
            for number, item in enumerate(contents)
            if isinstance(item, dict) and "id" in item and item.keys().isdisjoint(("type", "role"))
        )
    waiting: list[tuple[str, str, JsonValue]] = [(name, "content", contents)]
    while waiting:
        place, key, value = waiting.pop()
        if isinstance(value, str):
            if key not in _TEXTS and _leads_away(key, value):
                yield place, _AS_DATA
        elif isinstance(value, list):
            waiting.extend((f"{place}[{number}]", key, part) for number, part in enumerate(value))
        elif isinstance(value, dict):
            for own, part in value.items():
                plain = _plain(own)
                if (plain in _STORED and part is not None) or (plain == "type" and part == "item_reference"):
                    yield f"{place}.{own}", _FETCHED
                elif plain not in _SAID:
                    waiting.append((f"{place}.{own}", plain, part))


def _leads_away(key: str, value: str) -> bool:
    """Return whether a text is an address: by the name of its field, or by its looks."""
    if key in _ADDRESSES:
        return not value.lower().startswith("data:")
    return _ADDRESS.match(value) is not None


def _fetched_schemas(name: str, stated: JsonValue) -> Iterator[Refusal]:
    """Yield references of schemas that lead out of the request."""
    waiting: list[tuple[str, JsonValue]] = [(name, stated)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, list):
            waiting.extend((f"{place}[{number}]", part) for number, part in enumerate(value))
        elif isinstance(value, dict):
            for key, part in value.items():
                if key in _REFERENCES and isinstance(part, str) and _ADDRESS.match(part):
                    yield f"{place}.{key}", _FETCHED
                elif isinstance(part, list | dict):
                    waiting.append((f"{place}.{key}", part))


def _provider_tools(stated: JsonObject) -> Iterator[Refusal]:
    """Yield tools that the provider would run, and a choice of one."""
    tools = stated.get("tools")
    if tools is not None and not isinstance(tools, list):
        yield "tools", "is no list"
    for number, tool in enumerate(tools if isinstance(tools, list) else ()):
        place = f"tools[{number}]"
        if not isinstance(tool, dict) or tool.get("type", "function") not in _CLIENT_TOOLS:
            yield place, _NO_CLIENT_TOOL
        else:
            yield from ((f"{place}.{own}", _NO_CLIENT_TOOL) for own in tool if own not in _TOOL_FIELDS)
    choice = stated.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type", "function") not in _CHOICES:
        yield "tool_choice", _NO_CLIENT_TOOL


_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    402: "insufficient_quota",
    429: "rate_limit_error",
}
_ACCOUNT_STATUSES = (401, 402, 404, 407, 408, 429)
_HIDDEN_ADDRESS = "[address]"
_MOST_PARTS = 4_000_000  # a decoded part takes many times the bytes that it is written in


class BadRequestError(HelmbenchError):
    """A request that is not passed on, through the fault of nobody but the code that makes it.

    Args:
        message: What is wrong with it, for the author of the client.
        parameter: Field at fault; None for the body as a whole.
    """

    def __init__(self, message: str, parameter: str | None = None) -> None:
        self.parameter = parameter
        super().__init__(message)


class ItemEndedError(HelmbenchError):
    """A request of an item that has ended."""

    def __init__(self) -> None:
        super().__init__("the item that this address was made for has ended")


def read_request(raw: bytes) -> dict[str, JsonValue]:
    """Return a decoded request body.

    Raises:
        BadRequestError: It is no JSON object, holds a number that JSON does not know, or has too many parts.
    """
    if sum(map(raw.count, (b",", b"[", b"{"))) > _MOST_PARTS:
        raise BadRequestError(f"the request body has more than {_MOST_PARTS:,} parts")
    try:
        body: JsonValue = json.loads(raw.decode(), parse_constant=_refuse_number, parse_float=_finite)
    except UnicodeDecodeError:
        raise BadRequestError("the request body is not UTF-8") from None
    except RecursionError:
        raise BadRequestError("the request body is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise BadRequestError(
            f"the request body is no JSON: {error.msg} in line {error.lineno}, column {error.colno}"
        ) from None
    except ValueError:
        raise BadRequestError("the request body holds a number of too many digits") from None
    if not isinstance(body, dict):
        raise BadRequestError("the request body is no JSON object")
    return body


def check_request(
    stated: JsonObject, path: str, allowed: Collection[str] = (), *, trusted: bool = False
) -> None:
    """Refuse what cannot be passed on.

    Args:
        stated: Decoded body.
        path: `chat/completions`, `responses` or `embeddings`.
        allowed: Fields that the user has set for this model: they pass.
        trusted: The code is the user's own: every field passes but those that change the address, key or model.

    Raises:
        BadRequestError: With the field.
    """
    if path == "chat/completions":
        _check_messages(stated)
    elif not trusted and not isinstance(stated.get("input"), str | list):
        raise BadRequestError("input: a text or a list is wanted", "input")
    found = refusals_of_trusted(stated, allowed) if trusted else refusals(stated, allowed)
    for name, why in found:
        shown = excerpt(name, 200)
        raise BadRequestError(f"{shown}: refused, since it {why}", re.split(r"[.\[]", shown, maxsplit=1)[0])


def _check_messages(stated: JsonObject) -> None:
    messages = stated.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequestError("messages: a list with at least one message is wanted", "messages")
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise BadRequestError(f"messages[{number}]: an object with a role is wanted", "messages")
    if stated.get("n") not in (None, 1):
        raise BadRequestError("n: one choice per request is answered here; ask again for another", "n")


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
    match error:
        case BadRequestError():
            return 400, error_body(400, str(error), "bad_request", error.parameter)
        case ItemEndedError():
            return 410, error_body(410, str(error), "item_ended")
        case BudgetSpentError():
            return 402, error_body(402, str(error), "budget_spent")
        case ModelStoppedError():
            message = "the model under test cannot be called: its provider refuses every call of this session"
            return 503, error_body(503, message, "model_stopped")
        case CallFailedError():
            return _failed_call(error, endpoint)
        case RefusedError():
            return 503, error_body(503, "the session makes no more calls", "session_ending")
        case _:
            return 500, error_body(500, "the request could not be passed on", "internal_error")


def _failed_call(error: CallFailedError, endpoint: Endpoint) -> tuple[int, bytes]:
    fault = error.fault
    status = _status_of(fault.kind, fault.status, fault.reason)
    message = _without_address(fault.message, endpoint)
    return status, error_body(status, message, fault.reason, fault.parameter)


def _status_of(kind: FaultKind, status: int | None, reason: str) -> int:
    if reason == NOT_ON_RECORD:
        return 404
    if reason == "record_unreadable":
        return 500
    match kind:
        case FaultKind.RATE_LIMITED:
            return 429
        case FaultKind.TIMEOUT:
            return 504
        case FaultKind.TRANSIENT:
            return status if status is not None and 500 <= status < 600 else 503
        case FaultKind.MALFORMED | FaultKind.TOO_LARGE:
            return 502
        case _:
            # What is said of our key, name or account does not hold for the client's.
            own = status is not None and 400 <= status < 500 and status not in _ACCOUNT_STATUSES
            return status if own and status is not None else 400


def _without_address(text: str, endpoint: Endpoint) -> str:
    """Return a message without the provider's address: a client of ours knows but ours."""
    parts = urlsplit(endpoint.base_url)
    for address in (endpoint.base_url, parts.netloc, parts.hostname):
        if address:
            text = re.sub(re.escape(address), _HIDDEN_ADDRESS, text, flags=re.IGNORECASE)
    return text


def _refuse_number(name: str) -> float:
    raise BadRequestError(f"the request body holds {name}, which is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise BadRequestError(f"the request body holds the number {text[:40]}, which is too large")
    return value
