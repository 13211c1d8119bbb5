"""repo_patch: what a row holds and is held to, the finding on a patch, and errors by whose fault it is."""

from __future__ import annotations

import re
from enum import StrEnum

from pytest_helmbench.benchmarks.packs.families.repo_patch.paths import PatchPolicy, hard_fault
from pytest_helmbench.benchmarks.packs.format.path_rules import path_fault, trimmed
from pytest_helmbench.benchmarks.packs.format.row_fields import (
    Field,
    Fields,
    Names,
    check_inline,
    check_needed_command,
    check_place_and_time,
    check_source,
    command_check,
    not_an_object,
    object_in,
    text_in,
    texts_in,
)
from pytest_helmbench.benchmarks.packs.task import CommandCheck, Visibility
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.files.field_values import (
    RowFaults,
    check_text,
    check_texts,
    check_unknown,
    kind_of,
    named,
)


@dataclass(frozen=True, slots=True)
class PatchTests:
    """What a patch is held to.

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
    """Return what a row without faults is held to."""
    tests = object_in(hidden, "tests")
    policy = object_in(hidden, "candidate_policy") or object_in(tests, "candidate_policy")
    return PatchTests(
        command=command_check(tests),
        setup_patch=_patch(tests, "setup_patch"),
        test_patch=_patch(tests, "test_patch"),
        policy=PatchPolicy(texts_in(policy, "allow_paths"), texts_in(policy, "allow_sensitive_paths")),
    )


def _patch(tests: JsonObject, name: str) -> str | None:
    """Return a patch, which is a text or an object that holds one."""
    return text_in(tests, name) or text_in(object_in(tests, name), "patch")


class PatchPhase(StrEnum):
    """The steps in their order; a finding names the one that it ended in."""

    EMPTY_PATCH = "empty_patch"
    BASE_COMMIT = "base_commit"
    PATH_POLICY = "path_policy"
    SETUP_PATCH = "setup_patch"
    BASELINE_COMMIT = "baseline_commit"
    CANDIDATE_PATCH = "candidate_patch"
    CHANGED_PATHS = "changed_paths"
    TEST_PATCH = "test_patch"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class PatchFinding:
    """The verdict over a patch. Holds no hidden value.

    Args:
        verdict: Passed; failed for what is the candidate's fault; error for what is the pack's or the sandbox's.
        phase: Where it ended; None when it passed.
        reason: One word for tables, such as `path_denied`, `does_not_apply`, `timeout`; None when it passed.
        message: For people; empty when it passed.
        output: End of what the command wrote, scrubbed: the candidate's and the tests' own words.
    """

    verdict: Verdict
    phase: PatchPhase | None = None
    reason: str | None = None
    message: str = ""
    output: str = ""

    @property
    def in_process(self) -> bool:
        """True where the tests had a word in it: they import what they judge."""
        return self.phase in (None, PatchPhase.COMMAND)

    @property
    def taken(self) -> tuple[str, ...]:
        """Nothing: a patch goes through git."""
        return ()

    @property
    def step(self) -> str:
        """The step that it ended in; empty when it passed."""
        return self.phase or ""


class PackFaultError(HelmbenchError):
    """A patch cannot be judged, and the candidate has no part in that.

    Args:
        phase: Where it came out.
        reason: One word for tables.
        message: For people.
    """

    def __init__(self, phase: PatchPhase, reason: str, message: str) -> None:
        self.finding = PatchFinding(Verdict.ERROR, phase, reason, message)
        super().__init__(message)


class CandidateFaultError(HelmbenchError):
    """A patch is wrong, by the fault of the candidate.

    Args:
        phase: Where it came out.
        reason: One word for tables.
        message: For people.
        output: End of what the command wrote, scrubbed.
    """

    def __init__(self, phase: PatchPhase, reason: str, message: str, output: str = "") -> None:
        self.finding = PatchFinding(Verdict.FAILED, phase, reason, message, output)
        super().__init__(message)


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
