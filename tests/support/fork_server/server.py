"""Imports what sessions import and becomes, in a fork, each Python that a client asks for: `server.py SOCKET MODULES`.

It ends when its standard input does, which its owner holds open.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import importlib
import marshal
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

_NUMBER_BYTES = 16
_SUPPORT = str(Path(__file__).resolve().parents[1])


class _Imports:
    def pytest_configure(self) -> None:
        """Import all within a session of pytest, for it rewrites the assertions of its plugins."""
        sys.path[0] = _SUPPORT
        from forked import serve_from
        from inner_pytest import import_everything

        from pytest_helmbench.benchmarks.registry import all_places

        import_everything()
        for name in sys.argv[2:]:
            importlib.import_module(name)
        serve_from(Path(sys.argv[1]))
        all_places.cache_clear()  # a fork may find more distributions
        del sys.path[0]


def _import() -> None:
    with tempfile.TemporaryDirectory() as empty, Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        os.chdir(empty)
        with contextlib.redirect_stdout(nowhere):
            pytest.main(["-p", "no:hypothesispytest", "-p", "no:rerunfailures"], plugins=[_Imports()])
        os.chdir("/")
    # A fork has only the thread that forks: what another one holds is held for ever there.
    assert threading.active_count() == 1, threading.enumerate()


class _Server:
    """Forks, and tells each client of the end of what it asked for; without the client that is killed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._children: dict[socket.socket, int] = {}
        self._deaths, writing = socket.socketpair()
        for end in (self._deaths, writing):
            end.setblocking(False)
        self._writing = writing
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writing.fileno())

    def serve(self) -> list[str]:
        """Take orders; return what to run, in the process that is to run it."""
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"{self._path}.new")
            listening.listen()
            Path(f"{self._path}.new").rename(self._path)
            while True:
                watched = [listening, sys.stdin, self._deaths, *self._children]
                ready, _, _ = select.select(watched, [], [])
                if sys.stdin in ready:
                    shutil.rmtree(Path(self._path).parent, ignore_errors=True)
                    os._exit(0)
                for client in self._children.keys() & set(ready):
                    os.kill(self._children[client], signal.SIGKILL)
                if self._deaths in ready:
                    self._deaths.recv(1 << 16)
                self._tell_of_deaths()
                if listening in ready:
                    client, _ = listening.accept()
                    files, order = _order(client)
                    pid = os.fork()
                    if pid == 0:
                        self._leave()
                        return _become(client, files, order)
                    self._children[client] = pid
                    for file in files:
                        os.close(file)

    def _tell_of_deaths(self) -> None:
        for client, pid in list(self._children.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._children[client]
                with contextlib.suppress(OSError), client:
                    client.sendall(_number(os.waitstatus_to_exitcode(status)))

    def _leave(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for other in (self._deaths, self._writing, *self._children):
            other.close()


def _number(value: int) -> bytes:
    return b"%*d" % (_NUMBER_BYTES, value)


def _order(client: socket.socket) -> tuple[array.array[int], Any]:
    head, ancillary, _, _ = client.recvmsg(_NUMBER_BYTES, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    files = array.array("i", ancillary[0][2])
    with client.makefile("rb") as order:
        return files, marshal.loads(order.read(int(head)))


def _become(client: socket.socket, files: array.array[int], order: Any) -> list[str]:
    """Take over what makes a process."""
    folder, environment, group, ignored, words = order
    with contextlib.suppress(OSError):  # a group of another session cannot be joined
        os.setpgid(0, group)
    client.sendall(_number(os.getpid()))
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
    """Run `-c PROGRAM` or `-m MODULE` as Python does; `ended` gets what the process ends with."""
    more = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = ["" if option == "-c" else str(Path.cwd()), *(path for path in more if path)]
    sys.modules["xdist.plugin"]._sys_path[:] = sys.path  # what its workers get
    sys.argv = [option, *arguments]
    try:
        if option == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(what, {"__name__": "__main__"})
    except SystemExit as error:
        ended.append(error.code or 0)
        raise
    ended.append(0)


def _end(ended: list[object]) -> None:
    """End the process, unless an error does: Python would first take apart all that was imported, for 0.1 s."""
    if ended:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(ended[0] if isinstance(ended[0], int) else 1)


if __name__ == "__main__":
    ended: list[object] = []
    atexit.register(_end, ended)  # what is registered first is called last
    _import()
    gc.freeze()
    words = _Server(sys.argv[1]).serve()
    _run(ended, *words[words[0] == "-u" :])
