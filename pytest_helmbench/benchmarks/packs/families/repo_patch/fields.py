"""repo_patch: what its `input` and `eval` hold."""

from __future__ import annotations

import re

from pytest_helmbench.benchmarks.packs.families.repo_patch.paths import hard_fault
from pytest_helmbench.benchmarks.packs.format.path_rules import path_fault, trimmed
from pytest_helmbench.benchmarks.packs.format.row_fields import (
    Field,
    Fields,
    Names,
    check_inline,
    check_needed_command,
    check_place_and_time,
    check_source,
    not_an_object,
    object_in,
)
from pytest_helmbench.benchmarks.packs.task import Visibility
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.field_values import (
    RowFaults,
    check_text,
    check_texts,
    check_unknown,
    kind_of,
    named,
)

_COMMIT = re.compile(r"[0-9A-Za-z][\w./-]*\Z", re.ASCII)
_TESTS_HINT = 'write {"source": "command", "command": […]}'
_TESTS_KEYS = (
    "source",
    "command",
    "workdir",
    "timeout_seconds",
    "setup_patch",
    "test_patch",
    "candidate_policy",
)
_POLICY_KEYS = ("allow_paths", "allow_sensitive_paths")


def check_one_policy(faults: RowFaults, hidden: JsonObject) -> None:
    """File two policies that differ; the object is without faults of its own."""
    inner = object_in(hidden, "tests").get("candidate_policy")
    outer = hidden.get("candidate_policy")
    if inner is not None and outer is not None and inner != outer:
        where = "eval.candidate_policy"
        faults.error(where, "eval.tests.candidate_policy says something else", "keep one of them")


def _hints(faults: RowFaults, where: str, value: JsonValue) -> None:
    if isinstance(value, list):
        check_texts(faults, where, value, may_be_empty=True)
    elif not isinstance(value, str):
        faults.error(where, f"this is {kind_of(value)}, not text or a list of texts")


def _commit(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, str):
        faults.error(where, f"this is {kind_of(value)}, not text")
    elif not _COMMIT.match(value):
        faults.error(where, f"{named(value)} is no name of a commit", "write the hash of the commit")


def _tests(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, dict):
        not_an_object(faults, where, value, _TESTS_HINT)
        return
    check_unknown(faults, where, value, _TESTS_KEYS)
    check_source(faults, where, value, ("command",))
    check_needed_command(faults, where, value)
    check_place_and_time(faults, where, value)
    for key in ("setup_patch", "test_patch"):
        if value.get(key) is not None:
            check_inline(faults, f"{where}.{key}", value[key], "patch", hidden=False)
    if value.get("candidate_policy") is not None:
        _policy(faults, f"{where}.candidate_policy", value["candidate_policy"])


def _gold_patch(faults: RowFaults, where: str, value: JsonValue) -> None:
    check_inline(faults, where, value, "patch", hidden=True)


def _policy(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, dict):
        not_an_object(faults, where, value)
        return
    check_unknown(faults, where, value, _POLICY_KEYS)
    for key in _POLICY_KEYS:
        if value.get(key) is not None:
            check_texts(faults, f"{where}.{key}", value[key], may_be_empty=True)


def _artifact_path(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, str):
        faults.error(where, f"this is {kind_of(value)}, not text")
        return
    fault, hint = path_fault(value), "write a relative POSIX path in the repository"
    if fault:
        faults.error(where, f"the path {fault}", hint)
    elif (why := hard_fault(trimmed(value))) is not None:
        faults.error(where, f"{named(value)} cannot hold a patch: {why}", hint)


INPUT_FIELDS: Fields = {
    "artifact_path": Field(_artifact_path),
    "repo": Field(check_text, required=True),
    "base_commit": Field(_commit, required=True),
    "instructions": Field(check_text, required=True),
    "hints": Field(_hints),
}
EVAL_FIELDS: Fields = {
    "tests": Field(_tests, required=True, visibility=Visibility.EVALUATION_INPUTS),
    "gold_patch": Field(_gold_patch, names=Names.A_FILE),
    "candidate_policy": Field(_policy, visibility=Visibility.EVALUATION_INPUTS),
}
