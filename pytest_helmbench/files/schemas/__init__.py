"""The JSON Schemas of the formats, for editors and for our own validation alike."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

__all__ = ["SCHEMA_NAMES", "schema"]

SCHEMA_NAMES = ("bench_pack", "benchmark", "component", "criteria", "models", "scenario", "scoring")


def schema(name: str) -> dict[str, Any]:
    """Return one schema.

    Args:
        name: One of `SCHEMA_NAMES`.

    Raises:
        KeyError: There is no such schema.
    """
    if name not in SCHEMA_NAMES:
        raise KeyError(f"no schema is named {name!r}; known: {', '.join(SCHEMA_NAMES)}")
    loaded: dict[str, Any] = json.loads(files(__package__).joinpath(f"{name}.json").read_text("utf-8"))
    return loaded
