"""Boxes live at one time as far as processors and memory reach."""

from __future__ import annotations

import asyncio

import pytest

from pytest_helmbench.benchmarks.packs import row_tools
from pytest_helmbench.benchmarks.packs.row_tools import Sandboxes, held_room, machine_room, room_limits
from pytest_helmbench.benchmarks.packs.task import BoxRoom
from pytest_helmbench.core.granted import NOT_ALLOWED
from pytest_helmbench.options.declarations import Options


@pytest.mark.parametrize(
    ("room", "at_once"),
    [
        (BoxRoom(1, 1_000), 4),
        (BoxRoom(0.5, 1_000), 8),
        (BoxRoom(1, 4_000), 2),
        (BoxRoom(3, 1_000), 1),
        (BoxRoom(64, 1_000), 1),
        (None, 20),
    ],
)
async def test_both_must_fit(monkeypatch: pytest.MonkeyPatch, room: BoxRoom | None, at_once: int) -> None:
    monkeypatch.setattr(row_tools, "machine_room", lambda: BoxRoom(4, 8_500))
    sandboxes = Sandboxes(Options().packs.sandbox, pull=NOT_ALLOWED, note=print)
    alive, most = 0, 0

    async def live() -> None:
        nonlocal alive, most
        async with held_room(sandboxes, room):
            alive += 1
            most = max(most, alive)
            await asyncio.sleep(0.001)
            alive -= 1

    await asyncio.wait_for(asyncio.gather(*(live() for _ in range(20))), 10)
    assert (most, alive) == (at_once, 0)


def test_the_machine_has_room() -> None:
    machine = machine_room()
    assert machine.cpus >= 1
    assert 256 < machine.memory_mb < 2**24
    assert [one.concurrency for one in room_limits()] == [machine.memory_mb, 100 * machine.cpus]
