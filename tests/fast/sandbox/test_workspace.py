"""A workspace that hostile code has prepared: links, closed folders, depth, special files."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_helmbench.sandbox.workspace import Entry, EntryKind, SandboxError, Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    folder = tmp_path / "work"
    folder.mkdir()
    return Workspace(folder)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious").write_text("mine")
    return folder


def test_files_go_in_and_come_out(workspace: Workspace) -> None:
    workspace.put("a/b/run.sh", b"#!/bin/sh\n", mode=0o755)
    workspace.put("a/b/run.sh", b"two", mode=0o700)
    workspace.put_folder("empty/inner", mode=0o700)

    assert workspace.get("a/b/run.sh", limit_bytes=3) == b"two"
    assert workspace.get("a/b", limit_bytes=3) is None
    assert workspace.get("a/none", limit_bytes=3) is None
    assert workspace.entries() == (
        Entry("a", EntryKind.FOLDER, 0o755, 0),
        Entry("a/b", EntryKind.FOLDER, 0o755, 0),
        Entry("a/b/run.sh", EntryKind.FILE, 0o700, 3),
        Entry("empty", EntryKind.FOLDER, 0o755, 0),
        Entry("empty/inner", EntryKind.FOLDER, 0o700, 0),
    )
    workspace.remove("a")
    workspace.remove("a")
    assert [entry.name for entry in workspace.entries()] == ["empty", "empty/inner"]


def test_a_file_beyond_the_limit_is_an_error(workspace: Workspace) -> None:
    workspace.put("big", b"12345")
    with pytest.raises(SandboxError) as caught:
        workspace.get("big", limit_bytes=4)
    assert str(caught.value) == "big: the file is larger than 4 bytes"


@pytest.mark.parametrize("name", ["", ".", "..", "/etc/passwd", "a/../../b", "a\0b"])
def test_a_name_that_leads_out_is_refused(workspace: Workspace, name: str) -> None:
    uses: tuple[Callable[[], object], ...] = (
        lambda: workspace.put(name, b""),
        lambda: workspace.get(name, limit_bytes=1),
        lambda: workspace.remove(name),
        lambda: workspace.put_folder(name),
    )
    for use in uses:
        with pytest.raises(SandboxError) as caught:
            use()
        assert str(caught.value) == f"{name!r}: not a path inside the workspace"


def test_links_are_replaced_and_never_followed(workspace: Workspace, outside: Path) -> None:
    (workspace.path / "file").symlink_to(outside / "precious")
    (workspace.path / "folder").symlink_to(outside)
    (workspace.path / "hard").hardlink_to(outside / "precious")

    assert workspace.get("file", limit_bytes=9) is None
    assert workspace.get("folder/precious", limit_bytes=9) is None
    workspace.put("file", b"new")
    workspace.put("folder/precious", b"new")
    workspace.put("hard", b"new")

    assert (outside / "precious").read_text() == "mine"
    assert [path.name for path in outside.iterdir()] == ["precious"]
    assert workspace.get("folder/precious", limit_bytes=9) == b"new"


def test_closed_and_very_deep_folders_are_removed(workspace: Workspace) -> None:
    here = os.open(workspace.path, os.O_RDONLY)
    for _ in range(1_200):  # deeper than paths, open files and recursion go
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    workspace.put("closed/inner/file", b"x")
    (workspace.path / "closed" / "inner").chmod(0)
    (workspace.path / "closed").chmod(0)

    with pytest.raises(SandboxError, match="folders are nested more than 100 deep"):
        workspace.entries()
    with pytest.raises(SandboxError, match="folders are nested more than 100 deep"):
        workspace.extent()
    workspace.close()
    assert not workspace.path.exists()


def test_a_folder_of_this_machine_is_copied_with_modes_and_empty_folders(
    workspace: Workspace, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    (source / "empty").mkdir(parents=True)
    (source / "run").write_text("x")
    (source / "run").chmod(0o750)
    workspace.put_tree(source, "into/here")
    workspace.put_tree(source / "run", "alone")
    assert workspace.get("into/here/run", limit_bytes=9) == b"x"
    assert stat.S_IMODE((workspace.path / "into/here/run").stat().st_mode) == 0o750
    assert (workspace.path / "into/here/empty").is_dir()
    assert workspace.get("alone", limit_bytes=9) == b"x"

    (source / "link").symlink_to("/etc/passwd")
    with pytest.raises(SandboxError) as caught:
        workspace.put_tree(source)
    assert str(caught.value).startswith(f"{source / 'link'}: cannot be copied into the sandbox (")


def test_places_for_mounts_are_real_ones(workspace: Workspace, outside: Path) -> None:
    workspace.put("kept", b"x")
    (workspace.path / "assets").symlink_to(outside)
    workspace.make_place("kept", folder=False)
    workspace.make_place("assets/data", folder=True)
    workspace.make_place("assets/file", folder=False)
    assert workspace.get("kept", limit_bytes=9) == b"x"
    assert workspace.get("assets/file", limit_bytes=9) == b""
    assert (workspace.path / "assets/data").is_dir()
    assert [path.name for path in outside.iterdir()] == ["precious"]


def test_a_full_disk_is_said_with_the_name(workspace: Workspace) -> None:
    with pytest.raises(SandboxError) as caught:
        workspace.put("n" * 300, b"")
    assert str(caught.value) == f"{'n' * 300}: cannot be written in the workspace (File name too long)"
