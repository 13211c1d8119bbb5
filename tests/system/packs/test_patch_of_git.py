"""Diffs as real git writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from repositories import git, make_repository

from pytest_helmbench.benchmarks.packs.families.repo_patch.diff import read_patch


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
        ("-U0",),
        ("--full-index", "-U20"),
        ("-c", "core.quotePath=false"),
    ],
    ids=" ".join,
)
def test_what_real_git_writes_is_read_whole(edited: Path, options: tuple[str, ...]) -> None:
    config, options = (options, ()) if options[:1] == ("-c",) else ((), options)
    text = git(edited, *config, "diff", "--cached", "--binary", *options)
    names = git(edited, "diff", "--cached", "--name-only", "-z", "--no-renames").split("\0")
    patch = read_patch(text)
    assert patch.text == text
    assert patch.changed == set(filter(None, names))
    assert patch.strip == (0 if options == ("--no-prefix",) else 1)
    assert not patch.miscounted
    assert [change.changed for change in patch.changes if change.special] == [{"link"}]
    assert 'quo"ted\tname\\ä.txt' in patch.named
