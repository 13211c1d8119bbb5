"""code_completion: what its `input` and `eval` hold."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.format.row_fields import (
    Field,
    Fields,
    Names,
    check_inline,
    check_needed_text,
    check_source,
    not_an_object,
)
from pytest_helmbench.benchmarks.packs.task import Visibility
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.files.field_values import (
    RowFaults,
    check_command,
    check_text,
    check_unknown,
    kind_of,
)

__all__ = ["EVAL_FIELDS", "INPUT_FIELDS"]

_TESTS_HINT = 'write {"source": "inline", "code": "…"}'
_TESTS_KEYS = ("source", "code", "command")


def _plain_text(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, str):
        faults.error(where, f"this is {kind_of(value)}, not text")


def _tests(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, dict):
        not_an_object(faults, where, value, _TESTS_HINT)
        return
    check_unknown(faults, where, value, _TESTS_KEYS)
    check_source(faults, where, value, ("inline",))
    check_needed_text(faults, where, value, "code")
    if value.get("command") is not None:
        check_command(faults, f"{where}.command", value["command"])


def _solution(faults: RowFaults, where: str, value: JsonValue) -> None:
    check_inline(faults, where, value, "code", hidden=True)


INPUT_FIELDS: Fields = {
    "prompt": Field(check_text, required=True),
    "language": Field(check_text),
    "starter_code": Field(_plain_text),
}
EVAL_FIELDS: Fields = {
    "tests": Field(_tests, required=True, visibility=Visibility.EVALUATION_INPUTS),
    "reference_solution": Field(_solution, names=Names.A_FILE),
    "canonical_solution": Field(_solution, names=Names.A_FILE),
}
