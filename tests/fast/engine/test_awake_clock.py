"""The clock of cases leaves out what its process slept through."""

from __future__ import annotations

from pytest_helmbench.engine.loop import AwakeClock


async def test_a_standstill_is_no_time_once_the_clock_looks_at_it() -> None:
    now_s = [0.0]
    clock = AwakeClock(lambda: now_s[0])
    now_s[0] = 50.0
    assert clock() == 50.0

    clock.start()
    clock.start()
    now_s[0] = 51.5
    assert clock() == 51.5
    now_s[0] = 1051.5  # paused: one tick of it counts
    assert clock() == 52.0
    now_s[0] = 1052.5
    assert clock() == 53.0
