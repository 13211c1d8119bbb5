"""Code of replies that runs where the judges are: their sandboxes, their deaths, and nobody left."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from engines import Running
from evaluators import opened_hosts
from packs import write_pack
from provider import Provider, Request
from records import final_state
from scripted import code_row, item_of, task_row
from sessions import until
from trees import clear_environment, rows, run_tree

_ADDS = "```python\ndef add(a, b):\n    return a + b\n```"
_SLOW = "```python\nimport time\ntime.sleep(1.5)\ndef add(a, b):\n    return a + b\n```"
_REPLIES = {"right": _ADDS, "wrong": _ADDS.replace("+", "-"), "empty": "", "more": _ADDS, "slow": _SLOW}
_OPTIONS = ("-n0", "--helmbench-sandbox=bwrap", "--helmbench-judges=python:evaluators:hosts")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, bwrap: Running, tmp_path: Path) -> None:
    del bwrap
    clear_environment(monkeypatch)
    monkeypatch.setenv("JUDGES_GONE", str(tmp_path / "gone"))
    opened_hosts.clear()


def _write(pytester: pytest.Pytester, provider: Provider, *names: str) -> None:
    unhurried = {"timeout_seconds": 30}  # a busy machine is no subject here
    write_pack(
        pytester.path / "benchmark", [code_row(name, environment=unhurried) for name in names or _REPLIES]
    )

    def reply(request: Request) -> str:
        return _REPLIES[item_of(request)]

    provider.reply = reply


def _outcomes(database: Path) -> dict[str, tuple[str, str | None]]:
    query = "SELECT code, outcome, reason FROM results ORDER BY code"
    return {code: (outcome, reason) for code, outcome, reason in rows(database, query)}


@contextmanager
def _beside(work: Callable[[], object]) -> Iterator[None]:
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _judges_at_code() -> bool:
    """Return whether a judge runs code in a sandbox."""
    pids = [pid for judges in opened_hosts for pid in judges.pids]
    with contextlib.suppress(OSError):  # a process that ends while it is looked at
        places = (place for pid in pids for place in Path(f"/proc/{pid}/task").glob("*/children"))
        started = [child for place in places for child in place.read_text().split()]
        return any(Path(f"/proc/{pid}/comm").read_text() == "bwrap\n" for pid in started)
    return False


def test_code_is_judged_by_judges_on_hosts_as_it_is_here(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _write(pytester, provider)
    result = run_tree(pytester, *_OPTIONS, url=provider.url)
    result.assert_outcomes(passed=3, failed=2)
    assert provider.count == len(_REPLIES)
    assert opened_hosts
    run_tree(pytester, *_OPTIONS[:2], "--helmbench-db=here.db", url=provider.url)
    assert final_state(pytester.path / "helmbench.db") == final_state(pytester.path / "here.db")


def test_a_host_without_a_sandbox_skips_before_anybody_is_asked(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(pytester, provider, "right", "wrong")
    monkeypatch.setenv("PATH", str(pytester.path / "nothing"))
    result = run_tree(pytester, *_OPTIONS, "-rs", url=provider.url)
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED * bwrap is not installed"])
    assert provider.count == 0
    assert opened_hosts


def test_judges_that_die_over_code_cost_no_call(pytester: pytest.Pytester, provider: Provider) -> None:
    _write(pytester, provider)

    def kill() -> None:
        until(lambda: provider.count == len(_REPLIES) and _judges_at_code(), "a judge runs code")
        for pid in opened_hosts[0].pids:
            os.kill(pid, signal.SIGKILL)

    with _beside(kill):
        result = run_tree(pytester, *_OPTIONS, url=provider.url)
    result.assert_outcomes(passed=3, failed=2)
    assert len({request.raw for request in provider.requests}) == provider.count == len(_REPLIES)


def test_code_runs_nowhere_else_when_all_judges_are_gone(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _write(pytester, provider, "slow", "right")
    gone = Path(os.environ["JUDGES_GONE"])

    def kill_all() -> None:
        until(lambda: provider.count == 2 and _judges_at_code(), "a judge runs code")
        gone.touch()
        opened_hosts[0].shutdown()

    with _beside(kill_all):
        result = run_tree(pytester, *_OPTIONS, "-ohelmbench_judges_wait=0", url=provider.url)
    query = "SELECT outcome, reason FROM results WHERE code = 'slow'"
    assert rows(pytester.path / "helmbench.db", query) == [("error", "no_judges")]
    result.stdout.fnmatch_lines(["*its code runs on their hosts only*"])
    assert provider.count == 2
    gone.unlink()

    resumed = run_tree(pytester, *_OPTIONS, "--helmbench-resume", url=provider.url)
    resumed.assert_outcomes(passed=2)
    assert provider.count == 2, "what is on record is judged, and not asked again"


def test_a_session_says_that_agents_stay_where_it_is(pytester: pytest.Pytester, provider: Provider) -> None:
    write_pack(pytester.path / "benchmark", [task_row("t"), task_row("u")])
    provider.reply = lambda _request: "I am done."
    result = run_tree(pytester, *_OPTIONS, url=provider.url)
    assert not opened_hosts
    said = "agents worked, and were checked, on this machine: from the judges' processes they cannot ask the session"
    assert result.stdout.str().count(said) == 1
