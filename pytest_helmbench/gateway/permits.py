"""Permits: what the limiter learns before and after an attempt, and models that are stopped."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import Price
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.faults import Fault, FaultKind

_Tasks = defaultdict[str, set["asyncio.Task[object]"]]
_FIRST_CASES = 20
_ONE_REQUEST_REASONS = frozenset(
    {
        "prompt_too_large",
        "schema_rejected",
        "unsupported_parameters",
        "broken_output",
        "no_answer",
        "no_reply",
    }
)


class RefusedError(HelmbenchError):
    """The limiter refuses this call for good."""


class BudgetSpentError(RefusedError):
    """The session's budget cannot pay this call."""


class InBatchError(RefusedError):
    """The call waits in a batch, and this session does not."""


class NotStoredError(RefusedError):
    """Replies can no longer be put on record, so none is paid for."""


class ModelStoppedError(RefusedError):
    """No further call of this model starts: its key, name or account does not work."""


class ModelFoundStoppedError(ModelStoppedError):
    """The answer to this call itself has shown that the model does not work."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """The limits of one model.

    Args:
        concurrency: Calls in flight; at least 1.
        requests_per_minute: None for no bound.
        tokens_per_minute: Prompt and completion tokens; None for no bound.
        price: None when unknown.
        batch_share: Part of that price that a call in a batch costs at most; None where no list says it.
        free: Calls cost nothing (embedded models).
        largest_output: Tokens of a completion that no bound holds; a budget reserves for it where a server may take no
            notice of the bound.
        items: Places for items whose own code runs, instead of a model: they do not count as calls.
        server: The user's own server that serves it, with other models perhaps: it gets as many calls as the most
            generous of them allows.
        loads: That server has to load it, and is asked for one such model at a time.
        provider_model: The model as its provider knows it: all variants share its limits; empty for `model` alone.
    """

    model: str
    concurrency: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    price: Price | None = None
    batch_share: float | None = None
    free: bool = False
    largest_output: int = 0
    items: bool = False
    server: str | None = None
    loads: bool = False
    provider_model: str = ""


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
    """A request for permission to send one attempt.

    Args:
        model: Model id; its limits must be known.
        prompt_tokens: Estimate.
        most_prompt_tokens: What a budget reserves for; 0 for the estimate.
        max_tokens: Bound that is sent; None when none is.
        urgent: Continues a case that has begun (retry, judge): goes before new cases.
        label: Names the case, for those who watch.
        run_id: `evaluation_runs.id`; 0 for no call of a run.
        units: Places that it takes; who wants more than there are takes all.
    """

    model: str
    prompt_tokens: int
    max_tokens: int | None
    urgent: bool
    label: str = ""
    run_id: int = 0
    most_prompt_tokens: int = 0
    units: int = 1


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission to send one attempt; settled exactly once.

    Args:
        answered: The model had answered before, whichever process had asked.
        bound: By which name its server wants the bound of a completion, where it has refused the usual one.
    """

    number: int
    model: str
    reserved_usd: float
    answered: bool = False
    bound: str | None = None


class Ending(StrEnum):
    """How an attempt ended, as far as the limiter cares."""

    REPLY = "reply"
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    DEAD = "dead"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How the attempt of a permit ended.

    Args:
        pause_s: How long the provider asked all calls to wait.
        sentence: Of a dead model, or of one that asks for a pause: why, for people.
        unanswered: It was sent and brought no reply, and the provider may bill it all the same.
        bound: The name of the completion bound, as for `Permit`, where the answer gives it.
    """

    ending: Ending
    usage: Usage = Usage()
    pause_s: float = 0.0
    sentence: str = ""
    unanswered: bool = False
    bound: str | None = None


@dataclass(frozen=True, slots=True)
class FailedCase:
    """A call that has failed for good.

    Args:
        fault: Status and code of the provider; None for the fault of a single request, which says nothing of the model.
        sentence: The fault, for people.
    """

    case: str
    fault: str | None
    sentence: str


class FaultStreak:
    """Whether the first cases of a model all end in the same fault."""

    def __init__(self) -> None:
        self._has_answered = False
        self._fault = ""
        self._cases: set[str] = set()

    def answered(self) -> None:
        """Record that the model works: later faults do not stop it."""
        self._has_answered = True
        self._cases.clear()

    def ends_with(self, failed: FailedCase) -> str | None:
        """Count a case; return why the model is to be stopped, once the first 20 have ended in the same fault."""
        if self._has_answered or failed.fault is None:
            return None
        if failed.fault != self._fault:
            self._fault = failed.fault
            self._cases.clear()
        self._cases.add(failed.case)
        if len(self._cases) < _FIRST_CASES:
            return None
        text, *hint = failed.sentence.splitlines()
        return "\n".join((text, f"  its first {_FIRST_CASES} cases all ended in this fault", *hint))


def failed_case(case: str, fault: Fault) -> FailedCase:
    """Return the failed call as evidence about its model."""
    single = fault.kind in (FaultKind.BLOCKED, FaultKind.TOO_LARGE) or fault.reason in _ONE_REQUEST_REASONS
    key = None if single else f"{fault.status} {fault.reason} {fault.code}"
    return FailedCase(case, key, fault.text())


class ModelStops:
    """The models of a process that have stopped, and the calls of all others. Used on the loop.

    Args:
        grace_s: How long calls on the wire are waited for: they may be paid, and a reply that still comes is kept.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._sentences: dict[str, str] = {}
        self._asleep: _Tasks = defaultdict(set)
        self._on_the_wire: _Tasks = defaultdict(set)
        self._ended: set[asyncio.Task[object]] = set()

    def sentence(self, model: str) -> str | None:
        """Return why a model has stopped; None while it goes on."""
        return self._sentences.get(model)

    def check(self, model: str) -> None:
        """Raise `ModelStoppedError` when a model has stopped."""
        if model in self._sentences:
            raise ModelStoppedError(self._sentences[model])

    def stop(self, model: str, sentence: str) -> None:
        """End every call of a model."""
        if model in self._sentences:
            return
        self._sentences[model] = sentence
        self._end(self._asleep[model])
        asyncio.get_running_loop().call_later(self._grace_s, self._end, self._on_the_wire[model])

    def _end(self, tasks: set[asyncio.Task[object]]) -> None:
        for task in tuple(tasks):
            self._ended.add(task)
            task.cancel()

    @contextmanager
    def stoppable(self, model: str, *, asleep: bool) -> Iterator[None]:
        """Inside, a model that stops ends the call: the task's cancellation becomes `ModelStoppedError`.

        It ends a call that is asleep at once, another when the grace is over.
        """
        tasks = (self._asleep if asleep else self._on_the_wire)[model]
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("calls are made inside of tasks")
        tasks.add(task)
        try:
            yield
        except asyncio.CancelledError:
            # A cancellation from elsewhere must be obeyed.
            if task not in self._ended or task.uncancel() > 0:
                raise
            raise ModelStoppedError(self._sentences[model]) from None
        finally:
            tasks.discard(task)
            self._ended.discard(task)
