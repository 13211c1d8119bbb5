"""Stopping a model: its calls end, at once where they wait, after a grace where they are on the wire."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from pytest_helmbench.gateway.permits import ModelStoppedError

__all__ = ["ModelStops"]

_Tasks = defaultdict[str, set["asyncio.Task[object]"]]


class ModelStops:
    """The models of a process that have stopped, and the calls of all others. Used on the loop.

    Args:
        grace_s: How long calls on the wire are waited for: they may be paid, and a reply that still comes is kept.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._sentences: dict[str, str] = {}
        self._asleep: _Tasks = defaultdict(set)
        self._on_the_wire: _Tasks = defaultdict(set)
        self._ended: set[asyncio.Task[object]] = set()

    def sentence(self, model: str) -> str | None:
        """Return why a model has stopped; None while it goes on."""
        return self._sentences.get(model)

    def check(self, model: str) -> None:
        """Raise `ModelStoppedError` when a model has stopped."""
        if model in self._sentences:
            raise ModelStoppedError(self._sentences[model])

    def stop(self, model: str, sentence: str) -> None:
        """End every call of a model."""
        if model in self._sentences:
            return
        self._sentences[model] = sentence
        self._end(self._asleep[model])
        asyncio.get_running_loop().call_later(self._grace_s, self._end, self._on_the_wire[model])

    def _end(self, tasks: set[asyncio.Task[object]]) -> None:
        for task in tuple(tasks):
            self._ended.add(task)
            task.cancel()

    @contextmanager
    def asleep(self, model: str) -> Iterator[None]:
        """Inside, a model that stops ends the wait: the task's cancellation becomes `ModelStoppedError`."""
        with self._stoppable(model, self._asleep[model]):
            yield

    @contextmanager
    def on_the_wire(self, model: str) -> Iterator[None]:
        """Inside, a model that stops ends the call when its grace is over, as in `asleep`."""
        with self._stoppable(model, self._on_the_wire[model]):
            yield

    @contextmanager
    def _stoppable(self, model: str, tasks: set[asyncio.Task[object]]) -> Iterator[None]:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("calls are made inside of tasks")
        tasks.add(task)
        try:
            yield
        except asyncio.CancelledError:
            # Whoever else cancelled the task must be obeyed.
            if task not in self._ended or task.uncancel() > 0:
                raise
            raise ModelStoppedError(self._sentences[model]) from None
        finally:
            tasks.discard(task)
            self._ended.discard(task)
