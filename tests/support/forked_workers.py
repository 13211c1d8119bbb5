"""Workers of pytest-xdist for sessions inside the tests: forked from a process that has imported everything.

A worker that is started anew spends nine tenths of its CPU time on imports; these are processes of their own all
the same, with files, folder, environment and an end of their own.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import execnet

__all__ = ["pytest_xdist_setupnodes"]

_FOLDER = Path(__file__).with_name("fork_server")
_ENVIRONMENT = dict(os.environ)  # before any test changes it
_PATIENCE_S = 60.0


@pytest.hookimpl(optionalhook=True)  # there are sessions without pytest-xdist
def pytest_xdist_setupnodes(specs: Sequence[execnet.XSpec]) -> None:
    """Give the workers a Python that is forked, where processes can fork."""
    if hasattr(os, "fork"):
        command = shlex.join((sys.executable, "-S", "-E", str(_FOLDER / "client.py"), str(_server().socket)))
        for spec in specs:
            spec.python = command


@dataclass(frozen=True, slots=True)
class _Server:
    process: subprocess.Popen[bytes]
    socket: Path


@cache
def _server() -> _Server:
    """Start the server, which lives as long as this process."""
    socket = Path(tempfile.mkdtemp(prefix="fork-server-")) / "socket"
    standard_input, _held_open = os.pipe()
    command = [sys.executable, "-u", str(_FOLDER / "server.py"), str(socket)]
    process = subprocess.Popen(command, stdin=standard_input, env=_ENVIRONMENT, start_new_session=True)
    os.close(standard_input)
    end = time.monotonic() + _PATIENCE_S
    while not socket.exists():
        assert process.poll() is None, "the server of forked workers has ended"
        assert time.monotonic() < end, "the server of forked workers never started"
        time.sleep(0.01)
    return _Server(process, socket)
