"""Repositories in a pack, made with git: bundles and clones that can be used, and one that cannot."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from packs import GONE, row, write_pack

from pytest_helmbench.benchmarks.packs.format.pack_loader import load_pack


@pytest.mark.parametrize("named_in", ["environment", "assets", "bare"])
def test_the_repository_can_be_a_bundle_or_clone_of_the_pack(tmp_path: Path, named_in: str) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(assets / "clone"))
    subprocess.run(["git", "init", "-q", str(assets / "clone")], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "bundle", "create", "-q", str(assets / "r.bundle"), "--all"], check=True)
    changes: dict[str, dict[str, Any]] = {
        "environment": {"environment": {"repository": "r.bundle"}},
        "assets": {"environment": GONE, "assets": [{"path": "r.bundle"}]},
        "bare": {"environment": {"repository": "clone"}},
    }

    pack = load_pack(write_pack(tmp_path, [row("repo_patch", changes[named_in])]))
    task = pack.task(pack.rows[0])

    assert list(pack.all_problems()) == []

    assert task.environment.repository == assets / ("clone" if named_in == "bare" else "r.bundle")
    assert task.assets == ()  # the repository is not a file in itself


def test_a_clone_that_borrows_objects_is_no_repository(tmp_path: Path) -> None:
    clone = tmp_path / "assets" / "clone"
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    (clone / ".git" / "objects" / "info" / "alternates").write_text("/srv/elsewhere/objects\n")

    pack = load_pack(write_pack(tmp_path, [row("repo_patch", {"environment": {"repository": "clone"}})]))

    assert [problem.text(tmp_path) for problem in pack.all_problems()] == [
        "tasks.jsonl:1: environment.repository: 'assets/clone' is neither a git bundle nor a clone that stands on its "
        "own\n"
        "  hint: make a bundle with 'git bundle create repository.bundle --all'"
    ]
