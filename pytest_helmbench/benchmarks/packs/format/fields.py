"""What `input` and `eval` of the six families hold: one table, and a check for every field."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_helmbench.benchmarks.packs.format.path_rules import path_fault
from pytest_helmbench.benchmarks.packs.task import Family
from pytest_helmbench.files.field_values import (
    RowFaults,
    check_command,
    check_number,
    check_seconds,
    check_text,
    check_texts,
    check_unknown,
    kind_of,
    named,
)
from pytest_helmbench.files.source import listed

__all__ = ["REFERENCE_FIELDS", "check_eval_field", "check_fields", "is_reference", "references"]

Check = Callable[[RowFaults, str, Any], None]

_MOST_CHOICES = 26
_REFERENCE_KEYS = frozenset({"path", "mount", "read_only"})
_COMMANDS = ("chroot",)
_COMMANDS_HINT = "the only dangerous command that a row may ask for is 'chroot'"
_COMMIT = re.compile(r"[0-9A-Za-z][\w./-]*\Z", re.ASCII)
_LABEL = re.compile(  # possessive: white space without end must not cost time without end
    r"(?:(?:final answer|answer|choice|option)\s*+(?:is\s*+)?+[:\-]?+\s*+)?[(\[]?([A-Za-z])[)\].:]?\Z"
)
_EDGES = " \t\r\n\"'`.,;:"
_LIST_REFERENCES = frozenset({"test_files", "run_tests"})

REFERENCE_FIELDS: Mapping[Family, tuple[str, ...]] = {
    Family.MULTIPLE_CHOICE: (),
    Family.SHORT_ANSWER: (),
    Family.FREE_RESPONSE: ("reference_answer",),
    Family.CODE_COMPLETION: ("reference_solution", "canonical_solution"),
    Family.REPO_PATCH: ("gold_patch",),
    Family.TERMINAL_TASK: ("run_tests", "test_files", "expected_state"),
}
"""Fields of `eval` that may name a file of the pack instead of holding a value."""


@dataclass(frozen=True, slots=True)
class _Field:
    check: Check
    required: bool = False


def is_reference(value: object) -> bool:
    """Return whether a value of `eval` names a file of the pack.

    Source:
        Benchmark packs, section 2.
    """
    return isinstance(value, dict) and "path" in value and value.keys() <= _REFERENCE_KEYS


def references(name: str, value: object) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the file references that a field of `eval` holds, each with its place in it."""
    if is_reference(value):
        return [("", value)]  # type: ignore[list-item]
    if name in _LIST_REFERENCES and isinstance(value, list):
        return [(f"[{index}]", item) for index, item in enumerate(value) if is_reference(item)]
    return []


def check_fields(
    faults: RowFaults, family: Family, public: Mapping[str, Any] | None, hidden: Mapping[str, Any] | None
) -> None:
    """File everything that is wrong with `input` and `eval` of a row; None is not looked at.

    Messages about hidden fields hold nothing of their values.

    Source:
        Benchmark packs, sections 1 and 4.
    """
    before = len(faults.errors)
    if public is not None:
        _check_table(faults, "input", public, _INPUT[family])
    if hidden is not None:
        _check_table(faults, "eval", hidden, _EVAL[family])
    if len(faults.errors) == before and public is not None and hidden is not None:
        across = _ACROSS.get(family)
        if across is not None:
            across(faults, public, hidden)


def check_eval_field(faults: RowFaults, family: Family, name: str, value: Any) -> None:
    """File everything that is wrong with one field of `eval`; a name that is not known is not looked at."""
    field = _EVAL[family].get(name)
    if field is not None and value is not None:
        field.check(faults, f"eval.{name}", value)


def _check_table(faults: RowFaults, where: str, data: Mapping[str, Any], table: Mapping[str, _Field]) -> None:
    known = 0
    for name, field in table.items():
        value = data.get(name)
        known += name in data
        if value is not None:
            field.check(faults, f"{where}.{name}", value)
        elif field.required:
            what = "this is empty (null)" if name in data else "this is missing"
            faults.error(f"{where}.{name}", what, "the family needs it")
    if known != len(data):
        check_unknown(faults, where, data, table)


def _anything(faults: RowFaults, where: str, value: Any) -> None:
    """Accept every value: the format leaves it open."""


def _plain_text(faults: RowFaults, where: str, value: Any) -> None:
    if not isinstance(value, str):
        faults.error(where, f"this is {kind_of(value)}, not text")


def _text_or_object(faults: RowFaults, where: str, value: Any) -> None:
    if not isinstance(value, str | dict):
        faults.error(where, f"this is {kind_of(value)}, not text or an object")


def _hints(faults: RowFaults, where: str, value: Any) -> None:
    if isinstance(value, list):
        check_texts(faults, where, value, may_be_empty=True)
    elif not isinstance(value, str):
        faults.error(where, f"this is {kind_of(value)}, not text or a list of texts")


def _choices(faults: RowFaults, where: str, value: Any) -> None:
    if not isinstance(value, list):
        faults.error(where, f"this is {kind_of(value)}, not a list of texts")
        return
    for number, item in enumerate(value, start=1):
        if not isinstance(item, str):
            hint = 'write numbers as text: "4"' if isinstance(item, int | float) else ""
            faults.error(where, f"entry {number} is {kind_of(item)}, not text", hint)
    if not value:
        faults.error(where, "the list is empty")
    elif len(value) > _MOST_CHOICES:
        faults.error(
            where, f"there are {len(value)} choices", f"a choice is a letter: at most {_MOST_CHOICES}"
        )


def _answer(faults: RowFaults, where: str, value: Any) -> None:
    answers = value if isinstance(value, list) else [value]
    if not answers:
        faults.error(where, "the list is empty")
    for number, item in enumerate(answers, start=1):
        which = f"entry {number}" if isinstance(value, list) else "this"
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            faults.error(where, f"{which} is {kind_of(item)}, not a letter, a text or an index")
        elif isinstance(item, str) and not item.strip():
            faults.error(where, f"{which} is blank text")
        elif isinstance(item, float) and not item.is_integer():
            faults.error(
                where, f"{which} is a fraction, not an index", "write a whole number from 0, or a letter"
            )


def _answer_in_choices(faults: RowFaults, public: Mapping[str, Any], hidden: Mapping[str, Any]) -> None:
    choices, value = public["choices"], hidden["answer"]
    last = string.ascii_uppercase[len(choices) - 1]
    for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
        which = f"entry {number}" if isinstance(value, list) else "this"
        if not isinstance(item, str):
            if not 0 <= item < len(choices):
                hint = f"an index is from 0 to {len(choices) - 1}"
                faults.error("eval.answer", f"{which} is an index out of range", hint)
            continue
        if item in choices or _normalised(item) in map(_normalised, choices):
            continue
        label = _LABEL.match(item.strip())
        if label is None:
            faults.warn("eval.answer", f"{which} is no letter and the text of no choice")
        elif label[1].upper() > last:
            faults.error("eval.answer", f"{which} is a letter out of range", f"the choices are A to {last}")


def _normalised(text: str) -> str:
    return " ".join(text.lower().split()).strip(_EDGES)


def _accepted(faults: RowFaults, where: str, value: Any) -> None:
    if not isinstance(value, list):
        faults.error(where, f"this is {kind_of(value)}, not a list")
        return
    if not value:
        faults.error(where, "the list is empty")
    for number, item in enumerate(value, start=1):
        if item is None or isinstance(item, dict | list):
            faults.error(where, f"entry {number} is {kind_of(item)}, not text or a number")
        elif isinstance(item, str) and not item.strip():
            faults.error(where, f"entry {number} is blank text", "an empty reply would pass")


def _tolerance(faults: RowFaults, where: str, value: Any) -> None:
    check_number(faults, where, value, low=0)


def _rubric(faults: RowFaults, where: str, value: Any) -> None:
    if not isinstance(value, dict):
        if isinstance(value, str):
            check_text(faults, where, value)
        else:
            faults.error(where, f"this is {kind_of(value)}, not text or an object")
        return
    check_unknown(faults, where, value, _RUBRIC_KEYS)
    if value.get("type", "contains_any") != "contains_any":
        faults.error(f"{where}.type", "the type is not known", "the only type is 'contains_any'")
    if "accepted_answers" in value:
        check_texts(faults, f"{where}.accepted_answers", value["accepted_answers"])
    else:
        faults.error(f"{where}.accepted_answers", "this is missing", "a rubric needs it")
    if value.get("rejected_answers") is not None:
        check_texts(faults, f"{where}.rejected_answers", value["rejected_answers"])
    if value.get("min_token_f1") is not None:
        check_number(faults, f"{where}.min_token_f1", value["min_token_f1"], low=0, high=1)


_RUBRIC_KEYS = ("type", "accepted_answers", "rejected_answers", "min_token_f1")


def _reference_answer(faults: RowFaults, where: str, value: Any) -> None:
    if isinstance(value, list | dict) and not is_reference(value):
        faults.error(where, f"this is {kind_of(value)}, not text", _REFERENCE_HINT)


_REFERENCE_HINT = 'or name a file below the eval root: {"path": "…"}'


def _solution(faults: RowFaults, where: str, value: Any) -> None:
    _inline(faults, where, value, "code", hidden=True)


def _patch(faults: RowFaults, where: str, value: Any) -> None:
    _inline(faults, where, value, "patch", hidden=False)


def _gold_patch(faults: RowFaults, where: str, value: Any) -> None:
    _inline(faults, where, value, "patch", hidden=True)


def _inline(faults: RowFaults, where: str, value: Any, key: str, *, hidden: bool) -> None:
    """File anything but text, `{"source": "inline", key: text}`, or, where it is hidden, a file reference."""
    if isinstance(value, str):
        check_text(faults, where, value)
    elif not isinstance(value, dict):
        hint = _REFERENCE_HINT if hidden else ""
        faults.error(where, f"this is {kind_of(value)}, not text or an object", hint)
    elif not (hidden and is_reference(value)):
        check_unknown(faults, where, value, ("source", key))
        _source(faults, where, value, ("inline",), hidden=hidden)
        _needed_text(faults, where, value, key)


def _source(
    faults: RowFaults, where: str, value: Mapping[str, Any], known: tuple[str, ...], *, hidden: bool = False
) -> None:
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


def _needed_text(faults: RowFaults, where: str, value: Mapping[str, Any], key: str) -> None:
    if key in value:
        check_text(faults, f"{where}.{key}", value[key])
    else:
        faults.error(f"{where}.{key}", "this is missing")


def _code_tests(faults: RowFaults, where: str, value: Any) -> None:
    if not isinstance(value, dict):
        faults.error(where, f"this is {kind_of(value)}, not an object", _CODE_HINT)
        return
    check_unknown(faults, where, value, _CODE_KEYS)
    _source(faults, where, value, ("inline",))
    _needed_text(faults, where, value, "code")
    if value.get("command") is not None:
        check_command(faults, f"{where}.command", value["command"])


_CODE_HINT = 'write {"source": "inline", "code": "…"}'
_CODE_KEYS = ("source", "code", "command")


def _patch_tests(faults: RowFaults, where: str, value: Any) -> None:
    if not isinstance(value, dict):
        faults.error(where, f"this is {kind_of(value)}, not an object", _PATCH_HINT)
        return
    check_unknown(faults, where, value, _PATCH_KEYS)
    _source(faults, where, value, ("command",))
    _needed_command(faults, where, value)
    _place_and_time(faults, where, value)
    for key in ("setup_patch", "test_patch"):
        if value.get(key) is not None:
            _patch(faults, f"{where}.{key}", value[key])
    if value.get("candidate_policy") is not None:
        _policy(faults, f"{where}.candidate_policy", value["candidate_policy"])


_PATCH_HINT = 'write {"source": "command", "command": […]}'
_PATCH_KEYS = (
    "source",
    "command",
    "workdir",
    "timeout_seconds",
    "setup_patch",
    "test_patch",
    "candidate_policy",
)


def _needed_command(faults: RowFaults, where: str, value: Mapping[str, Any]) -> None:
    if "command" in value:
        check_command(faults, f"{where}.command", value["command"])
    else:
        faults.error(f"{where}.command", "this is missing")


def _place_and_time(faults: RowFaults, where: str, value: Mapping[str, Any]) -> None:
    if value.get("workdir") is not None:
        check_text(faults, f"{where}.workdir", value["workdir"])
    if value.get("timeout_seconds") is not None:
        check_seconds(faults, f"{where}.timeout_seconds", value["timeout_seconds"])


def _policy(faults: RowFaults, where: str, value: Any) -> None:
    if not isinstance(value, dict):
        faults.error(where, f"this is {kind_of(value)}, not an object")
        return
    check_unknown(faults, where, value, _POLICY_KEYS)
    for key in _POLICY_KEYS:
        if value.get(key) is not None:
            check_texts(faults, f"{where}.{key}", value[key], may_be_empty=True)


_POLICY_KEYS = ("allow_paths", "allow_sensitive_paths")


def _one_policy(faults: RowFaults, public: Mapping[str, Any], hidden: Mapping[str, Any]) -> None:  # noqa: ARG001
    inner = hidden["tests"].get("candidate_policy")
    outer = hidden.get("candidate_policy")
    if inner is not None and outer is not None and inner != outer:
        where = "eval.candidate_policy"
        faults.error(where, "eval.tests.candidate_policy says something else", "keep one of them")


def _commit(faults: RowFaults, where: str, value: Any) -> None:
    if not isinstance(value, str):
        faults.error(where, f"this is {kind_of(value)}, not text")
    elif not _COMMIT.match(value):
        faults.error(where, f"{named(value)} is no name of a commit", "write the hash of the commit")


def _checker(faults: RowFaults, where: str, value: Any) -> None:
    if not isinstance(value, dict):
        faults.error(where, f"this is {kind_of(value)}, not an object", _CHECKER_HINT)
    elif "path" in value and "command" not in value:
        check_unknown(faults, where, value, ("source", "path", "timeout_seconds"))
        _source(faults, where, value, ("pytest", "script"))
        _relative(faults, f"{where}.path", value["path"])
        _place_and_time(faults, where, value)
    elif "command" in value:
        check_unknown(faults, where, value, ("source", "command", "workdir", "timeout_seconds"))
        if value.get("source") is not None:
            _source(faults, where, value, ("command",))
        check_command(faults, f"{where}.command", value["command"])
        _place_and_time(faults, where, value)
    else:
        faults.error(where, "there is neither 'command' nor 'path'", _CHECKER_HINT)


_CHECKER_HINT = 'write {"command": […]}, or {"source": "pytest", "path": "…"}'


def _relative(faults: RowFaults, where: str, value: Any) -> None:
    if not isinstance(value, str):
        faults.error(where, f"this is {kind_of(value)}, not text")
        return
    fault = path_fault(value)
    if fault:
        faults.error(where, f"the path {fault}", "write a relative POSIX path below the eval root")


def _needed_commands(faults: RowFaults, where: str, value: Any) -> None:
    before = len(faults.errors)
    check_texts(faults, where, value, may_be_empty=True)
    if len(faults.errors) == before:
        for item in value:
            if item not in _COMMANDS:
                faults.error(where, f"{named(item)} is no command that is known here", _COMMANDS_HINT)


_INPUT: Mapping[Family, Mapping[str, _Field]] = {
    Family.MULTIPLE_CHOICE: {
        "question": _Field(check_text, required=True),
        "choices": _Field(_choices, required=True),
    },
    Family.SHORT_ANSWER: {
        "question": _Field(check_text, required=True),
        "answer_format": _Field(_text_or_object),
        "context": _Field(_text_or_object),
    },
    Family.FREE_RESPONSE: {
        "prompt": _Field(check_text, required=True),
        "context": _Field(_text_or_object),
    },
    Family.CODE_COMPLETION: {
        "prompt": _Field(check_text, required=True),
        "language": _Field(check_text),
        "starter_code": _Field(_plain_text),
    },
    Family.REPO_PATCH: {
        "repo": _Field(check_text, required=True),
        "base_commit": _Field(_commit, required=True),
        "instructions": _Field(check_text, required=True),
        "hints": _Field(_hints),
    },
    Family.TERMINAL_TASK: {
        "instructions": _Field(check_text, required=True),
        "context": _Field(_text_or_object),
    },
}

_EVAL: Mapping[Family, Mapping[str, _Field]] = {
    Family.MULTIPLE_CHOICE: {"answer": _Field(_answer, required=True)},
    Family.SHORT_ANSWER: {
        "accepted_answers": _Field(_accepted, required=True),
        "tolerance": _Field(_tolerance),
    },
    Family.FREE_RESPONSE: {
        "rubric": _Field(_rubric, required=True),
        "reference_answer": _Field(_reference_answer),
    },
    Family.CODE_COMPLETION: {
        "tests": _Field(_code_tests, required=True),
        "reference_solution": _Field(_solution),
        "canonical_solution": _Field(_solution),
    },
    Family.REPO_PATCH: {
        "tests": _Field(_patch_tests, required=True),
        "gold_patch": _Field(_gold_patch),
        "candidate_policy": _Field(_policy),
    },
    Family.TERMINAL_TASK: {
        "checker": _Field(_checker, required=True),
        "run_tests": _Field(_anything),
        "test_files": _Field(_anything),
        "expected_state": _Field(_anything),
        "needed_commands": _Field(_needed_commands),
    },
}

_ACROSS: Mapping[Family, Callable[[RowFaults, Mapping[str, Any], Mapping[str, Any]], None]] = {
    Family.MULTIPLE_CHOICE: _answer_in_choices,
    Family.REPO_PATCH: _one_policy,
}
