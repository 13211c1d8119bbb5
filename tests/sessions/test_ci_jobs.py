"""Output of CI jobs: a summary, annotations, and workflows whose steps run."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from commands import helmbench, programs
from provider import Provider, Request
from trees import category, clear_environment, run_tree, write_tree

from pytest_helmbench.reports.markdown import LONGEST

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
    said = "test/good: 0.0 %, threshold 90.0 · 1 of 31 cases not judged"
    assert len(found) == 10
    assert len(re.findall("::error", result.stdout.str())) == 10
    assert found[0] == "::error title=gate test/good::✗ FAILS   " + said.replace("%", "%25")
    folder = pytester.path.name
    assert found[1].startswith(f"::error file={folder}/benchmark/scenarios/P1-B2-S1/S1.md,line=")
    place = rf"::error file={folder}/benchmark/scenarios/P1-B1-S1/perturbations\.md,line=\d+,"
    assert re.match(rf"{place}title=P1-B1-S1-C1-PT\d+\[test/good\]::expected RISK, observed CALM", found[2])
    assert result.outlines[-1] == f"✗ FAILS   {said}"
    text = summary.read_text(encoding="utf-8")
    assert text.startswith(f"Of another tool.\n## ✗ FAILS {said}")
    assert "**30 cases failed**, the worst:" in text
    row = r"^\| P1-B1-S1-C1-PT\d+ \| Message \d+\. \| `RISK` → `CALM` \| 3\.33 \|$"
    assert len(re.findall(row, text.partition("<details>")[0], re.MULTILINE)) == 5
    assert "| case" + 22 * "\N{NO-BREAK SPACE}" + "&nbsp; | asked | expected → observed | points |" in text


def test_neither_a_green_job_nor_a_shard_has_annotations(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM", "RISK")})
    held = run_tree(pytester, "--helmbench-min-score=0.1", url=provider.url)
    assert (held.ret, _annotations(held)) == (0, [])
    plain = run_tree(pytester, "--helmbench-cache=reuse", url=provider.url)
    assert len(_annotations(plain)) == 1
    provider.answers(status=400)
    share = run_tree(pytester, "--helmbench-min-score=0.5", "--helmbench-shard=1/1", url=provider.url)
    assert (share.ret, _annotations(share)) == (1, [])
    merged = helmbench(
        pytester.path, "merge", "helmbench-1of1.db", "-o", "merged.db", "--gate", "--junitxml=m.xml"
    )
    first, *_, last = merged.stdout[merged.stdout.index("✗") :].splitlines()
    assert first == "✗ FAILS   test/good: rejected 3: 3 of 3 cases not judged"
    assert last.startswith(
        "  next       the command of the shards with --helmbench-resume --helmbench-db=merged.db"
    )


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
    assert len(summary) <= LONGEST
    assert summary.count(b"</details>") == summary.count(b"<details>")


def _about(number: int) -> Callable[[Request], bool]:
    return lambda request: f"Message {number}." in str(request.body)


@dataclass
class _Job:
    """A job of a workflow on the page, run step by step as a runner would, in a fresh folder per run."""

    folder: Path
    event: str
    secret: str
    words: list[str] = field(default_factory=list)

    def run(self, repository: Path) -> int:
        """Run the job; return 1 if a step fails. `words` has the output of pytest."""
        document = next(one for one in _WORKFLOWS if "jobs" in one)
        status = 0
        for step in document["jobs"]["benchmark"]["steps"]:
            condition = str(step.get("if", ""))
            wanted = not status or condition.startswith("always()")
            if wanted and (self.event in condition or "event_name" not in condition):
                status |= self._uses(step, repository) if "uses" in step else self._runs(step)
        return status

    def _uses(self, step: Mapping[str, Any], repository: Path) -> int:
        """Copy what the action would."""
        action, cache = step["uses"].partition("@")[0], self.folder.parent / "cache"
        if action == "actions/checkout":
            shutil.copytree(repository, self.folder)
        if action == "actions/cache/restore" and cache.exists():
            shutil.copy(cache, self.folder / step["with"]["path"])
        if action == "actions/cache/save" and (self.folder / step["with"]["path"]).exists():
            shutil.copy(self.folder / step["with"]["path"], cache)
        if action == "actions/upload-artifact":
            assert any((self.folder / name).exists() for name in step["with"]["path"].split())
        return 0

    def _runs(self, step: Mapping[str, Any]) -> int:
        if step["run"].startswith("pip "):
            return 0
        known = {"secrets.OPENAI_API_KEY": self.secret, "github.event.number": "7", "github.token": "t"}
        return self.shell(
            _filled(step["run"], known), {k: _filled(v, known) for k, v in step.get("env", {}).items()}
        )

    def shell(self, step: str, env: Mapping[str, str]) -> int:
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", step],
            cwd=self.folder,
            env={**os.environ, "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"), **env},
            capture_output=True,
            text=True,
            check=False,
        )
        self.words += done.stdout.splitlines()
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.returncode


_WORKFLOWS = [
    yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", _PAGE.read_text("utf-8"), re.DOTALL)
]


def _filled(text: str, known: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], text)


def _seen(text: str) -> str:
    """Return what a person sees of Markdown or of an annotation, on one line."""
    plain_text = re.sub(r"\\(.)|\u200b", lambda found: found[1] or "", text.replace("%25", "%"))
    return html.unescape(" ".join(plain_text.replace("`", "").split()))


@pytest.fixture
def repository(pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with 60 cases of two scenarios and a committed baseline; `gh` keeps what it posts."""
    trees = {f"P1-B1-S{n}": category(*["RISK"] * 30) for n in (1, 2)}
    write_tree(pytester.path / "repository" / "benchmark", trees)
    messages = pytester.path / "repository/benchmark/scenarios/P1-B1-S1/perturbations.md"
    messages.write_text(
        messages.read_text("utf-8").replace("Message 1.", "Message 1. `|</details>@all", 1), "utf-8"
    )
    tools = pytester.mkdir("tools")
    (tools / "gh").write_text('#!/bin/sh\ncp "$7" posted.md\n')
    (tools / "gh").chmod(0o755)
    here = (str(tools), str(programs()), str(Path(sys.executable).parent), os.environ["PATH"])
    monkeypatch.setenv("PATH", os.pathsep.join(here))
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    folder = pytester.path / "repository"
    first = _Job(folder, "", "")
    export = "helmbench export last --format baseline -o benchmark/baseline.json; rm helmbench.db summary.md"
    command = "pytest benchmark -q --helmbench-model=openai/gpt-4o-mini"
    assert first.shell(f"{command}; {export}", {"OPENAI_API_KEY": "sk-test-0123456789"}) == 0
    provider.requests.clear()
    return folder


@pytest.mark.parametrize(
    ("case", "status", "said"),
    [
        ("plain", 0, "✓ HOLDS openai/gpt-4o-mini: 100.0 %"),
        (
            "deleted",
            1,
            "✗ FAILS openai/gpt-4o-mini: 30 cases are gone from the benchmark since run 1 of baseline.json",
        ),
        ("keyless", 1, "✗ FAILS nothing was judged: neither OPENROUTER_API_KEY nor OPENAI_API_KEY is set"),
        ("spent", 1, "✗ FAILS openai/gpt-4o-mini: "),
        ("worse", 1, "✗ FAILS openai/gpt-4o-mini: "),
    ],
)
def test_every_artifact_of_the_workflow_has_the_headline(
    repository: Path,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    case: str,
    status: int,
    said: str,
) -> None:
    job = _Job(repository.parent / "job", "pull_request", "" if case == "keyless" else "sk-test-0123456789")
    if case == "deleted":
        shutil.rmtree(repository / "benchmark" / "scenarios" / "P1-B1-S2")
    if case == "keyless":
        monkeypatch.delenv("OPENAI_BASE_URL")  # a server on this machine needs no key
    if case == "spent":
        provider.cost_usd = 0.5
    if case == "worse":
        provider.answers(text='{"category": "CALM"}')

    assert job.run(repository) == status

    last = next(line for line in reversed(job.words) if line.startswith(("✓", "✗")))
    headline = _seen(last)
    assert headline.startswith(said)
    for name in ("summary.md", "posted.md"):
        text = (job.folder / name).read_text("utf-8")
        assert _seen(text).count(headline) == 1, name
        assert f"## {headline}" in _seen(text)
        assert ("Next:" in text) is (case in ("spent", "keyless"))
        assert ("**Gone: 30**" in text) is (case == "deleted")
        assert ("**Newly failing: 60**" in text) is (case == "worse")
        assert ("| Message 1. \\`\\|&lt;/details&gt;@\N{ZERO WIDTH SPACE}all |" in text) is (case == "worse")
        assert ("| Message 2. |\n" in text) is (case == "worse")
    if case != "keyless":  # a later report compares with the baseline that the results file names
        job.shell("helmbench report --format markdown -o later.md", {})
        comment = (job.folder / "posted.md").read_text("utf-8")
        assert (job.folder / "later.md").read_text("utf-8").split("\n<", 1)[0] == comment.split("\n<", 1)[0]
    root = ElementTree.parse(job.folder / "junit.xml").getroot()
    gates = [one for one in root.iter("testcase") if one.get("name") in ("gate", "gate[openai/gpt-4o-mini]")]
    assert [one.find("failure") is not None for one in gates] == [status == 1]
    failures = [str(one.get("message")) for one in root.iter("failure")]
    assert status == 0 or headline in map(_seen, failures)
    errors = [_seen(line) for line in job.words if line.startswith("::error ")]
    assert bool(errors) is (status == 1)
    assert status == 0 or headline in errors[0]


def test_the_script_for_gitlab_runs(repository: Path) -> None:
    job = _Job(repository, "", "")
    document = next(one for one in _WORKFLOWS if "jobs" not in one)
    environ = {"OPENAI_API_KEY": "sk-test-0123456789", "GITHUB_ACTIONS": ""}
    assert [job.shell(step, environ) for step in document["benchmark"]["script"]] == [0]
    assert all((repository / path).exists() for path in document["benchmark"]["artifacts"]["paths"])


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--helmbench-min-score=P9=0.5", "P9 is not among what was selected"),
        ("--helmbench-min-score=often", "--helmbench-min-score"),
    ],
    ids=["selection", "option"],
)
def test_a_session_that_is_refused_says_so_in_every_place_of_a_job(
    pytester: pytest.Pytester, provider: Provider, option: str, said: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    result = run_tree(pytester, option, "--helmbench-markdown=report.md", url=provider.url)
    assert (result.ret, provider.count) == (4, 0)
    (annotation,) = _annotations(result)
    assert annotation.startswith("::error title=the session was refused::✗ FAILS   ")
    for place in (annotation, *((pytester.path / name).read_text() for name in ("summary.md", "report.md"))):
        assert said in place
