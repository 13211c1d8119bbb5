"""The values of a Bench Pack's manifest, with the lines they stand on and what is wrong with them."""

from __future__ import annotations

import json
from dataclasses import field

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.field_values import kind_of, named
from pytest_helmbench.files.source import Fault
from pytest_helmbench.files.yaml_text import Document, Place

__all__ = ["Sheet", "shown"]


def shown(value: object) -> str:
    """Return a JSON value as messages name it, cut where it is long."""
    if isinstance(value, str):
        return named(value)
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


@dataclass(slots=True)
class Sheet:
    """Reads values and files what is wrong under the line at fault.

    What is absent or null is not there; neither is what was filed as wrong.

    Args:
        document: The manifest.
    """

    document: Document
    faults: list[Fault] = field(default_factory=list)

    def error(self, place: Place, message: str, hint: str = "") -> None:
        """File a problem: `where: message`."""
        self._file(place, _path(place), message, hint)

    def warn(self, place: Place, message: str, hint: str = "") -> None:
        """File what is odd, but usable."""
        self._file(place, _path(place), message, hint, usable=True)

    def missing(self, place: Place, hint: str) -> None:
        """File that a key is not there, or null, under the line of what should hold it."""
        self._file(place, _path(place[:-1]), f"there is no '{place[-1]}'", hint)

    def text(self, data: JsonObject, *place: str | int) -> str:
        """Return the text at a key; empty for none."""
        value = data.get(str(place[-1]))
        if value is None:
            return ""
        if not isinstance(value, str):
            self._wrong(place, value, "not text")
            return ""
        if not value.strip():
            self.error(place, "this is blank text")
            return ""
        return value

    def mapping(self, data: JsonObject, *place: str | int) -> JsonObject:
        """Return the object at a key; empty for none."""
        value = data.get(str(place[-1]))
        if value is None or isinstance(value, dict):
            return value or {}
        self._wrong(place, value, "not an object")
        return {}

    def listed(self, data: JsonObject, *place: str | int) -> list[JsonValue]:
        """Return the list at a key; empty for none."""
        value = data.get(str(place[-1]))
        if value is None or isinstance(value, list):
            return value or []
        self._wrong(place, value, "not a list")
        return []

    def texts(self, data: JsonObject, *place: str | int) -> tuple[str, ...]:
        """Return the list of texts at a key, trimmed and without blank ones; empty for none."""
        found: list[str] = []
        for number, value in enumerate(self.listed(data, *place)):
            if isinstance(value, str):
                found.append(value.strip())
            else:
                self._wrong((*place, number), value, "not text")
        return tuple(text for text in found if text)

    def _file(self, place: Place, where: str, message: str, hint: str, *, usable: bool = False) -> None:
        line = self.document.line(*place) or 1
        self.faults.append(Fault(line, f"{where or 'manifest'}: {message}", hint, usable))

    def _wrong(self, place: Place, value: object, wanted: str) -> None:
        shows = isinstance(value, bool | int | float | str)
        what = f"{shown(value)} is {kind_of(value)}" if shows else f"this is {kind_of(value)}"
        self.error(place, f"{what}, {wanted}")


def _path(place: Place) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.removeprefix(".")
