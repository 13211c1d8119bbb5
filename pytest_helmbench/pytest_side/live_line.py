"""Progress of a session: one line under pytest's own on a terminal, a plain line a minute elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.pytest_side.announcement import plan_price
from pytest_helmbench.pytest_side.ci import in_ci
from pytest_helmbench.reports.session_progress import Progress, in_flight_text, progress_text
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.run.coordinator import Coordinator

_DRAW_EVERY_S = 0.2
_LONG_LIMIT_S = 60.0

# Below the line that pytest is writing, without moving its cursor: down and up again makes room at the bottom.
_BELOW = "\x1bD\x1b[A\x1b7\x1b[B\r\x1b[2K"
_BACK = "\x1b8"
_WIPE = "\x1b7\x1b[B\r\x1b[2K\x1b8"


class LiveLine:
    """One line with what is done, the score so far, errors, cost and time left, from the process that has the record.

    On a terminal it stands below pytest's own line; elsewhere, and in CI, it is printed once a minute.

    Args:
        config: pytest's.
        coordinator: Of the session; None in an xdist worker, which prints nothing.
        look: Called with each tick; may end the session.
    """

    def __init__(
        self, config: pytest.Config, coordinator: Coordinator | None, look: Callable[[], None]
    ) -> None:
        self._config = config
        self._look = look
        self._coordinator = coordinator
        self._lock = threading.Lock()
        self._drawn_at = self._said_at = time.monotonic()
        self._shown = False
        self._said_limited: set[str] = set()
        self._said_unreached: set[str] = set()
        self._reporter: Any = None
        self._terminal: bool | None = None
        self._expected_usd: float | None = None
        self._knows_price = False

    def tick(self) -> None:
        """Say how far the session is, where that is due. Whoever waits calls it about once a second."""
        self._look()
        coordinator = self._coordinator
        if coordinator is None:
            return
        slow = coordinator.commits.slow_sentence() if coordinator.commits is not None else None
        if slow is not None:
            self._say(slow)
        for sentence in (*self._long_limits(coordinator), *self._unreached(coordinator)):
            self._say(sentence)
        self.printed()

    def printed(self) -> None:
        """Say how far the session is, where that is due: somebody has printed, and the line was taken away."""
        coordinator, now = self._coordinator, time.monotonic()
        if coordinator is None or coordinator.limiter is None:
            return
        if self._on_a_terminal():
            if now - self._drawn_at < _DRAW_EVERY_S:
                return
            self._drawn_at = now
            line = self._progress(coordinator, in_flight=True)
            self._write(lambda width: _BELOW + scrub(line)[: max(20, width - 1)] + _BACK)
            self._shown = True
        elif self._printer() is not None and 0 < coordinator.settings.heartbeat_s <= now - self._said_at:
            self._said_at = now
            line = self._progress(coordinator, in_flight=False)
            self._write(lambda _width: scrub(line) + "\n", on_its_own=True)

    def _progress(self, coordinator: Coordinator, *, in_flight: bool) -> str:
        plan = coordinator.book.plan
        if plan is not None and not self._knows_price:
            self._knows_price = True
            span = plan_price(plan, coordinator)
            self._expected_usd = None if span is None else span.expected
        counts = RunCounts.sum(coordinator.book.tallies.values())
        now = Progress(
            counts,
            plan.tests - counts.no_cases if plan is not None else 0,
            self._expected_usd,
            time.perf_counter() - coordinator.started,
        )
        text = progress_text(now)
        if in_flight and coordinator.limiter is not None:
            text += f"; {in_flight_text(coordinator.limiter.calls_in_flight())}"
        return text

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

    def _unreached(self, coordinator: Coordinator) -> Iterator[str]:
        """Yield, once per model, that its server cannot be reached, while it is tried on."""
        for model, sentence in coordinator.unreached.sentences():
            if model not in self._said_unreached:
                self._said_unreached.add(model)
                if coordinator.settings.max_retries and model not in coordinator.stopped_models:
                    yield f"{model}: {sentence}: it is tried on"

    def clear(self) -> None:
        """Take the line away: somebody is about to print."""
        if self._shown:
            self._shown = False
            self._write(lambda _width: _WIPE)

    def _say(self, sentence: str) -> None:
        """Print a line that stays, on a terminal and in a log."""
        self.clear()
        if self._printer() is not None:
            self._write(lambda _width: f"helmbench: {scrub(sentence)}\n", on_its_own=True)

    def _printer(self) -> Any:
        if self._reporter is None:
            self._reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        return self._reporter

    def _on_a_terminal(self) -> bool:
        """Return whether there is one; looked at once, since this is asked three times a case."""
        if self._terminal is None and self._printer() is not None:
            self._terminal = not in_ci() and bool(getattr(self._reporter, "isatty", False))
        return bool(self._terminal)

    def _write(self, text: Callable[[int], str], *, on_its_own: bool = False) -> None:
        """Write past the capture; the width can be asked only there, where standard output is the terminal.

        Args:
            text: What, by the terminal's width.
            on_its_own: On a new line, wherever pytest's own stands: its letters under xdist are no line to it.
        """
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        with self._lock, capture.global_and_fixture_disabled() if capture else nullcontext():
            writer = self._config.get_terminal_writer()
            if on_its_own:
                self._reporter.ensure_newline()
                if writer.width_of_current_line:
                    self._reporter.write("\n")
            self._reporter.write(text(writer.fullwidth), flush=True)
