"""The demo of the README, without its set-up: what a first user sees."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from inner_pytest import run_pytest_apart
from paths import ROOT
from readme import readme_command
from trees import clear_environment

_MOST_LINES = 56  # 60 at the most, with room for what another machine has to say


def test_the_demo_is_short_and_begins_with_what_passes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear_environment(monkeypatch)
    shutil.copytree(ROOT / "benchmark", pytester.path / "benchmark")
    arguments = readme_command("demo").partition(" -m pytest ")[2].split()
    assert arguments[-1] == "-q"

    result = run_pytest_apart(pytester, *arguments)
    letters = next(line for line in result.outlines if re.match(r"[.FEsx]{20,}", line))
    assert letters.startswith(".")
    assert len(result.outlines) < _MOST_LINES
    more = re.search(r"^(\d+) more failed cases: ", result.stdout.str(), re.MULTILINE)
    assert more is not None
    result.assert_outcomes(failed=int(more[1]) + 10, **_others(result))

    checked = pytester.run(sys.executable, "-m", "pytest_helmbench", "check", "benchmark")
    assert checked.ret == 0
    assert "warning:" not in checked.stdout.str() + checked.stderr.str()


@pytest.mark.parametrize("tools", [(), ("node",)])
def test_the_demo_is_as_short_on_a_machine_that_has_next_to_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tools: tuple[str, ...]
) -> None:
    clear_environment(monkeypatch)
    shutil.copytree(ROOT / "benchmark", pytester.path / "benchmark")
    programs = pytester.mkdir("programs")
    for name in ("sh", "env", *tools):
        (programs / name).symlink_to(Path(shutil.which(name) or name).resolve())
    monkeypatch.setenv("PATH", str(programs))

    result = run_pytest_apart(pytester, *readme_command("demo").partition(" -m pytest ")[2].split())

    letters = next(line for line in result.outlines if re.match(r"[.FEsx]{20,}", line))
    assert letters.startswith(".")
    assert len(result.outlines) < _MOST_LINES
    assert result.parseoutcomes()["skipped"] > 0


def _others(result: pytest.RunResult) -> dict[str, int]:
    """Return what is counted beside the failed: some of it depends on what this machine has."""
    found = result.parseoutcomes()
    return {name: found.get(name, 0) for name in ("passed", "skipped", "errors", "xfailed")}
