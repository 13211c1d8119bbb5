"""Progress of a session: the last line of a terminal, a plain line a minute elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import excerpt, scrub
from pytest_helmbench.pytest_side.say.announcement import plan_price
from pytest_helmbench.pytest_side.say.printing import in_ci, printed
from pytest_helmbench.reports.tables import cost_text, count_text, display_width, fitted, reasons_text, usd
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.scoring.intervals import Interval, rows_interval

_DRAW_EVERY_S = 0.2
_CALM_BEATS = 5  # between two plain lines while batches are waited for and nothing changes
_LONG_LIMIT_S = 60.0
_FEWEST_ROWS = 4
# The terminal scrolls only the rows above its last one (DECSTBM), so nothing that pytest prints touches the line.
# Down and up again makes room at the bottom; setting the rows moves the cursor, which is why it is saved.
_MAKE_ROOM = "\x1bD\x1b[A\x1b[J\x1b7\x1b[1;%dr\x1b8"
_DRAW = "\x1b7\x1b[%d;1H\x1b[2K%s\x1b8"
_RESTORE = "\x1b7\x1b[r\x1b8\x1b[J"
_OLD_S = 5.0
_LONGEST_NAME = 30
_DROPPED_FIRST = ("oldest", "in flight", "errors", "cost")


class LiveLine:
    """One line with cases done, score so far, cost, errors and time left.

    It is the last line of a terminal, below what pytest prints. Elsewhere, and in CI, it is printed once a minute.

    Args:
        coordinator: None in an xdist worker, which prints nothing.
        look: Called with each tick; may end the session.
    """

    def __init__(
        self, config: pytest.Config, coordinator: Coordinator | None, look: Callable[[], None]
    ) -> None:
        self._config = config
        self._look = look
        self._coordinator = coordinator
        self._lock = threading.Lock()
        self._drawn_at = self._printed_at = time.monotonic()
        self._size: os.terminal_size | None = None
        self._ended = False
        self._said_limited: set[str] = set()
        self._said_unreached: set[str] = set()
        self._reporter: Any = None
        self._terminal: bool | None = None
        self._expected_usd: float | None = None
        self._knows_price = False
        self._counts: object = None
        config.add_cleanup(self.end)

    def tick(self) -> None:
        """Print warnings and progress that are due. Called about once a second while an item waits."""
        self._look()
        coordinator = self._coordinator
        if coordinator is None:
            return
        slow = coordinator.commits.slow_sentence() if coordinator.commits is not None else None
        if slow is not None:
            self._say(slow)
        said = (
            *self._long_limits(coordinator),
            *self._unreached(coordinator),
            *coordinator.batch_sentences(),
        )
        for sentence in said:
            self._say(sentence)
        self.draw_if_due()

    def draw_if_due(self) -> None:
        """Draw or print the progress where it is due. Called after each report as well."""
        coordinator, now = self._coordinator, time.monotonic()
        if coordinator is None or coordinator.limiter is None:
            return
        if self._on_a_terminal():
            if now - self._drawn_at >= _DRAW_EVERY_S:
                self._drawn_at = now
                self._draw(coordinator)
        elif self._printer() is not None and self._is_due(coordinator, now - self._printed_at):
            self._printed_at = now
            self._print(progress_text(self._progress(coordinator)) + _batch_words(coordinator))

    def _is_due(self, coordinator: Coordinator, silent_s: float) -> bool:
        """Return whether a plain line is due: with each beat, but seldom while batches are out and no count changes."""
        beat_s, batches = coordinator.settings.heartbeat_s, coordinator.batches
        if not 0 < beat_s <= silent_s:
            return False
        waits = batches.progress if batches is not None else (0, 0, 0)
        results = sum(tally.results for tally in coordinator.runs.tallies.values())
        before, self._counts = self._counts, (waits, results)
        return not waits[0] or before != self._counts or silent_s >= _CALM_BEATS * beat_s

    def end(self) -> None:
        """Remove the line, and give its row back to the terminal."""
        with self._lock, self._uncaptured():
            self._ended = True
            if self._size is not None:
                self._size = None
                self._config.get_terminal_writer().write_raw(_RESTORE, flush=True)

    def _draw(self, coordinator: Coordinator) -> None:
        """Draw the line, without pytest's writer, which would count its columns."""
        with self._lock, self._uncaptured():
            size = _terminal_size()
            if self._ended or size is None or size.lines < _FEWEST_ROWS:
                return
            room = "" if size == self._size else _MAKE_ROOM % (size.lines - 1)
            self._size = size
            words = _batch_words(coordinator)
            line = live_text(self._progress(coordinator), size.columns - 1 - len(words)) + words
            drawn = _DRAW % (size.lines, scrub(line))
            self._config.get_terminal_writer().write_raw(room + drawn, flush=True)

    def _progress(self, coordinator: Coordinator) -> SessionProgress:
        plan, limiter = coordinator.runs.plan, coordinator.limiter
        if plan is not None and not self._knows_price:
            self._knows_price = True
            span = plan_price(plan, coordinator)
            self._expected_usd = None if span is None else span.expected
        runs = coordinator.runs
        counts = RunCounts.sum(runs.tallies.values())
        by_model: dict[str, list[RunCounts]] = {}
        for run in () if plan is None else plan.runs:
            tally = runs.tallies.get(runs.run_ids.get(run.key, 0))
            by_model.setdefault(run.model, []).extend([] if tally is None else [tally])
        return SessionProgress(
            counts,
            {model: RunCounts.sum(tallies) for model, tallies in by_model.items()},
            plan.tests - counts.no_cases if plan is not None else 0,
            self._expected_usd,
            time.perf_counter() - coordinator.started,
            () if limiter is None else limiter.calls_in_flight(),
            waits_for_limits=limiter is not None and limiter.waits_for_limits(),
        )

    def _long_limits(self, coordinator: Coordinator) -> Iterator[str]:
        """Yield, once per model, that it has answered a minute with rate limits alone."""
        limited = coordinator.limiter.limited_s() if coordinator.limiter is not None else {}
        for model, seconds in limited.items():
            if seconds >= _LONG_LIMIT_S and model not in self._said_limited:
                self._said_limited.add(model)
                yield (
                    f"{model}: for {seconds:.0f} s every call was answered with a rate limit (429), and none with a"
                    " reply: still trying; --helmbench-requests-per-minute or --helmbench-concurrency ask for less"
                )

    def _unreached(self, coordinator: Coordinator) -> Iterator[str]:
        """Yield, once per model, that its server cannot be reached, while calls are retried."""
        for model, sentence in coordinator.unreached.sentences():
            if model not in self._said_unreached:
                self._said_unreached.add(model)
                if coordinator.settings.max_retries and model not in coordinator.stopped_models:
                    yield f"{model}: {sentence}: still trying"

    def _say(self, sentence: str) -> None:
        """Print a line that stays, on a terminal and in a log."""
        if self._printer() is not None:
            self._print(f"helmbench: {sentence}")

    def _printer(self) -> Any:
        if self._reporter is None:
            self._reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        return self._reporter

    def _on_a_terminal(self) -> bool:
        """Return whether pytest prints to a terminal with movable cursor; looked up once, for all reports."""
        if self._terminal is None and self._printer() is not None:
            is_terminal = bool(getattr(self._reporter, "isatty", False))
            moves = os.name == "posix" and os.environ.get("TERM") not in (None, "", "dumb")
            self._terminal = is_terminal and moves and not in_ci()
        return bool(self._terminal)

    def _print(self, line: str) -> None:
        """Print a line of its own, even behind pytest's letters under xdist, which it does not count as a line."""
        with self._lock, self._uncaptured():
            self._reporter.ensure_newline()
            if self._config.get_terminal_writer().width_of_current_line:
                self._reporter.write("\n")
            for shown in printed(self._config.get_terminal_writer(), [line]):
                self._reporter.write(shown + "\n", flush=True)

    def _uncaptured(self) -> AbstractContextManager[object]:
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        return nullcontext() if capture is None else capture.global_and_fixture_disabled()


def _batch_words(coordinator: Coordinator) -> str:
    """Return how the batches stand that are out; empty for none."""
    batches, calls, answered = (0, 0, 0) if coordinator.batches is None else coordinator.batches.progress
    if not batches:
        return ""
    minutes = (time.perf_counter() - coordinator.started) / 60
    return (
        f" · {count_text(batches, 'batch', 'batches')}: {calls} calls, {answered} answered, {minutes:.0f} min"
    )


def _terminal_size() -> os.terminal_size | None:
    """Return the terminal's size now, in spite of captured output; None where there is no terminal."""
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()) if sys.__stdout__ is not None else None
    except (OSError, ValueError):  # no terminal any more; closed
        return None


@dataclass(frozen=True, slots=True)
class SessionProgress:
    """The progress of a session.

    Args:
        by_model: Counts of each model.
        planned: Number of all cases.
        expected_usd: Expected cost of the whole session; None where a price is unknown.
        in_flight: Label, model and age in seconds of each call in flight, the oldest first.
        waits_for_limits: A call waits for a rate limit or a pause.
    """

    counts: RunCounts
    by_model: Mapping[str, RunCounts]
    planned: int
    expected_usd: float | None
    elapsed_s: float
    in_flight: Sequence[tuple[str, str, float]] = ()
    waits_for_limits: bool = False


def progress_text(progress: SessionProgress) -> str:
    """Return the line of a log: cases done, the score so far, errors by kind, cost, time left."""
    parts = _parts(progress)
    if progress.expected_usd is not None:
        parts["cost"] = parts["cost"].replace(" USD", f" of about {usd(progress.expected_usd)} USD")
    named = (parts.get(name) for name in ("done", "score", "errors", "cost", "left"))
    return f"helmbench: {', '.join(part for part in named if part is not None)}"


def live_text(progress: SessionProgress, columns: int) -> str:
    """Return the line of a terminal: as `progress_text`, with the calls in flight, cut to its width."""
    parts = _parts(progress)
    parts["in flight"] = f"{len(progress.in_flight)} in flight"
    if progress.waits_for_limits:
        parts["in flight"] += ", waiting for limits"
    if "left" in parts:
        parts["left"] = parts.pop("left")  # behind the calls
    if progress.in_flight and progress.in_flight[0][2] >= _OLD_S:
        label, model, age_s = progress.in_flight[0]
        parts["oldest"] = f"{label} [{model}] since {age_s:.0f} s"
    for name in _DROPPED_FIRST:
        if display_width(" · ".join(parts.values())) <= columns:
            break
        parts.pop(name, None)
    return fitted(" · ".join(parts.values()), columns)


def _parts(progress: SessionProgress) -> dict[str, str]:
    """Return the parts of the line by name.

    The score is the share of the severity points that was kept, behaviours together: an estimate while the session
    runs. The figure behind ± is half of a 95 % interval for as many cases. Among several models it is that of the
    leader: the model with the highest lower bound.
    """
    counts = progress.counts
    parts = {"done": f"{counts.results}/{progress.planned} done"}
    estimates = [(*_estimate(one), model) for model, one in progress.by_model.items() if one.points]
    if estimates:
        share, interval, model = max(estimates, key=lambda found: found[1].low)
        whose = f"leader {excerpt(model, _LONGEST_NAME)}" if len(progress.by_model) > 1 else "score"
        parts["score"] = f"{whose} {100 * share:.1f} % ± {50 * (interval.high - interval.low):.1f}"
    parts["cost"] = f"{cost_text(counts.known_cost_usd, counts.unknown_costs)} USD"
    if counts.verdicts[Verdict.ERROR]:
        parts["errors"] = f"errors: {reasons_text(counts.reasons)}"
    if counts.results and counts.results < progress.planned:
        left_s = progress.elapsed_s * (progress.planned - counts.results) / counts.results
        parts["left"] = f"{_span(left_s)} left"
    return parts


def _estimate(counts: RunCounts) -> tuple[float, Interval]:
    kept = max(0.0, min(1.0, 1 - counts.points_lost / counts.points))
    return kept, rows_interval(kept, counts.judged)


def _span(seconds: float) -> str:
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    return f"{round(whole / 60)} min" if whole < 90 * 60 else f"{whole / 3600:.1f} h"
