"""The promises of every engine, tested with real bubblewrap, podman and docker."""

from __future__ import annotations

import os
import shutil
import time
from asyncio import create_task, sleep, wait
from pathlib import Path

import pytest
from engines import Running, folder_of_image

from pytest_helmbench.core.granted import NOT_ALLOWED, Granted
from pytest_helmbench.sandbox.box import (
    Box,
    BoxSpec,
    Command,
    Ended,
    Limits,
    Mount,
    Unavailable,
)
from pytest_helmbench.sandbox.detection import find_engine
from pytest_helmbench.sandbox.engines.bwrap import ENGINE, BubblewrapEngine, ways
from pytest_helmbench.sandbox.workspace import SandboxError

PROTECTING = ("bwrap", "podman", "docker")
MIB = 1024 * 1024
_BEATS = "while :; do echo >> beats; sleep 0.1; done"


@pytest.fixture
def room(request: pytest.FixtureRequest) -> Running:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Running)
    return found


every_engine = pytest.mark.parametrize("room", PROTECTING, indirect=True)
protecting_engines = pytest.mark.parametrize("room", PROTECTING, indirect=True)
# Docker's command line differs from podman's in few flags only; what does not hang on them is tried with one.
each_kind = pytest.mark.parametrize("room", ["bwrap", "podman"], indirect=True)
bwrap_and_podman = pytest.mark.parametrize("room", ["bwrap", "podman"], indirect=True)


@pytest.fixture
def box(room: Running) -> Box:
    return room.open(label="a row")


@every_engine
def test_a_command_reads_writes_and_ends(room: Running, box: Box) -> None:
    ended = room.run(box, "sh", "-c", "cat; echo err >&2; pwd; exit 3", stdin=b"in\n")
    assert (ended.exit_code, ended.stderr, ended.reason, ended.timed_out) == (3, b"err\n", "", False)
    assert ended.stdout == f"in\n{box.workdir}\n".encode()
    assert 0 < ended.wall_s < 20
    assert box.engine == room.engine.name


@each_kind
@pytest.mark.parametrize(("program", "code"), [("no-such-program", 127), ("/etc", 126)])
def test_a_command_that_cannot_start_ends_like_in_a_shell(room: Running, program: str, code: int) -> None:
    ended = room.run(room.open(), program)
    assert (ended.exit_code, ended.reason) == (code, "")
    assert program.encode() in ended.stderr


def _is_still(box: Box) -> bool:
    """Whether no process writes `_BEATS` in a workspace any more."""
    before = box.workspace.get("beats", limit_bytes=MIB)
    time.sleep(0.5)
    return box.workspace.get("beats", limit_bytes=MIB) == before


@each_kind
def test_no_process_outlives_its_command(room: Running, box: Box) -> None:
    script = f"(setsid sh -c '{_BEATS}' >/dev/null 2>&1 &) ; sleep 600 & echo started"
    assert room.run(box, "sh", "-c", script).stdout == b"started\n"
    assert _is_still(box)


@every_engine
def test_a_command_without_end_is_stopped_with_all_it_started(room: Running, box: Box) -> None:
    script = f"sh -c '{_BEATS}' & echo before; sleep 600"
    ended = room.run(box, "sh", "-c", script, wall_s=1.0)
    assert (ended.exit_code, ended.timed_out, ended.reason) == (None, True, "no end within 1 s")
    assert ended.stdout in (b"before\n", b"")  # a container may take longer to start
    assert _is_still(box)


@each_kind
def test_cancelling_kills_the_command(room: Running, box: Box) -> None:
    async def cancel() -> None:
        running = create_task(box.run(Command(("sh", "-c", _BEATS))))
        while box.workspace.get("beats", limit_bytes=MIB) is None:  # noqa: ASYNC110 - foreign code sets no event
            await sleep(0.01)
        running.cancel()
        await wait([running])

    room.wait(cancel())
    assert _is_still(box)


@each_kind
def test_output_is_kept_up_to_its_limit(room: Running, box: Box) -> None:
    ended = room.run(box, "sh", "-c", "echo 1234567890; echo abc >&2", output_bytes=5)
    assert (ended.exit_code, ended.stdout, ended.stderr, ended.output_cut) == (0, b"12345", b"abc\n", True)


@each_kind
def test_a_flood_of_output_is_stopped(room: Running, box: Box) -> None:
    ended = room.run(box, "yes", output_bytes=1000)
    assert (ended.exit_code, ended.reason) == (None, "more than 16000 bytes of output")
    assert ended.stdout == b"y\n" * 500


@every_engine
def test_the_environment_is_made_from_nothing(room: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:sk-secret-2@proxy")
    box = room.open(env=(("GIVEN", "1"), ("BOTH", "box")))
    command = Command(("env",), env=(("MORE", "2"), ("BOTH", "command")))
    seen = room.wait(box.run(command)).stdout.decode()
    assert {"GIVEN=1", "MORE=2", "BOTH=command"} <= set(seen.splitlines())
    assert "secret" not in seen


@protecting_engines
def test_there_is_no_network(room: Running, box: Box) -> None:
    script = (
        "import socket\n"
        "names = [line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line]\n"
        "print([name for name in names if name != 'lo'])\n"
        "try: socket.create_connection(('192.0.2.1', 80), 2)\n"
        "except OSError as error: print(error.strerror)\n"
    )
    assert room.run(box, box.python, "-c", script).stdout == b"[]\nNetwork is unreachable\n"


@protecting_engines
def test_nothing_but_workspace_and_temporary_folder_can_be_written(room: Running, box: Box) -> None:
    script = (
        "for place in / /usr /etc /bin /proc /sys /root /var /home /.helmbench; do\n"
        "  touch $place/x 2>/dev/null && echo wrote $place\n"
        "done\n"
        "for place in . /tmp; do touch $place/x && echo wrote $place; done"
    )
    assert room.run(box, "sh", "-c", script).stdout == b"wrote .\nwrote /tmp\n"


@protecting_engines
def test_a_command_has_no_privileges_and_gains_none(room: Running, box: Box) -> None:
    seen = room.run(
        box, "grep", "-E", "^(CapEff|CapPrm|CapAmb|NoNewPrivs)", "/proc/self/status"
    ).stdout.split()
    assert dict(zip(seen[::2], seen[1::2], strict=True)) == {
        b"CapPrm:": b"0" * 16,
        b"CapEff:": b"0" * 16,
        b"CapAmb:": b"0" * 16,
        b"NoNewPrivs:": b"1",
    }


@protecting_engines
def test_processes_of_this_machine_are_not_seen(room: Running, box: Box) -> None:
    seen = room.run(box, "sh", "-c", "echo /proc/[0-9]*").stdout.split()
    assert len(seen) < 8
    assert f"/proc/{os.getpid()}".encode() not in seen


def test_files_of_this_machine_are_not_seen(bwrap: Running, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-secret")
    box = bwrap.open()
    seen = bwrap.run(box, "sh", "-c", f"cat {tmp_path}/key; ls -a / /etc /tmp $HOME/ 2>/dev/null")
    assert b"secret" not in seen.stdout
    names = set(seen.stdout.decode().split())
    assert not names & {"shadow", "ssh", "ssl", "work", "var", "opt", "mnt", "run", "sys", "srv"}


@each_kind
def test_open_files_of_ours_are_not_inherited(room: Running, box: Box, tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        seen = room.run(box, "sh", "-c", "ls -l /proc/self/fd").stdout
    assert b"secret" not in seen


@bwrap_and_podman
def test_memory_is_bounded_in_one_process(room: Running, box: Box) -> None:
    ended = room.run(box, box.python, "-c", "x = bytearray(10**9); print('got it')", memory_bytes=200 * MIB)
    assert ended.exit_code != 0
    assert ended.stdout == b""


@bwrap_and_podman
def test_memory_is_bounded_over_many_processes(room: Running, box: Box) -> None:
    script = (
        "import os, time\n"
        "children = []\n"
        "for _ in range(5):\n"
        "    if not (pid := os.fork()):\n"
        "        x = b'x' * 100_000_000; time.sleep(1.5); os._exit(0)\n"
        "    children.append(pid)\n"
        "if all(os.waitpid(pid, 0)[1] == 0 for pid in children): print('all of it')\n"
    )
    ended = room.run(box, box.python, "-c", script, memory_bytes=256 * MIB)
    assert ended.stdout == b""
    if room.engine.name == "bwrap":
        assert ended.reason == f"more than {256 * MIB} bytes of memory"


def test_memory_that_belongs_to_no_process_is_refused(bwrap: Running) -> None:
    box = bwrap.open()
    script = "import os\ntry: os.memfd_create('x')\nexcept OSError as error: print(error.strerror)"
    assert bwrap.run(box, box.python, "-c", script).stdout == b"Function not implemented\n"


def test_new_namespaces_and_looking_into_processes_are_refused(bwrap: Running) -> None:
    box = bwrap.open()
    script = (
        "import ctypes, errno, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for call in (lambda: libc.unshare(0x10000000), lambda: libc.ptrace(16, os.getppid(), 0, 0)):\n"
        "    print(call(), ctypes.get_errno() == errno.ENOSYS)\n"
    )
    assert bwrap.run(box, box.python, "-c", script).stdout == b"-1 True\n-1 True\n"


@bwrap_and_podman
def test_a_fork_bomb_stays_within_its_number_of_processes(room: Running, box: Box) -> None:
    script = (
        "import os, time\n"
        "born = 0\n"
        "try:\n"
        "    for _ in range(300):\n"
        "        if os.fork() == 0: time.sleep(60)\n"
        "        born += 1\n"
        "except OSError: print(born)\n"
    )
    ended = room.run(box, box.python, "-c", script, pids=20)
    assert ended.reason == ""
    assert 10 <= int(ended.stdout) <= 25


@bwrap_and_podman
def test_cpu_time_is_bounded_over_all_processes(room: Running, box: Box) -> None:
    script = "sh -c 'while :; do :; done' & while :; do :; done"
    ended = room.run(box, "sh", "-c", script, wall_s=2.0, cpus=0.2)
    assert ended.exit_code != 0
    assert ended.wall_s < 30


@each_kind
def test_disk_space_of_the_workspace_is_bounded(room: Running, box: Box) -> None:
    script = "for n in 1 2 3; do head -c 3000000 /dev/zero > file$n; done"
    ended = room.run(box, "sh", "-c", script, disk_bytes=5_000_000)
    assert (ended.exit_code, ended.reason) == (None, "more than 5000000 bytes in the workspace")
    assert not ended.timed_out


@bwrap_and_podman
@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
def test_disk_space_of_temporary_folders_is_bounded(room: Running, box: Box, place: str) -> None:
    script = f"for n in 1 2 3; do head -c 3000000 /dev/zero > {place}/file$n || echo full; done"
    ended = room.run(box, "sh", "-c", script, disk_bytes=5_000_000)
    assert ended.exit_code == 0
    assert ended.stdout == b"full\nfull\n"


@every_engine
def test_mounts_are_seen_and_cannot_be_written(room: Running, tmp_path: Path) -> None:
    # Podman's service, which stands in for docker's daemon here, takes no comma; both command lines do.
    hidden = tmp_path / ("tests hidden" if room.engine.name == "docker" else 'tests, "hidden"')
    hidden.mkdir()
    (hidden / "data").write_text("mounted")
    (tmp_path / "file").write_text("alone")
    mounts = (
        Mount(hidden, "/eval/tests"),
        Mount(tmp_path / "file", "/workspace/in/file"),
    )
    box = room.open(mounts=mounts)
    data, file = "/eval/tests/data", "/workspace/in/file"
    assert room.run(box, "cat", data, file).stdout == b"mountedalone"
    assert room.run(box, "sh", "-c", f"echo x > {data}; echo x > {file}; mv {file} gone").exit_code != 0
    assert (hidden / "data").read_text() == "mounted"
    assert (tmp_path / "file").read_text() == "alone"


@bwrap_and_podman
def test_a_mount_over_a_link_that_foreign_code_left_does_not_follow_it(room: Running, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mounted")
    box = room.open(mounts=(Mount(tmp_path / "file", "/workspace/assets/file"),))
    (box.workspace.path / "assets").symlink_to(tmp_path)
    assert room.run(box, "cat", "assets/file").stdout == b"mounted"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


@each_kind
def test_two_commands_talk_over_pipes(room: Running) -> None:
    async def talk() -> bytes:
        there, here = os.pipe(), os.pipe()
        async with await room.engine.open(BoxSpec(image=room.image)) as box:
            first = create_task(
                box.run_joined(
                    Command(("sh", "-c", "read x; echo $x back >&2")), stdin=here[0], stdout=there[1]
                )
            )
            second = create_task(
                box.run_joined(Command(("sh", "-c", "echo hello")), stdin=there[0], stdout=here[1])
            )
            ended = await first
            await second
        for descriptor in (*there, *here):
            os.close(descriptor)
        return ended.stderr

    assert room.wait(talk()) == b"hello back\n"


@pytest.mark.parametrize(
    ("room", "sentence"),
    [
        ("bwrap", "the image x:1 needs docker or podman; only bwrap is used here"),
        ("podman", "the image x:1 is not here; --helmbench-pull would fetch it"),
    ],
    indirect=["room"],
)
def test_an_image_that_cannot_be_used_is_said(room: Running, sentence: str) -> None:
    assert room.wait(room.engine.obstacle("x:1")) == Unavailable(sentence, "no_image")
    with pytest.raises(SandboxError) as caught:
        room.wait(room.engine.open(BoxSpec(image="x:1")))
    assert str(caught.value) == sentence


@pytest.mark.parametrize("room", ["podman", "docker"], indirect=True)
def test_a_workspace_is_filled_from_the_image(room: Running) -> None:
    box = room.open(workdir=folder_of_image(room), fill_from_image=True)
    assert "__init__.py" in {entry.name for entry in box.workspace.entries()}
    assert room.run(box, "sh", "-c", "cat __init__.py && touch mine").exit_code == 0

    with pytest.raises(SandboxError) as caught:
        room.open(workdir="/no/such/folder", fill_from_image=True)
    assert str(caught.value).startswith(f"{room.image}: /no/such/folder cannot be copied out of the image (")


@pytest.mark.parametrize("number", range(3 if os.getuid() == 0 else 2))
def test_every_way_of_bubblewrap_holds_the_same_bounds(bwrap: Running, number: int) -> None:
    script = (
        "import os, time\n"
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "names = [line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line]\n"
        "print(status['CapEff'].strip(), status['CapPrm'].strip(), names)\n"
        "for path in ('/x', '/usr/x', '/dev/x'):\n"
        "    try: open(path, 'w')\n"
        "    except OSError as error: print(error.strerror)\n"
        "open('mine', 'w').close()\n"
        "try:\n"
        "    for _ in range(300):\n"
        "        if os.fork() == 0: time.sleep(60)\n"
        "    time.sleep(60)\n"  # until we have counted
        "except OSError: print('no more')\n"
    )

    async def run() -> tuple[Ended, bytes | None]:
        way = list(ways(shutil.which("bwrap") or ""))[number]
        engine = BubblewrapEngine(ENGINE, way)
        try:
            async with await engine.open(BoxSpec(limits=Limits(wall_s=50, pids=20))) as box:
                ended = await box.run(Command((box.python, "-u", "-c", script)))
                return ended, box.workspace.get("mine", limit_bytes=1)
        finally:
            await engine.close()

    ended, mine = bwrap.wait(run())
    lines = ended.stdout.decode().splitlines()
    assert mine == b""
    assert lines[:4] == [f"{'0' * 16} {'0' * 16} ['lo']", *["Read-only file system"] * 3]
    # Processes of root itself are never counted by the kernel, but by us.
    assert lines[4:] == ["no more"] or ended.reason == "more than 20 processes"


def test_a_sandbox_that_cannot_be_made_is_an_error_not_an_end(bwrap: Running) -> None:
    box = bwrap.open(mounts=(Mount(Path("/no/such/file"), "/x"),))
    with pytest.raises(SandboxError) as caught:
        bwrap.run(box, "true")
    assert str(caught.value).startswith(
        "bwrap: no sandbox could be made (bwrap: Can't find source path /no/such/file"
    )


@pytest.mark.parametrize("mode", ["docker", "podman", "bwrap", "auto"])
def test_without_a_program_the_reason_is_said(
    bwrap: Running, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = bwrap.wait(find_engine(Granted(mode), pull=NOT_ALLOWED))
    assert found == Unavailable(
        "no sandbox: docker is not installed; podman is not installed; bwrap is not installed"
        if mode == "auto"
        else f"{mode} is not installed"
    )


def test_auto_uses_containers_for_images_and_bubblewrap_for_the_rest(podman: Running) -> None:
    async def use() -> tuple[str, str, str]:
        engine = await find_engine(Granted("auto"), pull=NOT_ALLOWED)
        assert not isinstance(engine, Unavailable)
        try:
            async with (
                await engine.open(BoxSpec()) as here,
                await engine.open(BoxSpec(image=podman.image)) as there,
            ):
                return engine.name, here.engine, there.engine
        finally:
            await engine.close()

    name, here, there = podman.wait(use())
    assert here == "bwrap"
    assert there in ("docker", "podman")
    assert name == f"{there}+bwrap"
