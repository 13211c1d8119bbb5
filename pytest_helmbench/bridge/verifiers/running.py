"""What every verifier is once it runs, and the error of one that does not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from pytest_helmbench.bench.problem import HelmbenchError

__all__ = ["AbsentVerifierError", "Running", "UserServer", "Waits"]


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
    """A verifier that runs.

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
    async def has_ended(self) -> bool:
        """Return whether it ended by itself, as far as that can be known without asking it."""

    @abstractmethod
    async def stop(self) -> None:
        """End it, if we started it."""


class UserServer(Running):
    """A server that somebody else runs."""

    async def has_ended(self) -> bool:
        """Return that nothing is known of that."""
        return False

    async def stop(self) -> None:
        """Leave it alone."""
