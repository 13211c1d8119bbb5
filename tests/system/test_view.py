"""The live view in Debian's Chromium: beside a session that is killed, in several browsers, over hostile texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attack_strings import ATTACKS
from browsers import Opened, axe_faults
from provider import Answer, Provider, Request
from sessions import Session, run_undisturbed, until
from trees import category, clear_environment, rows, write_tree
from viewers import Viewer, code_of, open_run, record

from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.store.write.writer import Store

_CASES, _BEFORE = 30, 12


def _has(page: Any, selector: str, text: str) -> None:
    page.wait_for_selector(f"{selector}:has-text('{text}')", state="attached")


def _quiet(one: Opened, viewer: Viewer) -> None:
    """See that no other host was asked for anything, and that nothing was complained about."""
    assert [url for url in one.requests if not url.startswith(f"{viewer.origin}/")] == []
    assert one.messages == []


def test_the_page_follows_a_session_that_is_killed_and_resumed(
    pytester: pytest.Pytester,
    provider: Provider,
    opened: Callable[..., Opened],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clear_environment(monkeypatch)
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * _CASES)})
    stalls = True

    def reply(_request: Request) -> Answer | None:
        return Answer(hang=True) if stalls and provider.count > _BEFORE else None

    provider.reply = reply
    options = ("-q", "-n0", "--helmbench-concurrency=4")
    session = Session(pytester.path, provider.url, *options)
    database = pytester.path / "helmbench.db"
    until(lambda: database.exists() and _results(database), "the first results are on record")
    with Viewer(pytester.path, 1, "--refresh=0.2") as viewer:
        one = opened()
        page = one.go(viewer.url, "#/cases?outcome=passed")
        assert page.url == f"{viewer.origin}/r/1#/cases?outcome=passed"
        _has(page, "#live-counts", f"{_BEFORE} of {_CASES} · {_BEFORE} passed")
        assert page.locator("#live-state").inner_text() == "running"

        assert session.kill_all()
        _has(page, "#live-state", "interrupted")
        page.locator("#live-show").click()
        _has(page, ".cautions", "the run was interrupted")
        _has(page, "#count", f"{_BEFORE} of {_BEFORE}")
        first = page.locator("#rows a").first
        assert first.inner_text() == "P1-B1-S1-C1-PT1"
        page.keyboard.press("j")

        stalls = False
        run_undisturbed(pytester, provider.url, *options, "--helmbench-resume")
        _has(page, "#live-state", "complete")
        _has(page, "#live-show", f"{_CASES - _BEFORE} new results: show")
        assert page.locator("#count").inner_text() == f"{_BEFORE} of {_BEFORE}"  # nothing jumps
        page.locator("#live-show").click()
        _has(page, "#count", f"{_CASES} of {_CASES}")
        assert page.input_value("#q") == "outcome=passed"
        assert page.locator(".big strong").first.inner_text() == "100.0 %"
        assert page.locator(".cautions", has_text="the run was interrupted").count() == 0
        assert not page.locator("#live-show").is_visible()
        page.locator("#plain").click()
        codes = [f"P1-B1-S1-C1-PT{number}" for number in range(1, _CASES + 1)]
        assert page.locator("#rows a").all_inner_texts() == codes
        _quiet(one, viewer)

        assert viewer.interrupt() == 0
        _has(page, "#live-state", "helmbench view has ended")
        assert page.locator("#rows a").count() == _CASES


def _results(database: Path) -> bool:
    tables = rows(database, "SELECT count(*) FROM sqlite_master WHERE name = 'results'")
    return tables == [(1,)] and rows(database, "SELECT count(*) FROM results") != [(0,)]


def test_browsers_list_open_and_compare_while_runs_are_written(
    tmp_path: Path, opened: Callable[..., Opened]
) -> None:
    store = Store.open(tmp_path / "helmbench.db")
    first, second = open_run(store, "test/a"), open_run(store, "test/b")
    record(store, first, *range(1, 41))
    record(store, second, *range(1, 21), verdict=Verdict.FAILED)
    with Viewer(tmp_path, "--refresh=0.2", "--with-text=all") as viewer:
        one, other = opened(bypass_csp=True), opened()
        page = one.go(viewer.url)
        _has(page, f"#run-{first}", "40 of 100")
        assert axe_faults(page) == []
        page.set_viewport_size({"width": 390, "height": 844})
        box = page.locator(f"#run-{first} td").nth(8).bounding_box()  # the score
        assert box is not None
        assert box["x"] + box["width"] <= 390
        page.check(f"#run-{first} input")
        third = open_run(store, "test/c")
        _has(page, f"#run-{third}", "0 of 100")  # the new line comes on top, and what is ticked stays so
        assert page.locator("#runs a").all_inner_texts() == [str(third), str(second), str(first)]
        page.check(f"#run-{second} input")
        page.check(f"#run-{third} input")
        assert page.locator("#compare").is_disabled()
        page.click("#open")
        page.wait_for_selector(".leaders, .board", state="attached")
        assert page.url == f"{viewer.origin}/r/{first},{second},{third}"
        page.go_back()
        page.wait_for_selector("#runs")
        for run in (first, second, third):
            page.set_checked(f"#run-{run} input", run != third)
        page.click("#compare")
        page.wait_for_selector("html[data-ready]", state="attached")
        assert page.url == f"{viewer.origin}/c/{first}..{second}"
        assert page.locator("#count").inner_text() == "20 of 20"

        single = other.go(viewer.url.replace("/?", f"/r/{second}?"), f"#/case/{code_of(2)}")
        _has(single, "#drawer h2", code_of(2))
        assert "SECRET-PROMPT" in single.locator("#drawer").inner_text()
        single.keyboard.press("j")
        _has(single, "#drawer h2", code_of(3))
        record(store, second, *range(21, 31), verdict=Verdict.FAILED)
        _has(single, "#live-show", "10 new results: show")
        single.locator("#live-show").dispatch_event("click")  # the drawer lies over it
        _has(single, "#count", "30 of 30")
        _has(single, "#drawer h2", code_of(3))  # what is open stays open
        single.keyboard.press("Escape")
        single.fill("#q", "text:secret-prompt")
        _has(single, "#count", "30 of 30")
        _has(page, "#live-show", "10 new results: show")
        page.locator("#live-show").click()
        _has(page, "#count", "30 of 30")
        page.fill("#q", "flip=worse")
        until(
            lambda: page.evaluate("location.hash.endsWith('flip%3Dworse')"),
            "the list is filtered, a moment after it was asked",
        )
        _has(page, "#count", "30 of 30")
        page.locator("#rows a").first.click()
        page.wait_for_selector("#drawer .sides")
        assert axe_faults(page) == []
        for found in (one, other):
            _quiet(found, viewer)
    store.close()


def test_the_list_has_sessions_with_interval_cost_time_and_the_score_over_time(
    pytester: pytest.Pytester,
    provider: Provider,
    opened: Callable[..., Opened],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clear_environment(monkeypatch)
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * _CASES)})
    for _ in range(2):
        run_undisturbed(pytester, provider.url, "-q", "-n0", "--helmbench-cache=off")
    stored = rows(
        pytester.path / "helmbench.db", "SELECT score, score_low, score_high FROM evaluation_runs ORDER BY id"
    )
    with Viewer(pytester.path, "--refresh=0.2") as viewer:
        one = opened(bypass_csp=True)
        page = one.go(viewer.url)
        assert page.locator("#runs tr").evaluate_all("all => all.map((one) => one.id)") == [
            *("", "", "run-2", "", "run-1")
        ]
        heads = page.locator("#runs thead th").all_inner_texts()
        line = dict(zip(heads, page.locator("#run-2 td").all_inner_texts(), strict=True))
        score, low, high = (100 * value for value in stored[1])
        assert line["score"] == f"{score:.1f} %"
        assert line["95 % interval"] == f"{low:.1f} – {high:.1f}"
        assert line["USD"]
        assert line["time"].endswith("s")
        assert page.locator(".trend circle title").all_text_contents()[1].startswith("run 2, ")
        assert axe_faults(page) == []
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        _quiet(one, viewer)


def test_nothing_in_a_database_can_act(tmp_path: Path, opened: Callable[..., Opened]) -> None:
    """One hundred hostile strings as codes, replies, prompts, models and benchmarks: shown, and nothing runs."""
    store = Store.open(tmp_path / "helmbench.db")
    runs = [open_run(store, text, benchmark=ATTACKS[-index]) for index, text in enumerate(ATTACKS[:5], 1)]
    for number, text in enumerate(ATTACKS[:50]):
        record(store, runs[0], number, text=text, code=f"{text}-{number}", verdict=Verdict.FAILED)
    with Viewer(tmp_path, "--refresh=0.2", "--with-text=all") as viewer:
        one = opened()
        page = one.go(viewer.url)
        assert page.locator("#runs tr[id]").count() == len(runs)
        one.go(f"{viewer.origin}/r/{runs[0]}")
        for number, text in enumerate(ATTACKS[50:], 50):
            record(store, runs[0], number, text=text, code=f"{text}-{number}", verdict=Verdict.FAILED)
        _has(page, "#live-show", "50 new results: show")
        page.locator("#live-show").click()
        _has(page, "#count", "100 of 100")
        page.locator("#plain").click()
        codes = page.locator("#rows .r a")
        for index in (3, 40, 77):
            codes.nth(index).click()
            page.wait_for_selector("#drawer pre")
            page.keyboard.press("Escape")
        page.fill("#q", "text:script")
        _has(page, "#count", "of 100")
        assert page.evaluate("typeof window.PWN") == "undefined"
        assert page.locator("img, iframe, object, embed, form:not(#filter), base").count() == 0
        _quiet(one, viewer)
    store.close()
