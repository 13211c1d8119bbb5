"""Applications as models: a Python function of the user's, or any HTTP address with templates of its own.

A template only puts values in places: it knows no expressions, and nothing of the environment.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import field

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import HttpTemplate
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.users_word import UsersWord
from pytest_helmbench.gateway.providers.provider import PricePlace, Provider

__all__ = ["FUNCTION_PREFIX", "HttpApplication", "PythonFunction", "function_application", "http_application"]

FUNCTION_PREFIX = "python:"

_FUNCTION = re.compile(
    r"python:(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"
)
_PLACE = re.compile(r"\{(\w+)\}")
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class _Application(Provider):
    def price_places(self, model: str, base_url: str) -> tuple[PricePlace, ...]:
        """See `Provider.price_places`: no list knows an application."""
        del model, base_url
        return ()

    def unknown_model_hint(self, model: str, base_url: str) -> str:
        """See `Provider.unknown_model_hint`."""
        return f"check what answers at {base_url or model}"


@dataclass(frozen=True, slots=True)
class PythonFunction(_Application):
    """A function that is called in this process."""


@dataclass(frozen=True, slots=True)
class HttpApplication(_Application):
    """An address that has a form of requests and answers of its own.

    Args:
        template: Of both.
    """

    template: HttpTemplate = field(default_factory=lambda: HttpTemplate(""))

    @property
    def passes_on(self) -> bool:
        """See `Provider.passes_on`: it has its own form for one question only."""
        return False

    def address(self, base_url: str) -> str:
        """See `Provider.address`: the whole address is stated."""
        return base_url

    def complete_request(self, body: dict[str, JsonValue], *, with_schema: bool) -> None:
        """See `Provider.complete_request`: another template is another request."""
        del with_schema
        whole = [self.template.request, dict(self.template.response)]
        written = json.dumps(whole, sort_keys=True, ensure_ascii=True)
        body["request_template"] = hashlib.sha256(written.encode()).hexdigest()[:16]

    def sent(self, encoded: bytes, body: JsonObject) -> bytes:
        """See `Provider.sent`."""
        if self.template.request is None:
            return encoded
        return json.dumps(_filled(self.template.request, _values(body)), ensure_ascii=True).encode()

    def read(self, answer: bytes) -> bytes:
        """See `Provider.read`: what the template points at, as a chat completion; an answer without it as it is."""
        try:
            document: JsonValue = json.loads(answer)
        except (ValueError, RecursionError):
            return answer
        places = self.template.response
        text = _at(document, places["text"]) if "text" in places else _ABSENT
        if text is _ABSENT:
            return answer
        return json.dumps(_completion(document, text, places), ensure_ascii=True).encode()


def function_application(named: UsersWord[str]) -> PythonFunction:
    """Return the function that an id names; it is loaded when it is asked first.

    Args:
        named: The id.

    Raises:
        HelmbenchError: It is no `python:package.module:function`.
    """
    model_id = named.value
    if _FUNCTION.fullmatch(model_id) is None:
        raise HelmbenchError(
            f"model id {model_id!r} names no function\n  hint: write python:package.module:function"
        )
    return PythonFunction("python", function=UsersWord(model_id.removeprefix(FUNCTION_PREFIX)))


def http_application(stated: UsersWord[HttpTemplate], host: str) -> HttpApplication:
    """Return the application at an address."""
    return HttpApplication(host, template=stated.value)


def _values(body: JsonObject) -> dict[str, JsonValue]:
    """Return what a template may put in places: all of the request, its last user message and its system message."""
    listed = body.get("messages")
    messages = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    texts = {
        name: next((item.get("content") for item in reversed(messages) if item.get("role") == role), "")
        for name, role in (("prompt", "user"), ("system", "system"))
    }
    return {**body, **texts}


def _filled(template: JsonValue, values: Mapping[str, JsonValue]) -> JsonValue:
    """Return a template with values in its places; a place alone keeps the value's type."""
    if isinstance(template, dict):
        return {key: _filled(item, values) for key, item in template.items()}
    if isinstance(template, list):
        return [_filled(item, values) for item in template]
    if not isinstance(template, str):
        return template
    whole = _PLACE.fullmatch(template)
    if whole is not None:
        return values.get(whole[1])
    return _PLACE.sub(lambda found: _as_text(values.get(found[1])), template)


def _as_text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _at(document: JsonValue, path: str) -> object:
    """Return what stands at a dotted path; a number counts into a list."""
    value: object = document
    for step in path.removeprefix("$").strip(".").split("."):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.lstrip("-").isdigit() and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return _ABSENT
    return value


def _completion(document: JsonValue, text: object, places: Mapping[str, str]) -> dict[str, object]:
    def stated(name: str, default: object = None) -> object:
        found = _at(document, places[name]) if name in places else _ABSENT
        return default if found is _ABSENT else found

    content = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    usage = {name: stated(name) for name in ("prompt_tokens", "completion_tokens", "cost")}
    counted = {name: value for name, value in usage.items() if value is not None}
    return {
        "model": stated("model"),
        "choices": [
            {
                "message": {"role": "assistant", "content": content},
                "finish_reason": stated("finish_reason", "stop"),
            }
        ],
        "usage": counted,
        "answer": document,
    }
