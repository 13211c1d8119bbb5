"""The base class of running verifiers, their health checks, and the error of one that does not run."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.sandbox.fence import Door

__all__ = ["AbsentVerifierError", "Running", "UserServer", "Waits", "health_of"]


@dataclass(frozen=True, slots=True)
class Waits:
    """How long a health check may take to pass, in seconds.

    Args:
        container_s: Of a container that has just been started.
        process_s: Of a process that has just been started.
        url_s: Of a server that the user runs.
        again_s: Of one of ours that has failed an item and not ended: it may be busy.
    """

    container_s: float = 60.0
    process_s: float = 20.0
    url_s: float = 5.0
    again_s: float = 20.0


class AbsentVerifierError(HelmbenchError):
    """A verifier does not run.

    Args:
        status: In the protocol's words, such as `missing_dependency`.
        reason: Goes behind `verifier ID `, such as `needs docker`.
        hint: What to do; empty for nothing.
    """

    def __init__(self, status: str, reason: str, hint: str = "") -> None:
        self.status = status
        self.reason = reason
        self.hint = hint
        super().__init__(f"{reason}\n  hint: {hint}" if hint else reason)


class Running(ABC):
    """A server that answers a pack's verifier requests.

    Args:
        url: Where we reach it, without a trailing slash.
        mode: As the protocol calls it.
        note: What people should know of it; empty for nothing.
    """

    def __init__(self, url: str, mode: str, note: str = "") -> None:
        self.url = url
        self.mode = mode
        self.note = note

    @abstractmethod
    async def end(self) -> None:
        """Wait until it has ended by itself, as far as that can be seen from here."""

    @abstractmethod
    async def stop(self) -> None:
        """End it, if we started it."""

    async def admit(self, door: Door) -> None:
        """Let it reach a port of ours, where it is kept from them."""
        del door  # most are not


class UserServer(Running):
    """A server that somebody else runs."""

    async def end(self) -> None:
        """Wait for ever: nothing is known of that."""
        await asyncio.Event().wait()

    async def stop(self) -> None:
        """Do nothing: the server is not ours to end."""


async def health_of(looking: Awaitable[str | None], ending: Awaitable[object]) -> str | None:
    """Wait for a health check, for so long as there is something to look at.

    Args:
        looking: Returns what it saw when the check does not pass, None when it does.
        ending: Returns when the server has ended.

    Returns:
        None when the check passed, else why it did not.
    """
    tasks = (asyncio.ensure_future(looking), asyncio.ensure_future(ending))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return tasks[0].result() if tasks[0].done() else "it has ended"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
