"""A thread that dies, or cannot start: who waits hears of it, and the session ends with a sentence."""

from __future__ import annotations

import pytest
from provider import Provider
from sessions import Session
from trees import category, clear_environment, rows, write_tree

_CASES = 60
_LOOP_ENDED = "the engine's thread has ended (MemoryError): nothing more is asked"
_KILLS_A_THREAD = """
import asyncio, ctypes, os, threading

dies, is_due, loops, new = os.environ["DIES"], False, [], asyncio.new_event_loop

def new_event_loop():
    loops.append(new())
    return loops[-1]

asyncio.new_event_loop = new_event_loop

def end():
    raise MemoryError

def pytest_runtest_logreport(report):
    global is_due
    if not (report.when == "call" and report.nodeid.endswith("-PT5[test/good]") and is_meant):
        return
    is_due = True
    for loop in loops if dies == "helmbench-engine" else ():
        loop.call_soon_threadsafe(end)
    for thread in threading.enumerate():
        if thread.name == dies == "helmbench-store":
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(MemoryError)
            )

def pytest_configure(config):
    global is_meant
    is_meant = not hasattr(config, "workerinput")
    if dies == "libcurl":
        from pytest_helmbench.gateway.transfers import Transfers
        as_it_is = Transfers._set_timer
        Transfers._set_timer = lambda self, ms: end() if is_due else as_it_is(self, ms)
"""


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def _session(pytester: pytest.Pytester, provider: Provider, plugin: str, *options: str) -> Session:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * _CASES)})
    (pytester.path / "narrow.py").write_text(plugin, encoding="utf-8")
    (pytester.path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    return Session(
        pytester.path, provider.url, "-q", "-p", "narrow", "--helmbench-concurrency=4", *options, anew=True
    )


@pytest.mark.parametrize(
    ("dies", "said", "workers"),
    [
        ("helmbench-engine", _LOOP_ENDED, "-n0"),
        ("helmbench-engine", _LOOP_ENDED, "-n2"),
        ("libcurl", _LOOP_ENDED, "-n0"),
        ("helmbench-store", "NOT ALL IS STORED: ", "-n0"),
        ("helmbench-store", "NOT ALL IS STORED: ", "-n2"),
    ],
)
def test_a_thread_that_dies_keeps_no_caller_waiting(
    pytester: pytest.Pytester,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    dies: str,
    said: str,
    workers: str,
) -> None:
    monkeypatch.setenv("DIES", dies)
    provider.latency_s = 0.05
    session = _session(pytester, provider, _KILLS_A_THREAD, workers)
    assert session.end() in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED), session.text
    assert said in session.text
    assert "INTERNALERROR" not in session.text
    assert provider.count < _CASES
    assert rows(pytester.path / "helmbench.db", "SELECT count(*) > 0 FROM responses") == [(1,)]


def test_a_system_that_lets_no_thread_start_is_told(pytester: pytest.Pytester, provider: Provider) -> None:
    # No system has room for a stack of 32 TB.
    plugin = "import threading\n\ndef pytest_collection_finish():\n    threading.stack_size(2**45)\n"
    session = _session(pytester, provider, plugin)
    assert session.end() == pytest.ExitCode.USAGE_ERROR, session.text
    assert "ERROR: helmbench-" in session.text
    assert "can't start new thread\n  hint: the limits on memory (ulimit -v)" in session.text
    assert provider.count == 0


_OPEN_FILES = """
import resource

soft, hard, held = {numbers}
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard or resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
kept = [open("/dev/null") for _ in range(held)]
"""


@pytest.mark.parametrize(
    ("numbers", "said", "errors"),
    [
        ((64, None, 0), "60 calls (60 at a time)", False),
        (
            (120, 120, 0),
            "24 calls at a time and not 60: this machine allows 120 open files (ulimit -n)",
            False,
        ),
        ((150, 150, 80), "this machine has too many open files to make a connection", True),
    ],
    ids=["raised", "fewer", "none left"],
)
def test_few_open_files_lose_no_reply_and_blame_no_provider(
    pytester: pytest.Pytester,
    provider: Provider,
    numbers: tuple[int, int | None, int],
    said: str,
    errors: bool,
) -> None:
    provider.latency_s = 0.3
    plugin = _OPEN_FILES.format(numbers=numbers)
    options = ("--helmbench-concurrency=60", "--helmbench-max-retries=0")
    session = _session(pytester, provider, plugin, *options)
    assert session.end() == (pytest.ExitCode.TESTS_FAILED if errors else pytest.ExitCode.OK), session.text
    assert said in session.text
    database = pytester.path / "helmbench.db"
    found = dict(rows(database, "SELECT coalesce(reason, outcome), count(*) FROM results GROUP BY 1"))
    assert found.keys() == ({"passed", "out_of_files"} if errors else {"passed"})
    assert rows(database, "SELECT count(*) FROM responses") == [(provider.count,)]
    assert sum(found.values()) == _CASES
