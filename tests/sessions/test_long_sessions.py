"""What a session keeps of finished cases: nothing that pytest would search once per failure."""

from __future__ import annotations

import pytest
from provider import Provider
from trees import category, clear_environment, run_tree, write_tree

_KEPT = """
def pytest_terminal_summary(terminalreporter):
    kept = terminalreporter.stats.get("", [])
    terminalreporter.write_line(f"kept: {sorted(report.when for report in kept)}")
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
