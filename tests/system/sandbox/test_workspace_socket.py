"""Pipes and sockets in a workspace: they are listed, and never read."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from pytest_helmbench.sandbox.workspace import EntryKind, Workspace


def test_what_is_no_file_is_listed_but_never_read(tmp_path: Path) -> None:
    work = Workspace(tmp_path / "work")
    work.path.mkdir()
    os.mkfifo(work.path / "pipe")
    (work.path / "link").symlink_to("/etc/passwd")
    with socket.socket(socket.AF_UNIX) as served:
        served.bind(str(work.path / "socket"))
    assert work.get("pipe", limit_bytes=9) is None
    assert work.get("socket", limit_bytes=9) is None
    assert [(entry.name, entry.kind, entry.target) for entry in work.entries()] == [
        ("link", EntryKind.LINK, "/etc/passwd"),
        ("pipe", EntryKind.OTHER, ""),
        ("socket", EntryKind.OTHER, ""),
    ]
