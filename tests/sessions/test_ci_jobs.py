"""What a CI job gets: a summary, annotations, and workflows whose steps run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from commands import helmbench, programs
from provider import Provider, Request
from trees import category, clear_environment, run_tree, write_tree

from pytest_helmbench.reports.job_summary import LONGEST_SUMMARY

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "ci.md"


@pytest.fixture(autouse=True)
def _a_job(monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester) -> None:
    clear_environment(monkeypatch)
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path.parent))


def _annotations(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if line.startswith("::error ")]


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_a_job_has_a_summary_and_at_most_ten_annotations(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["CALM"] * 30)})
    (pytester.path / "benchmark/scenarios/P1-B2-S1").mkdir()
    (pytester.path / "benchmark/scenarios/P1-B2-S1/S1.md").write_text(
        "---\nevaluation:\n  type: nix\n---\n\nA.\n"
    )
    summary = pytester.path / "summary.md"
    summary.write_text("Of another tool.\n")

    result = run_tree(pytester, mode, "--helmbench-min-score=0.9", url=provider.url)

    found = _annotations(result)
    assert len(found) == 10
    assert len(re.findall("::error", result.stdout.str())) == 10
    assert found[0].startswith(
        "::error title=gate test/good::✗ FAILS   test/good: 1 of 31 cases not judged (50.0 %25, wanted"
    )
    folder = pytester.path.name
    assert found[1].startswith(f"::error file={folder}/benchmark/scenarios/P1-B2-S1/S1.md,line=")
    place = rf"::error file={folder}/benchmark/scenarios/P1-B1-S1/perturbations\.md,line=\d+,"
    assert re.match(rf"{place}title=P1-B1-S1-C1-PT\d+\[test/good\]::expected RISK, observed CALM", found[2])
    assert result.outlines[-1].startswith("✗ FAILS   test/good: 1 of 31 cases not judged")
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("Of another tool.\n## helmbench\n\n- ✗ FAILS test/good: 1 of 31 cases")
    assert "**30 cases failed**, the worst:" in text
    assert len(re.findall(r"^\| P1-B1-S1-C1-PT\d+ \| test/good", text, re.MULTILINE)) == 5
    assert "Message 1." not in text


def test_a_gate_that_holds_leaves_failed_cases_without_annotations(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM", "RISK")})
    held = run_tree(pytester, "--helmbench-min-score=0.1", url=provider.url)
    assert (held.ret, _annotations(held)) == (0, [])
    plain = run_tree(pytester, "--helmbench-cache=reuse", url=provider.url)
    assert len(_annotations(plain)) == 1


def test_hostile_words_stay_in_their_line_and_the_summary_within_its_length(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    words = ["x\n::error::forged", "%0A::warning::a", "`|</details>", "a" * 5_000]
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 400)})
    for number, word in enumerate(words, 1):
        provider.answers(text=json.dumps({"category": word}), when=_about(number))
    provider.answers(text=json.dumps({"category": "CALM"}))
    result = run_tree(pytester, "-q", url=provider.url)
    lines = [line for line in result.outlines if "::" in line and line.startswith("::")]
    assert all(line.startswith("::error file=") for line in lines)
    summary = (pytester.path / "summary.md").read_bytes()
    assert len(summary) <= LONGEST_SUMMARY
    assert summary.count(b"</details>") == summary.count(b"<details>")


def _about(number: int) -> Callable[[Request], bool]:
    return lambda request: f"Message {number}." in str(request.body)


def _steps(kind: str) -> list[str]:
    """Return the shell steps of a workflow on the page, those that need the network left out."""
    for block in re.findall(r"```yaml\n(.*?)```", _PAGE.read_text(encoding="utf-8"), re.DOTALL):
        document = yaml.safe_load(block)
        if "jobs" in document and kind == "github":
            steps = [step["run"] for step in document["jobs"]["benchmark"]["steps"] if "run" in step]
            return [step for step in steps if not step.startswith(("pip ", "gh "))]
        if "jobs" not in document and kind == "gitlab":
            return list(document["benchmark"]["script"])
    raise AssertionError(kind)


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_the_steps_of_the_workflows_run(
    pytester: pytest.Pytester, provider: Provider, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.answers(text='{"category": "RISK", "response": ""}')
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK", "CALM")})
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    monkeypatch.setenv(
        "PATH", f"{programs()}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    for turn in range(2):
        for step in _steps(kind):
            done = subprocess.run(
                ["bash", "-eo", "pipefail", "-c", step], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
        if kind == "github" and turn == 1:
            assert "baseline.json" in done.args[-1]
    expected = {"report.html", "junit.xml", "comment.md" if kind == "github" else "report.md", "helmbench.db"}
    assert expected <= {path.name for path in pytester.path.iterdir()}
    assert len(provider.requests) == 3  # the second turn is answered from the record
    runs = helmbench(pytester.path, "runs").stdout
    assert runs.count("openai/gpt-4o-mini") == 2
