"""Python processes that are forked from one that has imported everything, by `fork_server`.

A Python that is started anew spends nine tenths of a small session's CPU time on imports; these are processes of
their own all the same, with files, folder, environment, process group, exit code and an end of their own.
"""

from __future__ import annotations

import array
import atexit
import marshal
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

__all__ = ["Forked", "forked_executable", "forked_python", "serve_from", "share_server"]

_FOLDER = Path(__file__).with_name("fork_server")
_ENVIRONMENT = dict(os.environ)  # before any test changes it
_PATIENCE_S = 60.0
_NUMBER_BYTES = 16
_SHARED = "TESTS_FORK_SERVER"
_ALIVE = "alive"
_known: list[Path] = []


def forked_python() -> list[str]:
    """Return the beginning of a command that stands for `python`: `-c PROGRAM` or `-m MODULE` follow, and arguments.

    What it starts is killed with it.
    """
    return [sys.executable, "-S", "-E", str(_FOLDER / "client.py"), str(_socket())]


@cache
def forked_executable() -> Path:
    """Return a program that stands for `sys.executable`, for what starts sessions itself."""
    path = Path(tempfile.mkdtemp(prefix="forked-python-"), "python")
    path.write_text(f'#!/bin/sh\nexec {shlex.join(forked_python())} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    atexit.register(shutil.rmtree, path.parent, ignore_errors=True)
    return path


def serve_from(path: Path) -> None:
    """Say where the server is of which this process was forked."""
    _known[:] = [path]


class Forked:
    """A process in a group of its own; it is killed when this process ends.

    Args:
        words: What follows `python`: `-c PROGRAM` or `-m MODULE`, and arguments.
        cwd: Where it runs.
        env: Its whole environment.
        output: Gets what it prints, errors too.
        imported: Modules that it has imported, beyond what all have.
    """

    def __init__(
        self, *words: str, cwd: Path, env: Mapping[str, str], output: IO[bytes], imported: Sequence[str] = ()
    ) -> None:
        self._code: int | None = None
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(_start(*imported) if imported else _socket()))
        ended_by = (signal.SIGTERM, signal.SIGHUP)
        ignored = [int(number) for number in ended_by if signal.getsignal(number) == signal.SIG_IGN]
        order = marshal.dumps((str(cwd), dict(env), 0, ignored, list(words)))
        with Path(os.devnull).open("rb") as nothing:
            files = array.array("i", (nothing.fileno(), output.fileno(), output.fileno()))
            head = b"%*d" % (_NUMBER_BYTES, len(order))
            self._connection.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
            self._connection.sendall(order)
            self.pid = self._number()

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end.

        Raises:
            subprocess.TimeoutExpired: It has not ended after so many seconds.
        """
        if self._code is None:
            if timeout is not None and not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked Python", timeout)
            self._code = self._number()
            self._connection.close()
        return self._code

    def kill(self) -> None:
        """Kill it, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _number(self) -> int:
        return int(self._connection.recv(_NUMBER_BYTES, socket.MSG_WAITALL))


def _socket() -> Path:
    return _known[0] if _known else _start()


@cache
def _start(*imported: str) -> Path:
    """Return the socket of a server that has imported these modules; the first of all workers to ask starts it."""
    folder = _shared_folder()
    # The path of a socket has at most 107 bytes.
    path = folder / f"socket-{zlib.crc32(' '.join(imported).encode()):x}"
    with suppress(FileExistsError):
        path.with_name(f"{path.name}.started").mkdir()
        command = [sys.executable, "-u", str(_FOLDER / "server.py"), str(path), *imported]
        alive = (os.POSIX_SPAWN_OPEN, 0, str(folder / _ALIVE), os.O_RDONLY, 0)
        # In the session of this process, so that what it forks may join the groups of whoever asks.
        os.posix_spawn(sys.executable, command, _ENVIRONMENT, file_actions=[alive], setpgroup=0)
    until = time.monotonic() + _PATIENCE_S
    while not path.exists():
        assert time.monotonic() < until, "the server of forked processes never started"
        time.sleep(0.01)
    return path


def _shared_folder() -> Path:
    if _known:
        return _known[0].parent
    return Path(_ENVIRONMENT[_SHARED]) if _SHARED in _ENVIRONMENT else share_server()


def share_server() -> Path:
    """Make the folder of one server for this process and those that inherit its environment.

    Whoever needs it first starts it; it lives as long as this process.
    """
    folder = Path(tempfile.mkdtemp(prefix="fork-server-"))
    os.mkfifo(folder / _ALIVE)
    held_open = os.open(folder / _ALIVE, os.O_RDWR)
    os.environ[_SHARED] = str(folder)

    def end() -> None:
        os.close(held_open)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return folder
