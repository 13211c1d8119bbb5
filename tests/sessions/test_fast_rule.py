"""The rule of `tests/fast`: a test that starts a process or opens a connection fails, whatever it catches."""

from __future__ import annotations

import pytest
from paths import ROOT

_TESTS = """
import asyncio, contextlib, os, socket, subprocess
import pytest

@pytest.fixture
def started():
    subprocess.run(["true"])

def test_plain(): pass
def test_a_loop(): asyncio.run(asyncio.sleep(0))
def test_a_process(): subprocess.run(["true"])
def test_a_shell(): os.system("true")
def test_a_fixture(started): pass
def test_a_connection():
    with socket.socket() as made, contextlib.suppress(Exception):
        made.connect(("127.0.0.1", 9))
def test_a_server():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
def test_a_name():
    socket.getaddrinfo("127.0.0.1", 9)
"""


def test_a_test_that_does_what_belongs_elsewhere_fails(pytester: pytest.Pytester) -> None:
    pytester.makeconftest((ROOT / "tests" / "fast" / "conftest.py").read_text("utf-8"))
    pytester.makepyfile(_TESTS)

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-rA")

    found = {
        line.split(" - ")[0].split("::")[-1]: line.split()[0] for line in result.outlines if "::" in line
    }
    assert found == {
        "test_plain": "PASSED",
        "test_a_loop": "PASSED",
        "test_a_process": "FAILED",
        "test_a_shell": "FAILED",
        "test_a_fixture": "ERROR",
        "test_a_connection": "FAILED",
        "test_a_server": "FAILED",
        "test_a_name": "FAILED",
    }
    result.stdout.fnmatch_lines(
        "tests/fast starts no process and opens no connection, but: subprocess.Popen*"
    )
