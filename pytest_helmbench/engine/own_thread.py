"""A thread of this process that judges one reply after the other, beside the event loop."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.judging.evaluator import Evaluator

__all__ = ["JudgingThread", "Told"]

Told = Callable[[object, Exception | None, float], object]
"""Takes what was found, or what was raised, and the CPU milliseconds that it took."""


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
            found: object = None
            raised: Exception | None = None
            try:
                found = evaluator.evaluate(reply)
            except Exception as error:  # noqa: BLE001 - it is raised where the reply is waited for
                raised = error
            told(found, raised, (time.thread_time() - began) * 1000)
