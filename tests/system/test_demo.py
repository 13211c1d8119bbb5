"""The demo of the README, without its set-up: what a first user sees."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from inner_pytest import run_pytest_apart
from paths import ROOT
from readme import demo_words
from trees import clear_environment, rows

_MOST_LINES = 56  # 60 at the most, with room for what another machine has to say


def test_the_demo_is_short_and_mostly_passes_on_a_machine_without_any_tool(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = demo_words()
    assert arguments[-1] == "-q"

    result = _run_demo(pytester, monkeypatch, (), *arguments)

    letters = next(line for line in result.outlines if re.match(r"[.FEsx]{20,}", line))
    assert letters.startswith(".")
    found = result.parseoutcomes()
    assert set(found) == {"passed", "failed"}
    assert found["passed"] > 2 * found["failed"]
    asked = "SELECT code, group_concat(DISTINCT turn), count(*) FROM calls WHERE turn IS NOT NULL GROUP BY run_id, code"
    turns = {(code[:8], turns, calls) for code, turns, calls in rows(pytester.path / "helmbench.db", asked)}
    assert turns == {("P1-B1-S2", "2,3", 2), ("P2-B2-S2", "1", 1), ("P2-B2-S2", "1", 2)}
    for model in ("baseline/lookup", "baseline/lexical"):
        assert f"--helmbench-model={model}" in arguments
        assert model in result.stdout.str()


@pytest.mark.parametrize("tools", [(), ("node",)])
def test_all_demos_together_are_as_short(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tools: tuple[str, ...]
) -> None:
    result = _run_demo(pytester, monkeypatch, tools, "benchmark", "--helmbench-model=baseline/lexical", "-q")

    assert result.parseoutcomes()["skipped"] > 0


def test_a_check_of_the_demos_has_no_warning(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear_environment(monkeypatch)
    checked = pytester.run(sys.executable, "-m", "pytest_helmbench", "check", ROOT / "benchmark")
    assert checked.ret == 0
    assert "warning:" not in checked.stdout.str() + checked.stderr.str()


def _run_demo(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tools: tuple[str, ...], *arguments: str
) -> pytest.RunResult:
    """Run pytest on a copy of the demos, with nothing on PATH but a shell and some tools."""
    clear_environment(monkeypatch)
    shutil.copytree(ROOT / "benchmark", pytester.path / "benchmark")
    programs = pytester.mkdir("programs")
    for name in ("sh", "env", *tools):
        (programs / name).symlink_to(Path(shutil.which(name) or name).resolve())
    monkeypatch.setenv("PATH", str(programs))

    result = run_pytest_apart(pytester, *arguments)

    assert len(result.outlines) < _MOST_LINES
    return result
