"""Messages of checking and listing trees beyond those of loading, and the time that it takes."""

from __future__ import annotations

from pathlib import Path

from growth import grows_in_proportion
from trees import CATEGORY_SCHEMA, Part, Tree, write_tree

from pytest_helmbench.benchmarks.scenario_trees.authoring import ReadTree
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.cli.lookup import listing_lines


def test_listing_takes_time_in_proportion_to_the_cases(tmp_path: Path) -> None:
    perturbations = {f"PT{n}": Part(f"Message {n}.", 3) for n in range(1, 101)}
    conditions = {f"C{n}": Part(f"Condition {n}.") for n in range(1, 11)}
    tree = Tree(("category: RISK",), CATEGORY_SCHEMA, perturbations, conditions)

    def made(cases: int) -> ReadTree:
        trees = {f"P1-B1-S{n}": tree for n in range(1, cases // 1000 + 1)}
        return ReadTree(load_tree(write_tree(tmp_path / f"of-{cases}", trees)), add_no_context=False)

    assert list(listing_lines(made(8000).listing()))[-1] == "8 scenarios, 8000 cases"
    assert grows_in_proportion(lambda read: list(listing_lines(read.listing())), made, 8000)
