"""Rule hashes: a stored verdict stands as long as nothing has changed that could turn it."""

from __future__ import annotations

import json
from hashlib import sha256

from pytest_helmbench.core.json_types import JsonObject

__all__ = ["rule_hash"]

_HASH_DIGITS = 16


def rule_hash(rule: JsonObject, *parts: str) -> str:
    """Return 16 hex digits that change whenever the verdict of the same reply could.

    Args:
        rule: Everything in it that decides.
        parts: What else decides: for a judge the template's hash and the model's id.

    Source:
        SHA-256 over the canonical JSON of the rule and the parts.
    """
    plain = json.dumps([dict(rule), *parts], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(plain.encode("ascii")).hexdigest()[:_HASH_DIGITS]
