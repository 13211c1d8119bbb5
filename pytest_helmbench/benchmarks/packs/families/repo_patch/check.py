"""repo_patch: the tests of a row, compiled, and which paths a patch may touch."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.format.command_checks import command_check
from pytest_helmbench.benchmarks.packs.format.row_fields import object_in, text_in, texts_in
from pytest_helmbench.benchmarks.packs.task import CommandCheck
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["PatchPolicy", "PatchTests", "patch_tests"]


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
