"""The HTML page in Debian's Chromium: what it holds, how it is used, and that nothing in it can act."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from attack_strings import ATTACKS
from browsers import Opened, axe_faults
from page_runs import run_page, simulated_report, worst_first
from pages import blocks_of, cells_of
from sessions import until

from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.reports.page.document import html_page
from pytest_helmbench.reports.page.parts import PagePart, flips
from pytest_helmbench.results.comparing import WHOLE_RUN, RunComparison
from pytest_helmbench.results.losses import Losses
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.scoring.comparison import ComparedCase, compare_scopes
from pytest_helmbench.scoring.run_score import Floor, run_score
from pytest_helmbench.store.read.results import CallRow, ResultRow

_KILOBYTES = {1_000: 100, 10_000: 300}
_SCHEMES = {1_000: "dark", 10_000: "light"}
_MOST_NODES = 5_000
_MOST_SCRIPT_BYTES = 36_000


@cache
def _report(cases: int, run: int = 1, skill: float = 0.8) -> RunReport:
    return simulated_report(cases, run=run, skill=skill, texts=cases == 1_000)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Write pages as they are asked for: `1000`, `10000`, `texts`, `compared`."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def file(name: str) -> Path:
        made = {
            "texts": lambda: run_page([_report(1_000)], ShownTexts.ALL),
            "compared": lambda: html_page([_compared()], ShownTexts.ALL),
        }
        text = made[name]() if name in made else run_page([_report(int(name))], ShownTexts.NONE)
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
        return folder / f"{name}.html"

    return file


@cache
def _compared() -> PagePart:
    before, after = _report(1_000), _report(1_000, 2, 0.7)
    cases = [_case(old, new) for old, new in zip(before.results, after.results, strict=True)]
    weights = {case.behaviour: Fraction(1) for case in cases}
    scopes, behaviours = compare_scopes(
        [case for case in cases if case.baseline and case.candidate], weights, WHOLE_RUN, "perturbation"
    )
    comparison = RunComparison("test/model-2", None, None, WHOLE_RUN, scopes, behaviours, 1_000)
    return PagePart(after, comparison, before, flips(after.results, before.results))


def _case(old: ResultRow, new: ResultRow) -> ComparedCase:
    pillar, behaviour, *_, perturbation = new.code.split("-")
    replies = [() if row.score is None else ((Fraction(row.score),),) for row in (old, new)]
    unit = f"{new.scenario}-{perturbation}"
    return ComparedCase(pillar, f"{pillar}-{behaviour}", unit, new.severity, new.difficulty, *replies)


@pytest.mark.parametrize("cases", [1_000, 10_000])
def test_a_page_is_small_asks_nobody_and_has_every_case(
    cases: int, opened: Callable[..., Opened], files: Callable[[str], Path]
) -> None:
    file = files(str(cases))
    assert file.stat().st_size <= _KILOBYTES[cases] * 1_000
    assert file.read_text("utf-8") == run_page([_report(cases)], ShownTexts.NONE)

    one = opened(color_scheme=_SCHEMES[cases])
    page = one.go(file)
    assert page.locator("*").count() <= _MOST_NODES
    assert page.locator("#count").inner_text() == f"{cases:,} of {cases:,}"
    page.fill("#q", "failed severity>5")
    failed = [row for row in _report(cases).results if row.outcome == "failed" and row.severity > 5]
    page.wait_for_selector(f"#count:has-text('{len(failed):,} of {cases:,}')")
    assert (one.outside, one.messages) == ([], [])


def test_the_script_keeps_to_its_size() -> None:
    parts = [PagePart.of(_report(1_000, run), ShownTexts.NONE) for run in (1, 2)]
    page = html_page(parts, ShownTexts.NONE, live={})
    scripts = [*re.findall("<script>(.*?)</script>", page, re.DOTALL), str(blocks_of(page)["code"])]
    assert 20_000 < sum(len(script.encode()) for script in scripts) <= _MOST_SCRIPT_BYTES


def test_without_javascript_all_but_the_table_of_cases_is_there(
    opened: Callable[..., Opened], files: Callable[[str], Path]
) -> None:
    report = _report(1_000)
    page = opened(java_script_enabled=False).go(files("1000"), ready=False)

    text = page.locator("body").inner_text()
    assert report.score is not None
    assert f"{100 * float(report.score.total.score or 0):.1f} %" in text
    assert "95 % interval" in text
    assert page.locator("table.worst tbody tr").count() == 50
    page.set_viewport_size({"width": 1440, "height": 900})
    for one in (".verdict", ".loses tr >> nth=3", ".worst-five tr >> nth=5"):
        assert sum(page.locator(one).first.bounding_box()[side] for side in ("y", "height")) <= 900
    assert "The table of all cases needs JavaScript" in text
    assert not page.locator("#table").is_visible()
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert page.locator("table.forest").is_visible()


def test_a_file_that_was_cut_off_says_so(
    opened: Callable[..., Opened], files: Callable[[str], Path], tmp_path: Path
) -> None:
    text = files("1000").read_text("utf-8")
    cut = tmp_path / "cut.html"
    cut.write_text(re.sub(r'(id="c0">.{40})[^<]*', r"\1", text), encoding="utf-8")

    page = opened().go(cut, ready=False)

    page.wait_for_selector("#cases p:has-text('The table of all cases cannot be shown')")


def test_axe_finds_nothing_serious_in_both_schemes(
    opened: Callable[..., Opened], files: Callable[[str], Path]
) -> None:
    one = opened(color_scheme="light", bypass_csp=True)
    page = one.go(files("compared"))
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.locator("#rows a").nth(3).click()
    page.wait_for_selector("#drawer h2")

    assert axe_faults(page) == []


def test_links_keys_and_the_back_button_lead_where_they_say(
    opened: Callable[..., Opened], files: Callable[[str], Path]
) -> None:
    report = _report(1_000)
    first, second = (row.code for row in worst_first([report])[:2])
    one = opened()
    page = one.go(files("texts"), f"#/case/{first}")
    title = page.locator("#drawer h2")

    assert title.inner_text() == first
    reply = next(row.reply for row in report.results if row.code == first)
    for value in json.loads(reply or "").values():
        assert value in page.locator("#drawer .json").inner_text()
    page.keyboard.press("j")
    page.wait_for_selector(f"#drawer h2:has-text('{second}')")
    assert page.url.endswith(f"#/case/{second}")
    page.keyboard.press("k")
    page.wait_for_selector(f"#drawer h2:has-text('{first}')")
    failed = next(row.code for row in worst_first([report])[1:] if row.outcome == "failed")
    page.keyboard.press("n")
    page.wait_for_selector(f"#drawer h2:has-text('{failed}')")
    page.keyboard.press("/")
    page.wait_for_selector("#drawer", state="hidden")
    until(lambda: page.evaluate("document.activeElement.id") == "q", "the filter has the cursor")

    one.go(files("1000"), "#/plot/heat")
    until(lambda: page.evaluate("scrollY > 0"), "the browser scrolls, in a frame of its own")

    one.go(files("1000"), "#/cases?outcome=failed&behaviour=P1-B2&sort=-severity")
    expected = [row for row in report.results if row.outcome == "failed" and row.code.startswith("P1-B2-")]
    assert page.input_value("#q") == "outcome=failed behaviour=P1-B2"
    assert page.locator("#count").inner_text() == f"{len(expected)} of 1,000"
    worst = max(row.severity for row in expected)
    assert page.locator("#rows .r").first.locator("span").nth(3).inner_text() == str(worst)
    page.fill("#q", f"{failed} text:nothing")
    page.wait_for_selector("#count:has-text('0 of 1,000')")
    page.fill("#q", failed)
    page.wait_for_selector("#count:has-text('1 of 1,000')")
    assert f"q={failed}" in page.url
    page.locator("#rows a").first.click()
    page.wait_for_selector(f"#drawer h2:has-text('{failed}')")
    page.go_back()
    page.wait_for_selector("#drawer", state="hidden")
    assert page.input_value("#q") == failed
    assert one.messages == []


def test_a_comparison_shows_both_runs_of_a_case(
    opened: Callable[..., Opened], files: Callable[[str], Path]
) -> None:
    part = _compared()
    worse = [code for (code, _), flip in part.flips.items() if flip.word == "worse"]
    one = opened()
    page = one.go(files("compared"), "#/cases?flip=worse")

    assert page.locator("#count").inner_text() == f"{len(worse)} of 1,000"
    assert page.locator(".verdict .big strong").inner_text() == "worse"
    page.locator("#rows a").first.click()
    sides = page.locator("#drawer .cells:first-child > div")
    sides.first.wait_for()
    assert [side.locator("strong").first.inner_text() for side in sides.all()] == ["passed", "failed"]
    assert re.findall(r"run \d", page.locator("#drawer .cells:first-child").inner_text()) == [
        "run 1",
        "run 2",
    ]
    assert one.messages == []


@pytest.mark.parametrize("runs", [1, 2])
def test_nothing_in_a_result_can_act(runs: int, opened: Callable[..., Opened], tmp_path: Path) -> None:
    """One hundred hostile strings in every text of a report: shown as they are, and nothing runs."""
    assert len(ATTACKS) == 100
    report = _report(1_000)
    results = tuple(
        _hostile(row, ATTACKS[index % 100], as_json=index % 2 == 0)
        for index, row in enumerate(report.results[:200])
    )
    hostile = replace(
        report,
        results=results,
        failures=tuple(row for row in results if row.outcome == "failed"),
        titles={"P1": ATTACKS[0], "P1-B1": ATTACKS[1]},
        detail=replace(
            report.detail,
            model=ATTACKS[2],
            benchmark=ATTACKS[3],
            version=ATTACKS[4],
            settings={"system_prompt": ATTACKS[5], ATTACKS[6]: ATTACKS[7]},
            outcomes={("error", ATTACKS[8]): 1},
        ),
    )
    file = tmp_path / "hostile.html"
    several = [replace(hostile, detail=replace(hostile.detail, id=number)) for number in range(1, runs + 1)]
    file.write_text(run_page(several, ShownTexts.ALL), encoding="utf-8")
    assert cells_of(file.read_text("utf-8"), "code")[5] == results[5].code

    one = opened()
    page = one.go(file)
    page.locator("#plain").click()
    codes = page.locator("#rows .r a")
    assert codes.count() == 200
    shown = codes.all_inner_texts()
    assert [_joined(text) for text in shown] == [_joined(row.code) for row in results]
    for index in (3, 40):
        codes.nth(index).click()
        page.wait_for_selector("#drawer .said")
        assert page.locator("#drawer .json").count() == (0 if index % 2 else runs)
        for shape in ("Markdown", "Text"):
            page.locator(f"#drawer [aria-pressed]:text-is('{shape}')").click()
            page.wait_for_selector(f"#drawer [aria-pressed=true]:text-is('{shape}')")
        text = _joined(page.locator("#drawer").inner_text())
        assert text.count(_joined(ATTACKS[index])) >= 2 * runs
        page.keyboard.press("Escape")
    page.fill("#q", " ".join(ATTACKS[:20]))
    page.wait_for_selector("#chips button")
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.wait_for_selector(".run .worst", state="attached")
    assert page.evaluate("typeof window.PWN") == "undefined"
    assert page.locator("img, iframe, object, embed, form:not(#filter), base").count() == 0
    assert (one.outside, one.messages) == ([], [])


def _joined(text: str) -> str:
    return "".join(text.split())


def _hostile(row: ResultRow, text: str, *, as_json: bool) -> ResultRow:
    request = json.dumps({"model": text, "messages": [{"role": text, "content": text}]}).encode()
    evaluations = tuple(
        replace(one, criterion=text, expected=text, observed=text, justification=text)
        for one in row.evaluations
    )
    code = f"{text}-{row.code}"
    reply = json.dumps({text: text}) if as_json else text
    return replace(row, code=code, reason=text, request=request, reply=reply, evaluations=evaluations)


def _models(runs: int, *, texts: bool = False) -> list[RunReport]:
    names = ("northwind/atlas-large", "tiny/mini", "meta/llama-4-8b-instruct-q4_K_M", "local/phi")
    found = []
    for run in range(1, runs + 1):
        report = simulated_report(240, run=run, skill=0.95 - 0.04 * run, texts=texts)
        detail = replace(report.detail, model=f"{names[run % 4]}-{run}", settings={"min_score": "0.85"})
        found.append(
            replace(report, detail=detail, counts=replace(report.counts, known_cost_usd=0.01 * run**3))
        )
    return found


def _boxes(page: Any, selector: str) -> list[dict[str, float]]:
    return [box for one in page.locator(selector).all() if (box := one.bounding_box())]


def _overlapping(
    boxes: list[dict[str, float]], halo: int = 0
) -> list[tuple[dict[str, float], dict[str, float]]]:
    """Return pairs of boxes that cover each other by more than a pixel, their halos apart."""

    def meet(one: dict[str, float], other: dict[str, float]) -> bool:
        sides = (("x", "width"), ("y", "height"))
        return all(
            min(one[at] + one[size], other[at] + other[size]) - max(one[at], other[at]) > 1 + 2 * halo
            for at, size in sides
        )

    return [pair for pair in combinations(boxes, 2) if meet(*pair)]


_DISPLAYED = "all => all.map((one) => getComputedStyle(one).display)"


@pytest.mark.parametrize("runs", [1, 5, 12])
def test_the_first_screen_says_how_it_stands_and_where_points_are_lost(
    runs: int, opened: Callable[..., Opened], tmp_path: Path
) -> None:
    file = tmp_path / "runs.html"
    file.write_text(run_page(_models(runs), ShownTexts.NONE), encoding="utf-8")
    one = opened(color_scheme="light", bypass_csp=True)
    one.page.set_viewport_size({"width": 1440, "height": 900})
    page = one.go(file)

    for selector in (".verdict", ".loses tr >> nth=3", ".worst-five tr >> nth=5"):
        box = page.locator(selector).first.bounding_box()
        assert box["y"] + box["height"] <= 900, selector
    if runs == 1:
        assert _overlapping(_boxes(page, ".strip.broad text"), halo=4) == []
    else:
        assert page.locator(".leaders tr[data-n]").count() == runs
        heads = page.locator(".leaders th").all_inner_texts()[1:]
        assert heads == [
            "run",
            "model",
            "score",
            "95 % interval",
            "right",
            "not judged",
            "USD",
            "time",
            "tokens/s",
        ]
        ghosts = page.locator(".leaders .ghost").all_inner_texts()
        assert [text.strip().partition(")")[0] for text in ghosts] == [
            "(flags everything",
            "(flags nothing",
        ]
        assert len({svg.get_attribute("class") for svg in page.locator(".marks g").all()}) == min(runs, 9)
        for row in page.locator(".dots tbody tr").all()[:8]:
            marks = [box for use in row.locator("use").all() if (box := use.bounding_box())]
            assert len(marks) == runs
            assert _overlapping(marks) == []
        assert _overlapping(_boxes(page, ".cost text")) == []
        page.locator(".leaders tr[data-n='2'] td").nth(1).hover()
        assert page.locator(".dots .ci.on").count() == page.locator(".dots use[data-n='2']").count()
        page.mouse.move(0, 0)
        for media in ("print", "screen"):
            page.emulate_media(media=media)
            lines = page.locator(".dots .ci").evaluate_all(_DISPLAYED)
            assert len(lines) >= runs
            assert set(lines) == {"inline" if runs <= 5 else "none"}
    assert axe_faults(page) == []
    for width in (1440, 1024, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate(
            "[...document.querySelectorAll('.scroll:has(.leaders)')].every(b => b.scrollWidth <= b.clientWidth)"
        )
    if runs > 1:
        first = page.locator(".leaders tr[data-n]").first
        model, score = (first.locator(f"td[data-h={name}]").bounding_box() for name in ("model", "score"))
        assert score["y"] >= model["y"] + model["height"]
        assert score["x"] + score["width"] <= 390
    if runs == 1:
        assert _overlapping(_boxes(page, ".strip.narrow text"), halo=4) == []
    assert (one.outside, one.messages) == ([], [])


def test_the_first_of_all_cases_is_seen_within_two_screens_however_many_runs_there_are(
    opened: Callable[..., Opened], tmp_path: Path
) -> None:
    file = tmp_path / "runs.html"
    file.write_text(run_page(_models(40, texts=True), ShownTexts.ALL), encoding="utf-8")
    one = opened(color_scheme="light", bypass_csp=True)
    one.page.set_viewport_size({"width": 1440, "height": 900})
    page = one.go(file)
    assert page.locator("#rows .r").first.bounding_box()["y"] < 1_800
    board = page.locator(".scroll:has(.leaders)")
    last = page.locator(".leaders tr").last
    last.scroll_into_view_if_needed()
    head, shown, box = (found.bounding_box() for found in (page.locator(".leaders thead"), last, board))
    assert box["y"] <= head["y"] < head["y"] + head["height"] < shown["y"]
    assert shown["y"] + shown["height"] <= box["y"] + box["height"]
    assert axe_faults(page) == []
    page.emulate_media(media="print")
    assert board.evaluate("box => box.scrollHeight <= box.clientHeight")


def test_the_line_of_a_verdict_names_what_the_score_is_measured_against(
    opened: Callable[..., Opened], tmp_path: Path
) -> None:
    (report,) = _models(1)
    assert report.score is not None
    floors = (Floor("P1", Fraction(3, 5), Fraction(1, 2)),)
    file = tmp_path / "strip.html"
    file.write_text(run_page([replace(report, score=replace(report.score, floors=floors))], ShownTexts.NONE))
    found = report.constants

    texts = opened().go(file).locator(".strip.broad text").all_text_contents()

    wanted = {
        "all wrong": found.all_wrong,
        "flags nothing": found.flags_nothing,
        "flags everything": found.flags_everything,
        "score": report.score.score,
        "threshold": 0.85,
        "floor of P1": 0.6,
    }
    named = [f"{name} {100 * float(at or 0):.1f}" for name, at in wanted.items()]
    assert sorted(texts) == sorted(["0 %", "100 %", *named])


_REFUSED = "the provider at http://127.0.0.1:9/v1 cannot be reached (connection refused)"


@pytest.mark.parametrize(
    ("reason", "said", "hint"),
    [
        ("bad_key", "", "Check the key of the model"),
        ("no_verifier", "", "Build the verifier with --helmbench-build="),
        ("unreachable", _REFUSED, "Start the server, or check the port in the base URL"),
    ],
)
def test_a_page_of_which_nothing_was_judged_begins_with_the_reason_and_what_helps(
    reason: str, said: str, hint: str, opened: Callable[..., Opened], tmp_path: Path
) -> None:
    (report,) = _models(1)
    score = run_score(())
    detail = replace(report.detail, outcomes={("error", reason): 240}, base_url="http://127.0.0.1:9/v1")
    call = CallRow(1, "case", "", 1, None, None, f"{reason}: {said}", None, None, None, None, None, False, "")
    nothing = replace(
        report, score=score, failures=(), losses=Losses(), detail=detail, calls={("P1", 1): (call,)}
    )
    file = tmp_path / "nothing.html"
    file.write_text(run_page([nothing], ShownTexts.NONE), encoding="utf-8")

    page = opened(bypass_csp=True).go(file)

    assert (
        page.locator(".verdict").inner_text().splitlines()[0]
        == f"✗ Nothing was judged: {reason} 240{': ' * bool(said)}{said}"
    )
    told = page.inner_text(".verdict")
    assert hint in told
    assert "; then the same command with --helmbench-resume" in told
    assert page.locator(".strip, .two table, .forest").count() == 0
    assert axe_faults(page) == []
