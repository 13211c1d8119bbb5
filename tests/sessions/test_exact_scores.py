"""A tree of 9 scenarios, 660 cases and 714 evaluation rows: its numbers, computed a second way.

The reference below knows the specification only: it reads what the provider has answered and what stands in
the tree that it made, and adds up the table of section 6 row by row.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from provider import Provider, Request
from trees import (
    CATEGORY_SCHEMA,
    Part,
    Tree,
    clear_environment,
    includes,
    judged,
    judged_twice,
    rows,
    run_tree,
    threshold,
    write_tree,
)

from pytest_helmbench.cli.main import main
from pytest_helmbench.results.stored_scores import stored_score

_WEIGHTS: Mapping[str, int | str] = {"P1-B1": 12, "P1-B2": 3, "P2-B1": 8, "P2-B2": "2.5"}
_SHAPES = {  # conditions, user contexts, perturbations
    "P1-B1-S1": (5, 2, 12),
    "P1-B1-S2": (4, 3, 10),
    "P1-B2-S1": (3, 0, 30),
    "P1-B2-S2": (2, 2, 15),
    "P2-B1-S1": (5, 0, 12),
    "P2-B1-S2": (3, 2, 10),
    "P2-B2-S1": (3, 2, 9),
    "P2-B2-S2": (0, 2, 28),
    "P3-B1-S1": (4, 0, 10),
}


@dataclass(frozen=True, slots=True)
class Expected:
    """One case as the specification sees it."""

    code: str
    behaviour: str
    base: int
    difficulty: int
    criteria: int

    def right(self, criterion: int) -> bool:
        """Return what the provider makes of it: about two in three, spread without a pattern."""
        return zlib.crc32(f"{self.code} {criterion}".encode()) % 3 != 0


def _parts(prefix: str, count: int, low: int, high: int) -> dict[str, Part]:
    """Return components with weights that run through a range."""
    span = high - low + 1
    return {
        f"{prefix}{n}": Part(f"## Part {prefix}{n}\n\nThis is {prefix}{n}.", low + (7 * n) % span)
        for n in range(1, count + 1)
    }


def _trees() -> dict[str, Tree]:
    made = {}
    for code, (conditions, contexts, perturbations) in _SHAPES.items():
        unweighted = code.startswith("P3")
        made[code] = Tree(
            perturbations=_parts("PT", perturbations, *((0, 0) if unweighted else (-5, 10))),
            conditions=_parts("C", conditions, 0, 10),
            user_contexts=_parts("U", contexts, -3, 4),
            body=f"## Task\n\nThis is {code}.",
            **_rules(code),
        )
    return made


def _rules(code: str) -> dict[str, Any]:
    models = {
        "P1-B2-S1": includes(),
        "P1-B2-S2": threshold(),
        "P2-B1-S1": judged(),
        "P2-B2-S1": judged_twice(),
    }
    if code in models:
        found = models[code]
        return {
            "evaluation": found.evaluation,
            "schema": found.schema,
            "rubrics": found.rubrics,
            "prompt": found.prompt,
        }
    return {"evaluation": ("category: RISK",), "schema": CATEGORY_SCHEMA}


def _cases(trees: Mapping[str, Tree]) -> Iterator[Expected]:
    for scenario, tree in trees.items():
        for condition, difficulty in [(c, p.weight) for c, p in tree.conditions.items()] or [("", 0)]:
            for context, context_weight in [(u, p.weight) for u, p in tree.user_contexts.items()] or [
                ("", 0)
            ]:
                for perturbation, part in tree.perturbations.items():
                    yield Expected(
                        "-".join(filter(None, (scenario, condition, context, perturbation))),
                        scenario.rpartition("-")[0],
                        (part.weight or 0) + (context_weight or 0),
                        difficulty or 0,
                        max(1, len([name for name in tree.rubrics if name.startswith("CR")])),
                    )


def _answers(cases: list[Expected]) -> Mapping[str, Expected]:
    """Return the cases by what their prompts say."""
    found = {}
    for case in cases:
        pillar, behaviour, scenario, *rest = case.code.split("-")
        found[" ".join((f"{pillar}-{behaviour}-{scenario}", *rest))] = case
    return found


def _reply(cases: Mapping[str, Expected], request: Request) -> str:
    said = [
        word.rstrip(".")
        for line in request.prompt.splitlines()
        if line.startswith("This is ")
        for word in (line.split()[-1],)
    ]
    case = cases[" ".join(said)]
    if request.is_judge:
        criterion = 2 if "Point 2." in request.prompt else 1
        verdict = "GOOD" if case.right(criterion) else "BAD"
        return json.dumps({"evidence": [], "justification": "So it is.", "judgment": verdict})
    right = case.right(1)
    names = (request.schema or {})["properties"]
    if "tags" in names:
        return json.dumps({"tags": ["A", "B"] if right else ["D"]})
    if "category" in names:
        return json.dumps({"response": "x", "category": "RISK" if right else "CALM"})
    return json.dumps({"response": "x"})


@dataclass(slots=True)
class Sum:
    """Maximum and cost of one behaviour."""

    maximum: int = 0
    cost: Fraction = Fraction(0)


def _reference(cases: list[Expected]) -> dict[str, Sum]:
    sums: defaultdict[str, Sum] = defaultdict(Sum)
    weighted = {case.behaviour for case in cases if case.base}
    for case in cases:
        base = case.base if case.behaviour in weighted else 1
        for criterion in range(1, case.criteria + 1):
            sums[case.behaviour].maximum += abs(base)
            if not case.right(criterion):
                sums[case.behaviour].cost += Fraction(abs(base) * (10 - case.difficulty), 10)
    return dict(sums)


def test_the_numbers_of_714_rows_are_exact(
    pytester: pytest.Pytester,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    clear_environment(monkeypatch)
    trees = _trees()
    cases = list(_cases(trees))
    assert len(trees) == 9
    assert len(cases) == 660
    assert sum(case.criteria for case in cases) == 714
    write_tree(pytester.path / "benchmark", trees)
    weights = "".join(f"  {code}: {weight}\n" for code, weight in _WEIGHTS.items())
    (pytester.path / "benchmark" / "scoring.yaml").write_text(f"weights:\n{weights}", encoding="utf-8")
    by_prompt = _answers(cases)
    provider.reply = lambda request: _reply(by_prompt, request)

    result = run_tree(pytester, "--helmbench-marking-model=test/judge", "--tb=no", "-q", url=provider.url)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    database = pytester.path / "helmbench.db"
    counts = (
        "total_tests, total_evaluations, passed_tests + failed_tests, error_tests, status, scope, coverage"
    )
    assert rows(database, f"SELECT {counts} FROM evaluation_runs") == [
        (660, 714, 660, 0, "complete", "whole", 1.0)
    ]
    assert provider.count == 660 + 60 + 2 * 54

    sums = _reference(cases)
    found = stored_score(database, 1)
    assert found is not None
    assert {part.code: part.score for part in found.behaviours} == {
        code: 1 - part.cost / part.maximum for code, part in sums.items()
    }
    assert _maxima(database) == {code: part.maximum for code, part in sums.items()}
    weight = {code: Fraction(_WEIGHTS.get(code, 1)) for code in sums}
    for code in ("", "P1", "P2", "P3"):
        inside = [name for name in sums if name.startswith(code)]
        part = found.of(code)
        assert part is not None
        assert part.score == sum(
            weight[name] * (1 - sums[name].cost / sums[name].maximum) for name in inside
        ) / sum(weight[name] for name in inside)
        assert part.coverage == 1
    ((stored,),) = rows(database, "SELECT score FROM evaluation_runs")
    assert stored == float(found.score or 0)
    assert found.neutral_rows == sum(
        case.criteria for case in cases if case.base == 0 and case.behaviour != "P3-B1"
    )
    assert [part.code for part in found.behaviours if part.unweighted] == ["P3-B1"]

    capsys.readouterr()
    assert main(["report", "--db", str(database), "--format=json"]) == 0
    shown = json.loads(capsys.readouterr().out)["runs"][0]["score"]
    assert {part["code"]: part["score"] for part in shown["behaviours"]} == {
        code: float(1 - part.cost / part.maximum) for code, part in sums.items()
    }


def _maxima(database: Path) -> dict[str, int]:
    """Return Σ |base| per behaviour as plain SQL finds it; a behaviour without severities counts its rows."""
    query = (
        "SELECT behaviour, CASE WHEN max(abs(severity)) THEN sum(abs(severity)) ELSE count(*) END"
        " FROM v_results GROUP BY behaviour"
    )
    connection = sqlite3.connect(database)
    try:
        return dict(connection.execute(query).fetchall())
    finally:
        connection.close()
