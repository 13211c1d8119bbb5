"""Fields of a row's `input` and `eval`: how a family declares one, and the checks that families share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from pytest_helmbench.benchmarks.packs.task import CommandCheck, MaterializationError, PackTask, Visibility
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.field_values import (
    RowFaults,
    check_seconds,
    check_text,
    check_unknown,
    kind_of,
    named,
)
from pytest_helmbench.files.source import listed
from pytest_helmbench.files.strict_json import a_text, texts

Check = Callable[[RowFaults, str, JsonValue], None]

REFERENCE_HINT = 'or name a file below the eval root: {"path": "…"}'
_REFERENCE_KEYS = frozenset({"path", "mount", "read_only"})


class Names(StrEnum):
    """Whether a field of `eval` may name files of the pack instead of holding a value."""

    NOTHING = "nothing"
    A_FILE = "a file"
    FILES = "files"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of `input` or `eval`.

    Args:
        check: Files what is wrong with a value; of hidden fields without anything of the value.
        required: The family needs it.
        visibility: Of a field of `eval`: hidden, or an input of the evaluation.
        names: Of a field of `eval`: whether it may name files of the pack.
    """

    check: Check
    required: bool = False
    visibility: Visibility = Visibility.HIDDEN
    names: Names = Names.NOTHING


Fields = Mapping[str, Field]


def is_reference(value: object) -> bool:
    """Return whether a value of `eval` names a file of the pack.

    Source:
        Benchmark packs, section 2.
    """
    return isinstance(value, dict) and "path" in value and value.keys() <= _REFERENCE_KEYS


def references(field: Field, value: JsonValue) -> list[tuple[str, JsonObject]]:
    """Return the file references that a field of `eval` holds, each with its place in it."""
    if field.names is Names.NOTHING:
        return []
    if isinstance(value, dict) and is_reference(value):
        return [("", value)]
    if field.names is not Names.FILES or not isinstance(value, list):
        return []
    return [
        (f"[{index}]", item)
        for index, item in enumerate(value)
        if isinstance(item, dict) and is_reference(item)
    ]


def check_fields(faults: RowFaults, where: str, data: JsonObject, fields: Fields) -> None:
    """File everything that is wrong with the fields of `input` or `eval`, each looked at by itself.

    Source:
        Benchmark packs, sections 1 and 4.
    """
    known = 0
    for name, field in fields.items():
        value = data.get(name)
        known += name in data
        if value is not None:
            field.check(faults, f"{where}.{name}", value)
        elif field.required:
            what = "this is empty (null)" if name in data else "this is missing"
            faults.error(f"{where}.{name}", what, "the family needs it")
    if known != len(data):
        check_unknown(faults, where, data, fields)


def anything(_faults: RowFaults, _where: str, _value: JsonValue) -> None:
    """Accept every value: the format leaves it open."""


def text_or_object(faults: RowFaults, where: str, value: JsonValue) -> None:
    """File anything but text or an object."""
    if not isinstance(value, str | dict):
        faults.error(where, f"this is {kind_of(value)}, not text or an object")


def earlier_messages(faults: RowFaults, where: str, value: JsonValue) -> None:
    """File anything but a list of messages, each with a role and a text."""
    roles = ("system", "user", "assistant")
    for number, one in enumerate(value if isinstance(value, list) else [None], start=1):
        keys = one if isinstance(one, dict) else {}
        is_said = kind_of(keys.get("content")) == "text" and keys.get("role") in roles
        if not is_said or len(keys) > 2:
            hint = f'write {{"role": …, "content": a text}}, with a role of {", ".join(roles)}'
            faults.error(where, f"entry {number} is not a message", hint)


def not_an_object(faults: RowFaults, where: str, value: JsonValue, hint: str = "") -> None:
    """File that a value is not an object."""
    faults.error(where, f"this is {kind_of(value)}, not an object", hint)


def check_inline(faults: RowFaults, where: str, value: JsonValue, key: str, *, hidden: bool) -> None:
    """File anything but text, `{"source": "inline", key: text}`, or, where it is hidden, a file reference."""
    if isinstance(value, str):
        check_text(faults, where, value)
    elif not isinstance(value, dict):
        hint = REFERENCE_HINT if hidden else ""
        faults.error(where, f"this is {kind_of(value)}, not text or an object", hint)
    elif not (hidden and is_reference(value)):
        check_unknown(faults, where, value, ("source", key))
        check_source(faults, where, value, ("inline",), hidden=hidden)
        check_needed(faults, where, value, key)


def check_source(
    faults: RowFaults, where: str, value: JsonObject, known: tuple[str, ...], *, hidden: bool = False
) -> None:
    """File a `source` that is missing or none of those that are known."""
    found = value.get("source")
    if found in known:
        return
    if found is None:
        what = "this is missing"
    elif hidden or not isinstance(found, str):
        what = f"the source is {kind_of(found)} that is not known"
    else:
        what = f"the source {named(found)} is not known"
    only = f"the only source is {known[0]!r}"
    hint = only if len(known) == 1 else listed(found or "", known, "known sources")
    faults.error(f"{where}.source", what, hint)


def check_needed(
    faults: RowFaults, where: str, value: JsonObject, key: str, check: Check = check_text
) -> None:
    """File a value that is missing, and what a check says of it: of a text unless another one is given."""
    if key in value:
        check(faults, f"{where}.{key}", value[key])
    else:
        faults.error(f"{where}.{key}", "this is missing")


def check_place_and_time(faults: RowFaults, where: str, value: JsonObject) -> None:
    """File a `workdir` that is not text and a `timeout_seconds` that is not a time."""
    if value.get("workdir") is not None:
        check_text(faults, f"{where}.workdir", value["workdir"])
    if value.get("timeout_seconds") is not None:
        check_seconds(faults, f"{where}.timeout_seconds", value["timeout_seconds"])


def command_check(data: JsonObject) -> CommandCheck:
    """Return a command; one that is written as a text is run by `sh -lc`.

    Args:
        data: What holds `command`, without faults.
    """
    command = a_text(data.get("command"))
    return CommandCheck(
        texts(data.get("command")) if command is None else ("sh", "-lc", command),
        a_text(data.get("workdir")),
        timeout_of(data),
    )


def timeout_of(data: JsonObject) -> float | None:
    """Return `timeout_seconds`; None where there is none."""
    timeout = data.get("timeout_seconds")
    return float(timeout) if isinstance(timeout, int | float) else None


def eval_text(task: PackTask, name: str) -> str | None:
    """Return a solution, patch or answer of `eval` as text, whichever of its forms the row has.

    Args:
        name: `gold_patch`, `reference_solution`, `canonical_solution` or `reference_answer`.

    Returns:
        None where the row has none.

    Raises:
        MaterializationError: It is a file that cannot be read.
    """
    value = task.eval_value(name)
    if isinstance(value, dict) and is_reference(value):
        path = str(value["path"]).removesuffix("/")
        source = next(asset.source for asset in task.eval_files if asset.path == path)
        try:
            return source.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            message = f"{task.id}: eval.{name}: the file that it names is not text in UTF-8"
            raise MaterializationError(f"{message}\n  hint: save it as UTF-8") from error
    if isinstance(value, dict):
        return str(value.get("patch", value.get("code", "")))
    return None if value is None else str(value)
