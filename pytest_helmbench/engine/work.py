"""What a benchmark may do itself with its cases, beyond a prompt, its reply and a rule of ours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from pytest_helmbench.core.case import Case
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply, Usage, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.call import Origin, Watch
from pytest_helmbench.gateway.case_clock import CaseClock
from pytest_helmbench.gateway.faults import FaultKind
from pytest_helmbench.gateway.gateway import Gateway
from pytest_helmbench.gateway.limiter import ModelStoppedError, NotStoredError, RefusedError
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.relay.conversation import Sums
from pytest_helmbench.gateway.retries import CallFailedError

__all__ = ["CaseContext", "UnjudgedError", "Work", "fault_outcome", "with_sums"]


class UnjudgedError(HelmbenchError):
    """A case that gets no verdict, and what it gets instead.

    Args:
        outcome: An error or a skip.
    """

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(outcome.message)


@dataclass(frozen=True, slots=True)
class CaseContext:
    """What a case has at hand while it is worked on.

    Args:
        gateway: Where its calls go.
        origin: Whose calls they are.
        entry: The model under test.
        endpoint: Where it is reached.
        clock: The time of the case.
        watch: Told what its calls are doing.
    """

    gateway: Gateway
    origin: Origin
    entry: ModelEntry
    endpoint: Endpoint
    clock: CaseClock
    watch: Watch


class Work(Protocol):
    """How the cases of a benchmark are run and judged."""

    async def obstacle(self, case: Case) -> Outcome | None:
        """Return why a case cannot be judged here, before its model is asked; None when it can."""

    async def evaluate(self, case: Case, reply: Reply) -> tuple[Evaluation, ...]:
        """Return the evaluations of a reply.

        Raises:
            UnjudgedError: It could not be judged, through no fault of the model.
        """

    async def perform(self, case: Case, context: CaseContext) -> Outcome | None:
        """Run a case that takes more than one call; None for a case that is one question.

        Raises:
            UnjudgedError: It could not be judged, through no fault of the model.
        """


def fault_outcome(error: HelmbenchError, prefix: str = "") -> Outcome:
    """Return what a case gets whose call brought no reply: never a verdict.

    Args:
        error: `CallFailedError`, `RefusedError` or one of its kinds.
        prefix: `judge_` for a judge's call.
    """
    whose = "the judge's call failed: " if prefix else ""
    if isinstance(error, ModelStoppedError):
        return Outcome(Verdict.ERROR, f"{prefix}model_stopped", f"{whose}{error}")
    if isinstance(error, NotStoredError):
        return Outcome(Verdict.ERROR, "not_stored", str(error))
    if isinstance(error, RefusedError):
        return Outcome(Verdict.SKIPPED, "budget", str(error))
    if not isinstance(error, CallFailedError):
        return Outcome(Verdict.ERROR, f"{prefix}no_reply", f"{whose}{error}")
    fault = error.fault
    reason = "blocked" if fault.kind is FaultKind.BLOCKED else fault.reason
    return Outcome(
        Verdict.ERROR,
        f"{prefix}{reason}",
        f"{whose}{error}",
        usage=Usage() if prefix else fault.usage,
        finish_reason=fault.finish_reason,
    )


def with_sums(outcome: Outcome, sums: Sums) -> Outcome:
    """Return an outcome with what the calls of its case came to."""
    return replace(
        outcome,
        usage=sums.usage,
        latency_ms=sums.latency_ms,
        finish_reason=sums.finish_reason,
        reply_key=sums.reply_key,
    )
