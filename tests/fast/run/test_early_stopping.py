"""The next repetition waits for the one before, and never for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pytest_helmbench.core.outcome import Outcome, ResultRecord, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.run.early_stop import EarlyStop


def _record(code: str, repetition: int) -> ResultRecord:
    return ResultRecord(1, code, code, "f", repetition, 0, 0, False, Outcome(Verdict.PASSED))


async def _stored() -> None:
    await asyncio.sleep(0)


def _held(p_of: Callable[[int], float | None], notes: list[str]) -> EarlyStop:
    expected = {(1, repetition): 2 for repetition in (1, 2, 3)}
    return EarlyStop(3, expected, _stored, p_of, notes.append)


def _run(scene: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(scene(), 20))


def test_a_repetition_waits_for_all_of_the_one_before_and_for_the_look() -> None:
    async def scene() -> None:
        looks = iter((0.2, 0.31))
        held = _held(lambda _run_id: next(looks), [])
        second = asyncio.ensure_future(held.leave(1, 2))
        assert await held.leave(1, 1) == ""
        assert await held.leave(2, 2) == ""  # a run that nobody has planned ahead: pytest's own tests
        held.add(_record("a", 1))
        held.add(_record("a", 1))  # run again
        await asyncio.sleep(0.01)
        assert not second.done()
        held.add(_record("b", 1))
        assert await second == ""
        for code in "ab":
            held.add(_record(code, 2))
        assert "after 2 of 3 repetitions: p = 0.31, more" in await held.leave(1, 3)

    _run(scene)


def test_what_cannot_be_looked_at_or_will_never_come_is_asked_on() -> None:
    def unreadable(_run_id: int) -> float | None:
        raise HelmbenchError("the file is gone")

    async def scene() -> None:
        notes: list[str] = []
        for p_of in (unreadable, lambda _run_id: None):
            held = _held(p_of, notes)
            for code in "ab":
                held.add(_record(code, 1))
            assert await held.leave(1, 2) == ""
        assert notes == ["no early stop: the file is gone"]
        held = _held(lambda _run_id: 1.0, notes)
        waiting = asyncio.ensure_future(held.leave(1, 2))
        await asyncio.sleep(0)
        held.give_up()
        assert (await waiting, await held.leave(1, 3)) == ("", "")

    _run(scene)
