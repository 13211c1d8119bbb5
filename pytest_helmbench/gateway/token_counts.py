"""Tokens: the bound of a request's completion, and estimates where a provider counts none."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.gateway.other_replies import CHAT, EMBEDDINGS, RESPONSES
from pytest_helmbench.gateway.providers.endpoints import Endpoint

__all__ = ["bound_completion", "completion_bound", "estimated_tokens", "most_tokens", "with_estimates"]

_BOUNDS = ("max_completion_tokens", "max_tokens")
_RESPONSE_BOUND = "max_output_tokens"
_SEVERAL = ("n", "best_of")
"""How many completions are written, also such as nobody gets."""
_ASCII_BYTES_PER_TOKEN = 4
_OTHER_BYTES_PER_TOKEN = 2
_DATA = re.compile(rb'"data:[^"\\]*"')  # a picture as a rule: fewer tokens than bytes
_DATA_BYTES_PER_TOKEN = 2


def completion_bound(body: JsonObject, path: str = CHAT) -> int | None:
    """Return how many tokens the completions of a request may have; None when it states no bound that counts.

    Of several bounds the largest counts, since nobody knows which one the server takes.
    """
    names = (_RESPONSE_BOUND,) if path == RESPONSES else _BOUNDS
    bound = max(_wholes(body, names), default=None)
    choices = max(_wholes(body, _SEVERAL), default=1)
    return bound * choices if bound else None


def _wholes(body: JsonObject, names: Iterable[str]) -> Iterator[int]:
    """Yield whole numbers above 0 as servers take them: some read `2.0` and `"2"`, too."""
    for value in (body.get(name) for name in names):
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            continue
        with suppress(ValueError, OverflowError):
            number = math.ceil(float(value))
            if number > 0:
                yield number


def bound_completion(
    body: dict[str, JsonValue], endpoint: Endpoint, most_tokens: int | None, path: str = CHAT
) -> bool:
    """Bound the completion of a request that states no bound; return whether that was done."""
    if most_tokens is None or path == EMBEDDINGS:
        return False
    stated = max(_wholes(body, (_RESPONSE_BOUND,) if path == RESPONSES else _BOUNDS), default=None)
    known = _RESPONSE_BOUND if path == RESPONSES else endpoint.max_tokens_key
    for name in {*_BOUNDS, _RESPONSE_BOUND} - {known}:
        body.pop(name, None)
    body[known] = stated or most_tokens  # a bound that the server does not read is none
    return stated is None


def estimated_tokens(text: bytes) -> int:
    """Return about how many tokens a text has."""
    others = 0 if text.isascii() else sum(byte > 127 for byte in text)
    return math.ceil((len(text) - others) / _ASCII_BYTES_PER_TOKEN + others / _OTHER_BYTES_PER_TOKEN)


def most_tokens(body: bytes) -> int:
    """Return how many tokens a request has at most: no tokenizer makes more than one of a byte."""
    data = sum(len(found[0]) for found in _DATA.finditer(body))
    return len(body) - data + data // _DATA_BYTES_PER_TOKEN


def with_estimates(usage: Usage, request: bytes, message: JsonValue) -> Usage:
    """Return a usage with tokens of the prompt and of the completion, counted here where the provider did not.

    Args:
        usage: As the provider stated it.
        request: Body as sent.
        message: Of the reply, with all that was written: text, reasoning, calls of tools.
    """
    if usage.cost_usd is not None:
        return usage
    # No prompt has 0 tokens, and no text that was written: who says so has not counted.
    written = None if usage.completion_tokens else estimated_tokens(_written(message))
    prompt = usage.prompt_tokens or estimated_tokens(request)
    completion = usage.completion_tokens or written
    if (prompt, completion) == (usage.prompt_tokens, usage.completion_tokens):
        return usage
    return replace(usage, prompt_tokens=prompt, completion_tokens=completion, estimated=True)


def _written(value: JsonValue) -> bytes:
    """Return all texts in a value, but for names of fields and roles."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    if isinstance(value, Mapping):
        return b"".join(_written(part) for name, part in value.items() if name not in ("role", "id", "type"))
    return b"".join(map(_written, value)) if isinstance(value, list) else b""
