"""Hand-written tests that call a model: their hooks, and the fixture that routes their calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_helmbench.benchmarks.python_tests import TURN_FIXTURE
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.pytest_side.collect.items import HAND_WRITTEN
from pytest_helmbench.pytest_side.workers.role import SessionRole
from pytest_helmbench.run.library import Library
from pytest_helmbench.run.plan import Notes

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.python_tests.clients import Connection
    from pytest_helmbench.benchmarks.python_tests.hooks import HandWrittenTests


def asks_a_model(metafunc: pytest.Metafunc) -> bool:
    """Return whether a test function uses one of our fixtures."""
    return TURN_FIXTURE in metafunc.fixturenames


def hand_written_tests(
    config: pytest.Config,
    settings: Settings,
    library: Library,
    role: SessionRole,
    notes: Notes,
    tick: Callable[[], None],
) -> HandWrittenTests:
    """Register the hooks of hand-written tests, when the first one is collected.

    Raises:
        HelmbenchError: The models.yml in rootdir or an id in it cannot be used.
    """
    # Few sessions have any.
    from pytest_helmbench.benchmarks.python_tests.hooks import HandWrittenSession, HandWrittenTests

    session = HandWrittenSession(
        repeat=settings.repeat,
        with_text=settings.shown_texts.any,
        wants_properties=bool(config.getoption("xmlpath", None)),
        engine=lambda: role.engine,
        plan_tests=library.adopt,
        known=role.known,
        note=notes.say,
        tick=tick,
    )
    tests = HandWrittenTests(config, session, TURN_FIXTURE, HAND_WRITTEN)
    config.pluginmanager.register(tests, "helmbench-tests")
    return tests


def turn(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """Route the calls of a test to its model until it ends. All our fixtures use this one."""
    from pytest_helmbench.benchmarks.python_tests.hooks import turn as run_turn  # few sessions have any

    yield from run_turn(request)
