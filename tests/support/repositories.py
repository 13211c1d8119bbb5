"""Git repositories made by real git, and tasks over them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PatchTests
from pytest_helmbench.benchmarks.packs.families.repo_patch.paths import PatchPolicy
from pytest_helmbench.benchmarks.packs.task import CommandCheck, Environment, PackTask, Resource, Visibility

__all__ = ["CALCULATOR", "TEST", "bundle_of", "git", "make_repository", "patch_task", "write_bundle"]

CALCULATOR = "def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return 2 * a\n"
TEST = "from src.calculator import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"

_IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


def git(folder: Path, *arguments: str, stdin: bytes | None = None) -> str:
    """Run git of this machine; return what it says."""
    env = {**os.environ, **_IDENTITY}
    ended = subprocess.run(
        ("git", *arguments), cwd=folder, env=env, input=stdin, capture_output=True, check=True
    )
    return ended.stdout.decode("utf-8", "surrogateescape")


def make_repository(folder: Path, files: Mapping[str, str | bytes] | None = None) -> str:
    """Make a repository with one commit; return the commit.

    Args:
        folder: Made.
        files: By path; None for a calculator that cannot add, and its test.
    """
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for name, content in (files or {"src/calculator.py": CALCULATOR, "tests/test_add.py": TEST}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Start")
    return git(folder, "rev-parse", "HEAD").strip()


def bundle_of(folder: Path, target: Path) -> Path:
    """Pack all of a repository into a bundle."""
    git(folder, "bundle", "create", "-q", str(target), "--all")
    return target


def patch_task(commit: str, repository: Path | None, **changes: Any) -> PackTask:
    """Return a task over a repository.

    Args:
        commit: `base_commit`.
        repository: Clone or bundle; None where the image has it.
        changes: `command`, `setup_patch`, `test_patch`, `allow_paths`, `allow_sensitive_paths`, `preserved`,
            `workdir` and `timeout_s` of the tests, `environment_workdir`, and what `Environment` takes.
    """
    kinds = ("allow_paths", "allow_sensitive_paths", "preserved")
    policy = PatchPolicy(*(tuple(changes.pop(kind, ())) for kind in kinds))
    command = changes.pop(
        "command", ("sh", "-c", "python3 -c 'from src.calculator import add; assert add(1, 2) == 3'")
    )
    tests = PatchTests(
        CommandCheck(tuple(command), changes.pop("workdir", None), changes.pop("timeout_s", None)),
        changes.pop("setup_patch", None),
        changes.pop("test_patch", None),
        policy,
    )
    shown = {"repo": "demo/calculator", "base_commit": commit, "instructions": "Make add() add."}
    return PackTask(
        id="demo/add",
        benchmark_id="demo",
        task_type="repo_patch",
        resources={
            **{name: Resource(value, Visibility.PUBLIC) for name, value in shown.items()},
            "gold_patch": Resource("SECRET-GOLD", Visibility.HIDDEN),
        },
        environment=Environment(
            repository=repository, workdir=changes.pop("environment_workdir", None), **changes
        ),
        check=tests,
    )


def write_bundle(folder: Path) -> str:
    """Write a repository as the asset `calculator.bundle` of the pack `benchmark`; return its commit."""
    commit = make_repository(folder / "repository")
    assets = folder / "benchmark" / "assets"
    assets.mkdir(parents=True)
    bundle_of(folder / "repository", assets / "calculator.bundle")
    return commit
