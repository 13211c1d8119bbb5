"""JSON as people read it on a terminal: characters as they are, unless one could act there."""

from __future__ import annotations

import json

from pytest_helmbench.core.scrub import quoted_json, scrub

__all__ = ["readable_json"]


def readable_json(value: object, indent: int | None = None) -> str:
    """Return JSON that reads well and harms no terminal; what could, there or in the log of a CI, is escaped."""
    plain = json.dumps(value, ensure_ascii=False, indent=indent)
    return quoted_json(plain if scrub(plain) == plain else json.dumps(value, indent=indent))
