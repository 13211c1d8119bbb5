"""Hand-written tests have no folder to be found by: pytest collects them, as it does any test."""

from __future__ import annotations

from pytest_helmbench.benchmarks.kind import KindPlaces

PLACES = KindPlaces(
    name="python_tests",
    module="pytest_helmbench.benchmarks.python_tests.kind",
    authoring="pytest_helmbench.benchmarks.python_tests.kind",
    signs=(),
    detect=lambda _path: False,
    not_rescored="hand-written tests alone can judge their replies\n"
    "  hint: --helmbench-cache=only replays them through the tests of now, without a call",
)
