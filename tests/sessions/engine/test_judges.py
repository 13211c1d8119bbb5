"""Replies that are judged away from the event loop: by real processes, which die."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from commands import captured
from dispatched import Dispatched, lives, pids, texts
from evaluators import Deadly, Faulty, Holding, Timed, Unmovable, reply
from sessions import until

from pytest_helmbench.core.judge_places import JudgePlaces
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.users_word import NOT_ALLOWED, UsersWord
from pytest_helmbench.engine.evaluations import Evaluations
from pytest_helmbench.engine.executors import judge_offer
from pytest_helmbench.engine.judge_access import JudgeOffer, OpenedJudges
from pytest_helmbench.engine.local_judges import LocalJudges
from pytest_helmbench.engine.parcels import judge
from pytest_helmbench.engine.work import UnjudgedError
from pytest_helmbench.gateway.call import Unwatched
from pytest_helmbench.sandbox.box import Unavailable
from pytest_helmbench.sandbox.detection import find_engine


def _offer(given: str) -> JudgeOffer | None:
    return judge_offer(JudgePlaces.parse(UsersWord(given)), 60.0)


@contextmanager
def _processes(count: int) -> Iterator[tuple[JudgeOffer, LocalJudges]]:
    executor = LocalJudges(count)
    opened = OpenedJudges(
        lambda parcel: executor.submit(judge, parcel), lambda: count, lambda: None, is_local=True
    )
    try:
        yield JudgeOffer(lambda: opened, lambda: opened), executor
    finally:
        executor.shutdown()


def test_dear_replies_are_judged_by_processes_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    session = Dispatched(_offer("2"))
    found = session.judged([(Timed(20), f"reply {number}") for number in range(40)])
    assert texts(found) == [f"reply {number}" for number in range(40)]
    elsewhere = pids(found) - {os.getpid()}
    assert len(elsewhere) == 2
    for one in found:
        if not isinstance(one, BaseException) and one[0] != os.getpid():
            assert not [name for name in one[2] if "KEY" in name or name.startswith("PYTEST")]
    until(lambda: not any(map(lives, elsewhere)), "the processes end with the session")
    assert session.notes == []


class _Deaf:
    async def answer(self, message: bytes) -> bytes:
        return message


def test_replies_are_judged_here_while_what_asks_the_session_holds_all_places(tmp_path: Path) -> None:
    async def run(offer: JudgeOffer) -> tuple[int, set[int]]:
        evaluations = Evaluations(replace(offer, has_hosts=True, has_lines=True), list[str]().append)
        holding = asyncio.create_task(
            evaluations.on_host_asking(_Deaf(), lambda _address: Holding(tmp_path), Unwatched())
        )
        await asyncio.to_thread(until, (tmp_path / "held").exists, "the place is held")
        judged = (evaluations.of(Timed(20), reply(str(number)), Unwatched()) for number in range(20))
        found = await asyncio.gather(*judged)
        assert not holding.done()
        (tmp_path / "free").touch()
        try:
            return await holding, {pid for pid, _, _ in found}
        finally:
            evaluations.close()

    with _processes(1) as (offer, _):
        held_in, judged_in = asyncio.run(run(offer))
    assert judged_in == {os.getpid()}
    assert held_in != os.getpid()


def _stall_s(given: str) -> float:
    session = Dispatched(_offer(given))
    session.judged([(Timed(200), "long")] * 4)
    return sorted(session.stalls)[-3]


@pytest.mark.parametrize("given", ["0", "2"])
def test_the_loop_goes_on_while_a_reply_takes_200_ms(given: str) -> None:
    # 200 ms where it is judged on the loop; a busy machine adds its own to either, but not each time.
    assert any(_stall_s(given) < 0.1 for _ in range(4))


def test_cheap_replies_stay_here_and_auto_starts_processes_only_when_it_pays() -> None:
    here = {os.getpid()}
    assert pids(Dispatched(_offer("2")).judged([(Timed(0), "x")])) == here
    few = Dispatched(_offer("auto"))
    assert pids(few.judged([(Timed(5), "x")] * 12)) == here
    many = Dispatched(_offer("auto"), expected=10_000)
    assert len(pids(many.judged([(Timed(8), "x")] * 60))) > 1


def test_what_is_raised_and_what_finds_no_verdict_come_back_as_such() -> None:
    with _processes(1) as (offer, _):
        session = Dispatched(offer)
        raised, none, unmovable = session.judged(
            [(Faulty(0), "raised"), (Faulty(0), "none"), (Unmovable(0), "stays")]
        )
    assert isinstance(raised, UnjudgedError)
    assert raised.outcome.reason == "rule_failed"
    assert "LookupError at evaluators.py:" in raised.outcome.message
    assert isinstance(none, UnjudgedError)
    assert (none.outcome.reason, none.outcome.latency_ms) == ("rule_timeout", 1.0)
    assert texts([unmovable]) == ["stays"]
    assert any("unmovable are judged in the session's own process" in note for note in session.notes)


def test_a_judge_that_is_killed_costs_nothing_but_time(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    with _processes(2) as (offer, _):
        session = Dispatched(offer)

        def kill() -> None:
            until(lambda: _at_work(place), "a judge is at work")
            os.kill(int(place.read_text()), signal.SIGKILL)

        found = session.judged([(Timed(30, place=place), str(number)) for number in range(40)], beside=kill)
        assert texts(found) == [str(number) for number in range(40)]
        assert len(pids(found)) >= 2
    assert session.notes == []


def test_a_reply_that_kills_judges_is_an_error_and_the_others_are_judged() -> None:
    with _processes(2) as (offer, _):
        evaluator = Deadly(5, spares=os.getpid())
        found = Dispatched(offer).judged([(evaluator, "poison" if n == 20 else str(n)) for n in range(40)])
    died = found.pop(20)
    assert isinstance(died, UnjudgedError)
    assert (died.outcome.verdict, died.outcome.reason) == (Verdict.ERROR, "judge_died")
    assert "was ended by SIGKILL" in died.outcome.message
    assert "ended 4 judges" in died.outcome.message
    assert texts(found) == [str(number) for number in range(40) if number != 20]


def test_judges_that_are_gone_are_waited_for_and_then_others_stand_in() -> None:
    def nobody() -> OpenedJudges:
        raise OSError("nobody is there")

    with _processes(1) as (offer, executor):
        session = Dispatched(JudgeOffer(nobody, offer.fallback, wait_s=0.0))
        found = session.judged([(Timed(100), str(number)) for number in range(20)])
        assert texts(found) == [str(number) for number in range(20)]
        assert set(executor.pids) & pids(found)
    assert session.notes == [
        "the judges could not be reached: nobody is there",
        "the judges were gone for 0 s: replies were judged by processes of this machine",
    ]


def test_an_executor_of_the_users_judges_and_what_breaks_it_is_found() -> None:
    session = Dispatched(_offer("python:evaluators:pool"))
    evaluator = Deadly(60, spares=os.getpid())
    numbers = [str(number) for number in range(30)]
    *found, died = session.judged([*((evaluator, number) for number in numbers), (evaluator, "poison")])
    assert texts(found) == numbers
    # Whoever is with the session's own thread lives; else it is found out by whom the pool is broken.
    assert isinstance(died, UnjudgedError)
    assert died.outcome.reason == "judge_died", session.notes
    assert session.notes == []  # a broken pool is opened anew
    assert pids(found) - {os.getpid()}


def test_replies_over_which_the_last_judges_died_are_judged_by_nobody(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    executor = LocalJudges(2)
    there = [
        OpenedJudges(
            lambda parcel: executor.submit(judge, parcel), lambda: 2, executor.shutdown, is_local=True
        )
    ]

    def opened() -> OpenedJudges:
        if not there:
            raise OSError("nobody is there")
        return there.pop()

    def kill_all() -> None:
        until(lambda: _at_work(place), "a judge is at work")
        executor.shutdown()

    session = Dispatched(JudgeOffer(opened, opened, wait_s=0.0))
    numbers = [str(number) for number in range(16)]
    found = session.judged([(Timed(60, place=place), number) for number in numbers], beside=kill_all)
    errors = [one for one in found if isinstance(one, UnjudgedError)]
    assert errors
    assert {(one.outcome.verdict, one.outcome.reason) for one in errors} == {(Verdict.ERROR, "no_judges")}
    assert "a judge died over its reply, and no other is there" in errors[0].outcome.message
    judged = {text for one, text in zip(found, numbers, strict=True) if one not in errors}
    assert [text for text in texts(found) if text in judged] == [text for text in numbers if text in judged]
    assert os.getpid() in pids(found), "what no judge has died over is judged by the session itself"
    assert "no process could be had that judges: replies are judged in the session's own" in session.notes


def test_judges_say_who_they_are_and_which_sandboxes_their_hosts_have(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, out, _ = captured(capsys, "judges", "check", "1")
    assert code == 0
    assert out.splitlines()[0].split() == ["host", "process", "version", "sandboxes", "parcels"]
    assert " as here " in out
    told = json.loads(captured(capsys, "judges", "check", "1", "--json")[1])
    engine = asyncio.run(find_engine(UsersWord("auto"), pull=NOT_ALLOWED))
    here = f"none: {engine.reason}" if isinstance(engine, Unavailable) else engine.name
    assert told["judges"][0]["sandboxes"] == [here]
    (tmp_path / "pytest.ini").write_text("[pytest]\nhelmbench_sandbox = none\n")
    monkeypatch.chdir(tmp_path)
    code, out, _ = captured(capsys, "judges", "check", "1")
    assert (code, out.splitlines()[1].split()[-2]) == (0, "none")
    assert ": no sandboxes: --helmbench-sandbox=none: code of models runs in a sandbox, or not at all" in out


def test_a_parcel_to_a_judge_takes_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = captured(capsys, "judges", "check", "1")
    assert code == 0
    assert "1 judge; a parcel takes" in out
    assert captured(capsys, "judges", "check", "0")[:2] == (0, "nobody judges beside the session\n")
    code, _, wrong = captured(capsys, "judges", "check", "dask:10.0.0.7:8786")
    assert (code, "speaks no TLS" in wrong) == (2, True)


_PARENT = """
import sys, time
from pytest_helmbench.engine.local_judges import LocalJudges
from pytest_helmbench.engine.parcels import Packer, judge
from dispatched import Dispatched, lives, pids, texts
from evaluators import Timed, reply
from pathlib import Path
if __name__ == "__main__":
    judges = LocalJudges(1)
    parcel = Packer().parcel([(Timed(60_000, place=Path(sys.argv[1])), reply())])
    judges.submit(judge, parcel)
    time.sleep(60)
"""


def test_a_judge_ends_when_its_session_is_killed(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    paths = os.pathsep.join(path for path in sys.path if path)
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(place)], env={**os.environ, "PYTHONPATH": paths}
    )
    until(lambda: place.exists() and bool(place.read_text()), "a judge is at work")
    pid = int(place.read_text())
    assert pid != parent.pid
    parent.kill()
    parent.wait()
    until(lambda: not lives(pid), "the judge has ended")


def _at_work(place: Path) -> bool:
    written = place.read_text() if place.exists() else ""
    return written not in ("", str(os.getpid()))
