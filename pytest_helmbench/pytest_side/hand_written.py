"""Hand-written tests in a session of ours: what they see of it, and the fixture that leads their calls to a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_helmbench.benchmarks.python_tests import TURN_FIXTURE
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome
from pytest_helmbench.engine.job import CaseJob
from pytest_helmbench.engine.job_queue import JobQueue
from pytest_helmbench.pytest_side.items import HAND_WRITTEN
from pytest_helmbench.pytest_side.role import SessionRole
from pytest_helmbench.run.library import Library
from pytest_helmbench.run.plan import Notes

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.kind import Loaded
    from pytest_helmbench.benchmarks.python_tests.clients import Connection
    from pytest_helmbench.benchmarks.python_tests.hooks import HandWrittenTests
    from pytest_helmbench.core.outline import RowOutline


@dataclass(frozen=True, slots=True)
class TestsInSession:
    """A session as its hand-written tests see it.

    Args:
        role: Of this process.
        library: The session's benchmarks; the tests become one of them.
        notes: What the summary says.
        draw: Draws the progress.
        repeat: Repetitions of every test.
        with_text: Failures show texts of replies.
        wants_properties: A JUnit report is written.
    """

    __test__ = False  # pytest collects classes of this name

    role: SessionRole
    library: Library
    notes: Notes
    draw: Callable[[], None]
    repeat: int
    with_text: bool
    wants_properties: bool

    @property
    def engine(self) -> JobQueue[CaseJob] | None:
        """See `SessionRole.engine`."""
        return self.role.engine

    def plan_tests(self, outline: RowOutline) -> Loaded:
        """See `Library.adopt`."""
        return self.library.adopt(outline)

    def known(self, job: CaseJob) -> Outcome | None:
        """See `SessionRole.known`."""
        return self.role.known(job)

    def note(self, sentence: str) -> None:
        """Say something in the summary."""
        self.notes.say(sentence)

    def tick(self) -> None:
        """Draw the progress."""
        self.draw()


def asks_a_model(metafunc: pytest.Metafunc) -> bool:
    """Return whether a test function uses a fixture of ours."""
    return TURN_FIXTURE in metafunc.fixturenames


def hand_written_tests(config: pytest.Config, session: TestsInSession) -> HandWrittenTests:
    """Bring the hooks of hand-written tests in, when the first one is met.

    Raises:
        HelmbenchError: The models.yml in rootdir or an id in it cannot be used.
    """
    from pytest_helmbench.benchmarks.python_tests.hooks import HandWrittenTests  # few sessions have any

    tests = HandWrittenTests(config, session, TURN_FIXTURE, HAND_WRITTEN)
    config.pluginmanager.register(tests, "helmbench-tests")
    return tests


def turn(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """Lead the calls of a test to its model until it has ended: the fixture that all of ours have in common."""
    from pytest_helmbench.benchmarks.python_tests.hooks import turn as lead  # few sessions have any

    yield from lead(request)
