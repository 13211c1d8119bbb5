"""The summary of a session, as text: one table, what the scores lose most, what was not judged, how fast it went."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from analysis_rows import row

from pytest_helmbench.core.case import BrokenCase
from pytest_helmbench.core.outcome import Parse, Verdict
from pytest_helmbench.core.outline import Scoring
from pytest_helmbench.pytest_side.say.announcement import DryRow, dry_run_lines
from pytest_helmbench.pytest_side.say.run_names import title_text
from pytest_helmbench.pytest_side.say.summary import (
    SummaryRun,
    best_first,
    chance_line,
    loses_most,
    not_judged_lines,
    numbers_text,
    pace_text,
    score_remarks,
    score_table,
)
from pytest_helmbench.reports.run_cautions import routine_notes
from pytest_helmbench.results.losses import losses
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.results.stored_scores import ScoredRun
from pytest_helmbench.run.cost_estimate import PriceSpan
from pytest_helmbench.scoring.run_score import run_score
from pytest_helmbench.store.read.score_facts import RunFacts

_TITLES = {"P1-B1": "vulnerable customer", "P2-B1": "keeps the language"}
_FACTS = RunFacts("whole", (), 1, None, {}, {}, {}, {}, {}, {}, _TITLES, {})


def _run(name: str, wrong: int, *, floors: dict[str, float] | None = None, errors: int = 0) -> SummaryRun:
    coded = [
        (f"{pillar}-{number}", row(5, int(number >= wrong), f"{pillar}-B1-S1-C1-PT{number}"))
        for pillar in ("P1", "P2")
        for number in range(20)
    ]
    scored = run_score([one for _, one in coded], Scoring({}, floors or {}, 0.4))
    verdicts = Counter({Verdict.PASSED: 2 * (20 - wrong), Verdict.FAILED: 2 * wrong, Verdict.ERROR: errors})
    counts = RunCounts(verdicts, Counter({"provider_error": errors}), known_cost_usd=0.0123)
    return SummaryRun(
        name,
        counts,
        40 + errors,
        ScoredRun(_FACTS, scored, losses=losses(coded, scored)),
        constant=Fraction(877, 1000),
        remarks=tuple(score_remarks(scored, 0)),
    )


def test_four_models_stand_in_one_table_with_the_answer_that_flags_everything() -> None:
    runs = best_first(_run(name, wrong) for name, wrong in (("c/c", 5), ("a/a", 0), ("d/d", 9), ("b/b", 2)))
    table = score_table(runs, one_benchmark=True)
    assert table[0].split() == ["score", "95", "%", "interval", "P1", "P2", "right", "not", "judged", "USD"]
    assert [line.split()[0] for line in table[1:]] == ["a/a", "b/b", "(flags", "c/c", "d/d"]
    assert table[1].split() == [
        "a/a",
        "100.0",
        "91.2",
        "–",
        "100.0",
        "100.0",
        "100.0",
        "100.0",
        "%",
        "0",
        "0.0123",
    ]
    assert table[3].split()[-1] == "87.7"
    assert chance_line(runs) == "Only the first is shown to be better than flagging everything."
    assert chance_line(runs[2:]) == "None of the 2 is shown to be better than flagging everything."
    assert loses_most(runs) == (
        "loses most   P1-B1 vulnerable customer −10.0 · P2-B1 keeps the language −10.0 points (mean of 4 models)"
    )


def test_what_changes_the_meaning_of_a_number_stands_under_it_and_for_all_rows_once() -> None:
    capped, floor = _run("a/a", 8, floors={"P1": 0.7}), "a safety floor may or may not be met"
    lines = score_table([capped], one_benchmark=True)
    assert lines[1] == "  (flags everything)   87.7  the model is not shown to be better"
    assert lines[3] == f"  capped to 40.0: P1 60.0 < 70 · {floor}"
    lines = score_table([replace(capped, name="b/b", remarks=(floor,)), capped], one_benchmark=True)
    assert lines[-2:] == ["  capped to 40.0: P1 60.0 < 70", f"  all runs: {floor}"]
    assert chance_line([capped]) == ""
    assert loses_most([capped]).endswith(" −20.0 · P2-B1 keeps the language −20.0 points")


@pytest.mark.parametrize(
    ("judged", "partial"), [(19, []), (10, ["partial: 50.0 – 100.0 once all are judged"]), (0, [])]
)
def test_cases_that_are_missing_are_told_where_they_may_move_the_score_out_of_its_interval(
    judged: int, partial: list[str]
) -> None:
    rows = [row(5, 1 if number < judged else None, f"P1-B1-S1-C1-PT{number}") for number in range(20)]
    said = score_remarks(run_score(rows, Scoring({}, {}, 0.4)), 20 - judged)
    assert [text for text in said if "partial" in text] == partial


def test_several_benchmarks_have_a_row_each_with_what_they_lose_most() -> None:
    head, first, second = score_table([_run("School", 2), _run("Hospital", 9)], one_benchmark=False)
    assert head.split()[-4:] == ["flags", "everything", "loses", "most"]
    assert "P1" not in head
    assert (first.split()[0], second.split()[0]) == ("School", "Hospital")
    assert first.endswith("87.7  P1-B1 −5.0")
    assert title_text(["School", "Hospital"], 80, ["a/a"]) == "2 benchmarks · 80 cases × a/a"
    assert title_text(["School"], 1, ["a/a"]) == "School · 1 case × 1 model"


def test_what_was_not_judged_has_its_reasons_and_the_command_that_goes_on() -> None:
    failed, again = _run("a/a", 2, errors=3), "the same command with --helmbench-resume asks the 3 again"
    assert [*not_judged_lines([failed, _run("b/b", 1)], again)] == [f"not judged   provider_error 3: {again}"]
    assert [*not_judged_lines([_run("b/b", 1)], again)] == []
    broken = BrokenCase("P1-B1-S1", 1)
    skipped = RunCounts(reasons=Counter({"no_judge": 2}), skips=Counter({"no judge\n  hint: name one": 2}))
    assert [
        *not_judged_lines(
            [SummaryRun("a", skipped, 3, ScoredRun(replace(_FACTS, broken=(broken,)), None))], ""
        )
    ] == [
        "not judged   no_judge 2, broken 1",
        "             2 × no judge: name one",
    ]
    assert [*not_judged_lines([SummaryRun("a", skipped, 2)], "")] == [
        "not judged   no_judge 2: no judge: name one"
    ]


def test_routine_remarks_are_a_few_words_each() -> None:
    counts = RunCounts(parses=Counter({Parse.RECOVERED: 53, Parse.STRICT: 2}))
    assert routine_notes(counts) == ["JSON recovered 53 times"]
    assert routine_notes(RunCounts()) == []


@pytest.mark.parametrize(
    ("cases", "seconds", "shown"),
    [
        (4295, 63.1, "68.1 per second"),
        (3, 2.0, "1.5 per second"),
        (1, 50.0, "1.2 per minute"),
        (1, 3000.0, "1.2 per hour"),
        (0, 5.0, ""),
    ],
)
def test_a_pace_is_never_shown_as_nothing(cases: int, seconds: float, shown: str) -> None:
    assert pace_text(cases, seconds) == shown


def test_runs_are_counted_up_and_a_dry_run_of_many_is_summed_by_model() -> None:
    assert [numbers_text(ids) for ids in ([3], [2, 7], [2, 3, 4, 5])] == ["run 3", "runs 2, 7", "runs 2–5"]
    price = PriceSpan(0.1, 0.2, 0.3)
    rows = [DryRow(f"{model} on {n}", model, 2, 1, 10, price) for model in "ab" for n in range(6)]
    lines = dry_run_lines(rows)
    assert [line.split()[0] for line in lines[1:-1]] == ["a", "b", "together"]
    assert lines[3].split()[1:] == ["24", "12", "~120", "1.2000", "2.4000", "3.6000"]
