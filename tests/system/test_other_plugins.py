"""The plugins that people use most beside ours: same verdicts, same score, no internal error."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from inner_pytest import pytest_command
from provider import Provider, Request
from shared_values import shared_installation
from trees import category, clear_environment, rows, write_tree

from pytest_helmbench.cli.main import main

_PACKAGES = (
    "pytest-json-report==1.5.0",
    "pytest-metadata==3.1.1",
    "pytest-retry==1.7.0",
    "pytest-html==4.2.0",
    "pytest-sugar==1.1.1",
    "pytest-rich==0.3.0",
    "pytest-randomly==5.1.0",
    "pytest-split==0.11.0",
    "pytest-cov==7.1.0",
    "pytest-reportlog==1.0.0",
    "allure-pytest==2.16.2",
    "allure-python-commons==2.16.2",
    "pytest-instafail==0.5.0",
    "pytest-github-actions-annotate-failures==0.4.2",
    "pytest-json-ctrf==0.6.1",
)
_PLUGINS = {
    "json-report": ("pytest_metadata.plugin", "pytest_jsonreport.plugin", "--json-report"),
    "retry": ("pytest_retry.retry_plugin", "--retries=1"),
    "html": ("pytest_metadata.plugin", "pytest_html.plugin", "pytest_html.fixtures", "--html=report.html"),
    "sugar": ("pytest_sugar",),
    "rich": ("pytest_rich.plugin", "--rich"),
    "randomly": ("pytest_randomly",),
    "split": ("pytest_split.plugin", "--splits=1", "--group=1"),
    "cov": ("pytest_cov.plugin", "--cov=pytest_helmbench.core"),
    "reportlog": ("pytest_reportlog.plugin", "--report-log=log.json"),
    "allure": ("allure_pytest.plugin", "--alluredir=allure"),
    "instafail": ("pytest_instafail", "--instafail"),
    "github": ("pytest_github_actions_annotate_failures.plugin",),
    "ctrf": ("ctrf.main", "--ctrf=ctrf.json"),
    "timeout": ("pytest_timeout", "--timeout=60"),
    "rerunfailures": ("pytest_rerunfailures", "--reruns=1"),
    "tb=line": ("--tb=line", "--helmbench-show=2"),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip has installed the plugins; what they need beside pytest comes along."""
    needed = ("rich", "jinja2", "markupsafe", "termcolor", "pygments", "markdown-it-py", "mdurl")
    return shared_installation(tmp_path_factory, "plugins", *_PACKAGES, *needed)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small benchmark, some of whose cases fail."""
    folder = tmp_path_factory.mktemp("project")
    assert main(["init", str(folder / "benchmark")]) == 0
    return folder


@pytest.fixture(scope="module")
def plain(project: Path, site: Path) -> list[tuple[str, str]]:
    """The verdicts of a session beside no other plugin."""
    found = _verdicts(project, site)
    assert {outcome for _, outcome in found} == {"passed", "failed"}
    return found


def _environ(site: Path) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


def _verdicts(project: Path, site: Path, *options: str, autoload: bool = False) -> list[tuple[str, str]]:
    """Run a session and return its verdicts by case."""
    database = project / "helmbench.db"
    database.unlink(missing_ok=True)
    command = [*pytest_command(), "benchmark", "-q", "--helmbench-model=baseline/lexical"]
    environ = {**_environ(site), "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": ""}
    if not autoload:
        environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        command += ["-p", "helmbench", "-p", "xdist.plugin"]
    done = subprocess.run(
        [*command, *options], cwd=project, env=environ, capture_output=True, text=True, check=False
    )
    (project / "output.txt").write_text(done.stdout + done.stderr)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr
    return rows(database, "SELECT code, outcome FROM results ORDER BY code")


@pytest.mark.parametrize("name", _PLUGINS)
def test_a_session_beside_another_plugin_has_the_same_verdicts(
    project: Path, site: Path, plain: list[tuple[str, str]], name: str
) -> None:
    words = [part for word in _PLUGINS[name] for part in ((word,) if word[:1] == "-" else ("-p", word))]
    assert _verdicts(project, site, *words) == plain
    said = (project / "output.txt").read_text()
    if name == "tb=line":
        assert re.search(r"^benchmark/\S+\.md:\d+: expected ", said, re.MULTILINE)
        assert "_Crash(" not in said
    if name == "github":
        assert re.search(r"^::error file=.*%0A%0Aexpected .*observed ", said, re.MULTILINE)


def test_all_of_them_at_once_over_workers(project: Path, site: Path, plain: list[tuple[str, str]]) -> None:
    options = [word for words in _PLUGINS.values() for word in words if word.startswith("--")]
    apart = ("--reruns=1", "--rich", "--tb=line")  # a second one that repeats, a second one that draws
    chosen = [option for option in options if option not in apart]
    assert _verdicts(project, site, "-n2", "-p", "no:rerunfailures", *chosen, autoload=True) == plain


_HAND_WRITTEN = """
def test_meets_a_fault(helmbench_openai):
    ask(helmbench_openai, "broken")

def test_has_no_reply(helmbench_openai):
    try:
        ask(helmbench_openai, "broken")
    except Exception:
        pass

def test_is_wrong(helmbench_openai):
    ask(helmbench_openai, "fine")
    assert False

def ask(client, text):
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
"""


def test_errors_are_broken_in_allure_and_wrong_answers_have_failed(
    tmp_path: Path, site: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear_environment(monkeypatch)
    write_tree(tmp_path / "trees", {"P1-B1-S1": category("RISK", "CALM"), "P1-B1-S2": category("RISK")})
    write_tree(tmp_path / "trees", {"P1-B1-S3": category("RISK"), "P1-B1-S4": category("RISK")})
    for file in (tmp_path / "trees").rglob("*S3*/*perturbation*"):
        file.write_text(file.read_text().replace("Message 1.", "broken"))
    for file in (tmp_path / "trees").rglob("*S4*/S4.md"):
        file.write_text("---\ncategory: [\n---\n")
    (tmp_path / "test_own.py").write_text(_HAND_WRITTEN)

    def about(request: Request) -> bool:
        return "broken" in request.prompt

    provider.answers(when=about, status=400, body={"error": {"message": "no"}})
    options = ["--helmbench-model=test/good", f"--helmbench-base-url={provider.url}", "--alluredir=allure"]
    command = [*pytest_command(), "trees", "test_own.py", "-q", "--junitxml=junit.xml", *options]
    done = subprocess.run(
        [*command, "-p", "helmbench", "-p", "allure_pytest.plugin"],
        cwd=tmp_path,
        env={**_environ(site), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = [json.loads(file.read_text()) for file in (tmp_path / "allure").glob("*-result.json")]
    statuses = {one["name"].partition("[")[0]: one["status"] for one in found}
    cases = {"S1-C1-PT1": "passed", "S1-C1-PT2": "failed", "S2-C1-PT1": "passed", "S3-C1-PT1": "broken"}
    cases = {f"P1-B1-{code}": status for code, status in cases.items()}
    own = {"test_meets_a_fault": "broken", "test_has_no_reply": "broken", "test_is_wrong": "failed"}
    assert statuses == {**cases, "P1-B1-S4": "broken", **own}
    junit = (tmp_path / "junit.xml").read_text()
    assert (junit.count("<error "), junit.count("<failure ")) == (4, 2)
    assert "CaseError" not in done.stdout + junit
    assert "_____\nthe provider answered 400 (no)\n" in done.stdout
