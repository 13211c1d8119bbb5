"""Attacks on processes: out of the box's namespaces, into our own programs, around the filter of system calls."""

from __future__ import annotations

import os

import pytest
from engines import Running

_CALLS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name, number, *given in CALLS:
    if libc.syscall(number, *given) != -1:
        print("open:", name)
"""
_NUMBERS = {  # x86_64
    "unshare": (272, 0x10000000),
    "unshare files": (272, 0x20000),
    "setns": (308, 0, 0),
    "clone with a namespace of users": (56, 0x10000000 | 17, 0, 0, 0, 0),
    "clone with a network": (56, 0x40000000 | 17, 0, 0, 0, 0),
    "clone3": (435, 0, 0),
    "ptrace": (101, 16, 1, 0, 0),
    "process_vm_readv": (310, 1, 0, 0, 0, 0, 0),
    "process_vm_writev": (311, 1, 0, 0, 0, 0, 0),
    "process_madvise": (440, 0, 0, 0, 0, 0),
    "pidfd_getfd": (438, 0, 0, 0),
    "kcmp": (312, 1, 1, 0, 0, 0),
    "bpf": (321, 0, 0, 0),
    "perf_event_open": (298, 0, 0, 0, 0, 0),
    "userfaultfd": (323, 0),
    "io_uring_setup": (425, 1, 0),
    "io_uring_enter": (426, 0, 0, 0, 0, 0, 0),
    "keyctl": (250, 0, 0),
    "add_key": (248, 0, 0, 0, 0, 0),
    "request_key": (249, 0, 0, 0, 0),
    "memfd_create": (319, b"x", 0),
    "memfd_secret": (447, 0),
    "shmget": (29, 0, 4096, 0o1600),
    "msgget": (68, 0, 0o1600),
    "mq_open": (240, b"x", 0o102, 0o600, 0),
    "mount": (165, 0, 0, 0, 0, 0),
    "fsopen": (430, b"tmpfs", 0),
    "open_tree": (428, -100, b"/", 1),
    "move_mount": (429, 0, 0, 0, 0, 0),
    "pivot_root": (155, b"/", b"/"),
    "open_by_handle_at": (304, 0, 0, 0),
    "name_to_handle_at": (303, -100, b"/", 0, 0, 0),
    "personality without random addresses": (135, 0x0040000),
    "syslog": (103, 10, 0, 0),
    "fanotify_init": (300, 0, 0),
    "quotactl": (179, 0, 0, 0, 0),
    "a call of a later kernel": (999,),
    "typing into a terminal": (16, 0, 0x5412, b"x"),
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of another processor")
def test_calls_that_lead_out_are_closed(bwrap: Running) -> None:
    calls = [(name, *given) for name, given in _NUMBERS.items()]
    box = bwrap.open()
    ended = bwrap.run(box, box.python, "-c", f"CALLS = {calls!r}\n{_CALLS}")
    assert (ended.exit_code, ended.stdout) == (0, b"")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of another processor")
def test_calls_by_the_numbers_of_other_processors_end_the_program(bwrap: Running) -> None:
    """x32 and i386 have numbers of their own for the same calls."""
    box = bwrap.open()
    x32 = "import ctypes; ctypes.CDLL(None).syscall(0x40000000 | 39); print('open')"
    ended = bwrap.run(box, box.python, "-c", x32)
    assert (ended.exit_code, ended.stdout) == (128 + 31, b"")


_HONEST = """
import concurrent.futures, multiprocessing, os, selectors, signal, subprocess, tempfile, threading, time

if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        assert pool.map(abs, [1, -2]) == [1, 2]
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(int, "123")) == 6
    assert subprocess.run(["sh", "-c", "echo $((1 + 1)) | cat"], capture_output=True).stdout == b"2\\n"
    signal.signal(signal.SIGUSR1, lambda *_: print("heard", flush=True))
    os.kill(os.getpid(), signal.SIGUSR1)
    pidfd = os.pidfd_open(os.getpid())
    selector = selectors.DefaultSelector()
    there, back = os.pipe()
    selector.register(there, selectors.EVENT_READ)
    os.write(back, b"x")
    assert selector.select(1)
    os.mkfifo("fifo")
    os.setxattr if False else None
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * 100_000)
        os.posix_fallocate(file.fileno(), 0, 200_000)
    os.nice(1)
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    print(open("/proc/self/status").readline().split()[1])
"""


def test_what_ordinary_programs_do_is_open(bwrap: Running) -> None:
    box = bwrap.open()
    box.workspace.put("honest.py", _HONEST.replace("    os.setxattr if False else None\n", "").encode())
    ended = bwrap.run(box, box.python, "honest.py")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, b"heard\npython3.11\n", b"") or (
        ended.exit_code == 0 and ended.stdout.startswith(b"heard\npython3")
    )


_REACHES = """
import os, signal
for place in ("1", str(os.getppid())):
    for name in ("mem", "environ", "fd", "maps", "root", "cwd", "exe", "task"):
        path = f"/proc/{place}/{name}"
        try:
            if name in ("fd", "task"): os.listdir(path) and name == "fd" and print("open:", path)
            elif name in ("root", "cwd", "exe"): os.readlink(path) and print("open:", path)
            else: open(path, "rb").read(1) and print("open:", path)
        except OSError: pass
for path in ("/proc/1/mem", f"/proc/{os.getppid()}/mem", "/proc/self/mem", "/proc/self/oom_score_adj"):
    for flags in (os.O_WRONLY, os.O_RDWR):
        try: os.open(path, flags); print("written:", path)
        except OSError: pass
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV):
    os.kill(1, number)
try: os.kill(-1, 0)
except OSError: pass
print("alive")
"""


def test_the_program_above_cannot_be_looked_into_written_to_or_stopped(bwrap: Running) -> None:
    """It says how a command has ended; a program of the same user could have it say something else."""
    box = bwrap.open()
    box.workspace.put("reaches.py", _REACHES.encode())
    ended = bwrap.run(box, box.python, "reaches.py")
    assert (ended.exit_code, ended.stdout) == (0, b"alive\n")


_INJECTS = """
import os, subprocess, sys
child = '''
import os
try:
    parent = os.open(f"/proc/{os.getppid()}/mem", os.O_RDWR)
    print("opened")
except OSError as error:
    print(error.strerror)
'''
print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout, end="")
secret = "".join(["to be ", "found"])
print(secret in open("/proc/self/environ").read())
"""


def test_a_program_under_test_cannot_write_into_the_one_that_tests_it(bwrap: Running) -> None:
    box = bwrap.open()
    ended = bwrap.run(box, box.python, "-c", _INJECTS)
    assert ended.stdout == b"Read-only file system\nFalse\n"


def test_no_process_of_this_machine_can_be_seen_or_told_anything(bwrap: Running) -> None:
    box = bwrap.open()
    script = (
        "import os\n"
        f"try: os.kill({os.getpid()}, 0); print('reached')\n"
        "except ProcessLookupError: print('nobody')\n"
        "print(sorted(int(name) for name in os.listdir('/proc') if name.isdigit())[-1] < 20)\n"
        "print([os.getpgid(0) > 0, os.getsid(0) < 20])\n"
        "try: os.open('/dev/tty', os.O_RDWR); print('a terminal')\n"
        "except OSError: print('no terminal')\n"
    )
    ended = bwrap.run(box, box.python, "-c", script)
    assert ended.stdout == b"nobody\nTrue\n[True, True]\nno terminal\n"


def test_descriptors_of_ours_are_not_inherited(bwrap: Running) -> None:
    box = bwrap.open()
    script = (
        "import os\n"
        "held = [number for number in range(3, 1000) if os.path.exists(f'/proc/self/fd/{number}')]\n"
        "print([os.readlink(f'/proc/self/fd/{number}') for number in held])\n"
    )
    assert bwrap.run(box, box.python, "-c", script).stdout == b"[]\n"
