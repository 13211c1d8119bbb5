"""Holding judges to anchors before they judge anything else: who is asked what, what came of it, and who may go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pytest_helmbench.core.anchor import AnchorVerdict, JudgeHeld
from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.job import Target
from pytest_helmbench.engine.judges import Judges
from pytest_helmbench.engine.questions import Judge, judged_evaluations
from pytest_helmbench.engine.route import Route
from pytest_helmbench.engine.work import Answering, CaseContext, RunnerSettings, UnjudgedError
from pytest_helmbench.gateway.call import CaseClock, Origin, Unwatched
from pytest_helmbench.gateway.permits import RefusedError
from pytest_helmbench.gateway.providers.endpoints import Unusable
from pytest_helmbench.judging.case_evaluation import case_passed
from pytest_helmbench.results.anchor_rules import AnchoredRule, HeldTo, reply_of

__all__ = ["JudgeNotHeldError", "held_sentence", "hold_judges", "refuse_judges"]


class JudgeNotHeldError(HelmbenchError):
    """A judge that gets more anchors wrong than is allowed, or does not answer them."""


async def hold_judges(
    held_to: HeldTo, target: Target, gateway: Answering, settings: RunnerSettings, run_id: int
) -> tuple[JudgeHeld, ...]:
    """Have every judge of a benchmark judge every anchor, judge by judge.

    Args:
        held_to: The anchors.
        target: Of the benchmark; its model is not asked.
        gateway: Where the calls go.
        settings: As cases are judged.
        run_id: Whose calls they are.
    """
    found = []
    for route in target.judges:
        asker = Judges(gateway)
        parts = (_verdict(one, route, gateway, asker, settings, run_id) for one in held_to.rules)
        found.append(JudgeHeld(route.entry.id, tuple(await asyncio.gather(*parts)), held_to.allowed))
    return tuple(found)


async def _verdict(
    one: AnchoredRule,
    route: Route,
    gateway: Answering,
    asker: Judges,
    settings: RunnerSettings,
    run_id: int,
) -> AnchorVerdict:
    anchor = one.anchor
    case = Case(f"anchor:{anchor.name}", (Message("user", anchor.prompt),), None, one.rule)
    passed, message = None, ""
    if isinstance(route.endpoint, Unusable):
        message = f"{route.entry.id} cannot be called: {route.endpoint.reason}"
    else:
        judge = Judge(route.entry, route.endpoint)
        context = CaseContext(
            gateway=gateway,
            origin=Origin(run_id, case.code, 1),
            entry=route.entry,
            endpoint=route.endpoint,
            marking_models=(route,),
            clock=CaseClock(gateway.patience),
            watch=Unwatched(),
            settings=settings,
            judges=asker,
        )
        try:
            evaluations = await judged_evaluations(case, reply_of(anchor), (judge,), context)
            passed = case_passed(evaluations)
            message = " ".join(part.justification for part in evaluations if part.justification)
        except UnjudgedError as stop:
            message = stop.outcome.message
        except RefusedError as error:
            message = str(error)
    return AnchorVerdict(route.entry.id, anchor.name, anchor.passes, passed, message)


def held_sentence(held: JudgeHeld) -> str:
    """Return how a judge stood to its anchors."""
    text = f"the judge {held.judge} was right on {held.right} of {len(held.verdicts)} anchors"
    if held.wrong:
        said = ", ".join(f"{one.anchor} ({'pass' if one.passed else 'fail'})" for one in held.wrong)
        text += f"; wrong on {said}, {held.allowed} allowed"
    if held.unanswered:
        why = held.unanswered[0].message.partition("\n")[0]
        text += f"; no verdict on {len(held.unanswered)}{f': {why}' if why else ''}"
    return text


def refuse_judges(held_to: HeldTo, found: Sequence[JudgeHeld]) -> None:
    """Stop for a judge that may not go on.

    Raises:
        JudgeNotHeldError: There is one.
    """
    failed = [held_sentence(held) for held in found if not held.holds]
    if failed:
        raise JudgeNotHeldError(
            f"{held_to.path}: {'; '.join(failed)}\n"
            "  hint: `helmbench judge-check` shows each verdict; take another marking model, mend the rubric or the"
            " anchors, or allow more ('allowed: N')"
        )
