"""The protocol by which a kind of benchmark runs and judges its cases, and the context that a case gets."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol

from pytest_helmbench.core.case import Case
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import Outcome, Usage, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.call import CallWatch, CaseClock, Origin, ReplySource
from pytest_helmbench.gateway.faults import FaultKind
from pytest_helmbench.gateway.permits import (
    InBatchError,
    ModelFoundStoppedError,
    ModelStoppedError,
    NotStoredError,
    RefusedError,
)
from pytest_helmbench.gateway.providers.endpoints import Endpoint, Unusable
from pytest_helmbench.gateway.relay.conversation import CallTotals
from pytest_helmbench.gateway.relay.refusals import BadRequestError
from pytest_helmbench.gateway.retries import CallFailedError, RetryPolicy
from pytest_helmbench.judging.judge import JudgeTemplate


@dataclass(frozen=True, slots=True)
class Route:
    """A model and where its calls go.

    Args:
        entry: Everything that was said about the model, overrides applied.
        endpoint: Where it is reached, or why it is not.
    """

    entry: ModelEntry
    endpoint: Endpoint | Unusable

    @property
    def usable(self) -> bool:
        """Whether a call can be made."""
        return not isinstance(self.endpoint, Unusable)


class UnjudgedError(HelmbenchError):
    """A case that gets no verdict, and what it gets instead.

    Args:
        outcome: An error or a skip.
    """

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(outcome.message)


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """Settings that every case of a session shares.

    Args:
        strict_json: No recovery of JSON from surrounding text.
    """

    strict_json: bool
    template: JudgeTemplate


class CaseGateway(ReplySource, Protocol):
    """Where the calls of a case go: the gateway, or the record of a run whose replies are judged anew."""

    @property
    def retry_policy(self) -> RetryPolicy:
        """Time limits and number of attempts."""

    def place(self, model_id: str, units: int = 1) -> AbstractAsyncContextManager[None]:
        """Hold a place among items, or several; see `ModelLimits.items`.

        Raises:
            RefusedError: The session is ending.
        """


@dataclass(frozen=True, slots=True)
class CaseContext:
    """Everything that a case can use while it runs.

    Args:
        entry: The model under test.
        marking_models: In order; empty when none is named.
        clock: The time of the case.
        watch: Told what its calls are doing.
        settings: What it shares with all cases.
    """

    gateway: CaseGateway
    origin: Origin
    entry: ModelEntry
    endpoint: Endpoint
    marking_models: tuple[Route, ...]
    clock: CaseClock
    watch: CallWatch
    settings: RunnerSettings
    judges: ReplySource


class Work(Protocol):
    """How the cases of a benchmark are run and judged."""

    async def perform(self, case: Case, context: CaseContext) -> Outcome:
        """Run a case and judge its result.

        Most kinds get replies with `engine.questions.one_reply`, and judge them by rules of their own, or by
        `engine.questions.judged_evaluations`.

        Raises:
            UnjudgedError: It could not be judged, and the model is not at fault.
            RefusedError: The session may not ask any more.
        """


def fault_outcome(error: HelmbenchError, prefix: str = "", judge: str = "") -> Outcome:
    """Return the outcome of a case whose call brought no reply: never a verdict.

    Args:
        error: `CallFailedError`, `RefusedError` or one of its kinds.
        prefix: `judge_` for a judge's call.
        judge: Id of the judge whose call it was, where there are several.
    """
    whose = (
        ""
        if not prefix
        else f"the call of the judge {judge} failed: "
        if judge
        else "the judge's call failed: "
    )
    if isinstance(error, ModelStoppedError):
        # A call that was not made is not an error: the cases that met the fault report it.
        if isinstance(error, ModelFoundStoppedError):
            return Outcome(Verdict.ERROR, f"{prefix}model_stopped", f"{whose}{error}")
        who = f"judge {judge}".strip() if prefix else "model"
        return Outcome(
            Verdict.SKIPPED, f"{prefix}model_stopped", f"not judged, since the {who} was stopped: {error}"
        )
    if isinstance(error, NotStoredError):
        return Outcome(Verdict.ERROR, "not_stored", str(error))
    if isinstance(error, InBatchError):
        return Outcome(Verdict.SKIPPED, "in_batch", str(error))
    if isinstance(error, RefusedError):
        return Outcome(Verdict.SKIPPED, "budget", str(error))
    if isinstance(error, BadRequestError):
        return Outcome(Verdict.ERROR, "refused_request", f"the relay refused a request: {error}")
    if not isinstance(error, CallFailedError):
        return Outcome(Verdict.ERROR, f"{prefix}no_reply", f"{whose}{error}")
    fault = error.fault
    reason = "blocked" if fault.kind is FaultKind.BLOCKED else fault.reason
    return Outcome(
        Verdict.ERROR, f"{prefix}{reason}", f"{whose}{error}", usage=Usage() if prefix else fault.usage
    )


def with_totals(outcome: Outcome, totals: CallTotals) -> Outcome:
    """Return an outcome with the usage and latency of its calls."""
    return replace(outcome, usage=totals.usage, latency_ms=totals.latency_ms, reply_key=totals.reply_key)


def usable_endpoint(route: Route, reason: str) -> Endpoint:
    """Return where a model is reached.

    Args:
        route: The model, and where it is reached if it can be.
        reason: Of the skip, where it cannot be called.

    Raises:
        UnjudgedError: It cannot be called.
    """
    if isinstance(route.endpoint, Unusable):
        message = f"{route.entry.id} cannot be called: {route.endpoint.reason}"
        raise UnjudgedError(Outcome(Verdict.SKIPPED, reason, message))
    return route.endpoint
