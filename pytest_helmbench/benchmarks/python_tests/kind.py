"""Hand-written tests as a kind of benchmark, and as authors read them: pytest knows all about them."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.benchmarks.authoring import Checked, ReadBenchmark
from pytest_helmbench.benchmarks.kind import SessionValues
from pytest_helmbench.benchmarks.python_tests.jobs import HandWritten
from pytest_helmbench.benchmarks.python_tests.places import PLACES
from pytest_helmbench.core.outline import RowOutline
from pytest_helmbench.core.problem import Problem, UnreadableBenchmarkError
from pytest_helmbench.engine.job import Target


class PythonTests:
    name = PLACES.name

    def open(self, _session: SessionValues) -> TestAdopter:
        return TestAdopter()


class TestAdopter:
    """Makes the tests of a project a benchmark among the others. There is one per session."""

    __test__ = False

    def __init__(self) -> None:
        self._tests: HandWritten | None = None

    def load(self, root: Path, _targets: tuple[Target, ...]) -> HandWritten:
        """Never called: no folder is one."""
        raise TypeError(f"{root}: pytest collects hand-written tests")

    def adopt(self, outline: RowOutline, targets: tuple[Target, ...]) -> HandWritten:
        if self._tests is None:
            self._tests = HandWritten(outline, targets)
        self._tests.narrow(outline)
        return self._tests

    async def close(self) -> None:
        """Stop listening."""
        if self._tests is not None:
            await self._tests.close()


class TestAuthoring:
    __test__ = False

    def check(self, root: Path, _session: SessionValues) -> Checked:
        """Refuse: no folder is a benchmark of this kind."""
        raise _collected_by_pytest(root)

    def read(self, root: Path, _session: SessionValues) -> ReadBenchmark:
        """Refuse: no folder is a benchmark of this kind."""
        raise _collected_by_pytest(root)


def _collected_by_pytest(root: Path) -> UnreadableBenchmarkError:
    hint = "`pytest --collect-only` lists them"
    return UnreadableBenchmarkError(
        (Problem(root, None, "hand-written tests are collected by pytest", hint),)
    )


KIND = PythonTests()
AUTHORING = TestAuthoring()
