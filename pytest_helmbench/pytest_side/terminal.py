"""Output on pytest's terminal: the live line, the summary."""

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
from pytest_helmbench.core.kind_words import RunWords
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.pytest_side.announcement import run_price
from pytest_helmbench.pytest_side.ci import in_ci
from pytest_helmbench.pytest_side.exit_code import run_names, scores_by_name
from pytest_helmbench.reports.panel_tables import panel_sentence
from pytest_helmbench.reports.score_lines import score_lines
from pytest_helmbench.reports.session_texts import (
    DryRow,
    cost_text,
    dry_run_lines,
    in_flight_line,
    judging_lines,
    model_table,
    reasons_text,
    resumed_tables,
    skip_lines,
)
from pytest_helmbench.session.coordinator import Coordinator
from pytest_helmbench.session.panels import panel_report
from pytest_helmbench.session.plan import Plan
from pytest_helmbench.session.run_counts import RunCounts
from pytest_helmbench.session.sampling import sample_text
from pytest_helmbench.session.session_comparisons import comparison_properties
from pytest_helmbench.session.whole_runs import whole_runs
from pytest_helmbench.store.fault import StoreError

__all__ = ["LiveLine", "add_suite_properties", "session_lines"]

_QUIET_S = 2.0  # the live line shows only when nothing else has been printed for so long
_LONG_LIMIT_S = 60.0
_WARNINGS_SHOWN = 10

# Below the line that pytest is writing, without moving its cursor: down and up again makes room at the bottom.
_BELOW = "\x1bD\x1b[A\x1b7\x1b[B\r\x1b[2K"
_BACK = "\x1b8"
_WIPE = "\x1b7\x1b[B\r\x1b[2K\x1b8"


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
        self._said_limited: set[str] = set()
        self._reporter: Any = None

    def tick(self) -> None:
        """Draw the line when it has been quiet for a while. About once a second."""
        coordinator = self._coordinator
        if coordinator is None:
            return
        slow = coordinator.commits.slow_sentence() if coordinator.commits is not None else None
        if slow is not None:
            self._say(slow)
        for sentence in self._long_limits(coordinator):
            self._say(sentence)
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

    def _long_limits(self, coordinator: Coordinator) -> Iterator[str]:
        """Yield, once per model, that it has been answered with nothing but rate limits for a minute."""
        limited = coordinator.limiter.limited_s() if coordinator.limiter is not None else {}
        for model, seconds in limited.items():
            if seconds >= _LONG_LIMIT_S and model not in self._said_limited:
                self._said_limited.add(model)
                yield (
                    f"{model}: for {seconds:.0f} s every call was answered with a rate limit (429), and none with a"
                    " reply: it is tried on; --helmbench-requests-per-minute or --helmbench-concurrency ask for less"
                )

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
        return [*_sample_lines(coordinator), *coordinator.notes]  # it ended before anything could be asked
    lines = _dry_lines(plan, coordinator) if plan.dry else _run_lines(plan, coordinator, verbose=verbose)
    if broken:
        lines.append(f"{broken} broken file{'s' if broken > 1 else ''}: none of their cases ran (see ERRORS)")
    lines += _warning_lines(coordinator)
    lines += coordinator.notes
    return lines


def _run_lines(plan: Plan, coordinator: Coordinator, *, verbose: bool) -> list[str]:
    rows = _counts_by_model(plan, coordinator)
    whole = whole_runs(coordinator)
    lines = model_table(rows) if whole is None else resumed_tables(whole, rows)
    lines += judging_lines(rows)
    scores = {name: score for name, score in scores_by_name(coordinator).items() if score is not None}
    done = sum(counts.judged_now for counts in rows.values())
    if scores and any(counts.judged for counts in rows.values()):
        lines += ["", *score_lines(scores, behaviours=verbose), ""]
    names = run_names(coordinator)
    shows_text = coordinator.settings.with_text or not in_ci()
    for run_id, words in _words(plan, coordinator):
        lines += [f"{names[run_id]}: {words.line}"] if words.line else []
        lines += [f"  it says: {words.said}"] if words.said and shows_text else []
    lines += [
        f"{model}: not judged: {reasons_text(counts.reasons)}"
        for model, counts in rows.items()
        if any(counts.reasons.values())
    ]
    lines += skip_lines(rows)
    lines += _unanswered_lines(coordinator)
    lines += [f"{model} was stopped: {sentence}" for model, sentence in coordinator.stopped_models.items()]
    lines += _judge_lines(plan, coordinator)
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
    for prop in comparison_properties(coordinator.comparisons):
        add(*prop)
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


def _judge_lines(plan: Plan, coordinator: Coordinator) -> list[str]:
    judged: Counter[tuple[str, str]] = Counter()
    for run in plan.runs:
        for judge in run.judges if run.judge_calls else ():
            judged[run.model, judge] += run.judge_calls // min(len(run.judges), 2)
    names = run_names(coordinator)
    store = coordinator.book.store
    several = store is not None and store.fault is None and any(len(run.judges) > 1 for run in plan.runs)
    panels = [(run_id, panel_report(coordinator.book.db, run_id)) for run_id in names] if several else []
    lines = [f"{names[run_id]}: {panel_sentence(panel)}" for run_id, panel in panels if panel is not None]
    lines += [f"warning: {model} judged its own replies" for model, judge in judged if judge == model]
    lines += [
        f"{model}: {calls} answers of {judge} stand in for a judge: not a judgement"
        for (model, judge), calls in judged.items()
        if judge.startswith("baseline/")
    ]
    return lines


def _dry_lines(plan: Plan, coordinator: Coordinator) -> list[str]:
    rows = []
    for run in plan.runs:
        span = run_price(run, coordinator)
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
    return [*dry_run_lines(rows, coordinator.settings.dry_run), *_sample_lines(coordinator)]


def _sample_lines(coordinator: Coordinator) -> list[str]:
    """Return what of each benchmark a session asks that asks a sample."""
    return [f"sample of {name}: {sample_text(sample)}" for name, sample in coordinator.library.drawn]


def _warning_lines(coordinator: Coordinator) -> list[str]:
    texts = [problem.text(item.root) for item in coordinator.library.loaded for problem in item.warnings]
    lines = [f"warning: {text}" for text in texts[:_WARNINGS_SHOWN]]
    if len(texts) > _WARNINGS_SHOWN:
        lines.append(f"… and {len(texts) - _WARNINGS_SHOWN} more warnings about the benchmark")
    return lines
