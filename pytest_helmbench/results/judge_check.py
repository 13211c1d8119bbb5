"""Holding judges to anchors before they judge anything else: who is asked what, what came of it, and who may go on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.benchmarks.kind import Loaded
from pytest_helmbench.core.anchor import Anchor, AnchorVerdict, JudgeHeld
from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.core.problem import HelmbenchError, Problem, UnreadableBenchmarkError
from pytest_helmbench.engine.job import CaseJob, Target
from pytest_helmbench.engine.questions import Judge, Judges, judged_evaluations
from pytest_helmbench.engine.work import Answering, CaseContext, Route, RunnerSettings, UnjudgedError
from pytest_helmbench.files.anchors_file import anchors_path, load_anchors
from pytest_helmbench.gateway.call import CaseClock, Origin, Unwatched
from pytest_helmbench.gateway.permits import RefusedError
from pytest_helmbench.gateway.providers.endpoints import Unusable
from pytest_helmbench.judging.case_evaluation import case_passed
from pytest_helmbench.judging.rubric import Criterion, JudgeRule


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
            "  hint: `helmbench judge check` shows each verdict; take another marking model, mend the rubric or the"
            " anchors, or allow more ('allowed: N')"
        )


_WHICH = "'scenario: P1-B1-S1' (a row of a pack: its id) says whose, 'rubric' gives words of its own"


@dataclass(frozen=True, slots=True)
class AnchoredRule:
    """An anchor and what a judge is asked about it."""

    anchor: Anchor
    rule: JudgeRule


@dataclass(frozen=True, slots=True)
class HeldTo:
    """What the judges of a benchmark are held to.

    Args:
        path: Of the file.
        rules: In file order.
        allowed: How many of them a judge may get wrong.
    """

    path: Path
    rules: tuple[AnchoredRule, ...]
    allowed: int

    @property
    def calls(self) -> int:
        """Calls to each judge."""
        return sum(len(one.rule.criteria) for one in self.rules)

    @property
    def characters(self) -> int:
        """About how much one judge is sent, its wording apart."""
        return sum(
            len(one.anchor.prompt) + len(one.anchor.reply) + len(criterion.rubric)
            for one in self.rules
            for criterion in one.rule.criteria
        )


def anchored_rules(loaded: Loaded) -> HeldTo | None:
    """Return the anchors of a benchmark; None where it has none.

    Raises:
        UnreadableBenchmarkError: The file is broken, or an anchor names no rubric.
    """
    path = anchors_path(loaded.root)
    if path is None:
        return None
    anchors = load_anchors(path)
    jobs = {loaded.scenario_of(job.code): job for job in _jobs(loaded)}
    rules: list[AnchoredRule] = []
    problems: list[Problem] = []
    for anchor in anchors.entries:
        found = _rule(anchor, jobs)
        if isinstance(found, JudgeRule):
            rules.append(AnchoredRule(anchor, found))
        else:
            problems.append(Problem(path, anchor.line, f"{anchor.name}: {found}", _WHICH))
    if problems:
        raise UnreadableBenchmarkError(tuple(problems))
    return HeldTo(path, tuple(rules), anchors.allowed)


def reply_of(anchor: Anchor) -> Reply:
    """Return the reply of an anchor, as if a model had given it."""
    return Reply(anchor.reply, None, "stop", Usage(), 0.0, None, f"anchor {anchor.name}")


def _jobs(loaded: Loaded) -> Iterator[CaseJob]:
    for file in loaded.files:
        yield from loaded.jobs(file, "", 1)


def _rule(anchor: Anchor, jobs: dict[str, CaseJob]) -> JudgeRule | str:
    """Return what an anchor is judged by, or what is wrong with it."""
    if anchor.rubric:
        return JudgeRule((Criterion("", anchor.rubric, ("PASS", "FAIL"), ("PASS",)),))
    name = anchor.scenario
    if not name:
        judged = [scenario for scenario, job in jobs.items() if job.judge_calls]
        if len(judged) != 1:
            return f"whose rubric is meant? {len(judged) or 'no'} scenarios here are judged by a model"
        name = judged[0]
    if name not in jobs:
        return f"there is no scenario {name!r}"
    try:
        rule = jobs[name].marked_by(reply_of(anchor))
    except HelmbenchError as error:
        return f"{name} cannot be read: {str(error).splitlines()[0]}"
    if rule is None:
        return f"no model judges this reply to {name}: rules do"
    return _narrowed(rule, anchor.criterion)


def _narrowed(rule: JudgeRule, criterion: str) -> JudgeRule | str:
    """Return a rule with one of its criteria; the polarity is that of the words, whatever the severity."""
    chosen: Iterable[Criterion] = [one for one in rule.criteria if one.name == criterion or not criterion]
    if not chosen:
        return (
            f"there is no criterion {criterion!r} among {', '.join(one.name or '-' for one in rule.criteria)}"
        )
    return replace(rule, criteria=tuple(chosen), by_severity=False)
