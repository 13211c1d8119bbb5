"""What checking and listing trees says beyond what loading them does, and the time that it takes."""

from __future__ import annotations

import time
from pathlib import Path

from trees import CATEGORY_SCHEMA, Part, Tree, write_tree

from pytest_helmbench.benchmarks.scenario_trees.authoring import ReadTree, checked_tree
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


def test_places_that_nothing_fills_are_warnings_of_a_check(tmp_path: Path) -> None:
    said = (
        "Hi {{name}}, {name} {{}} { {x} }.\n\nYou are in {{ user.city | upper }}.\nAgain {{name}} {{#if a}}"
    )
    tree = Tree(("category: RISK",), CATEGORY_SCHEMA, {"PT1": Part(said, 3), "PT2": Part("{{name}}", 3)}, {})
    root = write_tree(tmp_path, {"P1-B1-S1": tree})
    told = [problem for problem in checked_tree(root).warnings if "nothing fills it" in problem.message]
    lines = (root / "scenarios/P1-B1-S1/perturbations.md").read_text().splitlines()
    places = ["{{name}}", "{{ user.city | upper }}", "{{#if a}}"]
    assert [problem.message.split(" is ")[0] for problem in told] == places
    assert all(place in lines[(one.line or 0) - 1] for one, place in zip(told, places, strict=True))
    assert not load_tree(root).warnings
