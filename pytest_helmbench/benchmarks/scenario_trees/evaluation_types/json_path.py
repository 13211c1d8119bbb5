"""`json_path`: a path into the reply's JSON leads to one of some values, or to anything at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.check_type import CheckType
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import RuleSource
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_rule import form_fault, matches
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_type import EXPECTED
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_check import (
    Checked,
    ReplyCheck,
    as_text,
)
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.files.json_fields import a_text, texts
from pytest_helmbench.judging.json_replies import read_reply

__all__ = ["JsonPath", "JsonPathType"]

_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]'"*\s]+)|\[(?P<index>-?\d{1,9})\]|\[(?P<quoted>'[^']*'|"[^"]*")\]|\.\*|\[\*\]"""
)
_MOST = 10_000
"""Values that a path is followed to; a `*` in a `*` can lead to very many."""

_Step = str | int | None
"""A key, a place in a list, or None for all."""


@dataclass(frozen=True, slots=True)
class JsonPath(ReplyCheck):
    """Some value at the path is an expected one; without expected values, there is one.

    Args:
        path: `$.items[0].name`: keys, places in lists (from the end below 0), `*` for all.
        expected: As written, compared as the type of the value; empty for any.
        by_severity: Invert the verdict where the base severity is below 0.
    """

    type: ClassVar[str] = "json_path"

    path: str
    expected: tuple[str, ...] = ()
    by_severity: bool = False

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> Checked:
        """See `ReplyCheck.checked`."""
        reading = read_reply(reply.text, reply.finish_reason, reply.refusal, case.schema, strict=strict_json)
        if reading.reason is not None:
            return Checked(False, form_fault(reading.reason, reading.breach), reading.reason, reading.parse)
        found = _found(reading.value, _steps(self.path) or [])
        if not found:
            return Checked(False, f"(nothing at {self.path})", None, reading.parse)
        passed = not self.expected or any(
            matches(wanted, value) or (isinstance(value, dict | list) and wanted == as_text(value))
            for value in found
            for wanted in self.expected
        )
        shown = found[0] if len(found) == 1 else found
        return Checked(passed, as_text(shown), None, reading.parse)

    def wanted(self) -> str:
        """See `ReplyCheck.wanted`."""
        return f"{self.path} is {' or '.join(self.expected) or 'there'}"

    def data(self) -> JsonObject:
        """See `ReplyRule.data`."""
        return {
            "type": self.type,
            "path": self.path,
            "expected": [*self.expected],
            "by_severity": self.by_severity,
        }


class JsonPathType(CheckType):
    """`path` leads into the JSON; `expected` is optional."""

    name = JsonPath.type
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "path": {"description": "write a path such as $.items[0].name", "type": "string", "minLength": 1},
        "expected": EXPECTED,
    }
    needed = ("path",)
    asks_for_polarity = True

    def check(self, source: RuleSource) -> None:
        """See `EvaluationType.check`."""
        path = a_text(source.values.get("path"))
        if path and _steps(path) is None:
            hint = "write keys, places and '*' behind '$': $.items[0].name, $['a key'], $.items[*].id"
            shown = json.dumps(path, ensure_ascii=False)
            self.fault(source, f"{shown} is no path that is read here", hint, "path")

    def rule(self, source: RuleSource) -> JsonPath:
        """See `EvaluationType.rule`."""
        path = a_text(source.values.get("path")) or ""
        return JsonPath(path, texts(source.values.get("expected")), source.by_severity)


def _steps(path: str) -> list[_Step] | None:
    """Return the steps of a path; None where it is none."""
    position, steps = 1 if path.startswith("$") else 0, list[_Step]()
    if not path.startswith(("$", ".", "[")):
        path = f".{path}"
    while position < len(path):
        found = _STEP.match(path, position)
        if found is None:
            return None
        if found["index"] is not None:
            steps.append(int(found["index"]))
        elif found["quoted"] is not None:
            steps.append(found["quoted"][1:-1])
        else:
            steps.append(found["name"])
        position = found.end()
    return steps


def _found(value: JsonValue, steps: list[_Step]) -> list[JsonValue]:
    values = [value]
    for step in steps:
        values = [item for one in values for item in _next(one, step)][:_MOST]
    return values


def _next(value: JsonValue, step: _Step) -> Iterator[JsonValue]:
    if step is None:
        yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    elif isinstance(step, int):
        if isinstance(value, list) and -len(value) <= step < len(value):
            yield value[step]
    elif isinstance(value, dict) and step in value:
        yield value[step]
