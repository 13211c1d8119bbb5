"""Permits: what is asked of the limiter before an attempt, what it answers, and what it is told afterwards."""

from __future__ import annotations

from enum import StrEnum

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import Price
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.core.problem import HelmbenchError

__all__ = [
    "AttemptUsage",
    "BudgetSpentError",
    "Ending",
    "ModelFoundStoppedError",
    "ModelLimits",
    "ModelStoppedError",
    "NotStoredError",
    "Permit",
    "PermitRequest",
    "RefusedError",
    "SessionLimits",
]


class RefusedError(HelmbenchError):
    """The limiter will not let this call go, now or later."""


class BudgetSpentError(RefusedError):
    """The session's budget cannot pay this call."""


class NotStoredError(RefusedError):
    """Replies can no longer be put on record, so none is paid for."""


class ModelStoppedError(RefusedError):
    """No further call of this model starts: its key, name or account does not work."""


class ModelFoundStoppedError(ModelStoppedError):
    """The answer to this call itself has shown that the model does not work."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """What the limiter must know of a model.

    Args:
        model: Model id.
        most: Calls in flight; at least 1.
        requests_per_minute: None for no bound.
        tokens_per_minute: Prompt and completion tokens; None for no bound.
        price: None when unknown.
        free: Calls cost nothing (embedded models).
        items: No model, but places for items whose own code runs: they are no calls.
        server: The user's own server that serves it, with other models perhaps: it is asked for one of them at a time,
            with as many calls as the most generous of them allows.
    """

    model: str
    most: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    price: Price | None = None
    free: bool = False
    items: bool = False
    server: str | None = None


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Bounds of the whole session; None for no bound.

    Args:
        spent_usd: What earlier parts of the session have cost.
        longest_pause_s: A provider that keeps a model waiting for longer has ended it.
    """

    concurrency: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_cost_usd: float | None = None
    spent_usd: float = 0.0
    longest_pause_s: float = float("inf")


@dataclass(frozen=True, slots=True)
class PermitRequest:
    """A wish to send one attempt.

    Args:
        model: Model id; its limits must be known.
        prompt_tokens: Estimate.
        most_prompt_tokens: What a budget reserves for; 0 for the estimate.
        max_tokens: Bound that is sent; None when none is.
        urgent: Continues a case that has begun (retry, judge): goes before new cases.
        label: Names the case, for those who watch.
        run_id: `evaluation_runs.id`; 0 for no call of a run.
    """

    model: str
    prompt_tokens: int
    max_tokens: int | None
    urgent: bool
    label: str = ""
    run_id: int = 0
    most_prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to send one attempt; settled exactly once.

    Args:
        number: Of the session.
        model: Model id.
        reserved_usd: By the budget.
        answered: The model had answered before, whichever process had asked.
    """

    number: int
    model: str
    reserved_usd: float
    answered: bool = False


class Ending(StrEnum):
    """How an attempt ended, as far as the limiter cares."""

    REPLY = "reply"
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    DEAD = "dead"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class AttemptUsage:
    """What came of a permit.

    Args:
        ending: How it ended.
        usage: Of a reply.
        pause_s: How long the provider asked everybody to wait.
        sentence: Of a dead model, or of one that asks for a pause: why, for people.
        unanswered: It was sent and brought no reply, and the provider may bill it all the same.
    """

    ending: Ending
    usage: Usage = Usage()
    pause_s: float = 0.0
    sentence: str = ""
    unanswered: bool = False
