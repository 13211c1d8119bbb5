"""The line that tells how far a session is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pytest_helmbench.core.outcome import Evaluation, Outcome, Verdict
from pytest_helmbench.core.scrub import HIDDEN_TEXT
from pytest_helmbench.pytest_side.say.case_text import brief_parts, brief_text
from pytest_helmbench.pytest_side.say.failures import same_errors
from pytest_helmbench.pytest_side.say.live_line import SessionProgress, live_text, progress_text
from pytest_helmbench.reports.tables import display_width, table
from pytest_helmbench.results.run_counts import RunCounts


def test_progress_is_cases_score_errors_cost_and_time_left() -> None:
    counts = RunCounts(
        verdicts=Counter({Verdict.PASSED: 60, Verdict.FAILED: 40, Verdict.ERROR: 3}),
        reasons=Counter({"timeout": 2, "blocked": 1}),
        known_cost_usd=0.021,
        points=500,
        points_lost=150.0,
    )
    said = progress_text(SessionProgress(counts, {"test/m": counts}, 500, 0.1, 60.0))
    assert said == (
        "helmbench: 103/500 done, score 70.0 % ± 8.8, errors: timeout 2, blocked 1, 0.0210 of about 0.1000 USD,"
        " 4 min left"
    )
    nothing = SessionProgress(RunCounts(), {"test/m": RunCounts()}, 500, None, 1.0)
    assert progress_text(nothing) == "helmbench: 0/500 done, 0.0000 USD"
    slow = [("P1-表", "test/m", 12.0)]
    live = SessionProgress(counts, {"test/m": counts}, 500, 0.1, 60.0, slow, waits_for_limits=True)
    whole = (
        "103/500 done · score 70.0 % ± 8.8 · 0.0210 USD · errors: timeout 2, blocked 1"
        " · 1 in flight, waiting for limits · 4 min left · P1-表 [test/m] since 12 s"
    )
    assert live_text(live, len(whole) + 1) == whole
    assert live_text(live, len(whole)) == whole.rpartition(" · ")[0]  # one character is two columns wide
    assert live_text(live, 60) == "103/500 done · score 70.0 % ± 8.8 · 0.0210 USD · 4 min left"


def test_of_several_models_the_line_has_the_leader() -> None:
    def judged(passed: int, failed: int) -> RunCounts:
        verdicts = Counter({Verdict.PASSED: passed, Verdict.FAILED: failed})
        return RunCounts(verdicts=verdicts, points=passed + failed, points_lost=failed)

    models = {
        "test/one-lucky-case": judged(1, 0),
        "test/" + "長" * 30: judged(96, 4),
        "test/unasked": RunCounts(),
    }
    progress = SessionProgress(RunCounts.sum(models.values()), models, 300, 0.1, 60.0)
    assert display_width(live_text(progress, 60)) <= 60
    line = live_text(progress, 100)
    assert line.startswith(f"101/300 done · leader test/{'長' * 24}… 96.0 % ± 4.1 · ")


def test_errors_are_the_same_whatever_their_times_and_ports_but_not_with_another_status() -> None:
    texts = ["no answer in 1.5 s", "answered 503", "no answer in 20 s", "answered 429", "no answer in 3 s"]
    assert same_errors(texts) == [(0, 3), (1, 1), (3, 1)]


def test_columns_stand_under_each_other_whatever_letters_they_hold() -> None:
    names = ["表表", "e\N{COMBINING ACUTE ACCENT}te", "\N{GRINNING FACE}", "\u202e"]
    lines = table(("name", "n"), [(name, "7") for name in names], left=("name",))
    assert lines == ["name    n", "表表    7", f"{names[1]}     7", f"{names[2]}      7", "\\u202e  7"]


def _brief(
    expected: str,
    observed: str,
    asked: str = "",
    *,
    reason: str | None = None,
    text: str = "",
    rule: str = "rule",
) -> str:
    wrong = Evaluation(
        "", rule, "0" * 16, False, 0.0, reason, None, expected, observed, observed_text=text or None
    )
    outcome = Outcome(Verdict.FAILED, evaluations=(wrong,))
    return _shown(outcome, asked, with_text=bool(text or asked))


def _shown(outcome: Outcome, asked: str, *, with_text: bool) -> str:
    parts = brief_parts(outcome, asked, with_text=with_text)
    assert "".join(parts.values()).encode()  # xdist can send it
    return brief_text(parts)


def test_a_failed_case_is_told_in_three_lines_that_mark_what_differs() -> None:
    asked = "## User's input\n\nIs it\nfar?" + " Very" * 60
    assert _brief("42.5 km", "42.7 km", asked).splitlines() == [
        f"  asked:    {'Is it far?' + ' Very' * 29} Ver…",
        "  expected: 42.5 km",
        "  observed: »42.7« km",
    ]
    assert _brief("not: RISK", "[RISK, CALM]").endswith("observed: [»RISK«, CALM]")
    assert _brief("contains none of RISK", "none of RISK").endswith("observed: none of »RISK«")
    assert _brief("not: contains none of RISK", "all RISK").endswith("observed: »all« RISK")
    assert _brief("RISK", "CALM").endswith("observed: CALM")
    by_tests = _brief("its tests pass", "its verifier hangs", rule="task_folder (tests)")
    assert by_tests.endswith("observed: its verifier hangs")
    assert _brief("<redacted>", "(text of the reply)").splitlines() == [
        "  expected: hidden (--helmbench-show-hidden)",
        "  observed: text of the reply, not shown in CI (--helmbench-with-text=failures)",
    ]
    assert _brief("7", "(text of the reply)", text="\n::error::\x1b[2J").endswith(
        "observed: ::error::\\x1b[2J"
    )
    assert _brief("7", "(text of the reply)", reason="echo").endswith("only repeats what it was given")
    assert _brief("\ud800", "7").startswith("  expected: \N{REPLACEMENT CHARACTER}")
    assert _brief("7", "x", reason="echo").endswith("observed: the reply only repeats what it was given: x")


def test_each_wrong_turn_is_told() -> None:
    last = Evaluation("", "sqe", "0" * 16, False, 0.0, None, None, "SAFE", "UNSAFE")
    said = "Take \x1b two."
    turn = replace(
        last, criterion="turn 2", expected="contains doctor", observed=HIDDEN_TEXT, observed_text=said
    )
    outcome = Outcome(Verdict.FAILED, evaluations=(last, turn, replace(last, criterion="each", passed=True)))
    lines = ["  expected: SAFE", "  observed: UNSAFE", "  also:     turn 2: expected contains doctor"]
    assert _shown(outcome, "", with_text=False).splitlines() == lines
    lines[2] += ", observed Take \\x1b two."
    assert _shown(outcome, "", with_text=True).splitlines() == lines
