"""The transcript of an agent: its messages and commands, and why it stopped, as plain data."""

from __future__ import annotations

from enum import StrEnum

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Event
from pytest_helmbench.core.problem import HelmbenchError

__all__ = ["Stop", "Transcript"]


class Stop(StrEnum):
    """Why an agent stopped. What it left behind is judged, but for `fault`."""

    FINISHED = "finished"
    """It said so, by a reply without a command."""
    TURNS = "turns"
    TOKENS = "tokens"
    TIME = "time"
    CUT = "cut"
    """Its replies were cut off at the token limit, one after the other."""
    CONTEXT = "context"
    """Its messages no longer fit the model."""
    FAULT = "fault"
    """A call brought no reply."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One run of the built-in agent.

    Args:
        events: In order: `message` (with role, content and tool calls, as sent or received), `command` (what was
            run and how it ended) and at last `end`.
        final_text: Of the last reply; empty when there was none.
        turns: Replies of the model.
        stop: Why it stopped.
        fault: What a call met; None unless `stop` says so.
    """

    events: tuple[Event, ...]
    final_text: str
    turns: int
    stop: Stop
    fault: HelmbenchError | None = None

    @property
    def messages(self) -> tuple[JsonObject, ...]:
        """The conversation, in the form of chat completions."""
        return tuple(event.payload for event in self.events if event.type == "message")
