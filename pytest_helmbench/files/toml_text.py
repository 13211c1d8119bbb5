"""TOML in JSON types, with the line of each key."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator

from pytest_helmbench.core.json_types import DEEPEST, JsonObject, is_deeper
from pytest_helmbench.files.source import Fault

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_AT = re.compile(r" ?\(at line (\d+), column \d+\)$|\(at end of document\)$")
_LAST = re.compile(r"(?:\.?[^.\[\]]+|\[\d+\])\Z")
_ROOM = 10  # levels that a row adds


class TomlText:
    """A TOML text.

    Attributes:
        data: Empty where it is not TOML. Dates and numbers that are none are texts.
        fault: Why it is not TOML; None where it is.
    """

    def __init__(self, text: str) -> None:
        self.data: JsonObject = {}
        self.fault: Fault | None = None
        self._lines: dict[str, int] = {}
        try:
            plain = json.dumps(tomllib.loads(text), default=str)
        except ValueError as error:  # also a whole number of thousands of digits
            found, why = _AT.search(str(error)), _AT.sub("", str(error))
            line = int(found[1]) if found and found[1] else None
            self.fault = Fault(line, f"this is not valid TOML: {why[:1].lower()}{why[1:]}")
            return
        except RecursionError:
            plain = "[" * DEEPEST + "]" * DEEPEST
        data = json.loads(plain, parse_constant=str)
        if is_deeper(data, DEEPEST - _ROOM):
            self.fault = Fault(None, "this is nested too deeply")
        elif "\\u0000" in plain:
            self.fault = Fault(None, "this holds a NUL character")
        else:
            self.data = data
            self._lines = dict(reversed([*_places(text)]))

    def line(self, where: str) -> int | None:
        """Return the line of `verifier.collect[0].command`, or of the nearest thing around it; None for nothing."""
        while where and where not in self._lines:
            where = _LAST.sub("", where)
        return self._lines.get(where)


def _places(text: str) -> Iterator[tuple[str, int]]:
    """Yield the keys and tables of a text with their lines; those in arrays and inline tables are left out."""
    table, is_open = "", ""
    times = Counter[str]()
    for number, line in enumerate(text.split("\n"), start=1):
        if is_open:
            is_open = "" if line.count(is_open) % 2 else is_open
            continue
        if header := _HEADER.match(line):
            table = ""
            for part in _plain(header[2]).split("."):
                table = f"{table}.{part}" if table else part
                if header[1] == "[[" and table == _plain(header[2]):
                    times[table] += 1
                table += f"[{times[table] - 1}]" if times[table] else ""
            yield table, number
        elif key := _KEY.match(line):
            yield f"{table}.{_plain(key[1])}" if table else _plain(key[1]), number
        is_open = next((quotes for quotes in ('"""', "'''") if line.count(quotes) % 2), "")


def _plain(key: str) -> str:
    return re.sub(r"""\s*\.\s*|["']""", lambda found: "." if "." in found[0] else "", key)
