"""Limiter, record and reply cache of a session, in the one process that owns them."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import (
    AttemptRecord,
    CaseKey,
    RecordedCase,
    RecordedReply,
    ResultRecord,
    Verdict,
)
from pytest_helmbench.engine.case_engine import Resumed
from pytest_helmbench.gateway.backend import CacheMode, LocalBackend, ReplyCache, ReplyQuery
from pytest_helmbench.gateway.batches import Batches, BatchRow
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import NotStoredError, SessionLimits
from pytest_helmbench.gateway.retries import RetryPolicy
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.results.gates import Gates
from pytest_helmbench.results.run_counts import RunCounts, recorded_counts
from pytest_helmbench.run.commits import Commits
from pytest_helmbench.run.cost_estimate import budget_of
from pytest_helmbench.run.library import Library
from pytest_helmbench.run.plan import Notes, Plan
from pytest_helmbench.run.session_runs import SessionRuns
from pytest_helmbench.run.targets import batched_models, model_limits, session_concurrency
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.read.costs import (
    calls_left_out,
    costs,
    has_unjudged_replies,
    session_cost,
)
from pytest_helmbench.store.read.reply_rows import RecordedRuns
from pytest_helmbench.store.read.results import recorded_outcomes
from pytest_helmbench.store.read.runs import open_batches, run_uuids
from pytest_helmbench.store.table_rows import as_json, from_row
from pytest_helmbench.store.write.writer import Store

if TYPE_CHECKING:
    from pytest_helmbench.results.baselines import BaselineAsked, Baselines
    from pytest_helmbench.results.comparing import RunComparison


NOTHING_UNFINISHED = "nothing was unfinished: this was a fresh run"

_NAMED = 20
_GONE_SHOWN = 10
_UNREACHABLE = "unreachable: "


class Coordinator:
    """Opens the runs of a session, lets its processes send, puts on record what comes, and closes everything.

    Args:
        settings: Of the session.
        library: Its benchmarks.
        gates: What its scores must reach.
        notes: Of the summary.
    """

    def __init__(self, settings: Settings, library: Library, gates: Gates, notes: Notes) -> None:
        self.settings = settings
        self.library = library
        self.gates = gates
        self.runs = SessionRuns(settings, library.hidden)
        self.baselines = None if gates.baseline is None else self._baselines(gates.baseline)
        self.comparisons: Mapping[int, RunComparison] = {}
        self.changed: dict[str, None] = {}
        self.stopped_models: dict[str, str] = {}
        self.unreached = UnreachedModels()
        self.overdrawn: str | None = None
        self.goes_on = ""
        self.remarks: list[str] = []
        self.files: list[Path] = []
        self.limiter: Limiter | None = None
        self.commits: Commits | None = None
        self.batches: Batches | None = None
        self.started = time.perf_counter()
        self.ended: float | None = None
        self._notes = notes
        self._recorded_replies: RecordedReplies | None = None

    def prepare(self, plan: Plan) -> None:
        """Find out what is left to ask, so that it can be announced. Only a resumed session opens its file for that.

        Raises:
            StoreError: The database cannot be used.
            ResumeError: The session cannot go on as it was started now.
            HelmbenchError: A baseline cannot be read.
        """
        self.runs.know(plan, self.library.loaded)
        if self.settings.resume and not plan.dry:
            self.runs.prepare(plan, self.library.loaded)
        elif self.settings.resume and not self.settings.dry_run:
            # No key is set; that the unfinished session was another one says more.
            self.runs.find_resumption(plan, self.settings.resume.run)
        if self.baselines is not None:
            self.baselines.find([(run.key, self.runs.benchmark_of(run), run.model) for run in plan.runs])
            roots = {run.key[0]: Path(run.key[0]) for run in plan.runs}
            self.baselines.find_lost(roots, self.library.named, self.library.cases_now)

    def open(
        self,
        plan: Plan,
        on_result: Callable[[ResultRecord], None],
        on_model_stopped: Callable[[str, str], None],
    ) -> LocalBackend:
        """Open the runs; return what calls and outcomes go through from now on.

        Args:
            plan: What will be asked.
            on_result: Takes every outcome that was recorded.
            on_model_stopped: Takes the id of a model that does not work, and why, in a sentence.

        Raises:
            StoreError: The database cannot be used.
            ResumeError: The session cannot go on as it was started now.
        """
        is_new = not self.settings.db.exists()
        self.runs.open(plan, self.library.loaded)
        if is_new and self.runs.store is not None and _would_be_tracked(self.runs.db):
            escaped = re.sub(r"^[#!]|[][*?\\]", r"\\\g<0>", self.runs.db.name)  # as gitignore(5) has it
            self.remarks.append(f"git would track {self.runs.db.name}: add the line {escaped}* to .gitignore")
        limiter = self.limiter = self._limiter(plan, on_model_stopped)
        if self.runs.store is not None and self.runs.resumption is None:
            self.library.note_starts(self.runs.store, self.runs.run_ids)

        commits = self.commits = self._commits(limiter)

        def record_result(record: ResultRecord) -> None:
            self.runs.record_result(record)
            on_result(record)

        def record_attempt(record: AttemptRecord) -> None:
            self.runs.record_attempt(record)
            self.unreached.add(record)
            if commits is not None and record.reply_key is not None:
                commits.add_reply()

        self.batches = self._batches(limiter, commits)
        backend = LocalBackend(
            limiter, record_attempt, record_result, self._reply_cache(), commits, self.batches
        )
        self.started = time.perf_counter()
        return backend

    def _commits(self, limiter: Limiter) -> Commits | None:
        def not_stored(error: NotStoredError) -> None:
            if limiter.closed is None:
                limiter.close(error)

        store = self.runs.store
        if store is None:
            return None
        return Commits(store, self.library.loop, limiter.limits.concurrency, not_stored)

    def _batches(self, limiter: Limiter, commits: Commits | None) -> Batches | None:
        """Return the batches of the session; None where it makes none and has none out."""
        settings, store = self.settings, self.runs.store
        resumption = self.runs.resumption
        if store is None or commits is None or (settings.batch is None and resumption is None):
            return None
        record = BatchesOnRecord(store, commits, self.runs.session_id)
        uuids = run_uuids(store.path, self.runs.session_id)
        endpoints = batched_models(self.runs.targets.values(), settings)
        wait_s = None if settings.batch is None else settings.batch * 60
        batches = Batches(endpoints, limiter, record, uuids, wait_s)
        self.library.loop.run(batches.resume())
        return batches

    def _baselines(self, asked: BaselineAsked) -> Baselines:
        from pytest_helmbench.results.baselines import Baselines  # few sessions name one

        return Baselines(asked, self.settings.db, Path.cwd())

    @property
    def judged(self) -> Mapping[CaseKey, RecordedCase]:
        """The cases that a resumed session has judged."""
        return self.runs.resumption.judged if self.runs.resumption is not None else {}

    @property
    def may_judge_for_nothing(self) -> bool:
        """Whether replies on record may replace calls: any reply, or those that a session that goes on has left."""
        resumption = self.runs.resumption
        if self.settings.cache_mode.reads or resumption is None:
            return self.settings.cache_mode.reads
        return has_unjudged_replies(self.settings.db, resumption.session_id)

    def budget_usd(self, plan: Plan) -> float | None:
        """Return what this session may spend, a shard its share; None without a budget."""
        most = self.settings.max_cost_usd
        return None if most is None else budget_of(plan, self.runs.targets, most)

    @property
    def spent_before_usd(self) -> float:
        """The USD that earlier parts of a resumed session have spent, with calls that never returned."""
        resumption = self.runs.resumption
        if resumption is None or self.settings.max_cost_usd is None:
            return 0.0
        calls, usd = calls_left_out(self.settings.db, resumption.session_id)
        if calls:
            self.note(
                f"{calls} call{'s were' if calls > 1 else ' was'} in flight when an earlier part of this session was"
                f" killed: the budget counts {usd:.4f} USD for it"
            )
        return session_cost(self.settings.db, resumption.session_id) + usd

    def resumed(self) -> Resumed:
        """Return what cases must know of the runs that they belong to."""
        return Resumed(self.runs.run_ids, self.judged, self.add_changed)

    def use_own_replies(self, backend: LocalBackend) -> None:
        """Let replies that a dead worker has brought in replace calls: they are paid. Waits for the disk."""
        if self.runs.store is None:
            return
        self.runs.store.flush()
        if self._recorded_replies is None:
            self._recorded_replies = RecordedReplies(self.runs.store, self.settings.cache_mode, (), self.note)
            backend.use_replies(ReplyCache(self._recorded_replies, shares=False))
        self._recorded_replies.trust(self.runs.tallies)

    def note_dry_resume(self) -> None:
        """Say that a dry run goes on with nothing."""
        if self.settings.resume:
            self.note("--helmbench-resume had no effect: nothing is called in a dry run, so nothing went on")

    def add_changed(self, name: str) -> None:
        """Take note of a case whose verdict on record is not that of now."""
        self.changed[name] = None

    def note(self, sentence: str) -> None:
        """Say a sentence in the summary, once."""
        self._notes.say(sentence)

    @property
    def notes(self) -> list[str]:
        """The sentences of the summary."""
        return self._notes.sentences

    def hurry(self) -> None:
        """Wait no longer than a moment for the disk. From any thread."""
        if self.runs.store is not None:
            self.runs.store.hurry()

    def close(self, *, interrupted: bool, tick: Callable[[], object] = lambda: None) -> None:
        """Close runs, database and loop.

        Args:
            interrupted: The session did not come to its end.
            tick: Called twice a second while the disk takes time.
        """
        if self.ended is None:
            if self.commits is not None:
                self.commits.session_ends()
            self.ended = time.perf_counter()
            for sentence in self.batch_sentences():
                self.note(sentence)
            if self.changed:
                self.note(changed_text(tuple(self.changed)))
            if self._recorded_replies is not None:
                self._recorded_replies.close()
            store = self.runs.store
            try:
                if not interrupted and store is not None and store.fault is None:
                    store.flush(tick)
                    self.library.store_totals(store, self.runs.run_ids)
            except StoreError as error:
                self.note(str(error))
            finally:
                self.runs.close(interrupted=interrupted, tick=tick)
            if none := sum(tally.no_cases for tally in self.runs.tallies.values()):
                self.remarks.append(f"tests that asked no model, so they are not cases: {none}")
            if interrupted or self.overdrawn is not None or self._has_unjudged or self.waiting_words:
                self._note_what_is_left(interrupted=interrupted)
            if not interrupted and store is not None and store.fault is None:
                self._note_what_is_gone()
            self.library.end()

    def _note_what_is_gone(self) -> None:
        """Say which benchmarks have lost cases."""
        try:
            for name, found in self.runs.shrunk():
                rest = len(found.gone) - _GONE_SHOWN
                more = f" and {rest} more (`helmbench show last --gone` lists all)" if rest > 0 else ""
                self.note(
                    f"{name} has {found.cases} cases; it had {found.cases_before} in run {found.before}."
                    f" Gone: {', '.join(found.gone[:_GONE_SHOWN])}{more}"
                )
        except StoreError as error:
            self.note(str(error))

    @property
    def _has_unjudged(self) -> bool:
        """Whether cases have no verdict that the same command can bring: errors, a stopped model, a spent budget."""
        spent = self.limiter is not None and self.limiter.refused_for_budget
        errors = any(tally.verdicts[Verdict.ERROR] for tally in self.runs.tallies.values())
        return bool(self.stopped_models or spent or errors)

    @property
    def has_left_calls(self) -> bool:
        """Whether cases have no verdict since their calls are in batches that are no longer waited for."""
        return self.batches is not None and self.batches.left_calls > 0

    @property
    def waiting_words(self) -> str:
        """Which calls a resume collects from batches, for people; empty for none, as where their cases have changed."""
        return "" if self.batches is None or self.runs.all_complete else self.batches.waiting_words

    def batch_sentences(self) -> list[str]:
        """Return sentences about batches, each once. From any thread."""
        sentences = [] if self.batches is None else self.batches.sentences
        return [sentences.pop(0) for _ in tuple(sentences)]

    def _note_what_is_left(self, *, interrupted: bool) -> None:
        """Say how a session goes on that has left cases without a verdict."""
        if self.waiting_words:
            self.goes_on = f"{self.waiting_words}; the same command with --helmbench-resume collects them"
            self.remarks.append(self.goes_on)
            return
        runs = self.runs
        planned = sum(run.tests for run in runs.plan.runs if run.usable) if runs.plan is not None else 0
        planned -= sum(tally.no_cases for tally in runs.tallies.values())
        left = planned - sum(tally.judged for tally in runs.tallies.values())
        if runs.tallies and left > 0 and runs.store is not None and runs.store.displaced is None:
            untrusted = sum(tally.reasons["not_trusted"] for tally in runs.tallies.values())
            again = f"the same command with --helmbench-resume asks the {left - untrusted} again"
            if untrusted == left:
                again = "the same command judges them once helmbench_trusted lists the benchmark"
            if self.settings.cache_mode is CacheMode.ONLY and not interrupted:
                again = "without --helmbench-cache=only the model is asked for what is not stored"
            elif self.overdrawn is not None:
                again = f"with a price, {again}"
            self.goes_on = again

    def compare(self) -> Mapping[int, RunComparison]:
        """Compare the runs, which are closed, with their baselines, and keep which baseline each had.

        Raises:
            StoreError: A file cannot be read or written.
        """
        if self.baselines is not None:
            from pytest_helmbench.results.baselines import keep_baselines

            runs = self.runs
            closed = [
                (run_id, key, runs.scored[run_id].facts)
                for key, run_id in runs.run_ids.items()
                if run_id in runs.scored
            ]
            self.comparisons = self.baselines.compare(runs.db, closed)
            if runs.store is not None and runs.store.fault is None:
                keep_baselines(runs.db, self.comparisons, self.baselines.lost.values())
        return self.comparisons

    def _limiter(self, plan: Plan, on_model_stopped: Callable[[str, str], None]) -> Limiter:
        settings = self.settings
        limits = SessionLimits(
            concurrency=session_concurrency(settings),
            requests_per_minute=settings.rate(settings.requests_per_minute),
            tokens_per_minute=settings.rate(settings.tokens_per_minute),
            max_cost_usd=self.budget_usd(plan),
            spent_usd=self.spent_before_usd,
            longest_pause_s=RetryPolicy(settings.timeout_s, settings.case_timeout_s).longest_pause_s,
        )

        def model_stopped(model: str, sentence: str) -> None:
            self.stopped_models[model] = sentence
            on_model_stopped(model, sentence)

        limiter = Limiter(limits, time.monotonic, model_stopped, self._set_overdrawn)
        limiter.add_models(model_limits(self.runs.targets.values(), settings).values())
        for loaded in self.library.loaded:
            limiter.add_models(loaded.item_limits)
        return limiter

    def _reply_cache(self) -> ReplyCache | None:
        settings = self.settings
        resumption = self.runs.resumption
        runs = sorted(resumption.runs.values()) if resumption is not None else []
        if resumption is not None:
            judged = len(resumption.judged)
            on_record = f"{judged} judged cases were stored"
            self.remarks.append(f"went on with run {', '.join(map(str, runs))}: {on_record}")
        elif settings.resume:
            self.remarks.append(NOTHING_UNFINISHED)
        if not settings.may_use_recorded or self.runs.store is None:
            return None
        self._recorded_replies = RecordedReplies(self.runs.store, settings.cache_mode, runs, self.note)
        return ReplyCache(self._recorded_replies, shares=settings.cache_mode is CacheMode.REUSE)

    def _set_overdrawn(self, sentence: str) -> None:
        self.overdrawn = sentence


def changed_text(names: Sequence[str]) -> str:
    """Return what the summary says of cases whose verdict on record is not that of now."""
    shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return f"request or rule has changed since they were judged, so they ran again: {shown}"


class RecordedReplies:
    """Finds recorded replies; see `Record`. `look_up` is used on the loop's thread.

    Args:
        store: The session's own, still writing.
        mode: `--helmbench-cache`.
        runs: Runs of the session whose own replies on record may replace calls.
        note: Takes a sentence for the summary, which it says once.
    """

    def __init__(
        self, store: Store, mode: CacheMode, runs: Iterable[int], note: Callable[[str], object]
    ) -> None:
        self._store = store
        self._mode = mode
        self._runs = frozenset(runs)
        self._recorded = RecordedRuns(store.path)
        self._note = note

    def trust(self, runs: Iterable[int]) -> None:
        """Let the own replies of more runs replace calls."""
        self._runs = self._runs | frozenset(runs)

    def look_up(self, query: ReplyQuery) -> RecordedReply | None:
        """Return the reply on record that the mode allows, or None.

        Raises:
            StoreError: The file cannot be read.
        """
        if query.run_id in self._runs:
            of_case = (query.run_id, query.code, query.repetition)
            mine = self._recorded.reply_of_run(of_case, query.request_hash, query.judge)
            # To refresh is to call anew once: what the run that goes on has called for itself is new.
            if mine is not None and (mine.own or self._mode is not CacheMode.REFRESH):
                return mine
        if not self._mode.reads:
            return None
        other = self._recorded.reply(query.code, query.question, anywhere=self._mode is CacheMode.ONLY)
        if other is not None and other.address != query.address:
            elsewhere = f"replies of {other.address} are used, not of {query.address}"
            self._note(f"{query.asked}: {elsewhere} (--helmbench-cache=only)")
        return other

    def settle(self) -> None:
        """Wait until everything that this session was answered is on disk."""
        self._store.flush()

    def close(self) -> None:
        """Close the connection."""
        self._recorded.close()


@dataclass(frozen=True, slots=True)
class BatchesOnRecord:
    """See `gateway.batches.BatchRecord`.

    Args:
        session_id: Whose they are.
    """

    store: Store
    commits: Commits
    session_id: str

    def open_batches(self) -> Iterable[tuple[BatchRow, Collection[str]]]:
        """Return the batches that are not read, the newest first, each with the keys of calls without an answer."""
        for row in open_batches(self.store.path, self.session_id):
            yield from_row(BatchRow, row), row["pending"]

    def put(self, row: BatchRow) -> None:
        """Write a row, in place of the one of its token."""
        cells = {**asdict(row), "keys": as_json(row.keys), "session_id": self.session_id}
        self.store.record_batch(cells)

    def drop(self, token: str) -> None:
        """Delete a row."""
        self.store.forget_batch(token)

    async def stored(self) -> None:
        """Return when all of that is on disk."""
        await self.commits.stored()


class UnreachedModels:
    """Filled on the loop, read from any thread."""

    def __init__(self) -> None:
        self._answered: set[str] = set()
        self._sentences: dict[str, str] = {}

    def add(self, record: AttemptRecord) -> None:
        """Take note of the result of an attempt."""
        model, error = record.asked, record.error
        if model is None or model in self._answered:
            return
        if error is None:
            self._answered.add(model)
        elif error.startswith(_UNREACHABLE) and model not in self._sentences:
            self._sentences[model] = error.removeprefix(_UNREACHABLE)

    def sentences(self) -> list[tuple[str, str]]:
        """Return model and sentence of each whose server could not be reached before it had answered anything."""
        return list(self._sentences.items())


def _would_be_tracked(file: Path) -> bool:
    """Return whether a file is in a git tree that does not ignore it; False where git does not say."""
    if not any((folder / ".git").exists() for folder in file.absolute().parents):
        return False
    command = ["git", "-c", "core.fsmonitor=false", "check-ignore", "-q", "--", file.name]
    quiet = subprocess.DEVNULL
    try:
        return subprocess.call(command, cwd=file.parent, stdin=quiet, stderr=quiet, timeout=10) == 1
    except (OSError, subprocess.SubprocessError):
        return False


def whole_runs(coordinator: Coordinator) -> Mapping[int, RunCounts] | None:
    """Return the counts of all parts of a session by run; None where nothing went on, or they cannot be read.

    Args:
        coordinator: Of the session, closed.
    """
    runs = coordinator.runs
    if runs.resumption is None:
        return None
    found = {}
    try:
        for run_id in runs.tallies:
            run = runs.db, run_id
            found[run_id] = recorded_counts(*run, recorded_outcomes(*run), costs(*run))
    except StoreError:
        return None
    return found
