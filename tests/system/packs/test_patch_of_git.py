"""Diffs as real git writes them: applied whole, and announced as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines import Running
from repositories import git, make_repository, patch_task

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFinding, AgentRow
from pytest_helmbench.benchmarks.packs.families.repo_patch.evaluation import evaluate_patch
from pytest_helmbench.benchmarks.packs.families.repo_patch.patches import read_patch, strip_of
from pytest_helmbench.core.outcome import Verdict


def _edit(folder: Path) -> None:
    """Change a repository in every way that git can write down."""
    (folder / "edited.txt").write_text("one\n2\nthree\n")
    (folder / "gone.txt").unlink()
    (folder / "folder" / "moved.txt").rename(folder / "arrived here.txt")
    (folder / "tool").chmod(0o755)
    (folder / "picture.bin").write_bytes(bytes(range(256)) * 20)
    (folder / "latin.txt").write_bytes(b"caf\xe9s\n")
    (folder / "no-end.txt").write_bytes(b"no newline now")
    (folder / "ends.txt").write_bytes(b"one\r\nzwei\r\n")
    (folder / "headers.sql").write_text("++ x\n@@ -1 +1 @@\n")
    (folder / "empty").touch()
    (folder / "link").symlink_to("edited.txt")
    (folder / 'quo"ted\tname\\ä.txt').write_text("x\n")
    (folder / "b").mkdir()
    (folder / "b" / "x.txt").write_text("diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n")


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with uncommitted changes of every kind."""
    folder = tmp_path_factory.mktemp("edited") / "repository"
    make_repository(
        folder,
        {
            "edited.txt": "one\ntwo\nthree\n",
            "gone.txt": "gone\n",
            "folder/moved.txt": "a line that stays\n" * 5,
            "tool": "#!/bin/sh\n",
            "picture.bin": bytes(range(256)),
            "latin.txt": b"caf\xe9\n",
            "no-end.txt": "with newline\n",
            "ends.txt": b"one\r\ntwo\r\n",
            "headers.sql": "-- a/x\n-- b\n",
        },
    )
    _edit(folder)
    git(folder, "add", "-A")
    return folder


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--no-renames",),
        ("-M", "-C", "--find-copies-harder"),
        ("--no-prefix",),
        ("--src-prefix=i/", "--dst-prefix=w/"),
        ("--full-index", "-U20"),
        ("-c", "core.quotePath=false"),
    ],
    ids=" ".join,
)
def test_what_real_git_writes_is_applied_whole(
    edited: Path, options: tuple[str, ...], bwrap: Running
) -> None:
    config, options = (options, ()) if options[:1] == ("-c",) else ((), options)
    text = git(edited, *config, "diff", "--cached", "--binary", *options)
    assert read_patch(text) == text
    assert strip_of(text) == (0 if options == ("--no-prefix",) else 1)
    task = patch_task(git(edited, "rev-parse", "HEAD").strip(), edited, command=("test", "-L", "link"))
    finding = bwrap.wait(evaluate_patch(AgentRow(task, bwrap.engine, parity=True), text))
    assert finding == AgentFinding(Verdict.PASSED)
