"""Applications as models: a Python function of the user's, or any HTTP address with templates of its own.

A template only puts values in places: it knows no expressions, and nothing of the environment.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import field

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.json_types import JsonObject, JsonValue, decoded_json, json_objects
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import HttpTemplate
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.request_template import filled
from pytest_helmbench.gateway.providers.provider import MissingReply, PricePlace, Provider

FUNCTION_PREFIX = "python:"

_FUNCTION = re.compile(
    r"python:(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"
)
_ABSENT = object()
_ERROR_KEY = re.compile(r"(?:is|has)?(?:errors?|exception)(?:message|msg|code|type|details?)?")
_NO_ERROR = ("", "0", "none", "null", "false", "no error", "ok", "success")
_FAILED = re.compile(
    r"(?:ok|success) false|(?:status|state) (?:error|failed|failure)|status(?:code)? [45]\d\d"
)
_MESSAGES = ("message", "detail", "msg")
_FUNCTION_HINT = (
    "the answer must be JSON; a function reads any other form: write '- id: python:mybot:answer' in models.yml, and in"
    " mybot.py a def answer(messages) that asks the application and returns the text"
)


@dataclass(frozen=True, slots=True)
class _Application(Provider):
    """A function of the user's, which is called in this process, or what answers at an address of his."""

    version: str | None = None
    messages: str | None = None

    def complete_request(self, body: dict[str, JsonValue], *, with_schema: bool) -> None:
        """Add version and messages: another version is another request."""
        del with_schema
        if self.version is not None:
            body[_VERSION] = self.version
        if self.messages is not None:
            body[_MESSAGES_SENT] = self.messages

    def price_places(self, model: str, base_url: str) -> tuple[PricePlace, ...]:
        """Return none: price lists do not know applications."""
        del model, base_url
        return ()

    def unknown_model_hint(self, model: str, base_url: str) -> str:
        """Return a hint to check the address."""
        return f"check what answers at {base_url or model}"


_TEMPLATE, _VERSION, _MESSAGES_SENT = "request_template", "application_version", "application_messages"
"""Fields that make requests different on record and are not sent."""


@dataclass(frozen=True, slots=True)
class HttpApplication(_Application):
    """An address that has a form of requests and answers of its own."""

    template: HttpTemplate = field(default_factory=lambda: HttpTemplate(""))

    @property
    def passes_on(self) -> bool:
        """False: its form holds one question only."""
        return False

    def address(self, base_url: str) -> str:
        """Return the address as the user states it."""
        return base_url

    def complete_request(self, body: dict[str, JsonValue], *, with_schema: bool) -> None:
        """Add the template's hash: another template is another request."""
        _Application.complete_request(self, body, with_schema=with_schema)
        whole = [self.template.request, dict(self.template.response)]
        written = json.dumps(whole, sort_keys=True, ensure_ascii=True)
        body[_TEMPLATE] = hashlib.sha256(written.encode()).hexdigest()[:16]

    def sent(self, encoded: bytes, body: JsonObject) -> bytes:
        """Return the request in the form of the application."""
        del encoded
        form = self.template.request
        request = as_asked(body) if form is None else filled(form, _values(body))
        return json.dumps(request, ensure_ascii=True).encode()

    def read(self, answer: bytes) -> bytes:
        """Return the text that the template points at as a chat completion; without a choice where there is none."""
        places = self.template.response
        if "text" not in places or (document := decoded_json(answer)) is None:
            return answer
        return json.dumps(_completion(document, places), ensure_ascii=True).encode()

    def lack(self, document: JsonObject) -> MissingReply:
        """Return the path that leads to no text."""
        path = self.template.response.get("text")
        if path is None:
            return Provider.lack(self, document)
        answer = document.get("answer")
        found, place = _at(answer, path), f"at {path!r}, where 'response' has the text"
        if found is None:
            return MissingReply("no_reply", f"null {place}", is_final=True)
        if isinstance(found, dict | list):
            what, hint = _other_shape(found, path)
        elif isinstance(answer, str):
            what, hint = "nothing", "write 'response: $': the whole answer is the text"
        else:
            names = ", ".join(answer) if isinstance(answer, dict) else type(answer).__name__
            what, hint = "nothing", f"name its place in models.yml; the answer holds: {names}"
        return MissingReply("no_choices", f"{what} {place}", hint, is_final=True)

    def unread_hint(self) -> str:
        """Return how an entry reads what is not JSON."""
        return _FUNCTION_HINT


def as_asked(body: JsonObject) -> dict[str, JsonValue]:
    """Return a request on record as an application gets it."""
    return {key: body[key] for key in body if key not in (_TEMPLATE, _VERSION, _MESSAGES_SENT)}


def function_application(
    named: Granted[str], version: str | None = None, messages: str | None = None
) -> Provider:
    """Return the function that an id names; it is loaded when it is asked first.

    Raises:
        HelmbenchError: It is not a `python:package.module:function`.
    """
    model_id = named.value
    if _FUNCTION.fullmatch(model_id) is None:
        raise HelmbenchError(
            f"model id {model_id!r} names no function\n  hint: write python:package.module:function"
        )
    function = Granted(model_id.removeprefix(FUNCTION_PREFIX))
    return _Application("python", function=function, version=version, messages=messages)


def http_application(
    stated: Granted[HttpTemplate], host: str, version: str | None = None, messages: str | None = None
) -> HttpApplication:
    """Return the application at an address."""
    return HttpApplication(host, template=stated.value, version=version, messages=messages)


def _values(body: JsonObject) -> dict[str, JsonValue]:
    """Return what a template may put in places: all of the request, its last user message and its system message."""
    messages = json_objects(body.get("messages"))
    texts = {
        name: next((item.get("content") for item in reversed(messages) if item.get("role") == role), "")
        for name, role in (("prompt", "user"), ("system", "system"))
    }
    return {**body, **texts}


def _steps(path: str) -> list[str]:
    """Return the keys and numbers of a dotted path; `$` alone is the whole answer."""
    return list(filter(None, path.removeprefix("$").split(".")))


def _at(document: JsonValue, path: str) -> object:
    """Return what stands at a dotted path; a number counts into a list."""
    value: object = document
    for step in _steps(path):
        value = _below(value, step)
    return value


def _below(value: object, step: str) -> object:
    if isinstance(value, dict) and step in value:
        found: object = value[step]
        return found
    if isinstance(value, list) and step.lstrip("-").isdigit() and -len(value) <= int(step) < len(value):
        return value[int(step)]
    return _ABSENT


def _stated_error(document: JsonValue, path: str) -> JsonObject | None:
    """Return the error that an answer states on the way to its text, or in an object beside the way; None for none."""
    value: object = document
    for step in _steps(path):
        if isinstance(value, dict):
            beside = {key: item for key, item in value.items() if key != step}
            objects = (item for item in beside.values() if isinstance(item, dict))
            errors = (_error_in(beside, _FAILED), *(_error_in(item) for item in objects))
            if (found := next(filter(None, errors), None)) is not None:
                return found
        value = _below(value, step)
    return None


def _error_in(stated: JsonObject, failed: re.Pattern[str] | None = None) -> JsonObject | None:
    """Return the error of an object by its name, or by a status that says so."""
    for key, value in stated.items():
        name = key.lower().replace("_", "").replace("-", "")
        if _ERROR_KEY.fullmatch(name) and _says_something(value):
            first = next(filter(_says_something, value)) if isinstance(value, list) else value
            if isinstance(first, str):
                return {"message": first}
            if isinstance(first, dict):
                return first if any(map(first.get, _MESSAGES)) else {**first, "message": json.dumps(first)}
        elif failed is None or failed.fullmatch(f"{name} {value}".lower()) is None:
            continue
        said = next(filter(None, map(stated.get, _MESSAGES)), "")
        code = value if isinstance(value, int) and value > 1 else None
        return {"message": f"{key}: {json.dumps(value)} {said}".strip(), "code": code}
    return None


def _says_something(value: JsonValue) -> bool:
    """Return whether the value of an error says that there is one: null, false, 0, 200, `none` and {} do not."""
    if isinstance(value, dict | list):
        return any(map(_says_something, value.values() if isinstance(value, dict) else value))
    if isinstance(value, str):
        return value.strip().lower().rstrip(".") not in _NO_ERROR
    return isinstance(value, int) and value != 0 and not 200 <= value < 300


def _completion(document: JsonValue, places: Mapping[str, str]) -> dict[str, object]:
    """Return an answer as a chat completion: without choices where it has no text, with the error it states."""

    def stated(name: str, default: object = None) -> object:
        found = _at(document, places[name]) if name in places else _ABSENT
        return default if found is _ABSENT else found

    usage = {name: stated(name) for name in ("prompt_tokens", "completion_tokens", "cost")}
    completion: dict[str, object] = {
        "model": stated("model"),
        "usage": {name: value for name, value in usage.items() if value is not None},
        "answer": document,
        "error": _stated_error(document, places["text"]),
    }
    if (text := _text_in(stated("text"))) is not None:
        message = {"role": "assistant", "content": text}
        completion["choices"] = [{"message": message, "finish_reason": stated("finish_reason", "stop")}]
    return completion


def _text_in(found: object) -> str | None:
    """Return a text or number, the content of a message, or the texts of a list of parts; None for another shape."""
    if isinstance(found, dict) and "role" in found:
        return _text_in(found.get("content"))
    if isinstance(found, list) and found:
        parts = [part.get("text") if isinstance(part, dict) else None for part in found]
        return None if None in parts else "".join(map(str, parts))
    if found is None or isinstance(found, dict | list):
        return None
    return found if isinstance(found, str) else json.dumps(found)


def _other_shape(found: dict[str, JsonValue] | list[JsonValue], path: str) -> tuple[str, str]:
    """Return what stands where the text is wanted, and a hint that names what is in it."""
    if isinstance(found, dict):
        kind, held = "an object", ", ".join(map(repr, found)) or "nothing"
        inner = next((key for key, value in found.items() if isinstance(value, str)), "KEY")
    else:
        kind, held, inner = "a list", f"{len(found)} entries", "0"
    return kind, f"name the text in it, such as 'response: {path}.{inner}'; it holds: {held}"
