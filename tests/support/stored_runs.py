"""Runs of a scenario tree with conditions and user contexts, stored as a session stores them, of any size."""

from __future__ import annotations

from pathlib import Path

from trees import CATEGORY_SCHEMA, Part, Tree, write_tree
from viewers import record

from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.store.write.run_rows import RunRecord
from pytest_helmbench.store.write.writer import Store

__all__ = ["stored_run"]

_AXIS = 5
_AT = "2026-11-23T08:00:00+00:00"


def stored_run(store: Store, root: Path, scenarios: int, perturbations: int) -> int:
    """Store a run in which every fifth case fails, and return its id.

    Args:
        store: Open.
        root: Folder for the benchmark; made.
        scenarios: Of the tree, four of a behaviour; each with five conditions and five user contexts.
        perturbations: Of each scenario.
    """
    codes = [f"P{1 + n // 4 % 6}-B{1 + n // 24}-S{1 + n % 4}" for n in range(scenarios)]
    tree = load_tree(write_tree(root, dict.fromkeys(codes, _scenario(perturbations))))
    cases = [one.code for scenario in tree.scenarios.values() for one in scenario.combinations()]
    (run,) = store.open_runs(
        root.name,
        [
            RunRecord(
                *(tree, "test/m", "test", None, "whole", len(cases), None, {}, "0.1.0", _AT, tuple(cases))
            )
        ],
    )
    for number, code in enumerate(cases):
        verdict = Verdict.PASSED if number % 5 else Verdict.FAILED
        record(store, run, number, verdict=verdict, code=code, flush=False)
    store.flush()
    return run


def _scenario(perturbations: int) -> Tree:
    axis = range(1, _AXIS + 1)
    return Tree(
        ("category: RISK",),
        CATEGORY_SCHEMA,
        {f"PT{n}": Part(f"## Input\n\nMessage {n}.", 1 + n % 9) for n in range(1, perturbations + 1)},
        {f"C{n}": Part("## Tone\n\nBe calm.", n) for n in axis},
        {f"U{n}": Part("## User\n\nSomebody.", n % 3) for n in axis},
    )
