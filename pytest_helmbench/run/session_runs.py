"""The runs of one session: opened, counted, scored, closed. Lives in the process that owns the database."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_helmbench.benchmarks.kind import Loaded
from pytest_helmbench.core.ids import new_id
from pytest_helmbench.core.model import Sampling
from pytest_helmbench.core.outcome import AttemptRecord, CaseKey, Outcome, ResultRecord, Verdict, utc_now
from pytest_helmbench.core.outline import RowOutline
from pytest_helmbench.core.sample import Sample
from pytest_helmbench.core.scrub import HiddenValues
from pytest_helmbench.engine.job import Target
from pytest_helmbench.engine.work import Route
from pytest_helmbench.gateway.backend import CacheMode
from pytest_helmbench.gateway.providers.endpoints import Endpoint, replay_endpoint
from pytest_helmbench.options.recorded_settings import recorded_settings
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.results.losses import Losses
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.results.stored_scores import ScoredRun, run_totals, scored_run
from pytest_helmbench.run.library import defined_cases
from pytest_helmbench.run.plan import Plan, PlannedRun
from pytest_helmbench.run.selecting import sample_of
from pytest_helmbench.run.targets import source_version
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.read.benchmark_places import (
    BenchmarkKey,
    LostCases,
    lost_cases,
    names_of,
    place_of,
)
from pytest_helmbench.store.read.runs import OWN_DATA
from pytest_helmbench.store.write.run_rows import RunRecord, ShardRecord
from pytest_helmbench.store.write.writer import Store

if TYPE_CHECKING:
    from pytest_helmbench.run.resume import Resumption


class SessionRuns:
    """Opens the runs of a session, tallies what comes, closes them. `record_*` are called on one thread.

    `hidden` is not stored, though the user may have typed it.
    """

    def __init__(self, settings: Settings, hidden: HiddenValues) -> None:
        self._settings = settings
        self._hidden = hidden
        self.session_id = ""
        self.all_complete = False
        self.store: Store | None = None
        """The database; None in a dry run and before `open`."""
        self.plan: Plan | None = None
        self.targets: dict[tuple[str, str], Target] = {}
        self.run_ids: dict[tuple[str, str], int] = {}
        """`evaluation_runs.id` by benchmark and model."""
        self.tallies: dict[int, RunCounts] = {}
        self.scored: dict[int, ScoredRun] = {}
        self._unjudged: dict[CaseKey, Outcome] = {}
        self._loaded: dict[str, Loaded] = {}
        self.resumption: Resumption | None = None
        self.span = CallSpan()

    @property
    def db(self) -> Path:
        """The results file; another one than the settings name when that was displaced."""
        return self._settings.db if self.store is None else self.store.path

    def prepare(self, plan: Plan, loaded: Iterable[Loaded]) -> None:
        """Open the database and find what goes on. A second time does nothing.

        Raises:
            StoreError: The database cannot be used.
            ResumeError: The session cannot go on as it was started now.
            RunHeldError: Another process goes on with it.
        """
        if self.store is not None:
            return
        self.know(plan, loaded)
        self.store = Store.open(self._settings.db)
        self.store.mark_dead_runs_interrupted()
        resume = self._settings.resume
        if resume is not None:
            # Taken before it is read: what another process adds meanwhile would be asked for again.
            taken = self.store.take_session(resume.run, take_over=self._settings.take_over)
            self.resumption = self.find_resumption(plan, taken[0] if taken else resume.run)

    def find_resumption(self, plan: Plan, run_id: int | None) -> Resumption | None:
        """Return what goes on under a plan that is known, see `resume.find_resumption`."""
        from pytest_helmbench.run.resume import Continued, find_resumption

        planned = [
            Continued(run.benchmark, self.benchmark_of(run), run.model, self._settings_of(run))
            for run in plan.runs
        ]
        return find_resumption(self._settings.db, run_id, planned)

    def left(self, plan: Plan) -> Plan:
        """Return what is left to ask of a plan, as far as the record says: what is judged needs no call."""
        if self.resumption is None:
            return plan
        judged = Counter((run_id, code) for run_id, code, _ in self.resumption.judged)
        runs = []
        for run in plan.runs:
            run_id = self.resumption.runs.get(run.key)
            codes = [code for code in run.codes if judged[run_id or 0, code] < self._settings.repeat]
            loaded = self._loaded[run.benchmark]
            verdicts = sum(loaded.judge_calls(loaded.scenario_of(code)) for code in codes)
            runs.append(run.narrowed(codes, verdicts))
        return replace(plan, runs=tuple(runs))

    def open(self, plan: Plan, loaded: Iterable[Loaded]) -> None:
        """Open one run per planned run, one per benchmark and model.

        Raises:
            StoreError: The database cannot be used.
            ResumeError: The session cannot go on as it was started now.
        """
        self.prepare(plan, loaded)
        store = self.store
        if store is None:
            return
        runs = self.resumption.runs if self.resumption is not None else {}
        self.session_id = self.resumption.session_id if self.resumption is not None else new_id()
        records = [
            RunRecord(
                benchmark=self._loaded[run.benchmark].outline,
                model=run.model,
                provider=endpoint.provider if isinstance(endpoint, Endpoint) else "",
                base_url=(endpoint.base_url or None) if isinstance(endpoint, Endpoint) else None,
                scope=plan.scope if plan.shard is None else "shard",
                total_tests=run.tests,
                total_evaluations=run.evaluations,
                settings=self._settings_of(run),
                plugin_version=version("pytest-helmbench"),
                started_at=utc_now(),
                codes=run.codes,
                defined=self._defined(run, plan),
                broken=run.broken,
                continues=runs.get(run.key),
                sample=self._sample(whole),
                shard=None
                if plan.shard is None
                else ShardRecord(plan.shard, plan.scope, whole.tests, whole.codes, whole.broken),
                place=self.benchmark_of(run).place,
            )
            for run, whole in zip(plan.runs, plan.whole or plan.runs, strict=True)
            for endpoint in (self.targets[run.key].model.endpoint,)
        ]
        for run, run_id in zip(plan.runs, store.open_runs(self.session_id, records), strict=True):
            self.run_ids[run.key] = run_id
            self.tallies[run_id] = RunCounts()

    def _sample(self, run: PlannedRun) -> Sample | None:
        found = sample_of(self._loaded[run.benchmark], self._settings)
        return None if found is None else found.narrowed(run.codes)

    def _defined(self, run: PlannedRun, plan: Plan) -> tuple[str, ...]:
        """Return the cases that the files define, broken ones too; none for tests that pytest alone knows."""
        loaded = self._loaded[run.benchmark]
        if not tuple(loaded.files):
            return ()
        is_whole = plan.scope == "whole" and plan.shard is None
        return defined_cases(loaded, run.codes if is_whole else None)

    def shrunk(self) -> Iterator[tuple[str, LostCases]]:
        """Yield the benchmarks that have fewer cases than when they were last run, by name."""
        seen = set()
        runs = self.plan.runs if self.plan is not None and self.resumption is None else ()
        names = names_of(map(self.benchmark_of, runs))
        for run in runs:
            run_id = self.run_ids.get(run.key)
            if run_id is None or run.benchmark in seen:
                continue
            seen.add(run.benchmark)
            found = lost_cases(self.db, run_id)
            if found is not None:
                yield names[self.benchmark_of(run)], found

    def know(self, plan: Plan, loaded: Iterable[Loaded]) -> None:
        """Take note of a plan without opening anything (a dry run)."""
        self._loaded = {str(item.root): item for item in loaded}
        self.plan = plan
        self.targets = {target.key: target for item in self._loaded.values() for target in item.targets}

    def name_of(self, run: PlannedRun) -> str:
        """Return the name of a run's benchmark."""
        loaded = self._loaded.get(run.benchmark)
        return Path(run.benchmark).name if loaded is None else loaded.outline.name

    def benchmark_of(self, run: PlannedRun) -> BenchmarkKey:
        """Return what names a run's benchmark in the results file."""
        outline = self._loaded[run.benchmark].outline
        return BenchmarkKey(outline.name, outline.kind, place_of(Path(run.benchmark), self.db))

    def record_attempt(self, record: AttemptRecord) -> None:
        """Tally and store an attempt."""
        self.tallies[record.run_id].add_attempt(record)
        self.span.add(record)
        if self.store is not None:
            body = self._hidden.without_in_json(record.request_body)
            is_stored_as_sent = body is record.request_body
            self.store.record_attempt(record if is_stored_as_sent else replace(record, request_body=body))

    def record_result(self, record: ResultRecord) -> None:
        """Tally and store a result; the first judged verdict of a case stands."""
        key = (record.run_id, record.code, record.repetition)
        tally = self.tallies[record.run_id]
        outcome = record.outcome
        if key in self._unjudged:
            tally.take_back(self._unjudged.pop(key))
        if not outcome.judged:
            said = outcome.message if outcome.verdict is Verdict.SKIPPED else ""
            self._unjudged[key] = Outcome(outcome.verdict, outcome.reason, said)
        tally.add_result(record)
        if self.store is not None:
            self.store.record_result(record)

    def close(self, *, interrupted: bool, tick: Callable[[], object] = lambda: None) -> None:
        """Close every run and the database, ticking twice a second while the disk takes time."""
        if self.store is None:
            return
        self.store.heartbeat()  # its writer looks whether the file still stands where it is read
        self.store.flush(tick)
        complete: list[bool] = []
        for run_id in self.tallies:
            scored = self._scored(self.store, run_id)
            complete.append(scored is not None and self._is_complete(run_id, scored))
            status = "complete" if complete[-1] else "interrupted" if interrupted else "partial"
            if scored is not None:
                self.scored[run_id] = scored
            self.store.close_run(run_id, run_totals(status, utc_now(), scored))
        self.all_complete = all(complete)
        self.store.close(tick)

    def losses(self, benchmark: str, model: str) -> Losses:
        """Return what a closed run has lost; nothing where it has no score."""
        scored = self.scored.get(self.run_ids.get((benchmark, model), 0))
        return Losses() if scored is None else scored.losses

    def _scored(self, store: Store, run_id: int) -> ScoredRun | None:
        """Return a run as it stands on record; what cannot be read is a fault like what cannot be written."""
        try:
            return scored_run(store.path, run_id) if store.fault is None else None
        except StoreError as error:
            store.fail(error)
            return None

    def _is_complete(self, run_id: int, scored: ScoredRun) -> bool:
        """Return whether all that was planned has been judged; a shard has some repetitions of a case alone.

        A session that goes on has to look at every verdict on record itself, too.
        """
        plan, facts, tally = self.plan, scored.facts, self.tallies[run_id]
        is_share = plan is not None and plan.shard is not None
        whole = not facts.broken if is_share else facts.complete
        if plan is None or not (is_share or self.resumption is not None):
            return whole
        planned = sum(run.tests for run in plan.runs if self.run_ids.get(run.key) == run_id)
        return whole and tally.judged >= planned - tally.no_cases

    def _settings_of(self, run: PlannedRun) -> dict[str, object]:
        target, loaded = self.targets[run.key], self._loaded[run.benchmark]
        entry, scoring = target.model.entry, loaded.scoring
        sampling = [_given(judge.entry.sampling) for judge in target.judges]
        routes = [_route(route) for route in (target.model, *target.judges)]
        is_own = isinstance(loaded.outline, RowOutline) and loaded.outline.is_own
        facts: dict[str, object] = {
            "sampling": _given(entry.sampling),
            "judge_sampling": sampling if len(sampling) > 1 else next(iter(sampling), None),
            "model": entry.id,
            "variant_of": entry.variant_of,
            "benchmark_path": str(loaded.root),
            **({OWN_DATA: True} if is_own else {}),
            "scoring": None if scoring is None else asdict(scoring),
            "judge": next(iter(target.judge_ids), None),
            "judges": list(target.judge_ids),
            "versions": {route["id"]: route.pop("version") for route in routes if route["version"]},
            "routes": [] if self._settings.cache_mode is CacheMode.ONLY else routes,  # none is taken
        }
        record = recorded_settings(self._settings, facts)
        prompt = entry.system_prompt
        record["system_prompt"] = None if prompt is None else hashlib.sha256(prompt.encode()).hexdigest()
        return {name: self._hidden.without(value) for name, value in record.items()}


def _route(route: Route) -> dict[str, str | bool | None]:
    """Return where a model is asked, with which key, and what its replies are those of, in JSON types."""
    entry, found = route.entry, route.endpoint
    endpoint = found if isinstance(found, Endpoint) else replay_endpoint(entry.model_id)
    return {
        "id": entry.model_id,
        "address": endpoint.base_url,
        "key_env": found.key_env if isinstance(found, Endpoint) else found.variable,
        "usable": endpoint is found,
        "version": entry.version or (source_version(entry.model_id) if entry.function is not None else None),
    }


def _given(sampling: Sampling) -> dict[str, object]:
    return {name: value for name in sampling.__slots__ if (value := getattr(sampling, name)) is not None}


class CallSpan:
    """From the first request of a session to its last reply; filled on the loop."""

    def __init__(self) -> None:
        self._first = ""
        self._last = ""

    def add(self, record: AttemptRecord) -> None:
        """Take note of a request; answers from the record took no time."""
        if not record.from_cache:
            self._first = min(self._first or record.started_at, record.started_at)
            self._last = max(self._last, record.received_at)

    @property
    def seconds(self) -> float | None:
        """None where nothing was sent."""
        if not self._first:
            return None
        return (datetime.fromisoformat(self._last) - datetime.fromisoformat(self._first)).total_seconds()
