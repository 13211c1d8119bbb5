"""Attacks on the bounds of a box: memory, processes, files, time, and the processes that wait for them."""

from __future__ import annotations

import os
import time
from asyncio import create_task, sleep
from contextlib import suppress
from pathlib import Path

import pytest
from engines import Running, missing
from waiting import until

from pytest_helmbench.sandbox.box import Box, Command, Ended, Limits
from pytest_helmbench.sandbox.cgroups import find_group_place
from pytest_helmbench.sandbox.owners import this_process

MIB = 2**20
_LIMIT = 512 * MIB
_GREEDY = {
    "at once": "import mmap; m = mmap.mmap(-1, 1536 * 2**20); [m.__setitem__(i, 1) for i in range(0, len(m), 4096)]",
    "in children": (
        "import os\n"
        "for _ in range(6):\n"
        "    if os.fork() == 0:\n"
        "        held = b'x' * (256 * 2**20); os._exit(0)\n"
        "for _ in range(6): os.wait()\n"
    ),
    "in a file of the temporary folder": (
        "import os\nos.nice(0)\nheld = b'x' * (400 * 2**20)\n"
        "with open('/tmp/file', 'wb') as file:\n"
        "    for _ in range(250): file.write(b'x' * 2**20)\n"
    ),
    "in shared memory": (
        "import mmap, os\nm = mmap.mmap(-1, 1536 * 2**20, flags=mmap.MAP_SHARED)\n"
        "if os.fork() == 0:\n"
        "    [m.__setitem__(i, 1) for i in range(0, len(m), 4096)]; os._exit(0)\n"
        "os.wait()\n"
    ),
    "in daemons that are left behind": (
        "import os, time\n"
        "for _ in range(2):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork(): os._exit(0)\n"
        "        held = b'x' * (320 * 2**20); time.sleep(60)\n"
        "    os.wait()\n"
        "time.sleep(1)\n"
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _groups() -> None:
    if find_group_place() is None:
        missing("no control group can be made here")


@pytest.mark.parametrize("how", _GREEDY)
def test_memory_is_bounded_by_the_kernel_however_it_is_taken(bwrap: Running, how: str) -> None:
    box = bwrap.open()
    code = f"{_GREEDY[how]}\nprint('got it')\n"
    ended = bwrap.run(box, box.python, "-c", code, memory_bytes=_LIMIT)
    assert ended.exit_code is None or (ended.exit_code != 0 and ended.stdout == b"")
    if how != "at once":  # one process alone is refused it by its own limit
        assert ended.reason == f"more than {_LIMIT} bytes of memory"


def test_what_stays_below_the_limit_of_memory_passes(bwrap: Running) -> None:
    code = (
        "import os\n"
        "if os.fork() == 0:\n"
        "    held = b'x' * (150 * 2**20); os._exit(0)\n"
        "held = b'x' * (150 * 2**20)\n"
        "open('/tmp/file', 'wb').write(b'x' * (50 * 2**20))\n"
        "print(os.wait()[1])\n"
    )
    box = bwrap.open()
    ended = bwrap.run(box, box.python, "-c", code, memory_bytes=_LIMIT)
    assert (ended.exit_code, ended.reason, ended.stdout) == (0, "", b"0\n")


def test_no_group_is_left(bwrap: Running) -> None:
    place = find_group_place()
    assert place is not None
    bwrap.run(bwrap.open(), "true")
    folder = next(iter(place.folders.values()))
    own = f"helmbench-{this_process().mark}-"
    until(lambda: not [path for path in folder.iterdir() if path.name.startswith(own)], "its group goes")


_BOMBS = {
    "of a shell": ("sh", "-c", "b() { b | b & b; }; b"),
    "of threads": (
        "python3",
        "-c",
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()",
    ),
    "of orphans": (
        "python3",
        "-c",
        "import os\nwhile True:\n  try:\n    if os.fork() == 0: os.setsid()\n  except OSError: pass",
    ),
}


@pytest.mark.parametrize("kind", _BOMBS)
def test_a_bomb_of_processes_stays_in_its_box_and_ends_with_it(bwrap: Running, kind: str) -> None:
    box = bwrap.open()
    mark = f"helmbench-bomb-{os.getpid()}"
    ended = bwrap.run(box, *_BOMBS[kind], mark, wall_s=1.5, pids=24, cpus=2)
    assert ended.wall_s < 60
    assert _alive(mark) == []


async def _kept_waiting(box: Box, command: Command) -> tuple[Ended, float]:
    """Return how a command ends, and how much CPU time the loop spent on something else at the most."""
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        while True:
            before = time.thread_time()
            await sleep(0.01)
            longest = max(longest, time.thread_time() - before)

    beating = create_task(beat())
    try:
        ended = await box.run(command)
        await box.close()
        await sleep(0.05)
    finally:
        beating.cancel()
    return ended, longest


_MANY = (
    "import os\n"
    "for folder in range(FOLDERS):\n"
    "    os.mkdir(f'{place}/f{folder}')\n"
    "    for file in range(1000): os.mknod(f'{place}/f{folder}/{file}')\n"
    "print('made')\n"
)


# A disk may take its time over so many; memory does not.
@pytest.mark.parametrize(("place", "folders"), [(".", 8), ("/tmp", 44)])
def test_many_files_keep_nobody_waiting(bwrap: Running, place: str, folders: int) -> None:
    box = bwrap.open()
    command = Command(
        (box.python, "-c", _MANY.replace("{place}", place).replace("FOLDERS", str(folders))),
        limits=Limits(wall_s=60, cpus=2),
    )
    ended, longest_s = bwrap.wait(_kept_waiting(box, command))
    assert (ended.exit_code, ended.stdout) == (0, b"made\n")
    assert longest_s < 1.0
    assert not box.workspace.path.exists()


def test_the_number_of_files_is_bounded(bwrap: Running) -> None:
    code = _MANY.replace("{place}", ".").replace("FOLDERS", "8")
    box = bwrap.open()
    ended = bwrap.run(box, box.python, "-c", code, files=5000, wall_s=60)
    assert (ended.exit_code, ended.reason) == (None, "more than 5000 files in the workspace")
    inodes = "import os\nfor n in range(10**7): os.mknod(f'/tmp/{n}')"
    box = bwrap.open()
    ended = bwrap.run(box, box.python, "-c", inodes, memory_bytes=64 * MIB, wall_s=60, cpus=2)
    assert ended.exit_code != 0
    assert "memory" in ended.reason or b"Cannot allocate" in ended.stderr or b"No space" in ended.stderr


def test_deep_folders_and_closed_ones_are_removed(bwrap: Running) -> None:
    code = (
        "import os\n"
        "os.makedirs('closed/inner'); os.chmod('closed', 0)\n"
        "for _ in range(3000):\n"
        "    os.mkdir('d'); os.chdir('d')\n"
    )
    box = bwrap.open()
    ended = bwrap.run(box, box.python, "-c", code)
    assert "nested" in ended.reason
    bwrap.wait(box.close())
    assert not box.workspace.path.exists()


def _alive(mark: str) -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_bytes())
    return [line for line in found if mark.encode() in line]
