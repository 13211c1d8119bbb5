"""Hand-written tests as authors read them: pytest knows all about them."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.benchmarks.authoring import Checked, Reading
from pytest_helmbench.benchmarks.kind import SessionValues
from pytest_helmbench.core.problem import Problem, UnreadableBenchmarkError


class TestAuthoring:
    """See `Authoring`."""

    __test__ = False

    def check(self, root: Path, _session: SessionValues) -> Checked:
        """See `Authoring.check`; no folder is one."""
        raise _collected_by_pytest(root)

    def read(self, root: Path, _session: SessionValues) -> Reading:
        """See `Authoring.read`; no folder is one."""
        raise _collected_by_pytest(root)


def _collected_by_pytest(root: Path) -> UnreadableBenchmarkError:
    hint = "`pytest --collect-only` lists them"
    return UnreadableBenchmarkError(
        (Problem(root, None, "hand-written tests are collected by pytest", hint),)
    )


AUTHORING = TestAuthoring()
