"""A case that is one question: its model is asked once, and a judge may be asked about the reply."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply, Verdict
from pytest_helmbench.engine.work import CaseContext, UnjudgedError, fault_outcome, usable_endpoint
from pytest_helmbench.gateway.call import Call
from pytest_helmbench.gateway.permits import ModelStoppedError
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.retries import CallFailedError
from pytest_helmbench.judging.case_evaluation import evaluate_judged, with_reply
from pytest_helmbench.judging.judge import OffMenuError, is_on_menu
from pytest_helmbench.judging.rubric import Criterion

__all__ = ["Judge", "judged_evaluations", "one_reply", "usable_judge"]


@dataclass(frozen=True, slots=True)
class Judge:
    """A marking model that can be called."""

    entry: ModelEntry
    endpoint: Endpoint


async def one_reply(case: Case, context: CaseContext) -> Reply:
    """Ask the model under test.

    Raises:
        UnjudgedError: No reply came.
        RefusedError: The session may not ask any more.
    """
    call = Call(
        context.origin,
        context.entry,
        context.endpoint,
        case.messages,
        case.response_format,
        timeout_s=case.timeout_s,
    )
    try:
        return await context.gateway.ask(call, context.clock, context.watch)
    except (CallFailedError, ModelStoppedError) as error:
        raise UnjudgedError(fault_outcome(error)) from error


def usable_judge(context: CaseContext) -> Judge:
    """Return who judges. Asked first: without a usable judge a case is not even asked.

    Raises:
        UnjudgedError: There is none.
    """
    route = context.judge
    if route is None:
        message = "no judge: give --helmbench-marking-model, or marking_model in models.yml"
        raise UnjudgedError(Outcome(Verdict.SKIPPED, "no_judge", message))
    return Judge(route.entry, usable_endpoint(route, "no_judge"))


async def judged_evaluations(
    case: Case, reply: Reply, judge: Judge, context: CaseContext
) -> tuple[Evaluation, ...]:
    """Have a reply judged: one call and one evaluation per criterion.

    Raises:
        UnjudgedError: The judge was at fault, or could not be reached.
        RefusedError: The session may not ask any more.
    """
    sequence = 0

    async def ask(criterion: Criterion, messages: tuple[Message, ...], response_format: JsonObject) -> Reply:
        nonlocal sequence
        sequence += 1
        call = Call(
            context.origin,
            judge.entry,
            judge.endpoint,
            messages,
            response_format,
            purpose="judge",
            criterion=criterion.name,
            sequence=sequence,
            accepts=partial(is_on_menu, criterion),
        )
        return await context.judges.ask(call, context.clock, context.watch)

    try:
        return await evaluate_judged(
            case, reply, template=context.settings.template, judge_model=judge.entry.id, ask=ask
        )
    except OffMenuError as error:
        message = f"the judge {judge.entry.id} is at fault: {error}"
        outcome = Outcome(Verdict.ERROR, "judge_off_menu", message)
        raise UnjudgedError(with_reply(outcome, reply)) from error
    except (CallFailedError, ModelStoppedError) as error:
        raise UnjudgedError(with_reply(fault_outcome(error, "judge_"), reply)) from error
