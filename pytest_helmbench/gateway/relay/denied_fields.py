"""Fields of requests that would have another model, address or key answer, or the provider fetch or bill something."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from pytest_helmbench.core.json_types import JsonObject, JsonValue

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
