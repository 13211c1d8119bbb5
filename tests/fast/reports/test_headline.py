"""The headline of a session and the block of its gates, as text."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from analysis_rows import row

from pytest_helmbench.reports.headline import BUDGET_SPENT, SessionState, cause_of, gate_block, headline
from pytest_helmbench.results.comparing import PlannedCase, RunComparison, RunRef
from pytest_helmbench.results.gates import GateReport, JudgedCases, read_gates
from pytest_helmbench.scoring.changes import Change, Conclusion
from pytest_helmbench.scoring.comparison import Limit, ScopeChange
from pytest_helmbench.scoring.run_score import RunScore, run_score
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey

_LONG = "northwind/atlas-large-2026-10-preview-of-the-second-edition"
_SHORT = "northwind/atlas-lar…f-the-second-edition"
_HINT = "the same command with --helmbench-resume asks the 1 again"


def _score(*, unjudged: int = 0, wrong: int = 2) -> RunScore:
    rows = [row(5, int(number >= wrong), f"P1-B1-S1-C1-PT{number}") for number in range(20)]
    return run_score([*rows, *(row(5, None, f"P1-B1-S1-C1-PT9{number}") for number in range(unjudged))])


def _report(score: RunScore, least: str = "0.85", comparison: RunComparison | None = None) -> GateReport:
    asked = read_gates(least, None)
    report = asked.judge({"lab/mini": score}, cases={"lab/mini": JudgedCases(20, 21)})
    return GateReport(tuple(replace(run, comparison=comparison) for run in report.runs))


def _comparison() -> RunComparison:
    baseline = RunRef(Path("x.db"), 1, "run 1", "s", BenchmarkKey("b"), "lab/mini", "complete", "whole")
    change = Change(Fraction(-6, 1000), -0.028, 0.015, 0.3, 20, 7, 4, 3, 0.01, Conclusion.INCONCLUSIVE)
    scope = ScopeChange(
        "", Fraction(0), Fraction(872, 1000), Fraction(878, 1000), change, "perturbation", 0.04
    )
    flipped = tuple(
        PlannedCase(f"P1-B1-S1-C1-PT{number}", "P1", "P1-B1", "", 11, 0, 1, 11) for number in range(7)
    )
    limits = (Limit("", Fraction(0)),)
    return RunComparison("lab/mini", None, baseline, limits, (scope,), newly_failing=flipped)


def test_a_gate_ends_in_one_headline_then_score_baseline_cases_and_what_to_do() -> None:
    found = headline(_report(_score(unjudged=1), comparison=_comparison()), SessionState(hint=_HINT))
    assert found.text == "✗ FAILS   lab/mini: 1 of 21 cases not judged"
    assert [case.code for case in found.newly_failing][:1] == ["P1-B1-S1-C1-PT0"]
    shown = ", ".join(f"P1-B1-S1-C1-PT{number} (severity 11)" for number in range(5))
    assert gate_block(found) == [
        found.text,
        "  judged     20 of 21 cases, coverage 95.2 %, wanted 100 %",
        "  score      90.0 % (69.9 – 97.2), threshold 85.0 %: reached, but not beyond chance",
        "  baseline   run 1: 87.8 → 87.2 %, −0.6 points (90 %: −2.8 to +1.5): not shown to be worse;"
        " a drop of about 4 points would be seen 4 times of 5",
        f"  newly failing 7: {shown} …",
        f"  next       {_HINT}",
    ]


def test_a_gate_that_holds_and_one_that_is_missed_say_so_in_per_cent() -> None:
    held = headline(_report(_score()))
    assert held.text == "✓ HOLDS   lab/mini: 90.0 % (69.9 – 97.2), threshold 85.0"
    missed = headline(_report(_score(wrong=4)), SessionState(("the budget was spent",)))
    assert missed.text == ("✗ FAILS   lab/mini: 80.0 %, threshold 85.0: the budget was spent")
    assert gate_block(missed)[1].endswith("threshold 85.0 %: not reached, within chance")


def test_what_stops_a_session_fails_it_though_its_gate_holds_and_nothing_judged_has_its_cause() -> None:
    spent = headline(_report(_score()), SessionState(("the budget was spent",)))
    assert spent.text == "✗ FAILS   lab/mini: the budget was spent"
    nothing = headline(GateReport(()), SessionState(("nothing was judged: LAB_KEY is empty",)))
    assert nothing.text == "✗ FAILS   nothing was judged: LAB_KEY is empty"
    assert headline(GateReport(())).text == "✗ FAILS   nothing was judged"
    assert cause_of({"budget": 2, "timeout": 1}, 3) == BUDGET_SPENT
    assert [cause_of({"timeout": 1}, judged) for judged in (0, 3)] == ["timeout 1", ""]
    held = read_gates("0.85", None).judge({"a": _score(), "b": _score(wrong=0)})
    several = headline(held, SessionState((BUDGET_SPENT,)))
    assert several.text == gate_block(several)[0] == f"✗ FAILS   {BUDGET_SPENT}"
    assert several.by_run == (several,)
    mixed = headline(
        read_gates("0.95", None).judge({"a": _score(), "b": _score(wrong=0)}), SessionState(("x",))
    )
    assert [run.text.rpartition(": ")[2] for run in mixed.by_run] == [
        "x",
        "100.0 % (83.9 – 100.0), threshold 95.0",
    ]
    assert gate_block(mixed)[-1] == "  cause      x"


def test_without_a_gate_the_headline_is_the_score_and_of_several_the_highest() -> None:
    scores = {"lab/mini": _score(unjudged=1), "lab/large": _score(wrong=0)}
    report = read_gates(None, None).judge(scores, cases={"lab/mini": JudgedCases(20, 21)})
    assert headline(report, asked=False).text == "highest: lab/large 100.0 % (83.9 – 100.0)"
    equal = read_gates(None, None).judge({name: _score() for name in ("lab/b10", "lab/b9")}, cases={})
    assert headline(equal, asked=False).text == "lab/b10 90.0 % (69.9 – 97.2), lab/b9 90.0 % (69.9 – 97.2)"
    for constant, subject in ((Fraction(8, 10), "highest"), (Fraction(84, 100), ""), (Fraction(1), "")):
        assert headline(report, SessionState(constant=constant), asked=False).subject == subject
    alone = headline(GateReport(report.runs[:1]), asked=False)
    assert alone.text == "lab/mini: 90.0 % (69.9 – 97.2), 1 of 21 cases not judged"
    several = headline(report, SessionState(several_benchmarks=True), asked=False)
    assert several.text == f"{alone.text.replace(': ', ' ', 1)}, lab/large 100.0 % (83.9 – 100.0)"


@pytest.mark.parametrize(
    ("wrong", "unjudged", "said"),
    [
        (12, 1, "40.0 %, threshold 85.0 · worse by 39.3 · 1 of 21 cases not judged"),
        # One of 21 may still bring it over the threshold.
        (3, 1, "worse by 39.3 · 1 of 21 cases not judged"),
        (12, 0, "40.0 %, threshold 85.0 · worse by 39.3"),
    ],
)
def test_the_gravest_cause_stands_first_in_a_hundred_letters(wrong: int, unjudged: int, said: str) -> None:
    known = _comparison()
    change = replace(known.scopes[0].change, change=Fraction(-393, 1000), verdict=Conclusion.WORSE)
    before = change.change + known.scopes[0].baseline_score
    worse = replace(known, scopes=(replace(known.scopes[0], change=change, score=before),))
    gates = _report(_score(unjudged=unjudged, wrong=wrong), "0.85,P9=0.1", worse).runs[0]
    found = headline(GateReport((replace(gates, worse=True, verdicts=gates.verdicts[:1]),)))
    assert found.text == f"✗ FAILS   lab/mini: {said}"
    for name in ("northwind/atlas-large-2026-10-instruct", _LONG):
        text = headline(GateReport((replace(gates, name=name, worse=True),))).text
        assert len(text) <= 100
        assert text.startswith(f"✗ FAILS   {name if name != _LONG else _SHORT}: ")


_REFUSED = "the provider at http://127.0.0.1:9/v1 cannot be reached (connection refused)"
_BRIEF = "cannot be reached (connection refused)"
_DETAIL = "its first 20 cases all ended in this fault"


@pytest.mark.parametrize(
    ("name", "cause", "text", "is_cut"),
    [
        ("a", f"stopped: {_REFUSED}; {_DETAIL}", f"a: stopped: {_BRIEF}: the run has no score", True),
        (
            "a",
            "a stopped: no reply; the budget was spent",
            "a: stopped: no reply; the budget was spent: the run has no score",
            False,
        ),
        (_LONG, f"stopped: {_REFUSED}", f"{_SHORT}: stopped: {_BRIEF}", True),
        ("a", "the provider answered 500", "a: answered 500: the run has no score", False),
        ("a", "x" * 9 + " y" * 99, f"a: {'x' * 9}{' y' * 38} …", True),
    ],
)
def test_a_cause_in_a_headline_leaves_its_details_to_the_block(
    name: str, cause: str, text: str, *, is_cut: bool
) -> None:
    found = headline(read_gates("0.85", None).judge({name: None}), SessionState((cause,)))
    assert found.text == f"✗ FAILS   {text}"
    assert (f"  cause      {cause}" in gate_block(found)) is is_cut


def test_two_runs_that_fail_share_a_headline_and_have_a_block_each() -> None:
    report = read_gates("0.95", None).judge({"a": _score(), "b": _score(wrong=3), "c": _score(wrong=0)})
    found = headline(report)
    assert found.text == ("✗ FAILS   2 of 3 runs: a: 90.0 %, threshold 95.0 · b: 85.0 %, threshold 95.0")
    assert [line[:11] for line in gate_block(found)] == [
        "✗ FAILS   a",
        "  score    ",
        "✗ FAILS   b",
        "  score    ",
        "✓ HOLDS   c",
        "  score    ",
    ]
