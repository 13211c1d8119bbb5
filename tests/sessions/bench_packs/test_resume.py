"""Bench Packs killed and resumed: no process stays behind, what was answered is not asked again."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from bench_pack_sessions import node_processes, write_asking_pack
from provider import Provider
from records import final_state, integrity, judged_rows
from sessions import Session, run_undisturbed, until
from trees import rows

_QUICK = {
    f"quick-{number}": "async () => { await ask(input.scenario.id); return result(); }" for number in range(4)
}
# Its first request is answered at once; the second hangs until the test changes the provider.
_SLOW = {
    f"slow-{number}": """async () => {
        await ask(`${input.scenario.id} first`);
        await ask(`${input.scenario.id} second`);
        return result({ score: 10 });
    }"""
    for number in range(2)
}
_OPTIONS = ("-q",)
_PATHS = ("pack",)


def _hold(provider: Provider) -> None:
    provider.answers(hang=True, when=lambda request: request.prompt.endswith("second"))


def _is_under_way(provider: Provider, database: Path) -> None:
    """Wait until everything is judged that can be, and the rest waits for its second reply."""
    until(lambda: provider.in_flight == len(_SLOW), "the second requests are out")
    stored = "SELECT (SELECT count(*) FROM results) = 4 AND (SELECT count(*) FROM responses) = 6"
    until(lambda: rows(database, stored) == [(1,)], "the others are judged and stored")


def _asked(provider: Provider) -> Counter[str]:
    return Counter(request.prompt for request in provider.requests)


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_killed_session_leaves_no_process_and_goes_on_without_asking_again(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    folder = pytester.path
    write_asking_pack(folder / "pack", {**_SLOW, **_QUICK})
    undisturbed = f"--helmbench-db={folder / 'undisturbed.db'}"
    whole = run_undisturbed(pytester, provider.url, workers, *_OPTIONS, undisturbed, paths=_PATHS)
    assert whole.ret == pytest.ExitCode.OK
    provider.requests.clear()
    _hold(provider)
    session = Session(folder, provider.url, workers, *_OPTIONS, paths=_PATHS)
    database = folder / "helmbench.db"
    _is_under_way(provider, database)
    assert node_processes(folder)
    judged = judged_rows(database)

    session.kill_all()

    until(lambda: not node_processes(folder), "no process of the pack stays behind")
    provider.reset()
    again = run_undisturbed(pytester, provider.url, workers, *_OPTIONS, "--helmbench-resume", paths=_PATHS)
    assert again.ret == pytest.ExitCode.OK
    assert "went on with run 1: 4 judged cases were stored" in again.stdout.str()
    # Answered requests come from the record; open ones are sent again.
    assert _asked(provider) == Counter({f"{name} second": 1 for name in _SLOW})
    assert judged <= judged_rows(database)
    assert integrity(database) == "ok"
    score = "SELECT total, categories, partial FROM pack_scores"
    assert (
        rows(database, score)
        == rows(folder / "undisturbed.db", score)
        == [(70.0, *rows(database, score)[0][1:])]
    )
    assert _without_replays(final_state(database)) == _without_replays(final_state(folder / "undisturbed.db"))
    assert not node_processes(folder)


def _without_replays(state: dict[str, list[tuple[object, ...]]]) -> object:
    return state["runs"], state["results"]


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_second_ctrl_c_stops_at_once_and_keeps_what_came(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    folder = pytester.path
    write_asking_pack(folder / "pack", {**_SLOW, **_QUICK})
    _hold(provider)
    session = Session(folder, provider.url, workers, *_OPTIONS, paths=_PATHS, grace_s=600)
    database = folder / "helmbench.db"
    _is_under_way(provider, database)

    session.interrupt(everybody=True)
    until(lambda: "calls still in flight" in session.text, "it says what it waits for")
    time.sleep(0.3)  # sooner it would be the same stroke
    session.interrupt(everybody=True)

    assert session.end() == pytest.ExitCode.INTERRUPTED, session.text
    until(lambda: not node_processes(folder), "no process of the pack stays behind")
    assert rows(database, "SELECT status FROM evaluation_runs") == [("interrupted",)]
    assert {
        outcome for (outcome,) in rows(database, "SELECT outcome FROM results WHERE code LIKE 'quick%'")
    } == {"passed"}
    assert rows(database, "SELECT count(*) FROM responses") == [(6,)]


def test_what_a_pack_says_of_a_call_that_ctrl_c_has_kept_back_is_no_verdict(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    forgiving = """async () => {
        await ask(`${input.scenario.id} first`);
        try { await ask(`${input.scenario.id} second`); } catch { return result({ status: "fail", score: 0 }); }
        return result();
    }"""
    write_asking_pack(pytester.path / "pack", {f"forgiving-{number}": forgiving for number in range(2)})
    provider.hold()
    session = Session(pytester.path, provider.url, "-n0", *_OPTIONS, paths=_PATHS, grace_s=600)
    until(lambda: provider.in_flight == 2, "the first requests are out")

    session.interrupt(everybody=True)
    until(lambda: "calls still in flight" in session.text, "it says what it waits for")
    provider.let_go()

    assert session.end() == pytest.ExitCode.INTERRUPTED, session.text
    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT count(*) FROM responses") == [(2,)]
    assert rows(database, "SELECT code, outcome, reason FROM results") == []


def test_a_killed_node_process_costs_no_call(pytester: pytest.Pytester, provider: Provider) -> None:
    folder = pytester.path
    write_asking_pack(folder / "pack", {**_SLOW, **_QUICK})
    provider.answers(held=True, when=lambda request: request.prompt.endswith("second"))
    session = Session(folder, provider.url, "-n0", *_OPTIONS, paths=_PATHS)
    _is_under_way(provider, folder / "helmbench.db")
    [process] = node_processes(folder)

    os.kill(process, signal.SIGKILL)

    # The scenarios that ran begin anew, one by one, and are given the replies that they had or had asked for.
    until(lambda: node_processes(folder) not in ([], [process]), "another process goes on")
    provider.let_go()
    assert session.end() == pytest.ExitCode.OK, session.text
    assert "6 passed" in session.text
    assert set(_asked(provider).values()) == {1}
    assert not node_processes(folder)
