"""The first program in a sandbox: takes the limits on, drops privileges, then becomes the command.

Arguments: limits as `name=value` joined by commas, the folder to start in, then the command. Names are those of the
RLIMIT constants, and

* `uid`: the user to become;
* `join`: a descriptor of a `cgroup.procs` to write ourselves into; it may be named several times;
* `lifeline`: a descriptor. We are the first process of a namespace: stay, and end, and with us all in it, when the
  command has ended or the other end is closed;
* `gate`: the same, of a socket, at whose other end sockets of our network can be asked for;
* `reap`: the process that starts us. There is no namespace: stay, kill what the command leaves behind, and end with
  that process.
"""

from __future__ import annotations

import marshal
import os
import resource
import signal
import stat
import sys

__all__ = ["take_on"]

_OWN_FLAGS = "-ISE"
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_MOST_DESCRIPTORS = 65536
_LOOPBACK = "127.0.0.1"
_BACKLOG = 1024
_CONNECT_S = 2.0
_LONGEST_QUESTION = 64
_CODE_BEHIND = 16  # bytes of header in a compiled file


def take_on(text: str) -> dict[str, int]:
    """Set the limits; return the settings that are none."""
    rest = {}
    limits = []
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        kind = getattr(resource, "RLIMIT_" + name, None)
        if name == "join":
            os.write(int(value), b"0")
            os.close(int(value))
        elif kind is None:
            rest[name] = int(value)
        else:
            limits.append((kind, int(value)))
    if "uid" in rest:
        _drop(rest["uid"])
    for kind, bound in limits:
        hard = resource.getrlimit(kind)[1]
        least = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(kind, (least, least))
    return rest


def _drop(uid: int) -> None:
    for stream, mode in ((0, 0o444), (1, 0o222), (2, 0o222)):
        # As /dev/stdout it is opened anew, by a user who does not own it. Only a pipe is ours to change.
        if stat.S_ISFIFO(os.fstat(stream).st_mode):
            os.fchmod(stream, mode)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _become(folder: str, argv: list[str]) -> None:
    """Replace this process by the command; end with 127 or 126, as shells do, when that fails."""
    if argv[:2] == [sys.executable, _OWN_FLAGS] and argv[2].endswith(".pyc"):
        _run_compiled(argv)
        return
    try:
        os.chdir(folder)
    except (OSError, ValueError) as error:
        _refuse(126, folder, error)
    try:
        os.execvp(argv[0], argv)
    except FileNotFoundError as error:
        _refuse(127, argv[0], error)
    except (OSError, ValueError) as error:
        _refuse(126, argv[0], error)


def _refuse(code: int, name: str, error: Exception) -> None:
    why = getattr(error, "strerror", None) or str(error)
    os.write(2, (name + ": " + why + "\n").encode("utf-8", "backslashreplace"))
    os._exit(code)


def _run_compiled(argv: list[str]) -> None:
    """Run a compiled program of ours here and now: a second start of Python would cost as much again."""
    sys.argv[:] = argv[2:]
    with open(argv[2], "rb") as file:
        code = marshal.loads(file.read()[_CODE_BEHIND:])
    exec(code, {"__name__": "__main__", "__builtins__": __builtins__})


def _stand_over(folder: str, argv: list[str], lifeline: int, *, is_gate: bool) -> None:
    """Run the command below us, the first process of a namespace: all in it ends with us, and we with the lifeline."""
    command = 0

    def look(*_: object) -> None:
        """Take note of what has ended; as the first process we are the parent of every orphan."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == command:
                _end_as(status)

    _close_to_others()
    if is_gate:
        _answer(lifeline)
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
    signal.signal(signal.SIGCHLD, look)
    command = os.fork()
    if command == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))
        os.close(lifeline)
        _become(folder, argv)
        os._exit(0)
    for stream in (0, 1, 2):
        os.close(stream)
    # Close the descriptors of the command: a reader of the other end would wait for us too.
    os.closerange(3, lifeline)
    os.closerange(lifeline + 1, _MOST_DESCRIPTORS)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))
    if is_gate:
        _answer(lifeline)
    else:
        os.read(lifeline, 1)
    os._exit(128 + signal.SIGKILL)


def _answer(gate: int) -> None:
    """Make sockets of our network for the process at the other end, until it is gone.

    Asked for are `listen PORT` and `connect PORT`; the answer is a descriptor, or why there is none. Nothing has been
    started before the word `go`, behind which we return.
    """
    sockets = __import__("_socket")  # without the rest of `socket`, which is dear to import
    asking = sockets.socket(fileno=gate)
    while True:
        word, _, port = asking.recv(_LONGEST_QUESTION).decode().partition(" ")
        if not word:
            os._exit(128 + signal.SIGKILL)
        if word == "go":
            asking.detach()
            return
        try:
            made = sockets.socket()
            made.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
            if word == "listen":
                made.bind((_LOOPBACK, int(port)))
                made.listen(_BACKLOG)
            else:
                made.settimeout(_CONNECT_S)
                made.connect((_LOOPBACK, int(port)))
            passed = made.fileno().to_bytes(4, sys.byteorder)
            asking.sendmsg([b"ok"], [(sockets.SOL_SOCKET, sockets.SCM_RIGHTS, passed)])
        except OSError as error:
            asking.send((error.strerror or "it takes too long").encode())
        finally:
            made.close()


def _end_as(status: int) -> None:
    code = os.waitstatus_to_exitcode(status)
    os._exit(128 - code if code < 0 else code)


def _close_to_others() -> None:
    """Keep others of our user out of our memory, from where they could say how the command has ended."""
    # Who has become another user is closed already, unless this machine says otherwise. `ctypes` is dear to import.
    with open("/proc/sys/fs/suid_dumpable") as file:
        is_closed = "uid=" in sys.argv[1] and file.read().strip() != "1"
    if not is_closed:
        __import__("ctypes").CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _stay(folder: str, argv: list[str], parent: int) -> None:
    """Run the command as a child and adopt what it leaves behind, then kill that."""
    signal.signal(signal.SIGTERM, _give_up)
    _adopt_orphans()
    if os.getppid() != parent:
        os._exit(128 + signal.SIGTERM)  # it died before we asked for its signal
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _become(folder, argv)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    _kill_children()
    _end_as(status)


def _give_up(*_: object) -> None:
    _kill_children()
    os._exit(128 + signal.SIGTERM)


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        prctl = __import__("ctypes").CDLL(None).prctl  # needed in this one mode only, and dear to import
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # what the command starts says nothing of its end


def _kill_children() -> None:
    """Kill until there is no child left; grandchildren become children as their parents die."""
    while True:
        for pid in _children():
            try:
                os.kill(pid, 9)
            except OSError:
                pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


if __name__ == "__main__":
    settings = take_on(sys.argv[1])
    if "lifeline" in settings:
        _stand_over(sys.argv[2], sys.argv[3:], settings["lifeline"], is_gate=False)
    elif "gate" in settings:
        _stand_over(sys.argv[2], sys.argv[3:], settings["gate"], is_gate=True)
    elif "reap" in settings:
        _stay(sys.argv[2], sys.argv[3:], settings["reap"])
    else:
        _become(sys.argv[2], sys.argv[3:])
