"""Runs paired case by case on stored values: a flip by chance is not a regression, a planted one is found."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from pathlib import Path

import pytest

from pytest_helmbench.reports.comparison_lines import comparison_lines
from pytest_helmbench.results.comparing import ComparedRun, RunComparison, RunRef, compare_runs
from pytest_helmbench.scoring.changes import Conclusion
from pytest_helmbench.scoring.comparison import Limit
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey
from pytest_helmbench.store.read.judged_replies import JudgedCase
from pytest_helmbench.store.read.score_facts import RunFacts

_BEHAVIOURS = [f"P{pillar}-B{number}" for pillar in (1, 2) for number in (1, 2, 3, 4)]
_CASES = {
    f"{behaviour}-S1-C{condition}-PT{part}": (behaviour, part)
    for behaviour in _BEHAVIOURS
    for part in range(1, 7)
    for condition in range(1, 7)
}
_FACTS = RunFacts(
    scope="whole",
    codes=tuple(_CASES),
    repeat=1,
    scoring=None,
    weights={f"{behaviour}-S1-PT{part}": part for behaviour in _BEHAVIOURS for part in range(1, 7)},
    criteria={},
    contexts={},
    conditions={f"{one}-S1": tuple(f"{one}-S1-C{c}" for c in range(1, 7)) for one in _BEHAVIOURS},
    perturbations={f"{one}-S1": tuple(f"{one}-S1-PT{part}" for part in range(1, 7)) for one in _BEHAVIOURS},
    labels={},
    titles={},
    verdicts={},
    rows=None,
)


def _run(number: int, cases: Mapping[str, JudgedCase], benchmark_hash: str = "h") -> ComparedRun:
    ref = RunRef(
        Path("x.db"), number, f"run {number}", f"s{number}", BenchmarkKey("b"), "m", "complete", "whole"
    )
    return ComparedRun(ref, benchmark_hash, {}, cases)


def _judged(passes: Callable[[str], bool], repeat: int = 1) -> dict[str, JudgedCase]:
    return {
        code: JudgedCase("c", {"": "r"}, tuple({"": float(passes(code))} for _ in range(repeat)))
        for code in _CASES
    }


def _compared(
    before: Mapping[str, JudgedCase], after: Mapping[str, JudgedCase], *limits: Limit
) -> RunComparison:
    return compare_runs(_FACTS, _run(2, after), _run(1, before), limits or (Limit("", Fraction(0)),))


def test_a_model_that_flips_12_percent_of_its_verdicts_is_seldom_called_worse_than_itself() -> None:
    rng = random.Random(12)
    # Each perturbation has its own rate, and 2 p (1 − p) is 0.12 in the mean.
    rates = {(behaviour, part): rng.choice((0.98, 0.95, 0.92, 0.88)) for behaviour, part in _CASES.values()}
    flips = sum(2 * rate * (1 - rate) for rate in rates.values()) / len(rates)
    assert flips == pytest.approx(0.12, abs=0.015)
    failed = 0
    for _ in range(100):
        before, after = (_judged(lambda code: rng.random() < rates[_CASES[code]]) for _ in range(2))
        failed += _compared(before, after).verdict in {Conclusion.WORSE, Conclusion.COLLAPSED}
    assert failed / 100 <= 0.05 + 2.6 * sqrt(0.05 * 0.95 / 100)
    # A planted drop of ten points is found.
    found = 0
    for _ in range(20):
        before = _judged(lambda code: rng.random() < rates[_CASES[code]])
        after = _judged(lambda code: rng.random() < rates[_CASES[code]] - 0.1)
        found += _compared(before, after).verdict is Conclusion.WORSE
    assert found >= 16


def test_swapping_the_runs_turns_the_change_round_and_names_do_not_matter() -> None:
    rng = random.Random(3)
    before, after = (_judged(lambda code: rng.random() < 0.8) for _ in range(2))
    there, back = _compared(before, after), _compared(after, before)
    assert there.scopes[0].change.change == -back.scopes[0].change.change
    assert there.scopes[0].score == back.scopes[0].baseline_score
    shuffled = list(after.items())
    rng.shuffle(shuffled)
    assert _compared(before, dict(shuffled)) == there


def test_a_behaviour_that_loses_everything_has_collapsed_though_p_is_above_the_limit() -> None:
    facts = replace(
        _FACTS, codes=tuple(code for code, (one, part) in _CASES.items() if one != "P1-B1" or part < 5)
    )
    before = _judged(lambda code: True)
    after = _judged(lambda code: not code.startswith("P1-B1-"))
    found = compare_runs(facts, _run(2, after), _run(1, before))
    assert found.scopes[0].change.p == 0.0625
    assert found.verdict is Conclusion.COLLAPSED
    assert (len(found.newly_failing), found.newly_passing) == (24, ())
    assert (found.newly_failing[0].code, found.newly_failing[0].severity) == ("P1-B1-S1-C1-PT4", 4)
    line, fell = comparison_lines(found, "m")
    assert line.startswith(
        "compare m with run 1: 100.0 → 87.5 %, −12.5 points (95 %: −25.5 to +0.5): worse; P1-B1 collapsed:"
        " 100.0 → 0.0 % on these very cases, p < 0.0001"
    )
    assert fell.endswith("P1-B1 100.0 → 0.0 %, p < 0.0001; 4 perturbations are too few to say more")


def test_repetitions_are_averaged_and_a_named_part_of_few_perturbations_is_compared_by_replies() -> None:
    before = _judged(lambda code: True, repeat=3)
    after = _judged(lambda code: not code.startswith("P1-B1-S1-C1-"), repeat=1)
    found = _compared(before, after, Limit("", Fraction(0)), Limit("P1-B1", Fraction(0)))
    assert [scope.unit for scope in found.scopes] == ["perturbation", "perturbation"]
    few = replace(_FACTS, codes=tuple(code for code, (_, part) in _CASES.items() if part < 4))
    whole, named = compare_runs(
        few, _run(2, after), _run(1, before), (Limit("", Fraction(0)), Limit("P1-B1", Fraction(0)))
    ).scopes
    assert (whole.unit, named.unit, named.change.units) == ("perturbation", "reply", 18)
    assert named.change.change == Fraction(-1, 6)
    assert named.change.p >= named.change.least_p == 1 / 8


@pytest.mark.parametrize(
    ("defined", "planned", "gone", "not_selected"),
    [
        (frozenset(_CASES), {code for code in _CASES if code.startswith("P1")}, 0, 144),
        (frozenset(code for code in _CASES if "-PT6" not in code), {"P1-B1-S1-C1-PT1"}, 48, 239),
        ({code for code in _CASES if "P2-B4" not in code} | {"P2-B4-S1"}, set(_CASES), 0, 0),  # a broken one
        (frozenset(), {"P1-B1-S1-C1-PT1"}, 0, 0),  # unknown
    ],
)
def test_cases_are_gone_that_nothing_defines_and_not_selected_that_nothing_has_planned(
    defined: frozenset[str], planned: set[str], gone: int, not_selected: int
) -> None:
    before = _judged(lambda code: True)
    facts = replace(
        _FACTS, codes=tuple(code for code in _CASES if (code in planned and code in defined) or not defined)
    )
    after = {code: before[code] for code in facts.codes}
    found = compare_runs(facts, replace(_run(2, after), defined=defined), _run(1, before))
    assert (len(found.gone), found.cases_not_selected) == (gone, not_selected)
    assert found.verdict is not Conclusion.CASES_GONE
    assert (replace(found, allows_gone=False).verdict is Conclusion.CASES_GONE) is bool(gone)


def test_a_row_of_a_pack_is_gone_though_the_name_of_another_begins_its_own() -> None:
    before = dict.fromkeys(("sum-2-x", "sum-2-x-hard"), JudgedCase("c", {"": "r"}, ({"": 1.0},)))
    candidate = replace(_run(2, {}), defined=frozenset({"sum-2-x"}))
    assert compare_runs(_FACTS, candidate, _run(1, before)).gone == ("sum-2-x-hard",)


def test_what_differs_in_content_rule_or_judgement_is_left_out() -> None:
    before = _judged(lambda code: True)
    after = dict(_judged(lambda code: True))
    codes = list(_CASES)
    after[codes[0]] = replace(after[codes[0]], content="other")
    after[codes[1]] = replace(after[codes[1]], rules={"": "other"})
    del after[codes[2]]
    found = compare_runs(_FACTS, _run(2, after, "h2"), _run(1, before))
    assert (found.cases_compared, found.cases_left_out, found.cases_changed, found.rows_by_other_rules) == (
        *(len(_CASES) - 3, 3, 1, 1),
    )
    assert _compared(before, after).cases_changed == 0  # of the same benchmark hash: the same content
    nothing = compare_runs(_FACTS, _run(2, {}), _run(1, before))
    assert nothing.verdict is Conclusion.NOT_COMPARABLE
    assert comparison_lines(nothing, "m") == [
        "compare m with run 1: does not hold: nothing in common with run 1; make a new baseline"
        " (`helmbench export last --format baseline -o FILE.json`)"
    ]
    recorded = {code: replace(case, recorded=1) for code, case in before.items()}
    assert (
        "288 of 288 replies are stored ones and cannot differ"
        in comparison_lines(_compared(before, recorded), "m")[-1]
    )
