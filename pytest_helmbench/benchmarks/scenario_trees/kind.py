"""Scenario trees as a kind of benchmark."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.benchmarks.kind import SessionValues
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.jobs import LoadedTree
from pytest_helmbench.benchmarks.scenario_trees.places import PLACES
from pytest_helmbench.engine.job import Target


class ScenarioTrees:
    """See `BenchmarkKind`."""

    name = PLACES.name

    def open(self, session: SessionValues) -> TreeLoader:
        """See `BenchmarkKind.open`."""
        return TreeLoader(add_no_context=session.settings.add_no_context)


class TreeLoader:
    """Loads scenario trees; they share nothing.

    Args:
        add_no_context: Cases without a user context are added.
    """

    def __init__(self, *, add_no_context: bool) -> None:
        self._add_no_context = add_no_context

    def load(self, root: Path, targets: tuple[Target, ...]) -> LoadedTree:
        """See `Loader.load`."""
        return LoadedTree(load_tree(root), targets, add_no_context=self._add_no_context)

    async def close(self) -> None:
        """Nothing was made."""


KIND = ScenarioTrees()
