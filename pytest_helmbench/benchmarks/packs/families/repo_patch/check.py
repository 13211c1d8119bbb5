"""repo_patch: what a row holds, its rule, and the steps of a patch."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import partial

from pytest_helmbench.benchmarks.packs.agent.agent_family import COMMAND_STEP
from pytest_helmbench.benchmarks.packs.families.repo_patch.paths import PatchPolicy, hard_fault
from pytest_helmbench.benchmarks.packs.format.path_rules import path_fault, trimmed
from pytest_helmbench.benchmarks.packs.format.row_fields import (
    Field,
    Fields,
    Names,
    check_inline,
    check_needed,
    check_place_and_time,
    check_source,
    command_check,
    not_an_object,
)
from pytest_helmbench.benchmarks.packs.task import CommandCheck, Visibility
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.field_values import (
    RowFaults,
    check_command,
    check_text,
    check_texts,
    check_unknown,
    kind_of,
    named,
)
from pytest_helmbench.files.strict_json import a_mapping, a_text, texts


@dataclass(frozen=True, slots=True)
class PatchTests:
    """The rule for a patch.

    Args:
        command: Exit 0 passes.
        setup_patch: Unified diff that is applied before the candidate; None for none.
        test_patch: Unified diff that is applied after the candidate; None for none.
        policy: Which paths the candidate may touch.
    """

    command: CommandCheck
    setup_patch: str | None = None
    test_patch: str | None = None
    policy: PatchPolicy = PatchPolicy()


def patch_tests(hidden: JsonObject) -> PatchTests:
    """Return the rule for a row without faults."""
    tests = a_mapping(hidden.get("tests"))
    policy = a_mapping(hidden.get("candidate_policy")) or a_mapping(tests.get("candidate_policy"))
    setup, added = (
        a_text(tests.get(name)) or a_text(a_mapping(tests.get(name)).get("patch"))
        for name in ("setup_patch", "test_patch")
    )
    return PatchTests(
        command_check(tests), setup, added, PatchPolicy(*(texts(policy.get(key)) for key in _POLICY_KEYS))
    )


class PatchPhase(StrEnum):
    """The steps in their order."""

    EMPTY_PATCH = "empty_patch"
    BASE_COMMIT = "base_commit"
    PATH_POLICY = "path_policy"
    SETUP_PATCH = "setup_patch"
    BASELINE_COMMIT = "baseline_commit"
    CANDIDATE_PATCH = "candidate_patch"
    CHANGED_PATHS = "changed_paths"
    TEST_PATCH = "test_patch"
    COMMAND = COMMAND_STEP


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
_POLICY_KEYS = ("allow_paths", "allow_sensitive_paths", "patch_preserved_paths")


def _hints(faults: RowFaults, where: str, value: JsonValue) -> None:
    if isinstance(value, list):
        check_texts(faults, where, value, may_be_empty=True)
    elif not isinstance(value, str):
        faults.error(where, f"this is {kind_of(value)}, not text or a list of texts")


def _commit(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, str):
        faults.error(where, f"this is {kind_of(value)}, not text")
    elif not _COMMIT.match(value):
        faults.error(where, f"{named(value)} is not the name of a commit", "write the hash of the commit")


def _tests(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, dict):
        not_an_object(faults, where, value, _TESTS_HINT)
        return
    check_unknown(faults, where, value, _TESTS_KEYS)
    check_source(faults, where, value, ("command",))
    check_needed(faults, where, value, "command", check_command)
    check_place_and_time(faults, where, value)
    for key in ("setup_patch", "test_patch"):
        if value.get(key) is not None:
            check_inline(faults, f"{where}.{key}", value[key], "patch", hidden=False)
    if value.get("candidate_policy") is not None:
        _policy(faults, f"{where}.candidate_policy", value["candidate_policy"])


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
    "gold_patch": Field(partial(check_inline, key="patch", hidden=True), names=Names.A_FILE),
    "candidate_policy": Field(_policy, visibility=Visibility.EVALUATION_INPUTS),
}
