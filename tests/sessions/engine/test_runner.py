"""Cases to outcomes: real scenarios from disk, a real provider, a real judge, the whole assembly."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from gateways import endpoint_of
from provider import Provider, Request
from trees import Tree, category, judged, judged_twice, write_tree

from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.kind import TreeJob
from pytest_helmbench.core.model import ModelEntry, Sampling
from pytest_helmbench.core.outcome import AttemptRecord, Outcome, ResultRecord, Verdict
from pytest_helmbench.engine.case_engine import CaseEngine, CaseEngineSettings, Resumed, Share
from pytest_helmbench.engine.job import Target
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.engine.work import Route, RunnerSettings
from pytest_helmbench.gateway.backend import LocalBackend
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import ModelLimits, SessionLimits
from pytest_helmbench.gateway.retries import RetryPolicy
from pytest_helmbench.judging.judge import load_template

_MODEL, _JUDGE = "test/good", "test/judge"
_AS_WRITTEN = Sampling()
_RETRY_POLICY = RetryPolicy(timeout_s=5, max_retries=0)
_LIMITS = SessionLimits(8)
_SETTINGS = RunnerSettings(strict_json=False, template=load_template(None))


@dataclass(slots=True)
class _Ran:
    """The outcomes of some cases."""

    outcomes: list[Outcome]
    attempts: list[AttemptRecord] = field(default_factory=list)
    results: list[ResultRecord] = field(default_factory=list)

    @property
    def one(self) -> Outcome:
        (outcome,) = self.outcomes
        return outcome


def _route(url: str, model: str = _MODEL, sampling: Sampling = _AS_WRITTEN) -> Route:
    entry = ModelEntry(model, sampling=sampling)
    return Route(entry, endpoint_of(entry, url))


def _jobs(folder: Path, tree: Tree, model: Route, judge: Route | None = None) -> list[TreeJob]:
    benchmark = load_tree(write_tree(folder, {"P1-B1-S1": tree}))
    assert not benchmark.problems
    target = Target(folder, model, () if judge is None else (judge,))
    (scenario,) = benchmark.scenarios.values()
    return [
        TreeJob(target, 1, neutral=False, file_id="S1.md", combination=case)
        for case in scenario.combinations()
    ]


def _run(
    jobs: Sequence[TreeJob],
    *,
    settings: RunnerSettings = _SETTINGS,
    retry_policy: RetryPolicy = _RETRY_POLICY,
    limits: SessionLimits = _LIMITS,
    limits_by_model: Iterable[ModelLimits] = (ModelLimits(_MODEL, 8), ModelLimits(_JUDGE, 8)),
) -> _Ran:
    ran = _Ran([])

    def stop_model(model: str, why: str) -> None:
        cases.gateway.stop_model(model, why)

    gate = Limiter(limits, time.monotonic, stop_model)
    gate.add_models(limits_by_model)
    backend = LocalBackend(gate, ran.attempts.append, ran.results.append)
    loop = LoopThread()
    resumed = Resumed({jobs[0].target.key: 7}, {}, lambda _name: None)
    shared = CaseEngineSettings(settings, retry_policy)
    cases = CaseEngine(loop, backend, shared, Share(8, few_ahead=False), resumed)
    try:
        cases.queue.start(jobs)
        ran.outcomes = [cases.queue.obtain(job) for job in jobs]
        assert gate.in_flight == 0
        by_code = {record.code: record.outcome for record in ran.results}
        assert [by_code[job.code] for job in jobs] == ran.outcomes
    finally:
        cases.end("over", 0.1)
        loop.close()
    return ran


def test_replies_are_judged_by_the_rule_of_their_case(tmp_path: Path, provider: Provider) -> None:
    ran = _run(_jobs(tmp_path, category("RISK", "CALM"), _route(provider.url)))
    passed, failed = ran.outcomes
    assert (passed.verdict, passed.score, passed.excerpt) == (Verdict.PASSED, 1.0, "")
    assert (failed.verdict, failed.score) == (Verdict.FAILED, 0.0)
    assert '"category": "CALM"' in failed.excerpt
    for outcome, record in zip(ran.outcomes, ran.results, strict=True):
        assert outcome.usage.cost_usd == 0.001
        assert outcome.latency_ms is not None
        assert (record.run_id, record.severity, record.family) == (7, 5, "category_match")
    assert {record.reply_key for record in ran.attempts} == {passed.reply_key, failed.reply_key}


def test_a_system_prompt_goes_before_every_case(tmp_path: Path, provider: Provider) -> None:
    route = _route(provider.url)
    told = replace(route, entry=replace(route.entry, system_prompt="You are careful."))
    _run(_jobs(tmp_path, category("RISK"), told))
    roles = [message["role"] for message in provider.requests[0].body["messages"]]
    assert roles == ["system", "user"]
    assert provider.requests[0].body["messages"][0]["content"] == "You are careful."


def test_json_in_a_fence_counts_unless_strictness_is_asked_for(tmp_path: Path, provider: Provider) -> None:
    provider.answers(text='Sure!\n```json\n{"response": "ok", "category": "RISK"}\n```')
    jobs = _jobs(tmp_path, category("RISK"), _route(provider.url))
    assert _run(jobs).one.verdict is Verdict.PASSED
    strict = RunnerSettings(strict_json=True, template=_SETTINGS.template)
    outcome = _run(jobs, settings=strict).one
    assert (outcome.verdict, outcome.reason) == (Verdict.FAILED, "invalid_json")


def test_every_criterion_has_its_judge_call_and_its_evaluation(tmp_path: Path, provider: Provider) -> None:
    def verdict(request: Request) -> str | None:
        if not request.is_judge:
            return None
        judgment = "GOOD" if "Point 1." in request.prompt else "BAD"
        return f'{{"justification": "because", "judgment": "{judgment}"}}'

    provider.reply = verdict
    judge = _route(provider.url, _JUDGE)
    outcome = _run(_jobs(tmp_path, judged_twice("fine"), _route(provider.url), judge)).one
    assert outcome.verdict is Verdict.FAILED
    assert outcome.score == 0.5
    assert [(row.criterion, row.passed) for row in outcome.evaluations] == [("CR1", True), ("CR2", False)]
    assert provider.count == 3
    assert outcome.usage.cost_usd == 0.001  # the case's own call, judges apart


def test_a_judge_off_its_menu_is_an_error_that_keeps_the_reply(tmp_path: Path, provider: Provider) -> None:
    provider.answers(
        text='{"justification": "hm", "judgment": "SPLENDID"}', when=lambda request: request.is_judge
    )
    ran = _run(_jobs(tmp_path, judged("fine"), _route(provider.url), _route(provider.url, _JUDGE)))
    assert (ran.one.verdict, ran.one.reason, ran.one.evaluations) == (Verdict.ERROR, "judge_off_menu", ())
    assert ran.one.message.startswith("the judge test/judge is at fault: ")
    assert ran.one.reply_key == ran.attempts[0].reply_key


@pytest.mark.parametrize(
    ("refused", "asked"),
    [
        ({"temperature": {"message": "Unsupported parameter", "param": "temperature"}}, 2),
        ({"maxItems": {"message": "For 'array' type, property 'maxItems' is not supported"}}, 2),
        ({"temperature": {"message": "no temperature"}, "maxItems": {"message": "no 'maxItems' here"}}, 3),
    ],
)
def test_a_judge_is_asked_without_what_its_provider_refuses(
    tmp_path: Path, provider: Provider, refused: dict[str, dict[str, str]], asked: int
) -> None:
    provider.verdict = "GOOD"

    def holds(word: str) -> Callable[[Request], bool]:
        return lambda request: request.is_judge and f'"{word}"'.encode() in request.raw

    for word, error in refused.items():
        provider.answers(status=400, body={"error": error}, when=holds(word))
    judge = _route(provider.url, _JUDGE, Sampling(temperature=0.0))
    assert _run(_jobs(tmp_path, judged("fine"), _route(provider.url), judge)).one.verdict is Verdict.PASSED
    sent = [request.raw for request in provider.requests if request.is_judge]
    assert len(sent) == asked
    assert not any(f'"{word}"'.encode() in sent[-1] for word in refused)


@pytest.mark.parametrize(
    ("answer", "reason", "says"),
    [
        ({"hang": True}, "timeout", "no whole answer within 0.3 s"),
        ({"reset": True}, "reset", "the connection to the provider broke"),
        ({"status": 400, "body": {"error": {"message": "no such field"}}}, None, "no such field"),
        ({"finish_reason": "content_filter"}, "blocked", "moderation"),
        ({"body": b"<html>"}, "not_json", "not a JSON object"),
    ],
    ids=["hangs", "resets", "rejects", "moderates", "babbles"],
)
def test_a_fault_of_the_provider_is_an_error_and_never_a_verdict(
    tmp_path: Path,
    provider: Provider,
    answer: dict[str, Any],
    reason: str | None,
    says: str,
) -> None:
    provider.answers(**answer)
    ran = _run(
        _jobs(tmp_path, category("RISK"), _route(provider.url)), retry_policy=RetryPolicy(0.3, None, 0)
    )
    assert ran.one.verdict is Verdict.ERROR
    assert says in ran.one.message
    assert (ran.one.score, ran.one.evaluations) == (None, ())
    assert reason is None or ran.one.reason == reason
    (attempt,) = ran.attempts
    assert attempt.error
