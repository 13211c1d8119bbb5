"""Python processes that are forked from one that has imported everything: 12 ms of CPU time instead of 400.

Measured in pairs on two quiet cores, 60 random tests of `tests/sessions`: 30 s with it, 35 and 48 s without. For the
README's command that is 1.5 to 5 minutes. It goes when it saves less than one.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import io
import marshal
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

_FOLDER = "TESTS_FORK_SERVER"
_known = list[Path]()  # the server's socket, in what is forked: tests change the environment

# Hands over files, folder, environment and words, passes signals on, and ends as the forked process does.
_CLIENT = """
import _signal, _socket, array, marshal, os, sys
path, *words = sys.argv[1:]
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect(path)
ended_by = _signal.SIGTERM, _signal.SIGHUP
ignored = [int(number) for number in ended_by if _signal.getsignal(number) == _signal.SIG_IGN]
order = marshal.dumps((os.getcwd(), dict(os.environ), os.getpgrp(), ignored, words))
files = _socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", (0, 1, 2))
server.sendmsg([b"%16d" % len(order)], [files])
server.sendall(order)
os.closerange(0, 3)
pid = int(server.recv(16, _socket.MSG_WAITALL))
for number in ended_by:
    _signal.signal(number, lambda number, _frame: os.kill(pid, number))
_signal.signal(_signal.SIGINT, _signal.SIG_IGN)  # the forked process is in the same group
code = int(server.recv(16, _socket.MSG_WAITALL) or b"1")
if code < 0:
    _signal.signal(-code, _signal.SIG_DFL) if -code != _signal.SIGKILL else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""


def python_command() -> list[str]:
    """Return the beginning of a command that replaces `python`: `-c PROGRAM` or `-m MODULE` follow, and arguments."""
    return [sys.executable, "-S", "-E", "-c", _CLIENT, str(_started_server())]


@pytest.hookimpl(optionalhook=True)  # there are sessions without pytest-xdist
def pytest_xdist_setupnodes(specs: Sequence[Any]) -> None:
    """Give the workers a Python that is forked."""
    for spec in specs:
        spec.python = shlex.join(python_command())


def _started_server() -> Path:
    """Return the server's socket; the first process that asks starts the server."""
    if _known:
        return _known[0]
    if _FOLDER not in os.environ:
        folder = os.environ[_FOLDER] = tempfile.mkdtemp(prefix="fork-server-")
        os.mkfifo(f"{folder}/alive")
        os.open(f"{folder}/alive", os.O_RDWR)  # the server ends with this process
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(os.environ[_FOLDER], "socket")
    with contextlib.suppress(FileExistsError):
        path.with_name("started").mkdir()
        alive = (os.POSIX_SPAWN_OPEN, 0, str(path.with_name("alive")), os.O_RDONLY, 0)
        words = (sys.executable, "-u", __file__, str(path))
        os.posix_spawn(sys.executable, words, os.environ, file_actions=[alive], setpgroup=0)
    while not path.exists():
        time.sleep(0.01)
    return path


def _serve(path: str) -> tuple[socket.socket, Any, Sequence[int]]:
    """Fork for each client and tell it of the end; return the order in the process that is to carry it out."""
    children: dict[socket.socket, int] = {}
    deaths, writing = socket.socketpair()
    writing.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing.fileno())
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{path}.new")
        listening.listen()
        Path(f"{path}.new").rename(path)
        while True:
            ready, _, _ = select.select([listening, sys.stdin, deaths, *children], [], [])
            if sys.stdin in ready:
                os._exit(0)
            for client in children.keys() & set(ready):  # without its client a process is killed
                os.kill(children[client], signal.SIGKILL)
            if deaths in ready:
                deaths.recv(1 << 16)
            for client, pid in list(children.items()):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    del children[client]
                    with contextlib.suppress(OSError), client:
                        client.sendall(b"%16d" % os.waitstatus_to_exitcode(status))
            if listening in ready:
                client, _ = listening.accept()
                said = _said(client)
                if said is None:
                    client.close()
                    continue
                order, files = said
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for other in (deaths, writing, *children):
                        other.close()
                    return client, order, files
                children[client] = pid
                for file in files:
                    os.close(file)


def _said(client: socket.socket) -> tuple[Any, Sequence[int]] | None:
    """Return the order of a client and its files; None where the client is killed before all is said."""
    files = array.array("i")
    try:
        head, ancillary, *_ = client.recvmsg(16, socket.CMSG_SPACE(12))
        files.frombytes(ancillary[0][2])
        with client.makefile("rb") as lines:
            return marshal.loads(lines.read(int(head))), files
    except (IndexError, EOFError, OSError, TypeError, ValueError):
        for file in files:
            os.close(file)
        return None


def _become(client: socket.socket, order: Any, files: Sequence[int]) -> list[str]:
    """Take over what makes a process; return the words of its command line."""
    folder, environment, group, ignored, words = order
    with contextlib.suppress(OSError):  # a group of another session cannot be joined
        os.setpgid(0, group)
    client.sendall(b"%16d" % os.getpid())
    client.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, buffering=1, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        for number, (mode, errors) in enumerate((("r", None), ("w", None), ("w", "backslashreplace")))
    )
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # found by the environment
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    return list(words)


def _run(ended: list[object], option: str, what: str, *arguments: str) -> None:
    """Run `-c PROGRAM` or `-m MODULE` as Python does; `ended` gets the exit code."""
    more = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:0] = ["" if option == "-c" else str(Path.cwd()), *more]
    sys.modules["xdist.plugin"]._sys_path[:] = sys.path  # its workers get it
    sys.argv = [option, *arguments]
    try:
        if option == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(what, {"__name__": "__main__"})
        ended.append(0)
    except SystemExit as error:
        ended.append(error.code or 0)
        raise


def _end(ended: list[object]) -> None:
    """End the process, unless an error does: Python would first take apart all that was imported, for 0.1 s."""
    if ended:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(ended[0] if isinstance(ended[0], int) else 1)


class _Imports:
    def pytest_configure(self) -> None:
        """Import all within a session of pytest, which rewrites the assertions of its plugins."""
        import fork_server
        from inner_pytest import import_everything

        import_everything()
        fork_server._known[:] = [Path(sys.argv[1])]


if __name__ == "__main__":
    atexit.register(_end, ended := list[object]())  # the first that is registered is called last
    with tempfile.TemporaryDirectory() as empty, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(empty)
        pytest.main(["-p", "no:hypothesispytest", "-p", "no:rerunfailures"], plugins=[_Imports()])
    del sys.path[0]
    sys.modules[
        "pytest_helmbench.benchmarks.registry"
    ].all_places.cache_clear()  # a fork may find more distributions
    gc.freeze()
    words = _become(*_serve(sys.argv[1]))
    _run(ended, *words[words[0] == "-u" :])
