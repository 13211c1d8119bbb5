"""Imports what sessions import and becomes, in a fork, each Python that a client asks for: `server.py SOCKET`.

It ends when its standard input does, which its owner holds open.
"""

import array
import contextlib
import gc
import marshal
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
from pathlib import Path

import pytest

_HEAD_BYTES = 16


class _Imports:
    def pytest_configure(self) -> None:
        """Import all within a session of pytest, for it rewrites the assertions of its plugins."""
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        from inner_pytest import import_everything

        import_everything()


def _import() -> None:
    with tempfile.TemporaryDirectory() as empty, Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        os.chdir(empty)
        with contextlib.redirect_stdout(nowhere):
            pytest.main(["-p", "no:hypothesispytest"], plugins=[_Imports()])
        os.chdir("/")


def _serve(path: str) -> str:
    """Take orders; return the program, in the process that is to run it."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        while True:
            ready, _, _ = select.select([listening, sys.stdin], [], [])
            if sys.stdin in ready:
                shutil.rmtree(Path(path).parent)
                os._exit(0)
            client, _ = listening.accept()
            if os.fork() == 0:
                return _become(client)
            client.close()


def _become(client: socket.socket) -> str:
    """Take over what makes a process; the client's connection closes when this process ends."""
    head, ancillary, _, _ = client.recvmsg(_HEAD_BYTES, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    files = array.array("i", ancillary[0][2])
    with client.makefile("rb") as order:
        folder, environment, program = marshal.loads(order.read(int(head)))
    client.detach()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    sys.argv = ["-c"]
    return str(program)


if __name__ == "__main__":
    _import()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    exec(_serve(sys.argv[1]), {"__name__": "__main__"})
