"""Between two repetitions of a run: whether its comparison with the baseline has said enough."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping

from pytest_helmbench.core.outcome import ResultRecord
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.scoring.looks import Decision, decision

__all__ = ["EarlyStop", "EarlyStopError", "check_early_stop"]

RunPart = tuple[int, int]
"""Run and repetition."""


class EarlyStopError(HelmbenchError):
    """An early stop of nothing."""


def check_early_stop(settings: Settings) -> None:
    """Refuse an early stop without repetitions or a baseline.

    Raises:
        EarlyStopError: One of them is missing.
    """
    if settings.early_stop and not (settings.repeat > 1 and settings.baselines):
        raise EarlyStopError(
            "--helmbench-early-stop looks between repetitions at the comparison with a baseline\n"
            "  hint: add --helmbench-repeat=3 and --helmbench-baseline=RUN"
        )


class EarlyStop:
    """Holds the next repetition of each run back until the one before is judged and looked at. On the loop only.

    Args:
        repeat: Repetitions per case.
        expected: Outcomes that are on their way, by run and repetition.
        stored: Waits until all that was put on record is on disk.
        p_of: Returns the least p of the comparison of a run with its baseline; None where nothing can be compared.
            Called on a thread of its own; raises `HelmbenchError`.
        note: Says something in the summary.
    """

    def __init__(
        self,
        repeat: int,
        expected: Mapping[RunPart, int],
        stored: Callable[[], Awaitable[None]],
        p_of: Callable[[int], float | None],
        note: Callable[[str], None],
    ) -> None:
        self._repeat = repeat
        self._expected = expected
        self._stored = stored
        self._p_of = p_of
        self._note = note
        self._arrived: defaultdict[RunPart, set[str]] = defaultdict(set)
        self._looks: dict[RunPart, asyncio.Task[None]] = {}
        self._leaves: dict[RunPart, asyncio.Future[str]] = {}
        self._open = False

    def add(self, record: ResultRecord) -> None:
        """Take note of an outcome; the last one of a repetition has the run looked at."""
        part = (record.run_id, record.repetition)
        self._arrived[part].add(record.code)
        is_last = record.repetition >= self._repeat
        if is_last or part in self._looks or len(self._arrived[part]) < self._expected.get(part, 0):
            return
        self._looks[part] = asyncio.get_running_loop().create_task(self._look(*part))

    async def leave(self, run_id: int, repetition: int) -> str:
        """Wait until a repetition may be asked; return why it is not, in a sentence, or nothing."""
        if repetition == 1 or self._open or not self._expected.get((run_id, repetition - 1)):
            return ""
        return await asyncio.shield(self._leave(run_id, repetition))

    def give_up(self) -> None:
        """Let everything be asked: an outcome that is waited for will never come."""
        self._open = True
        for leave in self._leaves.values():
            if not leave.done():
                leave.set_result("")

    def _leave(self, run_id: int, repetition: int) -> asyncio.Future[str]:
        part = (run_id, repetition)
        if part not in self._leaves:
            self._leaves[part] = asyncio.get_running_loop().create_future()
        return self._leaves[part]

    async def _look(self, run_id: int, repetition: int) -> None:
        try:
            await self._stored()
            p = await asyncio.to_thread(self._p_of, run_id)
        except HelmbenchError as error:
            self._note(f"no early stop: {error}")
            p = None
        found = Decision.GO_ON if p is None else decision(p, repetition)
        parts = [repetition + 1] if found is Decision.GO_ON else range(repetition + 1, self._repeat + 1)
        said = ""
        if found is not Decision.GO_ON:
            said = f"early stop after {repetition} of {self._repeat} repetitions: p = {p:.2g}, {found}"
        for number in parts:
            leave = self._leave(run_id, number)
            if not leave.done():
                leave.set_result(said)
