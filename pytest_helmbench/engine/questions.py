"""Questions of a case: its model is asked, as often as its conversation goes on, and judges may be asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain, combinations, count

from pytest_helmbench.core.case import Case, CaseRule, Message
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply, Verdict
from pytest_helmbench.engine.dialogue import Dialogue
from pytest_helmbench.engine.work import CaseContext, UnjudgedError, fault_outcome, usable_endpoint
from pytest_helmbench.gateway.call import Call, CallWatch, CaseClock, ReplySource
from pytest_helmbench.gateway.faults import FaultKind
from pytest_helmbench.gateway.gateway import NOT_ON_RECORD
from pytest_helmbench.gateway.permits import ModelStoppedError, RefusedError
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.retries import CallFailedError
from pytest_helmbench.judging.judge import (
    AskJudge,
    OffMenuError,
    evaluate_judged,
    is_on_menu,
    judge_response_format,
    with_reply,
)
from pytest_helmbench.judging.rubric import Criterion, JudgeRule

_LEFT_OUT = ("temperature", "maxItems")
"""Parts of a judge's request that not every provider takes, as refusals name them."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A marking model that can be called."""

    entry: ModelEntry
    endpoint: Endpoint


async def one_reply(case: Case, context: CaseContext) -> Reply:
    """Ask the model under test; of a conversation this is the last reply, see `Reply.turns`.

    Raises:
        UnjudgedError: No reply came, or the session may not ask any more.
    """
    dialogue, clock = Dialogue(case), context.clock
    while (call := dialogue.call(context.origin, context.entry, context.endpoint)) is not None:
        try:
            dialogue.hear(await context.gateway.ask(call, clock, context.watch))
        except (CallFailedError, RefusedError) as error:
            raise UnjudgedError(dialogue.broken_off(fault_outcome(error))) from error
        clock = clock.of_next_call()
    return dialogue.reply()


def usable_judges(context: CaseContext) -> tuple[Judge, ...]:
    """Return who judges. Asked first: without usable judges a case is not even asked.

    Raises:
        UnjudgedError: There is none, or one of them cannot be called.
    """
    if not context.marking_models:
        message = "no judge: give --helmbench-marking-model, or marking_model in models.yml"
        raise UnjudgedError(Outcome(Verdict.SKIPPED, "no_judge", message))
    return tuple(Judge(route.entry, usable_endpoint(route, "no_judge")) for route in context.marking_models)


async def judged_evaluations(
    case: Case, reply: Reply, judges: Sequence[Judge], context: CaseContext
) -> tuple[Evaluation, ...]:
    """Have a reply judged: one evaluation per criterion, and one call to each judge that is needed for it.

    No judge stands in for another that fails: what is judged by others than the case of yesterday is another measure.

    Raises:
        UnjudgedError: A judge was at fault, or could not be reached.
        RefusedError: The session may not ask any more.
    """
    try:
        return await evaluate_judged(
            case,
            reply,
            template=context.settings.template,
            judges=tuple(judge.entry.id for judge in judges),
            ask=_asking(judges, context, reply, case.rule),
        )
    except OffMenuError as error:
        outcome = Outcome(Verdict.ERROR, "judge_off_menu", str(error))
        raise UnjudgedError(with_reply(outcome, reply)) from error


def _asking(judges: Sequence[Judge], context: CaseContext, reply: Reply, rule: CaseRule) -> AskJudge:
    """Return what reaches the judges of a case.

    Args:
        reply: That they judge: an error keeps what it took.
    """
    numbers = count(1)
    known = {judge.entry.id: judge for judge in judges}

    async def ask(
        judge_id: str, criterion: Criterion, messages: tuple[Message, ...], for_the_last_time: bool
    ) -> Reply:
        judge = known[judge_id]
        call = Call(
            context.origin,
            judge.entry,
            judge.endpoint,
            messages,
            judge_response_format(criterion),
            purpose="judge",
            criterion=criterion.name,
            sequence=next(numbers),
            hides_words=isinstance(rule, JudgeRule) and rule.hidden,
            accepts=lambda said: not for_the_last_time or is_on_menu(criterion, said),
        )
        try:
            return await context.judges.ask(call, context.clock, context.watch)
        except (CallFailedError, ModelStoppedError) as error:
            named = judge_id if len(known) > 1 else ""
            raise UnjudgedError(with_reply(fault_outcome(error, "judge_", named), reply)) from error

    return ask


def _plainer(call: Call, without: Collection[str]) -> Call:
    """Return a call without the temperature, or without the bounds of lists in its schema, as `_LEFT_OUT` has them."""
    sampling, wanted = call.entry.sampling, call.response_format
    if "temperature" in without:
        call = replace(call, entry=replace(call.entry, sampling=replace(sampling, temperature=None)))
    if "maxItems" in without and wanted is not None:
        call = replace(call, response_format={name: _unbounded(part) for name, part in wanted.items()})
    return call


def _unbounded(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _unbounded(part) for name, part in value.items() if name != "maxItems"}
    return value


class Judges:
    """Asks the judges of a process."""

    def __init__(self, gateway: ReplySource) -> None:
        self._gateway = gateway
        self._refused: dict[str, set[str]] = {}

    async def ask(self, call: Call, clock: CaseClock, watch: CallWatch) -> Reply:
        """Ask once more without what the judge's provider does not take; it is asked so from then on.

        Raises:
            CallFailedError: No reply came.
            RefusedError: The session may not ask any more.
        """
        refused = self._refused.setdefault(call.entry.id, set())
        without = frozenset(refused)
        recorded = chain.from_iterable(combinations(_LEFT_OUT, size) for size in (1, 2))
        while True:
            try:
                return await self._gateway.ask(_plainer(call, without), clock, watch)
            except CallFailedError as error:
                fault = error.fault
                if fault.reason == NOT_ON_RECORD:
                    new = next(recorded, ())  # it may have been answered in any of these forms
                elif fault.kind is FaultKind.REJECTED:
                    named = fault.parameter or fault.message
                    new = tuple(part for part in _LEFT_OUT if part in named and part not in without)
                    refused.update(new)
                    new = (*without, *new) if new else ()
                else:
                    raise
                if not new:
                    raise
                without = frozenset(new)
