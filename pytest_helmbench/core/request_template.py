"""Templates of requests: JSON with places such as `{prompt}`, and nothing but places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.scrub import excerpt

_PLACE = re.compile(r"\{\{(?P<literal>\w+)\}\}|\{(?P<name>\w+)\}")
"""`{name}` is a place; `{{name}}` gives the text `{name}`."""

_MEANT = re.compile(r"\{\{\{?\s*[#/^>&!]?\s*[A-Za-z_][^{}\n]*\}\}\}?")


def unfilled(prompt: str) -> Mapping[str, str]:
    """Return what is wrong with places such as `{{name}}` in a prompt, which is not a template, by place."""
    found = dict.fromkeys(_MEANT.findall(prompt))
    return {place: f"{excerpt(place, 80)} is sent as it stands: nothing fills it" for place in found}


def places(template: JsonValue) -> Iterator[str]:
    """Yield the names of all places of a template, which stand in its values; a key is sent as it is."""
    if isinstance(template, str):
        yield from (found["name"] for found in _PLACE.finditer(template) if found["name"])
    elif isinstance(template, dict | list):
        for item in template.values() if isinstance(template, dict) else template:
            yield from places(item)


def filled(template: JsonValue, values: Mapping[str, JsonValue]) -> JsonValue:
    """Return a template with values in its places; a place alone keeps the value's type."""
    if isinstance(template, dict):
        return {key: filled(item, values) for key, item in template.items()}
    if isinstance(template, list):
        return [filled(item, values) for item in template]
    if not isinstance(template, str):
        return template
    whole = _PLACE.fullmatch(template)
    if whole is not None and whole["name"]:
        return values.get(whole["name"])
    return _PLACE.sub(lambda found: _text_at(found, values), template)


def _text_at(found: re.Match[str], values: Mapping[str, JsonValue]) -> str:
    if found["literal"]:
        return f"{{{found['literal']}}}"
    value = values.get(found["name"])
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
