"""repo_patch: what a row is held to, the finding on a patch, and errors by whose fault it is."""

from __future__ import annotations

from enum import StrEnum

from pytest_helmbench.benchmarks.packs.format.command_checks import command_check
from pytest_helmbench.benchmarks.packs.format.row_fields import object_in, text_in, texts_in
from pytest_helmbench.benchmarks.packs.task import CommandCheck
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.problem import HelmbenchError


@dataclass(frozen=True, slots=True)
class PatchPolicy:
    """Which paths a candidate's patch may touch.

    Args:
        allow_paths: A closed list of patterns when not empty.
        allow_sensitive_paths: Patterns of sensitive paths that may be touched.
    """

    allow_paths: tuple[str, ...] = ()
    allow_sensitive_paths: tuple[str, ...] = ()


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
