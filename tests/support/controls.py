"""The run without a candidate that a verdict may ask for: made once for all candidates of a row.

The result of a row without a candidate never changes; over fifty attacks it would cost more than they do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

import pytest

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentRow
from pytest_helmbench.benchmarks.packs.evidence.verdicts import CommandRun
from pytest_helmbench.benchmarks.packs.families.repo_patch.evaluation import RowTests
from pytest_helmbench.benchmarks.packs.families.terminal_task.evaluation import RowChecker
from pytest_helmbench.benchmarks.packs.task import PackTask

__all__ = ["controls_once"]


@contextmanager
def controls_once() -> Iterator[None]:
    """Remember the runs of equal rows while this lasts."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in (RowTests, RowChecker):
            _remember(kind, patch)
        yield


def _values(of: RowTests | RowChecker | AgentRow | PackTask) -> list[object]:
    """Return its fields, but for the row and its task: two of the same values are the same."""
    values = (getattr(of, field.name) for field in fields(of))
    return [value for value in values if not isinstance(value, AgentRow | PackTask)]


def _remember(kind: type[RowTests | RowChecker], patch: pytest.MonkeyPatch) -> None:
    really = kind.without
    known: list[tuple[object, asyncio.Future[CommandRun]]] = []

    async def without(self: RowTests | RowChecker, collects: bool) -> CommandRun:
        what = (_values(self), _values(self.row), _values(self.row.task), collects)
        for asked, running in known:
            if asked == what:
                return await running
        running = asyncio.ensure_future(really(self, collects))  # type: ignore[arg-type]
        known.append((what, running))
        return await running

    patch.setattr(kind, "without", without)
