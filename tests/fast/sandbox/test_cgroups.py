"""Control groups of the unified hierarchy (cgroup v2), in folders that look like the kernel's."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_helmbench.sandbox.box import Limits
from pytest_helmbench.sandbox.cgroups import GroupPlace, possible_places

_LIMITS = Limits(memory_bytes=100 * 2**20, pids=7)


def _kernel(folder: Path, group: str, offered: dict[str, str]) -> Path:
    """Write what the kernel tells of a process in a group, and the hierarchy; return the former."""
    top = folder / "sys"
    for name, controllers in offered.items():
        (top / name).mkdir(parents=True, exist_ok=True)
        (top / name / "cgroup.subtree_control").write_text(controllers)
    process = folder / "self"
    process.mkdir()
    (process / "cgroup").write_text(f"0::/{group}\n")
    (process / "mountinfo").write_text(
        "24 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"35 24 0:30 / {top} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
    )
    return process


def test_the_nearest_folder_that_hands_controllers_down_is_tried_first(tmp_path: Path) -> None:
    offered = {"": "cpu memory pids", "user": "memory pids\n", "user/session": "", "user/session/own": "pids"}
    process = _kernel(tmp_path, "user/session/own", offered)
    top = tmp_path / "sys"
    own, user = top / "user" / "session" / "own", top / "user"
    assert list(possible_places(process)) == [
        GroupPlace({"pids": own}, unified=True),
        GroupPlace({"memory": user, "pids": user}, unified=True),
        GroupPlace({"memory": top, "pids": top}, unified=True),
    ]


def test_a_group_has_bounds_in_the_words_of_the_unified_hierarchy(tmp_path: Path) -> None:
    place = GroupPlace({"memory": tmp_path, "pids": tmp_path}, unified=True)
    group = place.new(_LIMITS)
    [folder] = set(group.folders.values())
    assert folder.parent == tmp_path
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "memory.max": str(100 * 2**20),
        "pids.max": "8",  # the launcher is one of them
    }
    for name in ("memory.swap.max", "memory.oom.group"):
        (folder / name).touch()
    group.bound(_LIMITS)
    assert [(folder / name).read_text() for name in ("memory.swap.max", "memory.oom.group")] == ["0", "1"]

    (folder / "cgroup.procs").touch()
    [descriptor] = group.join()
    os.write(descriptor, b"0")
    os.close(descriptor)
    assert (folder / "cgroup.procs").read_text() == "0"

    assert not group.kills()
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 1\noom_kill 0\n")
    assert not group.kills()
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 1\n")
    assert group.kills()
    for path in folder.iterdir():
        path.unlink()
    group.close()
    assert list(tmp_path.iterdir()) == []
