"""JSON Schemas of file formats, for editors and for our own validation alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files

from pytest_helmbench.core.json_types import JsonValue

__all__ = ["FormatSchema", "shipped_schema"]


class FormatSchema:
    """The JSON Schema of one format. Every room that reads a format owns its schema.

    Args:
        name: What `helmbench schema` calls it.
        read: Returns the schema, anew each time.
    """

    def __init__(self, name: str, read: Callable[[], dict[str, JsonValue]]) -> None:
        self.name = name
        self._read = read

    def document(self) -> dict[str, JsonValue]:
        """Return the schema; the caller may change it."""
        return self._read()

    def part(self, definition: str | None) -> dict[str, JsonValue]:
        """Return one of its `$defs`; all of it for None.

        Raises:
            KeyError: There is no such definition.
        """
        whole = self.document()
        if definition is None:
            return whole
        definitions = whole["$defs"]
        part = definitions[definition] if isinstance(definitions, dict) else None
        if not isinstance(part, dict):
            raise KeyError(definition)
        return part

    def keys(self) -> tuple[str, ...]:
        """Return the top-level keys of the format."""
        properties = self.document()["properties"]
        return tuple(properties) if isinstance(properties, dict) else ()


def shipped_schema(name: str, module: str) -> FormatSchema:
    """Return the schema that stands as `schemas/NAME.json` beside the module that reads the format.

    Args:
        name: What `helmbench schema` calls it.
        module: `__name__` of that module.
    """

    def read() -> dict[str, JsonValue]:
        found: JsonValue = json.loads(
            files(module.rpartition(".")[0]).joinpath("schemas", f"{name}.json").read_text("utf-8")
        )
        if not isinstance(found, dict):
            raise TypeError(f"{name}.json: the schema is no object")
        return found

    return FormatSchema(name, read)
