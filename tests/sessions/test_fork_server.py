"""The server that forks the processes of the tests outlives a client that is killed."""

from __future__ import annotations

import array
import socket
import subprocess

import pytest
from fork_server import python_command

_FILES = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", (0, 1, 2)))


@pytest.mark.parametrize(
    "said", [[], [b"%16d" % 100], [b"%16d" % 100, b"half"]], ids=["nothing", "a length", "half"]
)
def test_a_client_that_is_killed_before_all_is_said_ends_nothing_else(said: list[bytes]) -> None:
    command = python_command()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(command[-1])
        if said:
            client.sendmsg(said, [_FILES])
    alive = subprocess.run([*command, "-c", "print('alive')"], capture_output=True, check=True)
    assert alive.stdout == b"alive\n"
