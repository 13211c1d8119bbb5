"""Reading the JSON of a reply: where it is looked for, and what is wrong with one that has none."""

from __future__ import annotations

import json
import math
import re

from pytest_helmbench.core.foreign_schemas import schema_violation
from pytest_helmbench.core.json_types import (
    JsonObject,
    JsonValue,
    is_deeper,
    refused_constant,
    without_twins,
)
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Parse, Reply

_MOST_BROKEN_OBJECTS = 100
"""After so many objects that do not parse the search gives up: each costs a look at the whole text."""

_FENCE_LINE = re.compile(r"^[ \t]*(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_JSON_START = re.compile(r"""\{\s*["}]|\[\s*[\[{]""")
_BRACKET_OR_STRING = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|[][{}]', re.DOTALL)
_REFUSAL = re.compile(
    r"""\W{0,5}
    (?:(?:i['’]?m|i\ am)\s+(?:(?:so|very|really|truly)\s+)?sorry|sorry|apologies|unfortunately|i\ apologi[sz]e)?
    [,.;:!\s–—-]{0,5}(?:but\s+|however,?\s+|as\s+an\s+ai\b[^.,\n]{0,40},?\s+)?
    i\s?(?:['’]?m\s+(?:not\ able|unable)\s+to|am\s+(?:not\ able|unable)\s+to
       |can(?:['’]?t|not|\ not)|won['’]?t|will\ not|must\ decline|have\ to\ decline|decline)\b
    [^.\n{]{0,60}?
    \b(?:help|assist|provide|comply|fulfil|answer|respond|continue|engage|discuss|generate|create|support|share
       |participate|do\ that)\w*\b""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """The structured value of a reply.

    Args:
        value: The JSON value that fits the schema; None where `reason` says why there is none. A reply cut
            at the token limit may still hold one.
        parse: How JSON was found; None where none was.
        reason: `refusal`, `truncated`, `empty`, `invalid_json`, `schema_violation`; None for a sound reply.
        breach: Where and by which keyword the schema is broken (`$.category: enum`); empty otherwise.
    """

    value: JsonValue
    parse: Parse | None
    reason: str | None
    breach: str = ""


def read_reply(reply: Reply, schema: JsonObject | None, *, strict: bool) -> Reading:
    """Find the JSON of a reply and hold it to its schema.

    Args:
        schema: Bare JSON Schema (Draft 2020-12), not changed afterwards; None to accept any JSON.
        strict: Accept only a reply that is JSON as a whole.

    Raises:
        HelmbenchError: The schema holds a `$ref` that leads nowhere, or a pattern that cannot be read.
        RuleTimeoutError: The schema takes too long.

    Source:
        Scenario trees, section 5, "Reading a reply".
    """
    reason = reply.form_fault
    if reason == "refusal" or not reply.text.strip():
        return Reading(None, None, reason)
    found = _found_json(reply.text, strict=strict)
    breach = None if found is None else "" if schema is None else schema_violation(schema, found[0])
    if found is None or breach is None:
        refused = _REFUSAL.match(reply.text.lstrip()[:400])
        return Reading(None, None, reason or ("refusal" if refused else "invalid_json"))
    value, parse = found
    if reason is not None:
        return Reading(None if breach else value, parse, reason)
    return Reading(None, parse, "schema_violation", breach) if breach else Reading(value, parse, None)


def enclosed_json(text: str) -> tuple[JsonValue, Parse] | None:
    """Return the JSON value that the answer of a judge consists of, or None.

    A code fence around it and byte order marks are taken off, and strings may hold raw line breaks. JSON that is
    quoted inside prose is never taken for the author's own.
    """
    text = text.replace("\ufeff", "")
    found, parse = _decoded(text, _LENIENT_DECODER), Parse.STRICT
    markers = list(_FENCE_LINE.finditer(text))
    block = _only_fenced_block(text)
    if found is None and len(markers) == 2 and block is not None:
        around = text[: markers[0].start()] + text[markers[1].end() :]
        if not around.strip():
            found, parse = _decoded(block, _LENIENT_DECODER), Parse.RECOVERED
    return None if found is None else (found[0], parse)


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits} is out of range")
    return value


_DECODER, _LENIENT_DECODER = (
    json.JSONDecoder(
        parse_constant=refused_constant,
        parse_float=_finite,
        object_pairs_hook=without_twins,
        strict=refuses_raw_breaks,
    )
    for refuses_raw_breaks in (True, False)
)


def _found_json(text: str, *, strict: bool) -> tuple[JsonValue, Parse] | None:
    whole = _decoded(text)
    if whole is not None:
        return whole[0], Parse.STRICT
    if strict:
        return None
    block = _only_fenced_block(text)
    found = (None if block is None else _decoded(block)) or _only_object(text)
    return None if found is None else (found[0], Parse.RECOVERED)


def _decoded(text: str, decoder: json.JSONDecoder = _DECODER) -> tuple[JsonValue] | None:
    """Return the value in a tuple (it may be None itself), or None when the text is not JSON that can be judged.

    A key that stands twice says two things, and what is nested too deeply can be neither compared nor kept.
    """
    try:
        value: JsonValue = decoder.decode(text)
    except (ValueError, RecursionError):  # ValueError: also a number of thousands of digits
        return None
    return None if is_deeper(value) else (value,)


def _only_fenced_block(text: str) -> str | None:
    block: str | None = None
    opener: re.Match[str] | None = None
    for marker in _FENCE_LINE.finditer(text):
        fence, info = marker[1], marker[2].strip()
        if opener is None:
            if "`" not in info:
                opener = marker
        elif fence.startswith(opener[1]) and not info:
            if block is not None:
                return None
            block = text[opener.end() : marker.start()]
            opener = None
    return block


def _only_object(text: str) -> tuple[JsonValue] | None:
    """Return the only top-level JSON object in the text, in a tuple, or None when there is none or more than one.

    Text that starts like JSON and does not parse is skipped up to its closing bracket, so that a part of a broken
    object is never taken for the answer, and every character is read a bounded number of times.
    """
    found: tuple[JsonValue] | None = None
    broken = position = 0
    while (match := _JSON_START.search(text, position)) is not None:
        try:
            value, position = _DECODER.raw_decode(text, match.start())
        except json.JSONDecodeError:
            broken += 1
            end = _end_of_brackets(text, match.start())
            if end is None:
                return found
            if broken > _MOST_BROKEN_OBJECTS:
                return None
            position = end
            continue
        except (RecursionError, ValueError):  # an object that says a key twice, or no number
            return None
        if isinstance(value, dict):
            if found is not None or is_deeper(value):
                return None
            found = (value,)
    return found


def _end_of_brackets(text: str, start: int) -> int | None:
    depth = 0
    for token in _BRACKET_OR_STRING.finditer(text, start):
        depth += (token[0] in "{[") - (token[0] in "}]")
        if depth == 0:
            return token.end()
    return None
