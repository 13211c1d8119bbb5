"""Line numbers of the values in a JSON text, for messages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from pytest_helmbench.files.yaml_text import Place

__all__ = ["json_lines"]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def json_lines(text: str) -> Mapping[Place, int]:
    """Return the 1-based line of each value of a valid JSON text; of a key where it has one."""
    lines: dict[Place, int] = {}
    place: list[str | int] = []
    objects: list[bool] = []
    key_line: int | None = None
    wants_key = False
    line, counted = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", counted, token.start())
        counted = token.start()
        mark = token[0]
        if wants_key and mark.startswith('"'):
            place[-1] = json.loads(mark)
            key_line = line
            wants_key = False
        elif mark in "}]":
            place.pop()
            objects.pop()
            wants_key = False
        elif mark == ",":
            if objects[-1]:
                wants_key = True
            else:
                place[-1] = int(place[-1]) + 1
        elif mark != ":":
            lines.setdefault(tuple(place), line if key_line is None else key_line)
            key_line = None
            if mark in "{[":
                objects.append(mark == "{")
                place.append("" if mark == "{" else 0)
                wants_key = mark == "{"
    return lines
