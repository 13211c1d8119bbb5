"""Items that pytest collects of a benchmark: ids, order, markers, layouts."""

from __future__ import annotations

import json

import pytest
from trees import (
    MODEL,
    Part,
    Tree,
    category,
    collected,
    judged_twice,
    run_tree,
    write_tree,
)

_LISTING = ("--collect-only", "-q", f"--helmbench-model={MODEL}")


def _wide(*, individual: bool) -> Tree:
    """Codes whose natural order is not that of their letters, written in disorder."""
    parts = {code: Part(f"## Part\n\n{code}.") for code in ("PT10", "PT2", "PT1b", "PT1a")}
    conditions = {code: Part("## Tone\n\nBe calm.") for code in ("C10", "C2")}
    contexts = {code: Part("## Who\n\nA friend.") for code in ("U2", "U1")}
    tree = category()
    return Tree(
        tree.evaluation,
        tree.schema,
        perturbations=parts,
        conditions=conditions,
        user_contexts=contexts,
        individual=individual,
    )


_WIDE_CODES = [
    f"P1-B1-S1-{condition}-{context}-{perturbation}"
    for condition in ("C2", "C10")
    for context in ("U1", "U2")
    for perturbation in ("PT1a", "PT1b", "PT2", "PT10")
]


@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
@pytest.mark.parametrize("individual", [False, True], ids=["consolidated", "individual"])
def test_every_layout_gives_the_same_ids_in_natural_order(
    pytester: pytest.Pytester, nested: bool, individual: bool
) -> None:
    folder = pytester.path / "benchmark"
    write_tree(
        folder, {"P1-B10-S1": category("RISK"), "P1-B1-S1": _wide(individual=individual)}, nested=nested
    )

    result = run_tree(pytester, *_LISTING)

    file = "P1/B1/S1/S1.md" if nested else "P1-B1-S1/S1.md"
    last = file.replace("B1", "B10")
    ids = [line for line in result.outlines if "::" in line]
    assert ids == [
        *(f"benchmark/scenarios/{file}::{code}[test/good]" for code in _WIDE_CODES),
        f"benchmark/scenarios/{last}::P1-B10-S1-C1-PT1[test/good]",
    ]
    assert result.ret == pytest.ExitCode.OK
    assert not (pytester.path / "helmbench.db").exists()


def test_every_case_carries_its_marker(pytester: pytest.Pytester) -> None:
    contexts = {"U1": Part("## Who\n\nA friend.", -2)}
    trees = {"P1-B1-S1": category("RISK"), "P1-B2-S1": judged_twice("x", user_contexts=contexts)}
    write_tree(pytester.path / "benchmark", trees)
    pytester.makeconftest(
        """
        import json

        def pytest_collection_finish(session):
            for item in session.items:
                print("MARK", json.dumps(item.get_closest_marker("helmbench").kwargs))
        """
    )

    result = run_tree(pytester, *_LISTING, "-s", "--helmbench-repeat=2", "--strict-markers")

    marks = [json.loads(line.removeprefix("MARK ")) for line in result.outlines if line.startswith("MARK ")]
    assert marks[0] == {
        "pillar": "P1",
        "behaviour": "P1-B1",
        "scenario": "P1-B1-S1",
        "condition": "C1",
        "user_context": None,
        "perturbation": "PT1",
        "model": "test/good",
        "family": "category_match",
        "severity": 5,
        "repetition": 1,
    }
    assert [mark["repetition"] for mark in marks] == [1, 2, 1, 2]
    assert marks[3] | {"model": "", "pillar": ""} == {
        "pillar": "",
        "behaviour": "P1-B2",
        "scenario": "P1-B2-S1",
        "condition": "C1",
        "user_context": "U1",
        "perturbation": "PT1",
        "model": "",
        "family": "sqe",
        "severity": 3,
        "repetition": 2,
    }


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        (["-m", "helmbench(behaviour='P1-B1')"], ["P1-B1-S1-C1-PT1", "P1-B1-S1-C1-PT2"]),
        (["-m", "helmbench(behaviour='P1-B1', perturbation='PT2')"], ["P1-B1-S1-C1-PT2"]),
        (["-m", "helmbench and not helmbench(severity=5)"], ["P2-B1-S1-C1-PT1"]),
        (["-k", "P1-B1"], ["P1-B1-S1-C1-PT1", "P1-B1-S1-C1-PT2", "P1-B10-S1-C1-PT1"]),
        (["-k", "PT2 or P2"], ["P1-B1-S1-C1-PT2", "P2-B1-S1-C1-PT1"]),
    ],
    ids=["behaviour", "two-facts", "severity", "substring", "or"],
)
def test_marks_and_keywords_select(pytester: pytest.Pytester, options: list[str], codes: list[str]) -> None:
    harmless = Tree(category().evaluation, category().schema, {"PT1": Part("## Say\n\nHello.", -3)})
    trees = {"P1-B1-S1": category("RISK", "CALM"), "P1-B10-S1": category("RISK"), "P2-B1-S1": harmless}
    write_tree(pytester.path / "benchmark", trees)

    result = run_tree(pytester, *_LISTING, *options)

    assert collected(result) == [f"{code}[test/good]" for code in codes]
