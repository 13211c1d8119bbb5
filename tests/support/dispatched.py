"""A session that does nothing but judge replies, on an event loop of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluators import Timed, reply

from pytest_helmbench.engine.evaluations import Evaluations
from pytest_helmbench.engine.judge_access import JudgeOffer
from pytest_helmbench.gateway.call import Unwatched

__all__ = ["Dispatched", "Found", "lives", "pids", "texts"]

Found = tuple[int, str, dict[str, str]]


@dataclass
class Dispatched:
    """A session that judges.

    Args:
        offer: Who may judge beside it.
        notes: What it says in its summary.
        stalls: Seconds between two turns of its loop, 1 ms apart.
        expected: Replies that it expects; 0 for those that it gets.
        on_found: Told the process that has judged, for each reply.
    """

    offer: JudgeOffer | None
    notes: list[str] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    expected: int = 0
    on_found: Callable[[int], object] = lambda _pid: None

    def judged(
        self, asked: Sequence[tuple[Timed, str]], beside: Callable[[], object] = lambda: None
    ) -> list[Found | BaseException]:
        """Return what was found, or raised, of each reply; something may be done beside it, in a thread."""
        return asyncio.run(self._judged(asked, beside))

    async def _judged(
        self, asked: Sequence[tuple[Timed, str]], beside: Callable[[], object]
    ) -> list[Found | BaseException]:
        evaluations = Evaluations(self.offer, self.notes.append)
        evaluations.expect(self.expected or len(asked))
        watching = asyncio.ensure_future(self._watch())

        async def one(evaluator: Timed, text: str) -> Found:
            found = await evaluations.of(evaluator, reply(text), Unwatched())
            self.on_found(found[0])
            return found

        try:
            doing = asyncio.create_task(asyncio.to_thread(beside))
            found = await asyncio.gather(*(one(*each) for each in asked), return_exceptions=True)
            await doing
        finally:
            watching.cancel()
            evaluations.close()
        return found

    async def _watch(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.001)
            self.stalls.append(time.monotonic() - before)


def texts(found: Sequence[Found | BaseException]) -> list[str]:
    """Return the texts that were judged, or what was raised."""
    return [repr(one) if isinstance(one, BaseException) else one[1] for one in found]


def pids(found: Sequence[Found | BaseException]) -> set[int]:
    """Return the processes that have judged."""
    return {one[0] for one in found if not isinstance(one, BaseException)}


def lives(pid: int) -> bool:
    """Return whether a process runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
