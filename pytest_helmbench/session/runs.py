"""The runs of one session: planned, opened, tallied, closed. Lives in the process that owns the database."""

from __future__ import annotations

import hashlib
import uuid
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pytest_helmbench.benchmarks.kind import Loaded
from pytest_helmbench.core.model import Sampling
from pytest_helmbench.core.outcome import FORM_REASONS, AttemptRecord, Parse, ResultRecord, Verdict
from pytest_helmbench.core.row_outline import RowOutline
from pytest_helmbench.engine.job import CaseJob, Target
from pytest_helmbench.gateway.attempt import utc_now
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.scoring.run_score import RunScore
from pytest_helmbench.session.resume import Continued, Resumption, find_resumption
from pytest_helmbench.session.settings import Settings
from pytest_helmbench.session.stored_scores import run_totals, score_of
from pytest_helmbench.store.plans import load_facts
from pytest_helmbench.store.runs import RunRecord
from pytest_helmbench.store.writer import Store

__all__ = ["Plan", "PlannedRun", "RunBook", "Tally", "plan_jobs"]

_CHARACTERS_PER_TOKEN = 4
_JUDGE_WORDING_CHARACTERS = 1_500  # the built-in template and a short rubric


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """What one run will ask. Plain data: it travels between processes.

    Args:
        benchmark: Root folder.
        model: Model id.
        judge: Judge's id; empty for none.
        usable: Whether the model can be called.
        why_not: For people, when it cannot.
        variable: The environment variable that would help.
        tests: Items.
        evaluations: Evaluation rows.
        judge_calls: Calls to the judge.
        unasked: Calls, judges too, that are not made because the judge cannot be called.
        prompt_tokens: Estimate, of the cases' own prompts.
        judge_prompt_tokens: Estimate.
        max_tokens: Bound on a completion; None when none is sent.
        packed_codes: The planned case codes, one per line, compressed.
        open_ended: Some of its cases may ask more than once: packs and agents decide that themselves.
    """

    benchmark: str
    model: str
    judge: str
    usable: bool
    why_not: str
    variable: str
    tests: int
    evaluations: int
    judge_calls: int
    unasked: int
    prompt_tokens: int
    judge_prompt_tokens: int
    max_tokens: int | None
    packed_codes: bytes
    open_ended: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """See `Target.key`."""
        return self.benchmark, self.model

    @property
    def codes(self) -> tuple[str, ...]:
        """The planned cases."""
        return tuple(filter(None, zlib.decompress(self.packed_codes).decode().split("\n")))

    def narrowed(self, codes: Sequence[str], loaded: Loaded) -> PlannedRun:
        """Return the run with only these of its cases; tokens by their share."""
        share = len(codes) / max(1, len(self.codes))
        repeat = self.tests // max(1, len(self.codes))
        judge_calls = sum(loaded.judge_calls(loaded.scenario_of(code)) for code in codes)
        return replace(
            self,
            tests=len(codes) * repeat,
            judge_calls=repeat * judge_calls,
            unasked=round(self.unasked * share),
            prompt_tokens=round(self.prompt_tokens * share),
            judge_prompt_tokens=round(self.judge_prompt_tokens * share),
            packed_codes=_packed(codes),
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What the session will ask.

    Args:
        runs: One per benchmark × model, in order of their first item.
        dry: Nothing will be called.
        scope: `whole`, `selected` or `by_outcome`.
        python_tests: The hand-written tests among the cases; None for none.
    """

    runs: tuple[PlannedRun, ...]
    dry: bool
    scope: str
    python_tests: RowOutline | None = None

    @property
    def tests(self) -> int:
        """Items in all."""
        return sum(run.tests for run in self.runs)

    @property
    def calls(self) -> int:
        """Calls that will be made if nothing is retried; see `open_ended`."""
        return sum(run.tests + run.judge_calls - run.unasked for run in self.runs if run.usable)

    @property
    def open_ended(self) -> bool:
        """Whether it may be more calls: nobody knows what packs and agents will ask."""
        return any(run.open_ended and run.usable for run in self.runs)


def plan_jobs(jobs: Iterable[CaseJob], *, dry_run: bool, scope: str) -> Plan:
    """Count what the selected jobs will ask; nothing is composed.

    Args:
        jobs: Selected, in run order.
        dry_run: The user asked for it.
        scope: Of the whole session.
    """
    counts: dict[Target, Counter[str]] = {}
    codes: dict[Target, dict[str, None]] = {}
    for job in jobs:
        count = counts.setdefault(job.target, Counter())
        codes.setdefault(job.target, {})[job.code] = None
        characters = job.prompt_characters()
        judge_calls = job.judge_calls
        judge = job.target.judge
        count["tests"] += 1
        count["prompt"] += characters // _CHARACTERS_PER_TOKEN + 1
        count["evaluations"] += judge_calls or 1
        count["open_ended"] += not job.is_one_question
        count["judge"] += judge_calls
        if judge_calls and (judge is None or not judge.usable):
            count["unasked"] += 1 + judge_calls
        count["judge_prompt"] += (
            judge_calls * (characters + _JUDGE_WORDING_CHARACTERS) // _CHARACTERS_PER_TOKEN
        )
    runs = tuple(_planned(target, count, codes[target]) for target, count in counts.items())
    return Plan(runs, dry_run or not any(run.usable for run in runs), scope)


def _planned(target: Target, count: Counter[str], codes: Iterable[str]) -> PlannedRun:
    endpoint = target.model.endpoint
    usable = isinstance(endpoint, Endpoint)
    return PlannedRun(
        benchmark=target.key[0],
        model=target.key[1],
        judge=target.judge.entry.id if target.judge else "",
        usable=usable,
        why_not="" if isinstance(endpoint, Endpoint) else endpoint.reason,
        variable="" if isinstance(endpoint, Endpoint) else endpoint.variable,
        tests=count["tests"],
        evaluations=count["evaluations"],
        judge_calls=count["judge"],
        unasked=count["unasked"],
        prompt_tokens=count["prompt"],
        judge_prompt_tokens=count["judge_prompt"],
        max_tokens=target.model.entry.sampling.max_tokens,
        packed_codes=_packed(codes),
        open_ended=count["open_ended"] > 0,
    )


def _packed(codes: Iterable[str]) -> bytes:
    return zlib.compress("\n".join(codes).encode(), 1)


@dataclass(slots=True)
class Tally:
    """What has come of one run so far.

    Args:
        verdicts: By verdict.
        reasons: Errors and skips by reason.
        form_faults: Judged cases that fell for the form of their reply.
        calls: Requests sent, by purpose.
        replays: Answers taken from the record.
        known_cost_usd: What is known of the cost.
        unknown_costs: Replies whose cost nobody knows.
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    parses: Counter[Parse] = field(default_factory=Counter)
    form_faults: int = 0
    neutral_wrong: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    replays: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    known_cost_usd: float = 0.0
    unknown_costs: int = 0

    @property
    def judged(self) -> int:
        """Cases that a rule has spoken on."""
        return self.verdicts[Verdict.PASSED] + self.verdicts[Verdict.FAILED]

    def add_attempt(self, record: AttemptRecord) -> None:
        """Count a request; an answer from the record is counted apart and cost nothing."""
        if record.from_cache:
            self.replays += 1
            return
        self.calls[record.purpose] += 1
        usage = record.usage
        self.prompt_tokens += usage.prompt_tokens or 0
        self.completion_tokens += usage.completion_tokens or 0
        if usage.cost_usd is not None:
            self.known_cost_usd += usage.cost_usd
        elif record.reply_key is not None:
            self.unknown_costs += 1

    def add_result(self, record: ResultRecord) -> None:
        """Count an outcome."""
        outcome = record.outcome
        self.verdicts[outcome.verdict] += 1
        if outcome.judged:
            self.form_faults += outcome.reason in FORM_REASONS
        elif outcome.reason is not None:
            self.reasons[outcome.reason] += 1
        self.parses.update(
            evaluation.parse for evaluation in outcome.evaluations if evaluation.parse is not None
        )
        self.neutral_wrong += record.neutral and outcome.verdict is Verdict.FAILED


class RunBook:
    """Opens the runs of a session, tallies what comes, closes them. `record_*` are called on one thread.

    Args:
        settings: Of the session.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store: Store | None = None
        self.plan: Plan | None = None
        self.targets: dict[tuple[str, str], Target] = {}
        self._run_ids: dict[tuple[str, str], int] = {}
        self.tallies: dict[int, Tally] = {}
        self.scores: dict[int, RunScore] = {}
        self._unjudged: dict[tuple[int, str, int], tuple[Verdict, str]] = {}
        self._loaded: dict[str, Loaded] = {}
        self.resumption: Resumption | None = None

    @property
    def store(self) -> Store | None:
        """The database; None in a dry run and before `open`."""
        return self._store

    def prepare(self, plan: Plan, loaded: Iterable[Loaded]) -> None:
        """Open the database and find what goes on. A second time does nothing.

        Raises:
            StoreError: The database cannot be used.
            ResumeError: The session cannot go on as it was started now.
        """
        if self._store is not None:
            return
        self.know(plan, loaded)
        self._loaded = {str(item.root): item for item in loaded}
        self._store = Store.open(self._settings.db)
        # A session may follow its killed predecessor at once: the process is looked for, however short its silence.
        self._store.mark_dead_runs_interrupted(silent_s=0.0)
        if self._settings.resume:
            planned = [
                Continued(
                    run.benchmark, self._loaded[run.benchmark].outline.name, run.model, self._settings_of(run)
                )
                for run in plan.runs
            ]
            self.resumption = find_resumption(self._settings.db, self._settings.resume_run, planned)

    def left(self, plan: Plan) -> Plan:
        """Return what is left to ask of a plan, as far as the record says: what is judged needs no call."""
        if self.resumption is None:
            return plan
        judged = Counter((run_id, code) for run_id, code, _ in self.resumption.judged)
        runs = []
        for run in plan.runs:
            run_id = self.resumption.runs.get(run.key)
            codes = [code for code in run.codes if judged[run_id or 0, code] < self._settings.repeat]
            runs.append(run.narrowed(codes, self._loaded[run.benchmark]))
        return replace(plan, runs=tuple(runs))

    def open(self, plan: Plan, loaded: Iterable[Loaded]) -> None:
        """Open one run per planned run, one per benchmark and model.

        Raises:
            StoreError: The database cannot be used.
            ResumeError: The session cannot go on as it was started now.
        """
        self.prepare(plan, loaded)
        store = self._store
        if store is None:
            return
        runs = self.resumption.runs if self.resumption is not None else {}
        session_id = self.resumption.session_id if self.resumption is not None else str(uuid.uuid4())
        records = [
            RunRecord(
                benchmark=self._loaded[run.benchmark].outline,
                model=run.model,
                provider=_provider(self.targets[run.key]),
                base_url=_base_url(self.targets[run.key]),
                scope=plan.scope,
                total_tests=run.tests,
                total_evaluations=run.evaluations,
                settings=self._settings_of(run),
                plugin_version=version("pytest-helmbench"),
                started_at=utc_now(),
                codes=run.codes,
                continues=runs.get(run.key),
            )
            for run in plan.runs
        ]
        for run, run_id in zip(plan.runs, store.open_runs(session_id, records), strict=True):
            self._run_ids[run.key] = run_id
            self.tallies[run_id] = Tally()

    def know(self, plan: Plan, loaded: Iterable[Loaded]) -> None:
        """Take note of a plan without opening anything (a dry run)."""
        self.plan = plan
        self.targets = {target.key: target for item in loaded for target in item.targets}

    def name_of(self, run: PlannedRun) -> str:
        """Return the name of a run's benchmark."""
        loaded = self._loaded.get(run.benchmark)
        return Path(run.benchmark).name if loaded is None else loaded.outline.name

    def run_ids(self) -> Mapping[tuple[str, str], int]:
        """Return `evaluation_runs.id` by benchmark and model."""
        return self._run_ids

    def record_attempt(self, record: AttemptRecord) -> None:
        """Tally and store an attempt."""
        self.tallies[record.run_id].add_attempt(record)
        if self._store is not None:
            self._store.record_attempt(record)

    def record_result(self, record: ResultRecord) -> None:
        """Tally and store a result; the first judged verdict of a case stands."""
        key = (record.run_id, record.code, record.repetition)
        tally = self.tallies[record.run_id]
        outcome = record.outcome
        if key in self._unjudged:
            verdict, reason = self._unjudged.pop(key)
            tally.verdicts[verdict] -= 1
            tally.reasons[reason] -= 1
        if not outcome.judged:
            self._unjudged[key] = (outcome.verdict, outcome.reason or "")
        tally.add_result(record)
        if self._store is not None:
            self._store.record_result(record)

    def close(self, *, interrupted: bool) -> None:
        """Close every run and the database."""
        if self._store is None:
            return
        self._store.flush()
        for run_id in self.tallies:
            facts = load_facts(self._settings.db, run_id) if self._store.fault is None else None
            complete = facts is not None and facts.complete and self._has_seen_all(run_id)
            status = "complete" if complete else "interrupted" if interrupted else "partial"
            score = score_of(facts) if facts else None
            if score is not None:
                self.scores[run_id] = score
            self._store.close_run(run_id, run_totals(status, utc_now(), score))
        self._store.close()

    def _has_seen_all(self, run_id: int) -> bool:
        """Return whether no verdict on record is left that this session should have looked at, and has not."""
        if self.resumption is None or self.plan is None:
            return True
        planned = sum(run.tests for run in self.plan.runs if self._run_ids.get(run.key) == run_id)
        return self.tallies[run_id].judged >= planned

    def _settings_of(self, run: PlannedRun) -> dict[str, Any]:
        target, loaded = self.targets[run.key], self._loaded[run.benchmark]
        record = self._settings.as_record()
        record["sampling"] = _given(target.model.entry.sampling)
        record["judge_sampling"] = _given(target.judge.entry.sampling) if target.judge else None
        record["model"] = target.model.entry.id
        record["benchmark_path"] = str(loaded.root)
        scoring = loaded.scoring
        record["scoring"] = None if scoring is None else asdict(scoring)
        record["judge"] = target.judge.entry.id if target.judge else None
        prompt = self._settings.system_prompt
        record["system_prompt"] = None if prompt is None else hashlib.sha256(prompt.encode()).hexdigest()
        return record


def _given(sampling: Sampling) -> dict[str, Any]:
    return {name: value for name in sampling.__slots__ if (value := getattr(sampling, name)) is not None}


def _provider(target: Target) -> str:
    endpoint = target.model.endpoint
    return endpoint.provider if isinstance(endpoint, Endpoint) else ""


def _base_url(target: Target) -> str | None:
    endpoint = target.model.endpoint
    return (endpoint.base_url or None) if isinstance(endpoint, Endpoint) else None
