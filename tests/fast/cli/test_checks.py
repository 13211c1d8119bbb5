"""What `helmbench check` says about trees that load but measure little, and what listing a large one costs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from trees import CATEGORY_SCHEMA, Part, Tree, judged, write_tree

from pytest_helmbench.benchmarks.scenario_trees.authoring import ReadTree
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.static_checks import static_warnings
from pytest_helmbench.cli.at_hand import listing_lines

POLARITY = ("category: RISK", "evaluation:", "  polarity: by_severity")
CONSTANT = "constant answer: one reply passes every scored case of P1-B1: "


def parts(*severities: int) -> dict[str, Part]:
    return {f"PT{n}": Part(f"Message {n}.", severity) for n, severity in enumerate(severities, 1)}


def field_schema(**field: Any) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": {"tags": field},
        "required": ["tags"],
        "additionalProperties": False,
    }


def tags(*lines: str, severities: Sequence[int] = (5,), **items: Any) -> Tree:
    schema = field_schema(type="array", items={"type": "string", "enum": ["A", "B", "C"]}, **items)
    front = ("evaluation:", *(f"  {line}" for line in ("field: tags", *lines)))
    return Tree(front, schema, parts(*severities))


def category(*severities: int, front: Sequence[str] = ("category: RISK",)) -> Tree:
    return Tree(front, CATEGORY_SCHEMA, parts(*severities))


def messages(root: Path, **scenarios: Tree) -> list[str]:
    benchmark = load_tree(write_tree(root, {f"P1-B1-{name}": tree for name, tree in scenarios.items()}))
    assert benchmark.problems == {}
    found = static_warnings(benchmark)
    return [problem.message for problem in found]


def test_one_reply_that_passes_a_whole_behaviour_is_named(tmp_path: Path) -> None:
    assert messages(tmp_path / "one", S1=category(3, 5)) == [CONSTANT + 'category = "RISK"']
    listed = tags("type: list_includes", "required: [A, C]")
    assert messages(tmp_path / "list", S1=listed) == [CONSTANT + 'tags = ["A", "C"]']
    # Returning all tags passes two scenarios that want different ones.
    other = tags("type: list_includes", "required: [B]")
    assert messages(tmp_path / "all", S1=listed, S2=other) == [CONSTANT + 'tags = ["A", "B", "C"]']


def test_cases_that_want_another_reply_silence_the_constant_answer(tmp_path: Path) -> None:
    turned = category(5, -4, front=POLARITY)
    assert messages(tmp_path / "polarity", S1=turned) == []
    # A neutral case wants the other reply, but is not scored.
    one_way = category(-4, 0, front=POLARITY)
    assert messages(tmp_path / "neutral", S1=one_way) == [CONSTANT + 'category = "CALM"']
    assert messages(tmp_path / "two", S1=category(5), S2=category(5, front=("category: CALM",))) == []
    judge = messages(tmp_path / "judge", S1=category(5), S2=judged("x"))
    assert judge == []  # nobody knows what a judge says
    exact = tags("type: tag_threshold", "expected: [A]")
    assert messages(tmp_path / "tags", S1=exact, S2=tags("type: tag_threshold", "expected: [B]")) == []


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (
            tags("type: tag_threshold", "expected: [A]", "min_correct: 0", "max_incorrect: 2"),
            "constant answer: every reply that fits the schema passes",
        ),
        (
            tags("type: list_includes", "required: [A, B]", maxItems=1),
            "unreachable expectation: no reply that fits the schema passes",
        ),
        (
            Tree(
                ("category: X", "evaluation:", "  field: tags", "  polarity: by_severity"),
                field_schema(type="string", enum=["X"]),
                parts(5, -5),
            ),
            "constant answer: every reply that fits the schema passes|unreachable expectation: no reply that"
            " fits the schema passes where the base severity is below 0",
        ),
    ],
)
def test_a_rule_that_says_nothing_is_named(tmp_path: Path, tree: Tree, message: str) -> None:
    assert messages(tmp_path, S1=tree) == message.split("|")


def test_a_rubric_whose_every_option_passes_is_named_with_its_line(tmp_path: Path) -> None:
    rubric = {"criteria.md": "---\noptions: [GOOD, BAD]\npass_values: [GOOD, BAD]\n---\n\nGood?\n"}
    tree = Tree(("evaluation:", "  type: sqe"), None, parts(5), rubrics=rubric)
    root = write_tree(tmp_path, {"P1-B1-S1": tree})
    (found,) = static_warnings(load_tree(root))
    assert found.text(root).splitlines() == [
        "scenarios/P1-B1-S1/criteria.md:3: constant answer: every option of the rubric passes",
        "  hint: leave out of pass_values what is wrong",
    ]


def test_lopsided_and_mostly_neutral_severities_are_named(tmp_path: Path) -> None:
    lopsided = category(10, 10, -1, front=POLARITY)
    assert messages(tmp_path / "lopsided", S1=lopsided) == [
        "unbalanced severities: in P1-B1 20 points lie above 0 and 1 below,"
        " so a model that flags everything scores at least 95 %"
    ]
    neutral = category(4, -4, 0, 0, 0, front=POLARITY)
    assert messages(tmp_path / "neutral", S1=neutral) == [
        "unbalanced severities: 3 of 5 cases of P1-B1 have base severity 0 and are ignored by scores"
    ]
    # Where nothing has a severity, every case counts, so nothing is ignored.
    unweighted = messages(
        tmp_path / "unweighted", S1=category(0, 0), S2=category(0, front=("category: CALM",))
    )
    assert unweighted == []


def test_listing_ten_thousand_cases_takes_no_second(tmp_path: Path) -> None:
    perturbations = {f"PT{n}": Part(f"Message {n}.", 3) for n in range(1, 101)}
    conditions = {f"C{n}": Part(f"Condition {n}.") for n in range(1, 11)}
    tree = Tree(("category: RISK",), CATEGORY_SCHEMA, perturbations, conditions)
    benchmark = load_tree(write_tree(tmp_path, {f"P1-B1-S{n}": tree for n in range(1, 11)}))
    started = time.thread_time()
    lines = list(listing_lines(ReadTree(benchmark, add_no_context=False).listing()))
    assert time.thread_time() - started < 1
    assert lines[-1] == "10 scenarios, 10000 cases"
