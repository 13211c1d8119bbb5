"""Output on pytest's terminal: the line before the first call, the live line, the summary."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from pytest_helmbench.benchmarks.kind_record import record_of
from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.kind_words import RunWords
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.gateway.reply_cache import CacheMode
from pytest_helmbench.pytest_side.ci import in_ci
from pytest_helmbench.pytest_side.exit_code import run_names, scores_by_name
from pytest_helmbench.reports.score_lines import score_lines
from pytest_helmbench.reports.session_texts import (
    DryRow,
    announcement,
    cost_text,
    dry_run_lines,
    in_flight_line,
    judging_lines,
    model_table,
    places_text,
    reasons_text,
)
from pytest_helmbench.session.budget import budget_bounds, least_call, rounded_up
from pytest_helmbench.session.coordinator import Coordinator
from pytest_helmbench.session.cost_estimate import PriceSpan, price_span
from pytest_helmbench.session.plan import Plan, PlannedRun
from pytest_helmbench.session.run_counts import RunCounts
from pytest_helmbench.session.targets import session_concurrency
from pytest_helmbench.store.fault import StoreError

__all__ = ["Announcer", "LiveLine", "add_suite_properties", "session_lines"]

_QUIET_S = 2.0  # the live line shows only when nothing else has been printed for so long
_WARNINGS_SHOWN = 10

# Below the line that pytest is writing, without moving its cursor: down and up again makes room at the bottom.
_BELOW = "\x1bD\x1b[A\x1b7\x1b[B\r\x1b[2K"
_BACK = "\x1b8"
_WIPE = "\x1b7\x1b[B\r\x1b[2K\x1b8"


class Announcer:
    """Prints what is about to be asked, and stops a session that would cost more than was agreed to.

    Args:
        config: pytest's.
        coordinator: Of the session.
    """

    def __init__(self, config: pytest.Config, coordinator: Coordinator) -> None:
        self._config = config
        self._coordinator = coordinator

    def __call__(self, plan: Plan) -> None:
        """Print what a plan will ask and what that may cost.

        Raises:
            pytest.UsageError: It may cost more than `helmbench_ask_above` and no budget is given,
                or a gate is asked of cases that can have no score.
        """
        coordinator = self._coordinator
        self._check_gates(plan)
        if plan.dry and coordinator.settings.resume and not coordinator.settings.dry_run:
            raise pytest.UsageError(
                f"nothing can be resumed: {'; '.join(dict.fromkeys(run.why_not for run in plan.runs))}\n"
                "  hint: give the command of the unfinished session again, with --helmbench-resume"
            )
        span = _plan_price(coordinator.book.left(plan), coordinator)
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            for line in self._lines(plan, span):
                reporter.ensure_newline()
                reporter.write_line(scrub(line))
        settings = coordinator.settings
        if plan.dry:
            return
        if settings.max_cost_usd is not None:
            self._check_budget(plan, settings.max_cost_usd)
            return
        if span is None or span.expected <= settings.ask_above_usd or coordinator.book.resumption is not None:
            return  # a session that goes on was agreed to when it began
        raise pytest.UsageError(
            f"this run may cost {span.expected:.2f} USD ({span.low:.2f} to {span.high:.2f}),"
            f" more than helmbench_ask_above ({settings.ask_above_usd:g} USD); nothing was called\n"
            f"  hint: agree to a bound: --helmbench-max-cost={_rounded_up(span.high)}"
        )

    def _check_budget(self, plan: Plan, budget_usd: float) -> None:
        """Refuse a budget that cannot pay one call, before anything is paid."""
        coordinator = self._coordinator
        left = coordinator.book.left(plan)
        least = None if coordinator.settings.may_use_recorded else least_call(left, coordinator.book.targets)
        if least is None or least.usd <= budget_usd:
            return
        raise pytest.UsageError(
            f"--helmbench-max-cost={budget_usd:g} cannot pay one call: one of {least.model} may cost"
            f" {least.usd:.6f} USD, with at most {least.tokens:,} tokens in its reply; nothing was called\n"
            f"  hint: give at least --helmbench-max-cost={rounded_up(least.usd)}, or bound the replies with"
            " --helmbench-max-tokens"
        )

    def _lines(self, plan: Plan, span: PriceSpan | None) -> list[str]:
        settings = self._coordinator.settings
        if plan.dry:
            why = (
                "as asked for"
                if settings.dry_run
                else "; ".join(dict.fromkeys(run.why_not for run in plan.runs))
            )
            return [f"helmbench: dry run ({why}): {plan.tests} cases are composed, nothing is called"]
        price = None if span is None else (span.low, span.expected, span.high)
        models = list(dict.fromkeys(run.model for run in plan.runs if run.usable))
        db = _shown_path(self._config, settings.db)
        left = self._coordinator.book.left(plan)
        is_replay = settings.cache_mode is CacheMode.ONLY
        calls = (0 if is_replay else left.calls, left.open_ended)
        bounds = budget_bounds(plan, self._coordinator.book.targets)
        places = () if is_replay else [place for run in plan.runs if run.usable for place in run.places]
        line = announcement(models, plan.tests, calls, session_concurrency(settings), price, db, bounds)
        lines = [line + places_text(places)]
        lines += self._unknown_gates(plan)
        judges = dict.fromkeys(run.judge for run in plan.runs if run.usable and run.judge_calls and run.judge)
        lines += [f"helmbench: judged by {', '.join(judges)}"] if judges else []
        lines += [f"helmbench: {run.model} is skipped: {run.why_not}" for run in plan.runs if not run.usable]
        return lines

    def _check_gates(self, plan: Plan) -> None:
        """Refuse a gate that no run can pass, before anything is paid."""
        gates = self._coordinator.gates
        if gates.asked and plan.scope == "by_outcome":
            raise pytest.UsageError(
                "a run of cases chosen by earlier outcomes (--lf, --sw) has no score, so no gate can hold\n"
                "  hint: leave --helmbench-min-score out, or run the whole selection"
            )

    def _unknown_gates(self, plan: Plan) -> list[str]:
        """Return a line per threshold that nothing selected can reach: said before anything is paid."""
        parts = [code.split("-", 2) for run in plan.runs for code in run.codes]
        known = {part[0] for part in parts} | {"-".join(part[:2]) for part in parts}
        wanted = [threshold.code for threshold in self._coordinator.gates.thresholds if threshold.code]
        return [
            f"helmbench: warning: --helmbench-min-score: {code} is not among what was selected, so that gate cannot"
            f" hold; known: {', '.join(sorted(known, key=natural_key))}"
            for code in wanted
            if code not in known
        ]


class LiveLine:
    """One line under pytest's own that names what is in flight; on terminals only, never in CI.

    Args:
        config: pytest's.
        coordinator: Of the session; None in an xdist worker, which prints nothing.
    """

    def __init__(self, config: pytest.Config, coordinator: Coordinator | None) -> None:
        self._config = config
        self._coordinator = coordinator
        self._lock = threading.Lock()
        self._last_print = time.monotonic()
        self._shown = False
        self._reporter: Any = None

    def tick(self) -> None:
        """Draw the line when it has been quiet for a while. About once a second."""
        coordinator = self._coordinator
        if coordinator is None:
            return
        slow = coordinator.commits.slow_sentence() if coordinator.commits is not None else None
        if slow is not None:
            self._say(slow)
        if coordinator.limiter is None or time.monotonic() - self._last_print < _QUIET_S:
            return
        if not self._on_a_terminal():
            return
        counts = RunCounts.sum(coordinator.book.tallies.values())
        cost = cost_text(counts.known_cost_usd, counts.unknown_costs)
        planned = coordinator.book.plan.tests if coordinator.book.plan else 0
        line = in_flight_line(counts.results, planned, coordinator.limiter.calls_in_flight(), cost)
        self._write(lambda width: _BELOW + scrub(line)[: max(20, width - 1)] + _BACK)
        self._shown = True

    def clear(self) -> None:
        """Take the line away: somebody is about to print."""
        self._last_print = time.monotonic()
        if self._shown:
            self._shown = False
            self._write(lambda _width: _WIPE)

    def _say(self, sentence: str) -> None:
        """Print a line that stays, on a terminal and in a log."""
        self.clear()
        if self._printer() is not None:
            self._write(lambda _width: f"\nhelmbench: {scrub(sentence)}\n")

    def _printer(self) -> Any:
        if self._reporter is None:
            self._reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        return self._reporter

    def _on_a_terminal(self) -> bool:
        return self._printer() is not None and not in_ci() and bool(getattr(self._reporter, "isatty", False))

    def _write(self, text: Callable[[int], str]) -> None:
        """Write past the capture; the width can be asked only there, where standard output is the terminal."""
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        with self._lock, capture.global_and_fixture_disabled() if capture else nullcontext():
            self._reporter.write(text(self._config.get_terminal_writer().fullwidth), flush=True)


def session_lines(coordinator: Coordinator, broken: int, *, verbose: bool) -> list[str]:
    """Return the summary of a session.

    Args:
        coordinator: Of the session, closed.
        broken: Erring items that stand for broken files.
        verbose: Also the scores of behaviours.
    """
    plan = coordinator.book.plan
    if plan is None or not (plan.dry or coordinator.book.tallies):
        return coordinator.notes  # it ended before anything could be asked
    lines = _dry_lines(plan, coordinator) if plan.dry else _run_lines(plan, coordinator, verbose=verbose)
    if broken:
        lines.append(f"{broken} broken file{'s' if broken > 1 else ''}: none of their cases ran (see ERRORS)")
    lines += _warning_lines(coordinator)
    lines += coordinator.notes
    return lines


def _run_lines(plan: Plan, coordinator: Coordinator, *, verbose: bool) -> list[str]:
    rows = _counts_by_model(plan, coordinator)
    lines = [*model_table(rows), *judging_lines(rows)]
    scores = {name: score for name, score in scores_by_name(coordinator).items() if score is not None}
    done = sum(counts.judged for counts in rows.values())
    if done and scores:
        lines += ["", *score_lines(scores, behaviours=verbose), ""]
    names = run_names(coordinator)
    lines += [f"{names[run_id]}: {words.line}" for run_id, words in _words(plan, coordinator) if words.line]
    lines += [
        f"{model}: not judged: {reasons_text(counts.reasons)}"
        for model, counts in rows.items()
        if any(counts.reasons.values())
    ]
    lines += _unanswered_lines(coordinator)
    lines += [f"{model} was stopped: {sentence}" for model, sentence in coordinator.stopped_models.items()]
    lines += _judge_lines(plan)
    wall_s = max((coordinator.ended or time.perf_counter()) - coordinator.started, 1e-3)
    ids = ", ".join(str(run_id) for run_id in coordinator.book.tallies)
    lines.append(
        f"{done} judged in {wall_s:.1f} s, {done / wall_s:.1f} per second; run {ids} in {coordinator.book.db}"
    )
    store = coordinator.book.store
    if store is not None and store.fault is not None:
        lost = f" ({store.dropped} rows lost)" if store.dropped else ""
        lines.append(f"NOT ALL IS STORED: {store.fault}{lost}")
    elif store is not None and store.displaced is not None:
        lines.append(f"STOPPED: {store.displaced}")
    return lines


def _unanswered_lines(coordinator: Coordinator) -> list[str]:
    """Return what the budget counts for calls that nobody knows the cost of."""
    budget = coordinator.limiter.budget if coordinator.limiter is not None else None
    if budget is None or not budget.unanswered:
        return []
    calls = "1 call was" if budget.unanswered == 1 else f"{budget.unanswered} calls were"
    return [
        f"{calls} sent and not answered, and may be billed: what that cost is unknown; the budget counts"
        f" {budget.unanswered_usd:.4f} USD for it"
    ]


def add_suite_properties(config: pytest.Config, coordinator: Coordinator) -> None:
    """Put what kinds make of their runs among the suite's properties of a JUnit report, where one is written.

    Args:
        config: pytest's.
        coordinator: Of the session, closed.
    """
    plan = coordinator.book.plan
    # The report's writer is a plugin without a name, and its key in the stash is pytest's own.
    add = next(
        (
            plugin.add_global_property
            for plugin in config.pluginmanager.get_plugins()
            if hasattr(plugin, "add_global_property")
        ),
        None,
    )
    if plan is None or add is None:
        return
    for _, words in _words(plan, coordinator):
        for name, value in words.properties:
            add(name, value)


def _words(plan: Plan, coordinator: Coordinator) -> Iterator[tuple[int, RunWords]]:
    """Yield what kinds say of the runs of a session; nothing is read for a kind that keeps nothing of its own."""
    store = coordinator.book.store
    run_ids = coordinator.book.run_ids()
    for run in plan.runs if store is not None else ():
        run_id = run_ids.get(run.key)
        if run_id is None:
            continue
        kind = coordinator.library.load(Path(run.benchmark)).outline.kind
        try:
            words = record_of(kind).run(coordinator.book.db, run_id)
        except StoreError:
            return  # what could not be stored is said elsewhere
        if words is not None:
            yield run_id, words


def _counts_by_model(plan: Plan, coordinator: Coordinator) -> dict[str, RunCounts]:
    by_model: dict[str, list[RunCounts]] = {}
    run_ids = coordinator.book.run_ids()
    for run in plan.runs:
        run_id = run_ids.get(run.key)
        if run_id is not None:
            by_model.setdefault(run.model, []).append(coordinator.book.tallies[run_id])
    return {model: RunCounts.sum(counts) for model, counts in by_model.items()}


def _judge_lines(plan: Plan) -> list[str]:
    judged: Counter[tuple[str, str]] = Counter()
    for run in plan.runs:
        if run.judge_calls:
            judged[run.model, run.judge] += run.judge_calls
    lines = [f"warning: {model} judged its own replies" for model, judge in judged if judge == model]
    lines += [
        f"{model}: {calls} answers of {judge} stand in for a judge: not a judgement"
        for (model, judge), calls in judged.items()
        if judge.startswith("baseline/")
    ]
    return lines


def _dry_lines(plan: Plan, coordinator: Coordinator) -> list[str]:
    rows = []
    for run in plan.runs:
        span = _run_price(run, coordinator)
        rows.append(
            DryRow(
                model=run.model,
                prompts=run.tests,
                judge_calls=run.judge_calls,
                tokens=run.prompt_tokens + run.judge_prompt_tokens,
                price=None if span is None else (span.low, span.expected, span.high),
                why=run.why_not,
            )
        )
    return dry_run_lines(rows, coordinator.settings.dry_run)


def _warning_lines(coordinator: Coordinator) -> list[str]:
    texts = [problem.text(item.root) for item in coordinator.library.loaded for problem in item.warnings]
    lines = [f"warning: {text}" for text in texts[:_WARNINGS_SHOWN]]
    if len(texts) > _WARNINGS_SHOWN:
        lines.append(f"… and {len(texts) - _WARNINGS_SHOWN} more warnings about the benchmark")
    return lines


def _plan_price(plan: Plan, coordinator: Coordinator) -> PriceSpan | None:
    total = PriceSpan(0.0, 0.0, 0.0)
    if coordinator.settings.cache_mode is CacheMode.ONLY:
        return total
    for run in plan.runs:
        if run.usable or plan.dry:
            span = _run_price(run, coordinator)
            if span is None:
                return None
            total += span
    return total


def _run_price(run: PlannedRun, coordinator: Coordinator) -> PriceSpan | None:
    loaded = coordinator.library.load(Path(run.benchmark))
    settings = coordinator.settings
    return price_span(run, coordinator.book.targets[run.key], loaded, settings.repeat, settings.db)


def _shown_path(config: pytest.Config, path: Any) -> str:
    start = config.invocation_params.dir
    return str(path.relative_to(start)) if path.is_relative_to(start) else str(path)


def _rounded_up(usd: float) -> int:
    return int(usd) + 1
