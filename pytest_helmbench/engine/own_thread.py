"""A thread of this process that judges one reply after the other, beside the event loop."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.engine.rule_faults import held
from pytest_helmbench.judging.evaluator import Evaluator

__all__ = ["JudgingThread", "Told"]

Told = Callable[[object, float], object]
"""Takes what was found, and the CPU milliseconds that it took."""


class JudgingThread:
    """One thread: several would wait for the interpreter, and the event loop behind them all.

    Nobody waits for it at the end: a rule may run without one.
    """

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[tuple[Evaluator[object], Reply, Told] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, evaluator: Evaluator[object], reply: Reply, told: Told) -> None:
        """Judge a reply when those before it are judged."""
        self._waiting.put((evaluator, reply, told))
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="helmbench-judging", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Have it end after the reply that it is at."""
        self._waiting.put(None)

    def _serve(self) -> None:
        while (taken := self._waiting.get()) is not None:
            evaluator, reply, told = taken
            began = time.thread_time()
            found = held(evaluator, reply)
            told(found, (time.thread_time() - began) * 1000)
