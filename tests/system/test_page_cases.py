"""The cases of an HTML page in Chromium: matrix, drawer, filter, keys, a small screen and paper."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from browsers import Opened, axe_faults
from page_runs import run_page, simulated_report, worst_first
from sessions import until

from pytest_helmbench.core.outcome import Beside
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.core.tools import UNKNOWN_TOOL, MadeCall
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.store.read.results import ShownMessage

_CASES = 240
_MOST_NODES = 5_000
_OUTSIDE = """least => [...document.querySelectorAll(`header *, main ${least}`)].filter(
    (one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 200))"""


@cache
def _reports(runs: int) -> list[RunReport]:
    return [simulated_report(_CASES, run=number, skill=0.7, texts=True) for number in range(1, runs + 1)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write pages of some runs as they are asked for."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def file(runs: int, texts: ShownTexts = ShownTexts.ALL) -> Path:
        made = folder / f"{runs}-{texts}.html"
        made.write_text(run_page(_reports(runs), texts), encoding="utf-8")
        return made

    return file


def _differ(reports: list[RunReport]) -> list[int]:
    outcomes = [{report.results[place].outcome for report in reports} for place in range(_CASES)]
    return [place for place, found in enumerate(outcomes) if {"passed", "failed"} <= found]


def test_several_runs_are_a_matrix_and_the_drawer_shows_all_replies_of_a_case(
    opened: Callable[..., Opened], files: Callable[..., Path]
) -> None:
    reports = _reports(5)
    places = _differ(reports)
    one = opened(bypass_csp=True)
    page = one.go(files(5))
    assert page.locator("#count").inner_text() == f"{_CASES} of {_CASES}"
    page.locator("button[data-q=differ]").click()
    page.wait_for_selector(f"#count:has-text('{len(places)} of {_CASES}')")
    heads = page.locator("#thead .run").all_inner_texts()
    assert [head.split() for head in heads] == [
        [f"model-{number}", "run", str(number)] for number in range(1, 6)
    ]
    order = [reports[0].results.index(row) for row in worst_first(reports)]
    place = next(place for place in order if place in places)
    rows = [report.results[place] for report in reports]
    marks = {"passed": "✓", "failed": "✗", "error": "!"}
    cells = page.locator("#rows .r").first.locator(".run").all_inner_texts()
    assert [cell.split()[0] for cell in cells] == [marks[row.outcome] for row in rows]

    page.locator("#rows a").first.click()
    heads, replies = (page.locator(f"#drawer .cells:nth-child({number}) > div") for number in (1, 2))
    heads.first.wait_for()
    outcomes = [head.locator("strong").first.inner_text() for head in heads.all()]
    assert outcomes == [row.outcome for row in rows]
    tops = [side.bounding_box()["y"] for side in replies.all()]
    assert len(set(tops)) == 1  # however long the names above them are
    said = json.loads(rows[0].request or b"")["messages"][0]["content"]
    message = said.partition("<users_input>\n")[2].partition("\n<")[0]
    assert page.locator("#drawer h3, #drawer .said").all_inner_texts()[:2] == ["Message", message]
    assert not page.get_by_text("Say who is to act.").first.is_visible()
    page.locator("#drawer summary", has_text="Task: the whole prompt").click()
    assert page.locator("#drawer details[open] pre").inner_text() == said
    for head, side, row in zip(heads.all(), replies.all(), rows, strict=True):
        if row.reply:
            evaluation, fields = row.evaluations[0], json.loads(row.reply)
            assert side.locator(".json dd").all_inner_texts() == [*fields.values()]
            assert side.locator(".json mark").all_inner_texts() == [evaluation.observed]
            assert side.locator("mark.right").count() == evaluation.passed
            wrong = [] if evaluation.passed else [evaluation.observed]
            assert head.locator(".judged mark").all_inner_texts() == wrong
    assert axe_faults(page) == []
    page.keyboard.press("Escape")
    page.locator(".run summary").last.click()
    page.locator(".run .worst").wait_for()
    assert one.messages == []


def test_a_case_that_was_ruled_out_marks_what_it_should_not_have_been(
    opened: Callable[..., Opened], tmp_path: Path
) -> None:
    report = _reports(1)[0]
    row = report.failures[0]
    evaluation = replace(row.evaluations[0], expected="not: includes NURSE", observed='["NURSE", "OFFICE"]')
    row = replace(row, evaluations=(evaluation,), reply='Well: {"who": ["NURSE", "OFFICE"], "why": "x"} So.')
    file = tmp_path / "one.html"
    file.write_text(run_page([replace(report, results=(row,), failures=(row,))], ShownTexts.ALL), "utf-8")

    page = opened().go(file, f"#/case/{row.code}")

    assert page.locator("#drawer .judged mark").all_inner_texts() == ["NURSE"]
    assert page.locator("#drawer .json dt").all_inner_texts() == ["who (judged)", "why"]
    assert page.locator("#drawer .own pre").all_inner_texts() == ["Well:", "So."]


_LINES = """✗ contains: expected contains soon, observed Sooner.
✓ any: expected at most 9 words or matches x
  ✓ length: expected at most 9 words, observed 2 words
  ✗ regex: expected matches x, observed Sooner."""


def _talk(number: int) -> RunReport:
    """Return a run of one conversation, whose second turn differs between runs, and is wrong in the second."""
    called = MadeCall(2, "<b>x", {"no": "1"}, '{"status": "shipped"}', UNKNOWN_TOOL)
    said = (
        ShownMessage(1, "user", "My <i>kettle</i>."),
        ShownMessage(1, "assistant", "Plugged in?", (), True),
        ShownMessage(2, "user", "Yes."),
        ShownMessage(2, "assistant", f"Wait {number}.", (called,)),
        ShownMessage(3, "user", "And now?"),
        ShownMessage(3, "assistant", f"Soon {number}."),
    )
    report = _reports(number)[number - 1]
    messages = [{"role": one.role, "content": one.text} for one in said[:-1]]
    (evaluation,) = report.failures[0].evaluations
    row = replace(
        report.failures[0],
        code="P1-B1-S1-C1-U1-PT1",
        conversation=said,
        request=json.dumps({"model": "m", "messages": messages}).encode(),
        reply=said[-1].text,
        evaluations=(
            replace(evaluation, rule="all", expected="contains soon and …", observed=_LINES),
            replace(
                evaluation, criterion="turn 2", rule="equals", passed=number == 1, observed=f"Wait {number}."
            ),
        ),
    )
    return replace(report, results=(row,), failures=(row,))


def test_the_mark_of_a_verdict_stands_beside_it_and_above_the_table(
    opened: Callable[..., Opened], tmp_path: Path
) -> None:
    report = _reports(1)[0]
    rows = tuple(
        replace(row, evaluations=(replace(row.evaluations[0], beside=mark),)) if row.evaluations else row
        for row, mark in zip(report.results, (Beside.OWN_BOX, *[Beside.IN_PROCESS] * _CASES), strict=False)
    )
    counts = replace(report.counts, beside=Counter({Beside.IN_PROCESS: 230, Beside.OWN_BOX: 1}))
    file = tmp_path / "marked.html"
    file.write_text(
        run_page([replace(report, results=rows, counts=counts)], ShownTexts.ALL), encoding="utf-8"
    )

    for row, said in zip(
        rows, ("passed only in the agent's own box", "could run beside its judge"), strict=False
    ):
        page = opened().go(file, f"#/case/{row.code}")
        page.wait_for_selector(f"#drawer li:has-text({json.dumps(said)})")
    assert (
        f"230 of {report.counts.judged} verdicts in_process, 1 own_box (docs/trust.md)"
        in page.locator("main .cautions").text_content()
    )


def test_the_drawer_shows_a_conversation_as_a_chat_and_its_rules_as_a_list(
    opened: Callable[..., Opened], tmp_path: Path
) -> None:
    """A turn that all runs share stands once; the one that a rule has judged is marked, and in view."""
    parts = [_talk(number) for number in (1, 2)]
    file = tmp_path / "talk.html"
    file.write_text(run_page(parts, ShownTexts.ALL), "utf-8")
    one = opened(bypass_csp=True, permissions=["clipboard-read", "clipboard-write"])

    page = one.go(file, "#/case/P1-B1-S1-C1-U1-PT1")

    assert page.locator("#drawer .said").inner_text() == "My <i>kettle</i>."
    said = page.locator("#drawer .bubble").all_inner_texts()
    assert [" ".join(text.split()) for text in said] == [
        "turn 1: assistant (scripted) Plugged in?",
        "turn 2: user Yes.",
        "model-1 · turn 2: assistant Wait 1. judged: ✓ equals turn 2",
        "model-2 · turn 2: assistant Wait 2. judged: ✗ equals turn 2",
        "turn 3: user And now?",
        "model-1 · turn 3: reply Soon 1. judged: ✗ all",
        "model-2 · turn 3: reply Soon 2. judged: ✗ all",
    ]
    wrong = page.locator("#drawer .broke").first
    assert "Wait 2." in wrong.inner_text()
    box = wrong.bounding_box()
    assert 0 <= box["y"] <= page.viewport_size["height"] - box["height"]
    calls = page.locator("#drawer details", has_text="turn 2: tool call")
    shown = '<b>x(no="1") (unknown tool) → {"status": "shipped"}'
    assert calls.locator("pre").all_text_contents() == [shown] * 2
    rules = page.locator("#drawer .judged").first.locator("li").all_inner_texts()
    assert [" ".join(text.split()) for text in rules] == [
        "✗ all",
        "✗ contains expected contains soon observed Sooner.",
        "✓ any",
        "✓ length expected at most 9 words observed 2 words",
        "✗ regex expected matches x",
        f"✓ equals turn 2 expected {parts[0].failures[0].evaluations[1].expected} observed Wait 1.",
    ]
    copies = page.locator("#drawer details", has_text="Copy run 1")
    copies.locator("summary").click()
    copies.get_by_text("Copy as curl").click()
    body = page.evaluate("navigator.clipboard.readText()").partition("-d '")[2]
    sent = json.loads(parts[0].failures[0].request or b"")["messages"]
    assert json.loads(body.removesuffix("'"))["messages"] == sent
    assert (axe_faults(page), one.messages) == ([], [])


_MARKDOWN = """# Leave it
I *asked* a **gardener** by [mail](javascript:alert) ![x](http://a.example/x.png)
- `soap`
2. sit down

> calm

| a | b |
|---|---|
| <b>1</b> | 2 |
```
<img src=x>
```"""


def test_replies_are_shown_as_markdown_and_by_their_difference_on_request(
    opened: Callable[..., Opened], tmp_path: Path
) -> None:
    parts = []
    for report, reply in zip(_reports(2), (_MARKDOWN, "# Leave it now"), strict=True):
        row = replace(report.failures[0], code="P1-B1-S1-C1-U1-PT1", reply=reply)
        parts.append(replace(report, results=(row,), failures=(row,)))
    file = tmp_path / "markdown.html"
    file.write_text(run_page(parts, ShownTexts.ALL), "utf-8")
    one = opened(bypass_csp=True)

    page = one.go(file, "#/case/P1-B1-S1-C1-U1-PT1")
    assert page.locator("#drawer .own pre").first.inner_text() == _MARKDOWN
    page.get_by_role("button", name="Markdown").click()
    made = page.locator("#drawer .md").first
    made.wait_for()
    texts = {tag: made.locator(tag).all_inner_texts() for tag in ("strong", "em", "code", "li", "td", "pre")}
    assert texts == {
        "strong": ["Leave it", "gardener"],
        "em": ["asked"],
        "code": ["soap"],
        "li": ["soap", "sit down"],
        "td": ["a", "b", "<b>1</b>", "2"],
        "pre": ["<img src=x>\n"],
    }
    assert made.locator("a, img, b").count() == 0
    assert "by mail (javascript:alert)" in made.inner_text()
    assert axe_faults(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")  # the choice holds for the next case
    page.get_by_role("button", name="Difference").click()
    page.wait_for_selector("#drawer .own mark")
    assert page.locator("#drawer .own").last.locator("mark").all_inner_texts() == ["now"]
    assert (one.outside, one.messages) == ([], [])


@pytest.mark.parametrize(
    ("first", "second", "lacks", "has"),
    [
        ("The dog bites the man.", "The man bites the dog.", ["dog", "man"], ["man", "dog"]),
        ("Wait, wait for it", "Wait for it", ["wait"], []),
        ("a b c d e", "x b d e y", ["a", "c"], ["x", "y"]),
        ('{"why": "one two", "toString": "z"}', 'Well: {"why": "two one"}', ["one", "z"], ["Well", "one"]),
        ("w " * 3_000 + "x", "v " * 3_000 + "x", ["w"] * 3_000, ["v"] * 3_000),
    ],
    ids=["order", "doubled", "middle", "fields", "long"],
)
def test_the_difference_of_two_replies_is_that_of_their_sequences_of_words(
    first: str, second: str, lacks: list[str], has: list[str], opened: Callable[..., Opened], tmp_path: Path
) -> None:
    parts = []
    for report, reply in zip(_reports(2), (first, second), strict=True):
        row = replace(report.failures[0], code="P1-B1-S1-C1-U1-PT1", reply=reply)
        parts.append(replace(report, results=(row,), failures=(row,)))
    file = tmp_path / "difference.html"
    file.write_text(run_page(parts, ShownTexts.ALL), "utf-8")
    one = opened(bypass_csp=True)
    page = one.go(file, "#/case/P1-B1-S1-C1-U1-PT1")
    page.get_by_role("button", name="Difference").click()
    page.wait_for_selector("#drawer .own mark")
    shown = [found.locator("mark").all_inner_texts() for found in page.locator("#drawer .own").all()]
    assert shown == [lacks, has]
    assert one.messages == []


def test_a_filter_says_what_it_did_not_understand_and_knows_or(
    opened: Callable[..., Opened], files: Callable[..., Path]
) -> None:
    rows = _reports(1)[0].results
    page = opened().go(files(1))
    page.fill("#q", "severty>5 severity>high P1-B2,P1-B3 -error")
    page.wait_for_selector("#chips .bad >> nth=1")
    chips = page.locator("#chips button").all_inner_texts()
    assert chips == [
        "severty>5: unknown key severty ×",
        "severity>high: severity takes a number ×",
        "P1-B2,P1-B3 ×",
        "-error ×",
    ]
    either = [row for row in rows if row.code.startswith(("P1-B2-", "P1-B3-")) and row.outcome != "error"]
    assert page.locator("#count").inner_text() == f"{len(either)} of {_CASES}, 2 not understood"
    page.locator("#chips .bad").first.click()
    page.locator("#chips .bad").first.click()
    page.wait_for_selector(f"#count:text-is('{len(either)} of {_CASES}')")
    assert page.input_value("#q") == "P1-B2,P1-B3 -error"

    page.fill("#q", "severity>11,outcome=failed")
    failed = [row for row in rows if row.severity > 11 or row.outcome == "failed"]
    page.wait_for_selector(f"#count:text-is('{len(failed)} of {_CASES}')")

    page.fill("#q", "nothing-like-it")
    page.locator("#none button").click()
    page.wait_for_selector(f"#count:text-is('{_CASES} of {_CASES}')")
    assert (page.input_value("#q"), page.locator("#none").is_visible()) == ("", False)


def _are(found: Any, texts: list[str]) -> bool:
    return bool(found.all_inner_texts() == texts)


def test_a_word_is_looked_for_in_code_message_reply_expected_and_observed(
    opened: Callable[..., Opened], tmp_path: Path
) -> None:
    report = _reports(1)[0]
    rows = list(report.results)
    said = ("Hello?", "A zither, 12:30.", "Of a XYLOPHONE.", "So.")
    talk = tuple(ShownMessage(1 + n // 2, ("user", "assistant")[n % 2], text) for n, text in enumerate(said))
    changed = {
        200: {"code": "P1-B1-S1-C1-U1-PT77"},
        201: {
            "request": json.dumps({"messages": [{"role": "user", "content": "The Boiler, broken"}]}).encode()
        },
        202: {"reply": "It is a boiler. B12"},
        203: {"evaluations": (replace(rows[0].evaluations[0], expected="BOILER_ROOM"),)},
        204: {"evaluations": (replace(rows[0].evaluations[0], observed="no boiler"),)},
        205: {"conversation": talk},
        206: {"reply": "failed to see"},
    }
    for place, change in changed.items():
        rows[place] = replace(rows[place], **change)  # type: ignore[arg-type]  # of one field each
    wanted = {
        "boiler": ([201, 202, 203, 204], [203, 204]),
        '"the boiler, broken"': ([201], []),
        "boiler -broken -b12": ([203, 204], [203, 204]),
        "b12": ([202], []),
        "PT77": ([200], [200]),
        "zither xylophone": ([205], []),
        '"12:30"': ([205], []),
        '"failed to see"': ([206], []),
        "text:zither": ([205], []),
        "boiler expected:boiler": ([203], [203]),
    }
    for texts in (ShownTexts.ALL, ShownTexts.NONE):
        file = tmp_path / f"{texts}.html"
        file.write_text(run_page([replace(report, results=tuple(rows))], texts), "utf-8")
        page = opened().go(file, "#/cases?sort=case")
        says = page.get_attribute("#q", "placeholder")
        assert says.startswith(
            "Words in code, " + ("message, reply, " if texts.any else "") + "expected, observed"
        )
        for words, found in wanted.items():
            places = found[0 if texts.any else 1]
            page.fill("#q", words)
            shown = [f"{len(places)} of {_CASES}", *(rows[place].code for place in places)]
            seen = page.locator("#count, #rows .r > :first-child")
            until(partial(_are, seen, shown), words)


def test_cases_stand_worst_first_and_numbers_sort_from_the_highest(
    opened: Callable[..., Opened], files: Callable[..., Path]
) -> None:
    reports = _reports(5)
    page = opened().go(files(5))
    cases = page.locator("#rows .r > :first-child")

    assert cases.all_inner_texts()[:9] == [row.code for row in worst_first(reports)[:9]]
    page.locator("#thead button", has_text="severity").click()
    highest = max(row.severity for row in reports[0].results)
    severities = page.locator("#rows .r").first.locator("span").all_inner_texts()
    assert severities[3] == str(highest)
    assert page.locator("#thead [aria-sort=descending]").inner_text() == "severity ↓"
    page.locator("#thead button", has_text="case").click()
    assert cases.first.inner_text() == reports[0].results[0].code
    for _ in range(2):
        page.locator("#thead button", has_text="case").click()
    assert cases.first.inner_text() == worst_first(reports)[0].code


@pytest.mark.parametrize(("cost", "column"), [(0.0, "points lost"), (0.01, "usd")])
def test_cost_has_a_column_where_something_costs(
    cost: float, column: str, opened: Callable[..., Opened], tmp_path: Path
) -> None:
    report = _reports(1)[0]
    file = tmp_path / "cost.html"
    rows = tuple(replace(row, cost_usd=cost) for row in report.results)
    file.write_text(run_page([replace(report, results=rows)], ShownTexts.ALL), "utf-8")

    heads = opened().go(file).locator("#thead button").all_inner_texts()

    assert {"points lost ↓", "message"} < {*heads}
    assert ("usd" in heads) is (column == "usd")


def test_from_six_runs_on_a_cell_has_the_mark_and_its_title_the_rest(
    opened: Callable[..., Opened], files: Callable[..., Path]
) -> None:
    page = opened().go(files(6))
    row = worst_first(_reports(6))[0]
    runs = page.locator("#rows .r").first.locator(".run")

    assert {*runs.all_inner_texts()} <= {"✓", "✗", "!"}
    for cell, report in zip(runs.all(), _reports(6), strict=True):
        same = next(one for one in report.results if one.code == row.code)
        more = same.evaluations[0].observed if same.outcome == "failed" else same.reason
        label = f"{report.detail.model}: {same.outcome}{'' if more is None else f': {more}'}"
        assert (cell.get_attribute("title"), cell.get_attribute("aria-label")) == (label, label)


@pytest.mark.parametrize("runs", [1, 5, 12])
def test_the_message_stands_where_people_look_first(
    runs: int, opened: Callable[..., Opened], files: Callable[..., Path]
) -> None:
    page = opened().go(files(runs))
    page.set_viewport_size({"width": 1440, "height": 900})
    first = worst_first(_reports(runs))[0]
    said = json.loads(first.request or b"")["messages"][0]["content"]
    message = said.partition("<users_input>\n")[2].partition("\n<")[0]

    assert page.locator(".worst-five .asked").count() == 5
    for box in (page.locator(".worst-five .asked").first, page.locator("#rows .message").first):
        assert message.startswith(box.text_content().rstrip("…").strip())
    case = page.locator("#rows .r").first.bounding_box()
    assert case["y"] + case["height"] <= 2 * 900


def test_a_dead_link_says_so_at_the_top(opened: Callable[..., Opened], files: Callable[..., Path]) -> None:
    one = opened()
    page = one.go(files(1), "#/case/P9-B9-S1?rep=2")
    assert (
        page.locator("main > :first-child")
        .inner_text()
        .startswith("This file has no case P9-B9-S1 (repetition 2).")
    )
    assert page.evaluate("scrollY") == 0
    page.locator("#lost a").click()
    page.wait_for_selector("#lost", state="detached")
    assert one.messages == []


@pytest.mark.parametrize("key", ["j", "Enter", "n"])
def test_the_first_key_press_works(
    key: str, opened: Callable[..., Opened], files: Callable[..., Path]
) -> None:
    report = _reports(1)[0]
    page = opened().go(files(1))
    page.keyboard.press(key)
    if key != "Enter":
        page.keyboard.press("Enter")
    first = next(row for row in worst_first([report]) if key != "n" or row.outcome == "failed")
    page.wait_for_selector(f"#drawer h2:text-is('{first.code}')")


def test_a_passed_case_says_that_its_texts_are_not_in_a_file_of_failures(
    opened: Callable[..., Opened], files: Callable[..., Path]
) -> None:
    report = _reports(1)[0]
    passed = next(row for row in report.results if row.outcome == "passed")
    page = opened().go(files(1, ShownTexts.FAILURES), f"#/case/{passed.code}")

    assert "The texts of this case are not in this file" in page.locator("#drawer").inner_text()
    page.goto(f"{page.url.split('#')[0]}#/case/{report.failures[0].code}")
    page.wait_for_selector("#drawer .json")
    assert "not in this file" not in page.locator("#drawer").inner_text()


@pytest.mark.parametrize("runs", [1, 5])
def test_a_case_takes_two_lines_and_its_message_on_a_small_screen(
    runs: int, opened: Callable[..., Opened], files: Callable[..., Path]
) -> None:
    page = opened().go(files(runs))
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("() => document.querySelector('#rows .r').clientHeight > 50", polling=50)
    cells = page.locator("#rows .r").first.locator("span").all()
    boxes = [box for box in (cell.bounding_box() for cell in cells) if box is not None]

    assert len({round(box["y"]) for box in boxes}) == 3
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(_OUTSIDE, ":is(.forest, .dots, .worst, .two) *") == []


@pytest.mark.parametrize("runs", [1, 5, 12])
def test_paper_holds_every_column_in_light_colours_and_no_empty_sheet(
    runs: int, opened: Callable[..., Opened], files: Callable[..., Path]
) -> None:
    pypdf = pytest.importorskip("pypdf")
    page = opened(color_scheme="dark").go(files(runs, ShownTexts.NONE))
    wanted = page.locator(
        "main > section:not(#cases) th[scope=col]:visible:not(:has(.hidden))"
    ).all_inner_texts()

    sheets = pypdf.PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages

    assert all((sheet.mediabox.width > sheet.mediabox.height) is (runs > 1) for sheet in sheets)
    assert page.locator("*").count() <= _MOST_NODES
    texts = [_inside(sheet) for sheet in sheets]
    assert min(map(len, texts)) > 100
    whole = normalize("NFKC", "".join("".join(texts).split()))  # a ligature is two letters
    assert [word for name in wanted for word in name.split() if word not in whole] == []
    assert [one.detail.model for one in _reports(runs) if one.detail.model not in whole] == []
    page.emulate_media(media="print")
    page.set_viewport_size(
        {"width": 965 if runs > 1 else 725, "height": 900}
    )  # of a sheet, without its edges
    assert page.evaluate(_OUTSIDE, "section:not(#cases) *") == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 34, 42)"
    assert page.evaluate("getComputedStyle(document.body).printColorAdjust") == "exact"


def _inside(sheet: Any) -> str:
    """Return the text of a sheet that begins left of its right edge."""
    found: list[str] = []

    def visit(text: str, matrix: list[float], place: list[float], *_: object) -> None:
        x = place[4] * matrix[0] + matrix[4]
        if 0 <= x < float(sheet.mediabox.width):
            found.append(text)

    sheet.extract_text(visitor_text=visit)
    return "".join(found)
