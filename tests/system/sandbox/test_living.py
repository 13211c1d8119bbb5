"""Boxes that live on, with real podman, and with docker where the command lines differ."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from engines import IMAGE, Running

from pytest_helmbench.core.granted import NOT_ALLOWED
from pytest_helmbench.sandbox.box import Command, Ended, Limits
from pytest_helmbench.sandbox.containers import ContainerEngine, find_containers
from pytest_helmbench.sandbox.engines.podman import PODMAN
from pytest_helmbench.sandbox.living import BoxDiedError, LivingBox, LivingSpec, TooLargeError
from pytest_helmbench.sandbox.workspace import SandboxError

MIB = 1024 * 1024
Open = Callable[..., "Opened"]


class Opened:
    """A box, and the loop that it runs on."""

    def __init__(self, room: Running, box: LivingBox) -> None:
        self.room, self.box = room, box

    def run(self, *argv: str, user: str | None = None, stdin: bytes = b"", **limits: Any) -> Ended:
        command = Command(argv, stdin=stdin, limits=Limits(**limits) if limits else None)
        return self.room.wait(self.box.run(command, user=user))

    def begin(self, *argv: str) -> Future[Ended]:
        return asyncio.run_coroutine_threadsafe(self.box.run(Command(argv)), self.room.loop.loop)

    def sh(self, script: str, **more: Any) -> str:
        ended = self.run("sh", "-c", script, **more)
        assert (ended.exit_code, ended.stderr) == (0, b"")
        return ended.stdout.decode()

    def take(self, path: str, file: Path, limit_bytes: int = 64 * MIB) -> list[tarfile.TarInfo] | None:
        with file.open("w+b") as archive:
            if not self.room.wait(self.box.take(path, archive, limit_bytes)):
                return None
            archive.seek(0)
            with tarfile.open(fileobj=archive) as opened:
                return opened.getmembers()


@pytest.fixture
def room(request: pytest.FixtureRequest) -> Running:
    found = request.getfixturevalue(getattr(request, "param", "podman"))
    assert isinstance(found, Running)
    return found


both = pytest.mark.parametrize("room", ["podman", "docker"], indirect=True)


@pytest.fixture
def living(room: Running) -> Iterator[Open]:
    made: list[LivingBox] = []

    def open_box(**spec: Any) -> Opened:
        assert room.engine.containers
        made.append(room.wait(room.engine.containers.open_living(LivingSpec(IMAGE, **spec))))
        return Opened(room, made[-1])

    yield open_box
    for box in made:
        room.wait(box.remove())


@both
def test_processes_packages_and_files_stay_from_one_command_to_the_next(living: Open) -> None:
    box = living(env=(("COLOUR", "blue"),), workdir="/made/for/it", label="a task")
    assert box.box.workdir == "/made/for/it"
    assert (
        box.sh("pwd; echo $COLOUR; echo kept > file; (sleep 600 </dev/null >/dev/null 2>&1 &)")
        == "/made/for/it\nblue\n"
    )
    assert (
        box.sh("cat file; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -o 'sleep 60[0]'")
        == "kept\nsleep 600\n"
    )
    ended = box.run("sh", "-c", "cat; id -u; echo err >&2; exit 3", stdin=b"in\n", user="1234")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (3, b"in\n1234\n", b"err\n")
    assert box.run("no-such-program").exit_code == 127


@both
def test_a_box_has_what_package_managers_need_and_no_more(living: Open) -> None:
    box = living(limits=Limits(cpus=1.0, memory_bytes=64 * MIB, pids=50))
    status = dict(line.split(":\t") for line in box.sh("cat /proc/self/status").splitlines())
    rights = (0, 1, 3, 4, 5, 6, 7)  # CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID
    assert int(status["CapBnd"], 16) == sum(1 << number for number in rights)
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert box.sh("ls /sys/class/net") == "lo\n"
    assert box.sh("touch /usr/bin/new /etc/new; chown 5:5 /etc/new; stat -c %u:%g /etc/new") == "5:5\n"
    if box.room.engine.name == "podman":  # its service in docker's name has a filter of its own
        assert box.run("unshare", "-U", "true").exit_code not in (0, 127)


def test_a_command_that_takes_too_long_is_killed_with_all_of_its_session(living: Open) -> None:
    box = living()
    box.sh("(setsid sleep 700 </dev/null >/dev/null 2>&1 &)")
    other = box.begin("sh", "-c", "sleep 3; echo unharmed")
    ended = box.run("bash", "-mc", "sleep 800 & echo begun; sleep 801", wall_s=1.0)
    assert (ended.exit_code, ended.timed_out, ended.stdout) == (None, True, b"begun\n")
    assert ended.wall_s < 8
    assert box.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -o 'sleep [78]0[01]'") == "sleep 700\n"
    assert other.result(20).stdout == b"unharmed\n"


def test_a_command_that_hides_its_environment_is_killed_all_the_same(living: Open) -> None:
    box = living()
    script = "exec env -i /bin/sh -c 'trap \"\" TERM HUP INT; while :; do sleep 0.1; done'"
    assert box.run("sh", "-c", script, wall_s=1.0).timed_out
    assert box.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[w]hile :' || true") == "0\n"


def test_two_gigabytes_of_output_end_a_command(living: Open) -> None:
    box = living()
    ended = box.run("head", "-c", str(2**31), "/dev/zero", wall_s=60.0, output_bytes=MIB)
    assert (ended.exit_code, ended.output_cut, len(ended.stdout)) == (None, True, MIB)
    assert ended.reason == f"more than {16 * MIB} bytes of output"
    assert box.sh("echo lives") == "lives\n"


def test_memory_is_held_and_its_peak_and_kills_are_told(living: Open) -> None:
    box = living(limits=Limits(wall_s=30.0, memory_bytes=64 * MIB))
    before = box.room.wait(box.box.use())
    assert before.kills == 0
    assert 0 < (before.peak_bytes or 0) < 32 * MIB
    assert box.run("python3", "-c", "x = bytearray(1 << 30)").exit_code == 137
    box.room.wait(box.box.freeze())
    used = box.room.wait(box.box.use())
    assert used.kills == 1
    assert 60 * MIB < (used.peak_bytes or 0) <= 64 * MIB
    box.room.wait(box.box.thaw())
    assert box.sh("echo lives") == "lives\n"
    box.room.wait(box.box.kill())
    assert box.room.wait(box.box.use()) == used


@both
def test_the_end_of_a_box_is_not_the_exit_code_of_a_command(living: Open) -> None:
    box = living()
    running = box.begin("sleep", "600")
    time.sleep(1.0)
    box.room.wait(box.box.kill())
    with pytest.raises(BoxDiedError, match="has ended") as raised:
        running.result(20)
    assert not raised.value.memory
    with pytest.raises(BoxDiedError):
        box.run("true")
    with pytest.raises(BoxDiedError):
        box.room.wait(box.box.freeze())


@both
def test_an_archive_is_put_with_its_owners_and_modes(living: Open, tmp_path: Path) -> None:
    box = living(user="1234")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, kind, mode, owner, target in (
            ("app", tarfile.DIRTYPE, 0o751, 7, ""),
            ("app/run", tarfile.REGTYPE, 0o755, 1234, ""),
            ("app/secret", tarfile.REGTYPE, 0o600, 7, ""),
            ("app/link", tarfile.SYMTYPE, 0o777, 8, "run"),
        ):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode, entry.uid, entry.gid, entry.linkname = (
                kind,
                mode,
                owner,
                owner + 1,
                target,
            )
            entry.size = 2 if kind == tarfile.REGTYPE else 0
            archive.addfile(entry, BytesIO(b"x\n"))
    room = box.room
    room.wait(box.box.freeze())
    room.wait(box.box.put(tmp_path / "a.tar"))
    room.wait(box.box.thaw())
    seen = box.sh("cd /app; stat -c '%n %a %u:%g' . run secret link")
    assert seen.splitlines() == [". 751 7:8", "run 755 1234:1235", "secret 600 7:8", "link 777 8:9"]
    (tmp_path / "b.tar").write_bytes(b"no archive")
    with pytest.raises(SandboxError, match="nothing can be put into a box"):
        room.wait(box.box.put(tmp_path / "b.tar"))


@both
@pytest.mark.parametrize("state", ["running", "frozen", "killed"])
def test_a_path_is_taken_out_whatever_the_box_does(living: Open, tmp_path: Path, state: str) -> None:
    box = living()
    box.sh(
        "mkdir -p /app/dev; cd /app; echo 42 > a; chmod 640 a; ln -s /etc/passwd out; mkfifo pipe; echo 1 > dev/x"
    )
    if state != "running":
        box.room.wait(box.box.freeze() if state == "frozen" else box.box.kill())
    found = {entry.name: entry for entry in box.take("/app", tmp_path / "t.tar") or ()}
    assert sorted(found) == ["app", "app/a", "app/dev", "app/dev/x", "app/out", "app/pipe"]
    assert (found["app/a"].mode, found["app/out"].linkname, found["app/pipe"].isfifo()) == (
        0o640,
        "/etc/passwd",
        True,
    )
    [single] = box.take("/app/a", tmp_path / "t.tar") or []
    assert (single.name, single.size) == ("a", 3)
    for nothing in ("/nope", "/app/a/b", "/app/out/x"):
        assert box.take(nothing, tmp_path / "t.tar") is None


def test_no_more_is_taken_out_than_allowed(living: Open, tmp_path: Path) -> None:
    box = living()
    box.sh("mkdir /app; truncate -s 4T /app/sparse")
    with pytest.raises(TooLargeError, match=r"^/app: more than 1048576 bytes$"):
        box.take("/app", tmp_path / "t.tar", MIB)
    assert box.sh("echo lives") == "lives\n"


def test_a_box_that_cannot_start_says_so_and_leaves_nothing(podman: Running) -> None:
    assert podman.engine.containers
    for spec, words in (
        (LivingSpec("localhost/no-such-image"), "the image localhost/no-such-image is not here"),
        (
            LivingSpec(IMAGE, user="unknown-user"),
            "no container of docker.io/library/python:3.12-slim starts",
        ),
    ):
        with pytest.raises(SandboxError, match=words):
            podman.wait(podman.engine.containers.open_living(spec))
    podman.wait(asyncio.sleep(1.0))
    names = subprocess.run(
        ["podman", "ps", "-a", "--format", "{{.Names}}"], capture_output=True, text=True, check=True
    )
    assert str(os.getpid()) not in names.stdout


@pytest.mark.parametrize("failures", [1, 9])
def test_a_box_that_does_not_freeze_is_asked_again_and_killed_in_the_end(
    podman: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    program = tmp_path / "odd-podman"
    program.write_text(
        f"""#!/bin/sh
[ "$1" = pause ] && echo >> "$0.asked" && [ $(wc -l < "$0.asked") -le {failures} ] && exit 1
exec podman "$@"
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    engine = podman.wait(find_containers(podman.engine.kind, NOT_ALLOWED, program=PODMAN, name=program.name))
    assert isinstance(engine, ContainerEngine)
    try:
        box = podman.wait(engine.open_living(LivingSpec(IMAGE)))
        podman.wait(box.freeze())
        asked = ["podman", "inspect", "--format", "{{.State.Status}}", box.name]
        state = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        assert (box.is_frozen, state) == ((True, "paused") if failures == 1 else (False, "exited"))
    finally:
        podman.wait(engine.close())


def test_engines_without_images_open_no_living_boxes(bwrap: Running) -> None:
    assert bwrap.engine.containers is None
