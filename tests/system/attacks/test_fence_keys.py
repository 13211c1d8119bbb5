"""Attacks on our own processes by programs of the same user: environment and memory, of session and workers."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from inner_pytest import run_pytest_forked
from packs import row, write_pack
from provider import Provider

from pytest_helmbench.engine.loop import close_to_others

# A process of the same user, without root's rights: root reads everything.
_ROBS = """
import json, os, sys
os.setgroups([]); os.setresgid(UID, UID, UID); os.setresuid(UID, UID, UID)
found = {}
for name in ("environ", "mem", "maps", "fd", "cwd"):
    for flags in (os.O_RDONLY, os.O_RDWR):
        path = f"/proc/{sys.argv[1]}/{name}"
        try:
            if name == "fd": os.listdir(path)
            elif name == "cwd": os.readlink(path)
            else: os.open(path, flags)
            found[f"{name} {flags}"] = "open"
        except OSError as error:
            found[f"{name} {flags}"] = error.strerror
print(json.dumps(found))
"""
_UID = 0x70000001
_HOLDS = """
import __future__, ctypes, os, sys, time
os.setgroups([]); os.setresgid(UID, UID, UID); os.setresuid(UID, UID, UID)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as a program is that a user has started
CLOSES
print("up", flush=True); time.sleep(60)
"""


def _robbed(pid: int) -> dict[str, str]:
    code = _ROBS.replace("UID", str(_UID))
    told = subprocess.run([sys.executable, "-c", code, str(pid)], capture_output=True, check=True, text=True)
    seen: dict[str, str] = json.loads(told.stdout)
    return seen


@pytest.mark.skipif(
    os.name != "posix" or os.getuid() != 0, reason="becoming two processes of a user takes root"
)
@pytest.mark.parametrize("closed", [True, False])
def test_a_process_that_is_closed_shows_nothing_to_its_own_user(*, closed: bool) -> None:
    """The honest twin is a process that is not: the attack itself works."""
    source = (
        f"_PR_SET_DUMPABLE = 4\n{inspect.getsource(close_to_others)}\nclose_to_others()" if closed else ""
    )
    code = _HOLDS.replace("UID", str(_UID)).replace("CLOSES", source)
    argv = [sys.executable, "-c", code]
    held = subprocess.Popen(argv, stdout=subprocess.PIPE)
    try:
        assert held.stdout is not None
        held.stdout.readline()
        seen = _robbed(held.pid)
    finally:
        held.kill()
        held.communicate()
    expected = {"Permission denied"} if closed else {"open"}
    assert {
        said for name, said in seen.items() if name in ("environ 0", "mem 0", "mem 2", "fd 0", "cwd 0")
    } == expected


_PROBE = """
import ctypes, os, pathlib

def pytest_unconfigure(config):
    name = getattr(config, "workerinput", {}).get("workerid", "main")
    pathlib.Path(os.environ["SEEN"], name).write_text(str(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux")
@pytest.mark.parametrize("asks", [True, False])
def test_session_and_workers_are_closed_where_somebody_asks(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch, *, asks: bool
) -> None:
    seen = pytester.mkdir("seen")
    pytester.makepyfile(probe=_PROBE, test_plain="def test_plain(): pass")
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    monkeypatch.setenv("SEEN", str(seen))
    write_pack(pytester.path / "benchmark", [row("multiple_choice")])
    provider.reply = lambda _request: "B"
    words = (
        ("benchmark", f"--helmbench-base-url={provider.url}", "--helmbench-model=test/good") if asks else ()
    )
    result = run_pytest_forked(pytester, "test_plain.py", *words, "-p", "probe", "-n2")
    assert result.ret == pytest.ExitCode.OK
    expected = "0" if asks else "1"
    assert {path.name: path.read_text() for path in seen.iterdir()} == dict.fromkeys(
        ("main", "gw0", "gw1"), expected
    )


_STARTS = """
import __future__, ctypes, marshal, os, resource, signal, stat, sys
with open(sys.argv[1]) as file:
    launcher = compile(file.read(), "launch.py", "exec")
os.setgroups([]); os.setresgid(UID, UID, UID); os.setresuid(UID, UID, UID)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as a program is that a user has started
sys.argv[1:] = [f"reap={os.getppid()}", "/", "/bin/sh", "-c", sys.argv[2]]
exec(launcher)
"""
_ASKS = """
if cat /proc/$WHOSE/environ > /dev/null 2>&1; then echo open; else echo denied; fi
if (exec 3<> /proc/$WHOSE/mem) 2> /dev/null; then echo open; else echo denied; fi
"""


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="becoming a user takes root")
@pytest.mark.parametrize(("whose", "said"), [("PPID", "denied"), ("$", "open")], ids=["ours", "its-own"])
def test_the_launcher_of_what_runs_without_a_fence_shows_nothing_to_it(whose: str, said: str) -> None:
    launcher = Path(__file__).parents[3] / "pytest_helmbench" / "sandbox" / "inside" / "launch.py"
    argv = (sys.executable, "-c", _STARTS.replace("UID", str(_UID)), launcher, _ASKS.replace("WHOSE", whose))
    told = subprocess.run(argv, capture_output=True, check=False, text=True)
    assert told.stdout.split() == [said, said], told.stderr
