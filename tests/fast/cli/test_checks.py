"""The time that listing a large tree takes."""

from __future__ import annotations

import time
from pathlib import Path

from trees import CATEGORY_SCHEMA, Part, Tree, write_tree

from pytest_helmbench.benchmarks.scenario_trees.authoring import ReadTree
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.cli.at_hand import listing_lines


def test_listing_ten_thousand_cases_takes_no_second(tmp_path: Path) -> None:
    perturbations = {f"PT{n}": Part(f"Message {n}.", 3) for n in range(1, 101)}
    conditions = {f"C{n}": Part(f"Condition {n}.") for n in range(1, 11)}
    tree = Tree(("category: RISK",), CATEGORY_SCHEMA, perturbations, conditions)
    benchmark = load_tree(write_tree(tmp_path, {f"P1-B1-S{n}": tree for n in range(1, 11)}))
    started = time.thread_time()
    lines = list(listing_lines(ReadTree(benchmark, add_no_context=False).listing()))
    assert time.thread_time() - started < 1
    assert lines[-1] == "10 scenarios, 10000 cases"
