"""Parts of a request that name what a provider would have to fetch: addresses, stored files, schemas elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_helmbench.core.json_types import JsonObject, JsonValue

__all__ = [
    "OUT_OF_REACH",
    "Refusal",
    "fetched_parts",
    "fetched_schemas",
    "names_of",
    "plain_name",
    "provider_tools",
]

Refusal = tuple[str, str]
"""A field, and why it is not passed on."""

OUT_OF_REACH = "would let the provider fetch what the request does not hold"
_AS_DATA = f"{OUT_OF_REACH}: send it as data:"
_NO_CLIENT_TOOL = "is no tool that the client runs (type function or custom)"

_ADDRESS = re.compile(
    r"\s*(?:(?!data:)[a-z][a-z0-9+.-]*:|[/\\]{2}[^/\\]*\.)", re.IGNORECASE
)  # no base64 has a dot


def names_of(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


_ADDRESSES = frozenset(("imageurl", "videourl", "audiourl", "fileurl", "documenturl", "url", "uri", "path"))
"""Fields that hold an address, whatever it looks like."""
_STORED = frozenset(("fileid", "imageid", "videoid"))
_TEXTS = names_of(
    """
    text content input output arguments name title filename id itemid callid toolcallid role type status detail
    format mediatype mimetype language refusal reasoning reasoningcontent thinking thought signature summary
    encryptedcontent instructions description query context
    """
)
"""Fields whose texts the model reads as they are, and names that nobody looks up."""
_SAID = frozenset(("annotations", "toolcalls", "functioncall", "arguments", "reasoningdetails", "logprobs"))
"""What a model has said before, which no provider reads as an address."""
_REFERENCES = frozenset(("$ref", "$dynamicRef", "$recursiveRef"))
_CLIENT_TOOLS = ("function", "custom")
_CHOICES = (*_CLIENT_TOOLS, "allowed_tools", "auto", "any", "none", "required", "tool")
_TOOL_FIELDS = names_of(
    "type function custom name description parameters strict format input_schema cache_control metadata"
)


def plain_name(name: str) -> str:
    """Return a field's name as servers that take no notice of case and joints read it."""
    return name.strip().casefold().replace("_", "").replace("-", "")


def fetched_parts(name: str, contents: JsonValue) -> Iterator[Refusal]:
    """Yield the parts of messages that name what the provider would have to fetch; what is in the request passes."""
    if isinstance(contents, list):
        # An item that is an id alone is one that the provider has kept.
        yield from (
            (f"{name}[{number}]", OUT_OF_REACH)
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
            plain = {plain_name(own): (own, part) for own, part in value.items()}
            kind = plain.get("type", ("", None))[1]
            if kind == "item_reference":
                yield place, OUT_OF_REACH
            yield from (
                (f"{place}.{own}", OUT_OF_REACH)
                for found, (own, part) in plain.items()
                if found in _STORED and part is not None
            )
            waiting.extend(
                (f"{place}.{own}", found, part)
                for found, (own, part) in plain.items()
                if found not in _STORED and found not in _SAID
            )


def _leads_away(key: str, value: str) -> bool:
    """Return whether a text is an address: by the name of its field, or by its looks."""
    if key in _ADDRESSES:
        return not value.lower().startswith("data:")
    return _ADDRESS.match(value) is not None


def fetched_schemas(name: str, stated: JsonValue) -> Iterator[Refusal]:
    """Yield references of schemas that lead out of the request."""
    waiting: list[tuple[str, JsonValue]] = [(name, stated)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, list):
            waiting.extend((f"{place}[{number}]", part) for number, part in enumerate(value))
        elif isinstance(value, dict):
            for key, part in value.items():
                if key in _REFERENCES and isinstance(part, str) and _ADDRESS.match(part):
                    yield f"{place}.{key}", OUT_OF_REACH
                elif isinstance(part, list | dict):
                    waiting.append((f"{place}.{key}", part))


def provider_tools(stated: JsonObject) -> Iterator[Refusal]:
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
