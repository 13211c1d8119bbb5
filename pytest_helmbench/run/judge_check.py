"""`helmbench judge check`: marking models asked about the anchors of a benchmark, whose right verdicts are known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.benchmarks.kind import Loaded
from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import AttemptRecord, Reply, Usage
from pytest_helmbench.core.problem import HelmbenchError, Problem, UnreadableBenchmarkError
from pytest_helmbench.core.reply_text import split_reply
from pytest_helmbench.engine.job import CaseJob
from pytest_helmbench.engine.questions import Judge, Judges, judged_evaluations
from pytest_helmbench.engine.work import CaseContext, Route, RunnerSettings, UnjudgedError, usable_endpoint
from pytest_helmbench.files.anchors_file import Anchor, anchors_path, load_anchors
from pytest_helmbench.gateway.backend import LocalBackend
from pytest_helmbench.gateway.call import CallWatch, CaseClock, Origin
from pytest_helmbench.gateway.gateway import Gateway
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import RefusedError, SessionLimits
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.retries import RetryPolicy
from pytest_helmbench.judging.judge import case_passed, load_template
from pytest_helmbench.judging.rubric import Criterion, JudgeRule
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.run.library import Library
from pytest_helmbench.run.targets import model_limits, session_concurrency

_WHICH = "'scenario: P1-B1-S1' (a row of a pack: its id) says whose, 'rubric' gives words of its own"


@dataclass(frozen=True, slots=True)
class AnchorVerdict:
    """A judge's verdict on an anchor: None where no verdict came; then the message says why."""

    anchor: str
    expected: bool
    passed: bool | None
    message: str = ""


@dataclass(frozen=True, slots=True)
class JudgeHeld:
    """One judge with its verdicts on the anchors of a benchmark, in file order, and how many may be wrong."""

    judge: str
    verdicts: tuple[AnchorVerdict, ...]
    allowed: int

    @property
    def right(self) -> int:
        """How many anchors it has judged rightly."""
        return sum(one.passed is one.expected for one in self.verdicts)

    @property
    def wrong(self) -> tuple[AnchorVerdict, ...]:
        """The anchors that it has judged wrongly."""
        return tuple(one for one in self.verdicts if one.passed is (not one.expected))

    @property
    def unanswered(self) -> tuple[AnchorVerdict, ...]:
        """The anchors that it has not judged."""
        return tuple(one for one in self.verdicts if one.passed is None)

    @property
    def holds(self) -> bool:
        """Whether it may judge."""
        return not self.unanswered and len(self.wrong) <= self.allowed

    @property
    def sentence(self) -> str:
        """How it stood to the anchors, for people."""
        text = f"the judge {self.judge} was right on {self.right} of {len(self.verdicts)} anchors"
        if self.wrong:
            said = ", ".join(f"{one.anchor} ({'pass' if one.passed else 'fail'})" for one in self.wrong)
            text += f"; wrong on {said}, {self.allowed} allowed"
        if self.unanswered:
            why = self.unanswered[0].message.partition("\n")[0]
            text += f"; no verdict on {len(self.unanswered)}{f': {why}' if why else ''}"
        return text


@dataclass(frozen=True, slots=True)
class AnchorTrial:
    """How the judges of the benchmark at a folder stood to its anchors; the cost is None where one is unknown."""

    root: Path
    judges: tuple[JudgeHeld, ...]
    calls: int
    cost_usd: float | None


def anchored_rules(loaded: Loaded) -> tuple[tuple[Anchor, JudgeRule], ...]:
    """Return the anchors of a benchmark with what a judge is asked about each; empty where it has none.

    Raises:
        UnreadableBenchmarkError: The file is broken, or an anchor names no rubric.
    """
    path = anchors_path(loaded.root)
    if path is None:
        return ()
    jobs = {loaded.scenario_of(job.code): job for file in loaded.files for job in loaded.jobs(file, "", 1)}
    found = [(anchor, _rule(anchor, jobs)) for anchor in load_anchors(path).entries]
    if problems := tuple(
        Problem(path, anchor.line, f"{anchor.name}: {rule}", _WHICH)
        for anchor, rule in found
        if isinstance(rule, str)
    ):
        raise UnreadableBenchmarkError(problems)
    return tuple((anchor, rule) for anchor, rule in found if isinstance(rule, JudgeRule))


def _rule(anchor: Anchor, jobs: Mapping[str, CaseJob]) -> JudgeRule | str:
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
        rule = jobs[name].marked_by(_reply(anchor))
    except HelmbenchError as error:
        return f"{name} cannot be read: {str(error).splitlines()[0]}"
    if rule is None:
        return f"no model judges this reply to {name}: rules do"
    chosen = tuple(one for one in rule.criteria if one.name == anchor.criterion or not anchor.criterion)
    if not chosen:
        names = ", ".join(one.name or "-" for one in rule.criteria)
        return f"there is no criterion {anchor.criterion!r} among {names}"
    # The polarity is that of the words, whatever the severity.
    return replace(rule, criteria=chosen, by_severity=False)


def _reply(anchor: Anchor) -> Reply:
    return Reply(split_reply(anchor.reply).answer, None, "stop", Usage(), 0.0, None, f"anchor {anchor.name}")


def try_anchors(root: Path, settings: Settings, environ: Mapping[str, str]) -> AnchorTrial:
    """Hold the judges of a benchmark to its anchors.

    Raises:
        HelmbenchError: It has no anchors or no judge, or cannot be read.
    """
    library = Library(settings, environ, lambda _sentence: None)
    sent: list[AttemptRecord] = []
    try:
        loaded = library.load(root)
        path, rules = anchors_path(root), anchored_rules(loaded)
        if path is None:
            raise HelmbenchError(
                f"{root} has no anchors.yml\n  hint: docs/benchmarks.md says what stands in it"
            )
        routes = loaded.targets[0].judges
        stand_in = all(isinstance(one.endpoint, Endpoint) and one.endpoint.server.embedded for one in routes)
        if stand_in and not settings.marking_models:
            raise HelmbenchError(
                f"{root}: no judge is named\n  hint: give --marking-model ID, or marking_model in models.yml"
            )
        limits = SessionLimits(
            concurrency=session_concurrency(settings),
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
            max_cost_usd=settings.max_cost_usd,
        )
        limiter = Limiter(limits, time.monotonic)
        limiter.add_models(model_limits(loaded.targets, settings).values())
        backend = LocalBackend(limiter, sent.append, lambda _record: None, None, None)
        verdicts = library.loop.run(_verdicts(routes, rules, backend, settings))
    finally:
        library.end()
    allowed = load_anchors(path).allowed
    judges = tuple(
        JudgeHeld(route.entry.id, said, allowed) for route, said in zip(routes, verdicts, strict=True)
    )
    costs = [one.usage.cost_usd for one in sent if one.reply_key is not None or one.unanswered]
    known = [cost for cost in costs if cost is not None]
    return AnchorTrial(root, judges, len(sent), sum(known) if len(known) == len(costs) else None)


async def _verdicts(
    routes: Iterable[Route],
    rules: Iterable[tuple[Anchor, JudgeRule]],
    backend: LocalBackend,
    settings: Settings,
) -> list[tuple[AnchorVerdict, ...]]:
    """Return what each judge made of each anchor, judge by judge."""
    retry_policy = RetryPolicy(settings.timeout_s, settings.case_timeout_s, settings.max_retries)
    gateway = Gateway(backend, None, retry_policy, "anchors:")
    runner = RunnerSettings(settings.strict_json, load_template(settings.judge_template))
    try:
        return [
            tuple(await asyncio.gather(*(_verdict(*one, route, gateway, runner) for one in rules)))
            for route in routes
        ]
    finally:
        await gateway.close()


async def _verdict(
    anchor: Anchor, rule: JudgeRule, route: Route, gateway: Gateway, settings: RunnerSettings
) -> AnchorVerdict:
    case = Case(f"anchor:{anchor.name}", (Message("user", anchor.prompt),), None, rule)
    try:
        endpoint = usable_endpoint(route, "no_judge")
        context = CaseContext(
            gateway=gateway,
            origin=Origin(0, case.code, 1),
            entry=route.entry,
            endpoint=endpoint,
            marking_models=(route,),
            clock=CaseClock(gateway.retry_policy),
            watch=CallWatch(),
            settings=settings,
            judges=Judges(gateway),
        )
        evaluations = await judged_evaluations(case, _reply(anchor), (Judge(route.entry, endpoint),), context)
    except (UnjudgedError, RefusedError) as error:
        return AnchorVerdict(anchor.name, anchor.passes, None, str(error))
    words = " ".join(part.justification for part in evaluations if part.justification)
    return AnchorVerdict(anchor.name, anchor.passes, case_passed(evaluations), words)
