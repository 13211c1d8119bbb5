"""Attacks on files: what a box may read and write, devices, mounts, links, and what it leaves for us to read."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from engines import Running
from waiting import PATIENCE_S

from pytest_helmbench.sandbox.box import Mount

_WRITES = """
import os, stat
for top, folders, names in os.walk("/"):
    if top.startswith(("/proc", "/workspace", "/tmp", "/dev/shm", "/dev/pts")):
        folders.clear()
        continue
    if top.count("/") > 3:
        folders.clear()
    try:
        descriptor = os.open(os.path.join(top, ".helmbench-probe"), os.O_CREAT | os.O_WRONLY)
        print("wrote", top)
    except OSError:
        pass
    for name in names[:20]:
        path = os.path.join(top, name)
        try:
            if stat.S_ISREG(os.lstat(path).st_mode):
                os.open(path, os.O_WRONLY | os.O_APPEND)
                print("opened", path)
        except OSError:
            pass
"""


def test_nothing_of_this_machine_can_be_written(bwrap: Running) -> None:
    box = bwrap.open()
    assert bwrap.run(box, box.python, "-c", _WRITES, wall_s=60).stdout == b""


_KERNEL = """
import os
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger",
             "/proc/sys/kernel/hostname", "/proc/self/setgroups", "/proc/self/uid_map", "/proc/self/attr/exec"):
    try: os.open(path, os.O_WRONLY); print("opened", path)
    except OSError: pass
for path in ("/sys", "/sys/kernel", "/sys/fs/cgroup", "/boot", "/run", "/var", "/home", "/srv", "/mnt", "/opt"):
    if os.path.exists(path): print("there", path)
for path in ("/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/kvm", "/dev/fuse", "/dev/vsock", "/dev/net/tun",
             "/dev/loop-control", "/dev/mapper", "/dev/input", "/dev/snd", "/proc/kcore", "/proc/kmsg"):
    try: os.open(path, os.O_RDONLY); print("opened", path)
    except OSError: pass
for kind, device in ((0o020600, (1, 1)), (0o060600, (8, 0)), (0o020600, (10, 232)), (0o020600, (1, 3))):
    try: os.mknod("device", kind, os.makedev(*device)); print("made", device)
    except OSError: pass
for path in ("/etc/shadow", "/etc/gshadow", "/etc/ssh", "/root/.ssh", "/root/.netrc", "/etc/machine-id"):
    try: os.stat(path); print("seen", path)
    except OSError: pass
try: os.chroot("/tmp"); print("chroot")
except OSError: pass
try: os.setuid(0); print("root")
except OSError: pass
"""


def test_the_kernel_devices_and_secrets_are_out_of_reach(bwrap: Running) -> None:
    box = bwrap.open()
    assert bwrap.run(box, box.python, "-c", _KERNEL).stdout == b""


def test_programs_that_become_root_elsewhere_do_not_here(bwrap: Running) -> None:
    box = bwrap.open()
    code = (
        "import os, shutil, stat\n"
        "for path in ('/usr/bin/su', '/usr/bin/passwd', '/usr/bin/mount', '/usr/bin/newgrp'):\n"
        "    if os.path.exists(path) and not os.statvfs(path).f_flag & os.ST_NOSUID: print('suid', path)\n"
        "shutil.copy('/usr/bin/id', 'mine'); os.chmod('mine', 0o6755)\n"
        "print([word for word in os.popen('./mine').read().split()[:2] if 'euid' in word])\n"
    )
    assert bwrap.run(box, box.python, "-c", code).stdout == b"[]\n"


def test_an_honest_program_reads_and_writes_what_it_was_given(bwrap: Running, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("given")
    (tmp_path / "own").mkdir()
    os.chmod(tmp_path / "own", 0o777)  # noqa: PTH101 - the box has a user of its own
    mounts = (Mount(tmp_path / "given", "/data/given"), Mount(tmp_path / "own", "/data/own", read_only=False))
    box = bwrap.open(mounts=mounts)
    box.workspace.put("script.sh", b"#!/bin/sh\necho ran\n", mode=0o755)
    code = (
        "import os, random, ssl, subprocess, tempfile\n"
        "print(open('/data/given').read(), subprocess.check_output('./script.sh').decode().strip())\n"
        "open('/data/own/made', 'w').write('made'); open('/dev/null', 'w').write('x')\n"
        "os.symlink('script.sh', 'link'); os.link('script.sh', 'hard'); os.rename('hard', 'harder')\n"
        "tempfile.mkdtemp(); os.urandom(4); open('/dev/shm/x', 'w'); open('/dev/stdout', 'w').write('out\\n')\n"
    )
    ended = bwrap.run(box, box.python, "-c", code)
    assert (ended.exit_code, sorted(ended.stdout.split(b"\n"))) == (0, [b"", b"given ran", b"out"]), (
        ended.stderr
    )
    assert (tmp_path / "own" / "made").read_text() == "made"


_LEAVES = {
    "a link to a secret": "os.symlink({secret!r}, 'answer.txt')",
    "a link to our own command line": "os.symlink('/proc/self/cmdline', 'answer.txt')",
    "a link to what we have open": "os.symlink('/proc/self/fd/3', 'answer.txt')",
    "a link in the way": "os.symlink({folder!r}, 'folder')",
    "a queue": "os.mkfifo('answer.txt')",
    "a folder": "os.mkdir('answer.txt')",
}


@pytest.mark.parametrize("what", _LEAVES)
def test_what_leads_out_of_a_workspace_is_not_followed(bwrap: Running, tmp_path: Path, what: str) -> None:
    secret = tmp_path / "answer.txt"
    secret.write_text("secret")
    box = bwrap.open()
    code = "import os\n" + _LEAVES[what].format(secret=str(secret), folder=str(tmp_path))
    assert bwrap.run(box, box.python, "-c", code).exit_code == 0
    found: list[object] = []

    def read() -> None:
        names = ("answer.txt", "folder/answer.txt")
        found.extend(box.workspace.get(name, limit_bytes=99) for name in names)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert found == [None, None]
    box.workspace.put("folder/answer.txt", b"ours")
    assert secret.read_text() == "secret"


def test_a_plain_file_and_a_link_within_are_read(bwrap: Running) -> None:
    box = bwrap.open()
    bwrap.run(box, "sh", "-c", "mkdir folder; echo plain > folder/answer.txt; ln -s answer.txt folder/link")
    assert box.workspace.get("folder/answer.txt", limit_bytes=99) == b"plain\n"
