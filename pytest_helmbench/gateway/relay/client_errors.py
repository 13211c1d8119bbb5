"""Requests that the relay refuses, and errors in the form that clients of the OpenAI interface read."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.gateway.faults import FaultKind
from pytest_helmbench.gateway.gateway import NOT_ON_RECORD
from pytest_helmbench.gateway.permits import BudgetSpentError, ModelStoppedError, RefusedError
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.relay.denied_fields import refusals, refusals_of_trusted
from pytest_helmbench.gateway.retries import CallFailedError

if TYPE_CHECKING:
    from pytest_helmbench.gateway.relay.forwarding import Forwarding

__all__ = [
    "BadRequestError",
    "ItemEndedError",
    "NotAdmittedError",
    "check_request",
    "error_body",
    "failure_of",
    "read_request",
]

_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    402: "insufficient_quota",
    429: "rate_limit_error",
}
_ACCOUNT_STATUSES = (401, 402, 404, 407, 408, 429)
_ADDRESS = "[address]"
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


class NotAdmittedError(BadRequestError):
    """A request whose path and token do not belong together, or to nobody.

    Args:
        conversation: What the path alone leads to; None where it leads nowhere.
    """

    def __init__(self, conversation: Forwarding | None = None) -> None:
        self.conversation = conversation
        super().__init__("this address takes only the bearer token that was given out with it")


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
            text = re.sub(re.escape(address), _ADDRESS, text, flags=re.IGNORECASE)
    return text


def _refuse_number(name: str) -> float:
    raise BadRequestError(f"the request body holds {name}, which is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise BadRequestError(f"the request body holds the number {text[:40]}, which is too large")
    return value
