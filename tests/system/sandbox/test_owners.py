"""Leftovers of killed sessions: the next session removes them, and nothing else."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from asyncio import run_coroutine_threadsafe
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from engines import IMAGE, Running
from waiting import PATIENCE_S, until

from pytest_helmbench.core.granted import NOT_ALLOWED, Granted
from pytest_helmbench.sandbox.box import Command, Unavailable
from pytest_helmbench.sandbox.detection import find_engine
from pytest_helmbench.sandbox.owners import new_folder, remove_leftover_folders, this_process
from pytest_helmbench.sandbox.workspace import remove_tree

_SESSION = """
import asyncio, os, sys
from pytest_helmbench.core.granted import NOT_ALLOWED, Granted
from pytest_helmbench.sandbox.box import BoxSpec, Command
from pytest_helmbench.sandbox.detection import find_engine

async def main(mode, image, mark):
    engine = await find_engine(Granted(mode), pull=NOT_ALLOWED)
    box = await engine.open(BoxSpec(image=image or None))
    running = asyncio.create_task(box.run(Command(("sh", "-c", f"echo > up; exec sleep {mark}"))))
    while box.workspace.get("up", limit_bytes=9) is None:
        await asyncio.sleep(0.01)
    print(box.workspace.path.parents[1 if mode != "podman" else 0], flush=True)
    await running

asyncio.run(main(*sys.argv[1:]))
"""


def _killed_session(mode: str, image: str, mark: str) -> Path:
    """Return the folder of a session that was killed while a command ran."""
    session = subprocess.Popen(
        [sys.executable, "-c", _SESSION, mode, image, mark], stdout=subprocess.PIPE, text=True
    )
    assert session.stdout is not None
    folder = Path(session.stdout.readline().strip())
    session.kill()
    session.wait()
    session.stdout.close()
    return folder


def _start_session(room: Running, mode: str) -> None:
    engine = room.wait(find_engine(Granted(mode), pull=NOT_ALLOWED))
    assert not isinstance(engine, Unavailable)
    room.wait(engine.close())


def _command_lives(mark: str) -> bool:
    return f"sleep\0{mark}\0".encode() in _command_lines()


def _command_lines() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_bytes())
    return found


def _ends(mark: str) -> bool:
    until(lambda: not _command_lives(mark), "the command ends")
    return True


def test_a_killed_session_takes_its_commands_with_it_and_the_next_removes_its_folder(bwrap: Running) -> None:
    mark = f"600.{os.getpid()}"
    folder = _killed_session("bwrap", "", mark)
    assert folder.name.startswith("helmbench-")
    assert folder.is_dir()
    assert _ends(mark)
    own = new_folder()

    _start_session(bwrap, "bwrap")

    assert not folder.exists()
    assert own.is_dir()
    remove_tree(own)


def test_containers_of_a_killed_session_are_removed_by_the_next_and_no_others(podman: Running) -> None:
    mark = f"601.{os.getpid()}"
    folder = _killed_session("podman", IMAGE, mark)
    foreign = "helmbench-looks-like-ours"
    _podman("create", "--name", foreign, "--label", "helmbench.owner=0.0.0.0", IMAGE, "true")
    box = podman.open()
    own = run_coroutine_threadsafe(box.run(Command(("sh", "-c", "echo > up; sleep 600"))), podman.loop.loop)
    try:
        until(lambda: box.workspace.get("up", limit_bytes=9) is not None, "the command runs")
        _start_session(podman, "podman")
        # Other workers of the suite have containers, too, and may have been the ones that removed the dead one's.
        left = _podman("ps", "-a", "--format", "{{.Names}}").split()
        assert foreign in left
        assert any(name.startswith(f"helmbench-{this_process().mark}-") for name in left)
    finally:
        own.cancel()
        _podman("rm", "-f", foreign)
    assert _ends(mark)
    assert not folder.exists()


def test_owners_are_told_apart_by_machine_user_number_and_start() -> None:
    ours = this_process()
    assert not ours.is_gone()
    assert replace(ours, start="1").is_gone()  # the number is taken again
    dead = subprocess.Popen(["true"])
    dead.wait()
    assert replace(ours, pid=dead.pid).is_gone()
    assert not replace(ours, pid=dead.pid, machine="0" * 16).is_gone()
    assert not replace(ours, pid=dead.pid, uid=ours.uid + 1).is_gone()
    assert not replace(ours, pid=1, start=_start_of_init()).is_gone()


def test_only_folders_of_dead_owners_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = replace(this_process(), start="1").mark
    (tmp_path / f"helmbench-{gone}-abc" / "inner").mkdir(parents=True)
    kept = [
        tmp_path / f"helmbench-{name}" for name in ("notes", f"{gone}x-abc", f"{this_process().mark}-abc")
    ]
    for folder in kept:
        folder.mkdir()
    (tmp_path / f"helmbench-{gone}-file").write_text("")

    remove_leftover_folders()

    assert sorted(tmp_path.iterdir()) == sorted(kept)


_SLOW = """#!{shell}
echo started >> {log}
sleep 1
exec {bwrap} "$@"
"""


def test_a_session_killed_while_a_sandbox_starts_leaves_nothing(bwrap: Running, tmp_path: Path) -> None:
    """Bubblewrap asks for a signal at its parent's death when it has started: too late here."""
    log, mark = tmp_path / "log", f"602.{os.getpid()}"
    program = tmp_path / "bwrap"
    program.write_text(_SLOW.format(shell=shutil.which("sh"), log=log, bwrap=shutil.which("bwrap")))
    program.chmod(0o755)
    session = subprocess.Popen(
        [sys.executable, "-c", _SESSION, "bwrap", "", mark],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    # The first one only tries whether it works.
    until(lambda: log.exists() and log.read_text().count("\n") >= 2, "a sandbox starts")
    session.kill()
    session.wait()

    time.sleep(1.5)  # it goes on starting

    until(
        lambda: (
            not [one for one in _command_lines() if str(tmp_path).encode() in one or mark.encode() in one]
        ),
        "all of it ends",
    )


def test_the_next_start_ends_a_sandbox_of_which_somebody_has_killed_half() -> None:
    def half(mark: str) -> subprocess.Popen[bytes]:
        words = ("bwrap", "-c", "import time; time.sleep(600)", f"/tmp/helmbench-{mark}-abc/workspaces/x")
        return subprocess.Popen(words, executable=sys.executable)

    gone, ours = half(replace(this_process(), start="1").mark), half(this_process().mark)
    try:
        remove_leftover_folders()
        assert gone.wait(PATIENCE_S) == -signal.SIGKILL
        assert ours.poll() is None
    finally:
        ours.kill()
        ours.wait()


_BUSY = """
import asyncio, sys
from pytest_helmbench.core.granted import NOT_ALLOWED, Granted
from pytest_helmbench.sandbox.box import BoxSpec, Command
from pytest_helmbench.sandbox.detection import find_engine

async def main(mark):
    engine = await find_engine(Granted("bwrap"), pull=NOT_ALLOWED)
    print("ready", flush=True)
    async with await engine.open(BoxSpec()) as box:
        async def one():
            while True:
                await box.run(Command(("sh", "-c", f"sleep 0.0{mark} & setsid sleep {mark} & sleep 0.02")))
        await asyncio.gather(*(one() for _ in range(3)))

asyncio.run(main(sys.argv[1]))
"""


def test_sessions_that_are_killed_at_any_moment_leave_no_process(bwrap: Running) -> None:
    mark = f"603{os.getpid()}"
    for number in range(8):
        session = subprocess.Popen([sys.executable, "-c", _BUSY, mark], stdout=subprocess.PIPE)
        assert session.stdout is not None
        session.stdout.readline()
        time.sleep(0.03 * number)
        session.kill()
        session.wait()
        session.stdout.close()

    def left() -> list[bytes]:
        return [line for line in _command_lines() if mark.encode() in line]

    until(lambda: not left(), "all of them end")


def _start_of_init() -> str:
    return f"{int(Path('/proc/1/stat').read_text().rpartition(')')[2].split()[19]):x}"


def _podman(*arguments: str) -> str:
    ended = subprocess.run(["podman", *arguments], capture_output=True, text=True, check=True)
    return ended.stdout
