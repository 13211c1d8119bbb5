"""Tokens: the bound of a request's completion, and estimates where a provider counts none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.gateway.other_replies import CHAT, EMBEDDINGS, RESPONSES
from pytest_helmbench.gateway.providers.endpoints import Endpoint

__all__ = ["bound_completion", "completion_bound", "estimated_tokens", "with_estimates"]

_BOUNDS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_SEVERAL = ("n", "best_of")
"""How many completions are written, also such as nobody gets."""
_ASCII_BYTES_PER_TOKEN = 4
_OTHER_BYTES_PER_TOKEN = 2


def completion_bound(body: JsonObject) -> int | None:
    """Return how many tokens the completions of a request may have; None when it states no bound that counts."""
    stated = (body.get(name) for name in _BOUNDS)
    bound = next((n for n in stated if isinstance(n, int) and not isinstance(n, bool) and n > 0), None)
    several = (body.get(name) for name in _SEVERAL)
    choices = max((n for n in several if isinstance(n, int)), default=1)
    return bound * choices if bound and choices > 1 else bound


def bound_completion(
    body: dict[str, JsonValue], endpoint: Endpoint, most_tokens: int | None, path: str = CHAT
) -> bool:
    """Bound the completion of a request that states no bound; return whether that was done."""
    if most_tokens is None or path == EMBEDDINGS or completion_bound(body) is not None:
        return False
    for name in _BOUNDS:
        body.pop(name, None)
    body["max_output_tokens" if path == RESPONSES else endpoint.max_tokens_key] = most_tokens
    return True


def estimated_tokens(text: bytes) -> int:
    """Return about how many tokens a text has."""
    others = 0 if text.isascii() else sum(byte > 127 for byte in text)
    return math.ceil((len(text) - others) / _ASCII_BYTES_PER_TOKEN + others / _OTHER_BYTES_PER_TOKEN)


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
