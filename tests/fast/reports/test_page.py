"""The HTML page from report values: what it says, of which cases it holds texts, and how its plots are made."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from fractions import Fraction
from math import isclose

import pytest
from page_runs import run_page, simulated_report
from pages import blocks_of, cells_of, shown_text

from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.outcome import Event
from pytest_helmbench.core.scrub import HIDDEN_TEXT, ShownTexts
from pytest_helmbench.reports.page import document
from pytest_helmbench.reports.page.columns import MOST_STEPS
from pytest_helmbench.reports.page.document import PageTooLargeError
from pytest_helmbench.reports.page.plots import heat_map, histogram
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.store.read.results import CallRow


@pytest.fixture(scope="module")
def report() -> RunReport:
    return simulated_report(240, texts=True)


def test_columns_give_back_every_result(report: RunReport) -> None:
    page = run_page([report], ShownTexts.NONE)

    axes = [cells_of(page, name) for name in ("scenario", "condition", "context", "perturbation")]
    assert ["-".join(parts) for parts in zip(*axes, strict=True)] == [row.code for row in report.results]
    assert cells_of(page, "outcome") == [row.outcome for row in report.results]
    assert cells_of(page, "severity") == [row.severity for row in report.results]
    lost = [100 * float(report.losses.of(row)) for row in report.results]
    assert cells_of(page, "points_lost") == pytest.approx(lost, abs=0.006)
    assert cells_of(page, "tokens_out") == [row.completion_tokens for row in report.results]
    assert all(
        isclose(shown, row.latency_ms or 0, rel_tol=0.01)
        for shown, row in zip(cells_of(page, "ms"), report.results, strict=True)
    )


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("<rules>\nSay who.\n</rules>\n\n<users_input>\nMy own\n\n{}?\n</users_input>", "My own\n\n{}?"),
        ("<users_input>\n{}?\n</users_input>\n\nReply in one word.", "{}?"),
        ("<rules>\nRules of {}.\n</rules>\n\nIs anyone there, {}?", "Is anyone there, {}?"),
        ("Answer with a letter.\n\nWho is {}?\n\nA) one\nB) two", "Who is {}?"),
        ("The same for all.", "The same for all."),
    ],
)
def test_the_message_of_a_case_is_what_most_other_cases_lack(
    report: RunReport, prompt: str, message: str
) -> None:
    def asked(number: int) -> bytes:
        sent = [("system", "Be kind."), ("user", "Hello"), ("user", prompt.replace("{}", str(number)))]
        return json.dumps(
            {"messages": [dict(zip(("role", "content"), one, strict=True)) for one in sent]}
        ).encode()

    rows = tuple(replace(row, request=asked(number)) for number, row in enumerate(report.results[:9]))
    runs = [replace(report, results=rows, detail=replace(report.detail, id=number)) for number in (1, 2)]
    page = run_page(runs, ShownTexts.ALL)

    wanted = [message.replace("{}", str(number)) for number in range(9)]
    assert [blocks_of(page)["t0-0"][str(number)]["a"] for number in range(9)] == wanted
    assert cells_of(page, "message") == [" ".join(text.split()) for text in wanted]
    assert "message" not in blocks_of(page)["c1"]["c"]
    assert "message" not in blocks_of(run_page([report], ShownTexts.NONE))["c0"]["c"]


def test_texts_are_of_the_cases_that_were_asked_for_and_of_no_other(report: RunReport) -> None:
    held = {
        texts: {int(index) for index in blocks_of(run_page([report], texts)).get("t0-0", {})}
        for texts in ShownTexts
    }

    assert held[ShownTexts.NONE] == set()
    assert held[ShownTexts.FAILURES] == {
        index for index, row in enumerate(report.results) if row.outcome == "failed"
    }
    assert held[ShownTexts.ALL] == set(range(240))


def test_running_text_that_was_observed_stands_where_the_texts_of_a_case_are(report: RunReport) -> None:
    failed = next(row for row in report.results if row.outcome == "failed")
    said = replace(failed.evaluations[0], observed=HIDDEN_TEXT, observed_text="SAID it")
    rows = tuple(
        replace(row, outcome=outcome, evaluations=(said,))
        for row, outcome in zip(report.results[:2], ("failed", "passed"), strict=True)
    )
    told = replace(report, results=rows, failures=rows[:1])

    pages = {texts: run_page([told], texts) for texts in ShownTexts}

    assert {texts: cells_of(page, "observed") for texts, page in pages.items()} == {
        ShownTexts.NONE: [HIDDEN_TEXT, HIDDEN_TEXT],
        ShownTexts.FAILURES: ["SAID it", HIDDEN_TEXT],
        ShownTexts.ALL: ["SAID it", "SAID it"],
    }
    assert [HIDDEN_TEXT in shown_text(page) for page in pages.values()] == [True, False, False]


@pytest.mark.parametrize(
    ("expected", "observed", "marked"),
    [
        ("HAND_OVER", "ANSWERED", ["ANSWERED"]),
        ("not: HAND_OVER", "HAND_OVER", ["HAND_OVER"]),
        ("not: includes NURSE", '["NURSE", "OFFICE"]', ["NURSE"]),
        ("includes NURSE", '["OFFICE"]', ["OFFICE"]),
        ("contains none of NURSE", "Ask the NURSE.", ["NURSE"]),
        ("not: contains none of NURSE", "A NURSE", ["A"]),
        ("8", "8.", ["8", "."]),
    ],
)
def test_the_words_that_make_the_difference_are_marked(
    report: RunReport, expected: str, observed: str, marked: list[str]
) -> None:
    row = report.failures[0]
    one = replace(row, evaluations=(replace(row.evaluations[0], expected=expected, observed=observed),))
    page = run_page([replace(report, results=(one,), failures=(one,))], ShownTexts.NONE)

    assert [html.unescape(text) for text in re.findall("<mark>(.*?)</mark>", page)] == marked


def test_what_a_server_says_of_a_fault_is_a_text(report: RunReport) -> None:
    row = report.results[0]
    call = CallRow(1, "case", "", 1, 500, None, "SAID at /home/me", 5.0, None, None, None, None, False, "")
    told = replace(report, calls={(row.code, 1): (call,)})

    bare, full = (
        blocks_of(run_page([told], texts))["d0-0"]["0"]["c"][0] for texts in (ShownTexts.NONE, ShownTexts.ALL)
    )

    assert bare[:5] == ["case", 1, 500, "fault", 5]
    assert full[3] == "SAID at /home/me"


def test_the_steps_of_a_case_are_told_and_what_was_said_in_them_is_a_text(report: RunReport) -> None:
    row = report.results[0]
    at = "2026-11-22T08:00:0{}+00:00"
    steps = (
        Event("message", {"role": "user", "content": "SAID <b>"}, at.format(1)),
        Event("command", {"command": "ls SECRET", "exit_code": 2, "role": "SAID role"}, at.format(3)),
        Event("end", {"stop": "turns", "turns": 3}, at.format(4)),
        Event("box", {"part": "agent", "cpus": 0.5, "engine": "podman", "disk_mb": None}, at.format(4)),
        *(Event("more", {}, at.format(5)) for _ in range(MOST_STEPS)),
    )
    told = replace(report, steps={(row.code, row.repetition): steps})

    bare, full = (blocks_of(run_page([told], texts)) for texts in (ShownTexts.NONE, ShownTexts.ALL))

    shown = bare["d0-0"]["0"]["s"]
    assert shown[:4] == [
        [1, 0.0, "message", "user"],
        [2, 2.0, "command", "exit_code 2"],
        [3, 3.0, "end", "turns, turns 3"],
        [4, 3.0, "box", "agent, podman, cpus 0.5"],
    ]
    assert shown[-1] == ["…", None, "and 4 more", ""]
    assert "SAID" not in json.dumps(bare)
    assert "SECRET" not in json.dumps(bare)
    assert full["t0-0"]["0"]["w"] == [
        ["step 1: message user", "SAID <b>"],
        ["step 2: command exit_code 2", "ls SECRET"],
    ]


def test_a_page_has_the_matrix_of_conditions_and_user_contexts(report: RunReport) -> None:
    page = run_page([report], ShownTexts.NONE)
    matrix = report.breakdown.matrices[0]
    cell = matrix.cells[1][2]

    assert cell is not None
    assert "Condition × user context, by scenario" in shown_text(page)
    rate = f"{cell.recall.rows}/{cell.recall.of_rows} · -"
    table = page.split(f'scenario={matrix.scenario}">{matrix.scenario}</a></caption>')[1].split("</table>")[0]
    line = table.split("<tr>")[3]
    assert line.startswith(f"<th>{matrix.conditions[1]}<td>")
    assert line.strip().split("<td>")[1:][2] == rate


def test_a_page_shows_thresholds_and_how_the_score_stands_to_them(report: RunReport) -> None:
    settings = {"min_score": "0.1,P1=0.99", "min_coverage": "0.5"}
    asked = replace(report, detail=replace(report.detail, settings=settings))

    seen = shown_text(run_page([asked], ShownTexts.NONE))

    assert "✗ FAILS P1 " in seen
    assert "threshold 99.0" in seen
    assert "threshold 10.0" in seen


def test_cases_of_a_pack_keep_their_own_codes_and_can_be_filtered_by_group(report: RunReport) -> None:
    codes = [f"a/b c#{number}?x" for number in range(240)]
    rows = tuple(replace(row, code=code) for row, code in zip(report.results, codes, strict=True))
    groups = {code: ("quiz", f"subject={index % 2}") for index, code in enumerate(codes)}
    pack = replace(report, results=rows, failures=rows[:1], groups=groups, is_flat=True)

    page = run_page([pack], ShownTexts.NONE)

    assert cells_of(page, "code") == codes
    assert cells_of(page, "group")[1] == "quiz\nsubject=1"
    assert 'href="#/case/a%2Fb%20c%230%3Fx?"' in page


def test_a_heat_map_adds_up_the_scenarios_of_a_behaviour(report: RunReport) -> None:
    found = heat_map(report.breakdown.by_condition)

    for behaviour, cells in found.rows:
        for cell in cells:
            rows = [
                row
                for row in report.results
                if (code := CaseCode.parse(row.code)) is not None
                and f"{code.pillar}-{code.behaviour}" == behaviour
                and code.condition == cell.condition
                and row.outcome in ("passed", "failed")
            ]
            assert (cell.judged, cell.passed) == (len(rows), sum(row.outcome == "passed" for row in rows))
    other = simulated_report(240, run=2, skill=0.3)
    changed = heat_map(report.breakdown.by_condition, other.breakdown.by_condition)
    cell = changed.rows[0][1][0]
    assert cell.before is not None
    assert cell.change == Fraction(cell.passed, cell.judged) - cell.before


def test_a_histogram_ends_at_the_99th_percentile_and_is_logarithmic_where_it_is_far() -> None:
    near = histogram([*range(1, 101)])
    far = histogram([*([1.0] * 50), *([2.0] * 45), *([500.0] * 5), None])

    assert near is not None
    assert far is not None
    assert (near.is_log, near.median, near.p95, near.high, near.known) == (False, 50, 95, 99, 100)
    assert (far.is_log, far.known) == (True, 100)
    assert sum(count for _, _, count in far.table) == 100
    assert histogram([3.0, 3.0]) is None
    assert histogram([None]) is None


def test_a_page_that_no_browser_opens_is_not_written(
    report: RunReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "LARGEST_BYTES", 2_000)
    with pytest.raises(PageTooLargeError, match="hint: --with-text=failures or fewer runs make it smaller"):
        run_page([report], ShownTexts.ALL)
