"""The plugins that people use most beside ours: same verdicts, same score, no internal error."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from inner_pytest import forked_pytest
from installed import installed_once
from trees import rows

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
    return installed_once(tmp_path_factory, "plugins", *_PACKAGES, *needed)


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


def _verdicts(project: Path, site: Path, *options: str, autoload: bool = False) -> list[tuple[str, str]]:
    """Run a session and return its verdicts by case."""
    database = project / "helmbench.db"
    database.unlink(missing_ok=True)
    command = [*forked_pytest(), "benchmark", "-q", "--helmbench-model=baseline/lexical"]
    environ = {**os.environ, "PYTHONPATH": str(site), "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": ""}
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
