"""What a session keeps of finished cases: nothing that pytest would search once per failure."""

from __future__ import annotations

import sys
import time

import pytest
from provider import Provider
from trees import category, clear_environment, run_tree, write_tree

from pytest_helmbench.pytest_side.items import CaseItem
from pytest_helmbench.pytest_side.session_plugin import SessionPlugin

_KEPT = """
def pytest_terminal_summary(terminalreporter):
    kept = terminalreporter.stats.get("", [])
    terminalreporter.write_line(f"kept: {sorted(report.when for report in kept)}")
"""


_PACE = """
import gc
def pytest_terminal_summary(terminalreporter):
    found = [each for each in gc.callbacks if getattr(each, "__module__", "").startswith("pytest_helmbench")]
    terminalreporter.write_line(f"sets aside: {bool(found)}")
"""


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_the_terminal_keeps_no_phase_that_passed_in_silence(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM", "RISK")})
    pytester.makeconftest(_KEPT)
    result = run_tree(pytester, workers, url=provider.url)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["kept: []"])


def test_what_durations_and_printed_words_need_is_kept(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM")})
    pytester.makeconftest(_KEPT + "\ndef pytest_runtest_teardown(item):\n    print('said in teardown')\n")
    result = run_tree(pytester, "--durations=2", url=provider.url)
    result.stdout.fnmatch_lines(["kept: ['setup', 'setup', 'teardown', 'teardown']"])
    result = run_tree(pytester, url=provider.url)
    result.stdout.fnmatch_lines(["*Captured stdout teardown*", "said in teardown", "kept: ['teardown', *"])


def test_survivors_of_the_collector_are_set_aside_where_all_items_are_cases(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})
    pytester.makeconftest(_PACE)
    assert "sets aside: True" in run_tree(pytester, url=provider.url).outlines
    pytester.makepyfile(
        test_own="def test_of_somebody_else(): pass"
    )  # what it leaves in cycles is to be freed
    assert "sets aside: False" in run_tree(pytester, "test_own.py", url=provider.url).outlines


@pytest.mark.parametrize("waits", [True, False])
def test_one_more_case_costs_as_many_calls_whatever_their_number(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    plain = SessionPlugin.has_passed

    def look(plugin: SessionPlugin, item: CaseItem) -> bool:
        counted = sys.getprofile()
        sys.setprofile(None)
        while not waits and not plain(plugin, item):
            time.sleep(0.001)
        sys.setprofile(counted)
        return not waits

    monkeypatch.setattr(SessionPlugin, "has_passed", look)
    _calls(pytester, provider, 2)  # what is made once per process
    # What is done by the clock comes on top where the machine is busy: the least of three is counted.
    few, more, most = (min(_calls(pytester, provider, cases) for _ in range(3)) for cases in (30, 60, 90))
    assert most - more == pytest.approx(more - few, rel=0.05)
    assert (most - more) / 30 < (
        2_500 if waits else 1_900
    )  # 2,156 and 1,683, those of pytester's recorder too


def _calls(pytester: pytest.Pytester, provider: Provider, cases: int) -> int:
    """Return how many functions pytest's thread calls in a session of so many cases; its cache would grow with each."""
    name = f"benchmark-of-{cases}"
    write_tree(pytester.path / name, {"P1-B1-S1": category(*["RISK"] * cases)})
    count = 0

    def counted(_frame: object, event: str, _about: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        result = run_tree(pytester, name, "--junitxml=junit.xml", "-p", "no:cacheprovider", url=provider.url)
    finally:
        sys.setprofile(None)
    result.assert_outcomes(passed=cases)
    return count
