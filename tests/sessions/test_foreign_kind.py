"""A kind of benchmark of another distribution: installed, collected, run, scored, reported, killed and resumed."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest
from inner_pytest import pytest_command
from paths import SUPPORT
from provider import Answer, Provider, Request
from sessions import Session, until
from shared_values import shared_installation
from trees import MODEL, rows

_SOURCE = SUPPORT / "riddle_kind"
_NAME = "riddle_kind-1.0"
_WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_ENTRY_POINT = "[pytest_helmbench.kinds]\nriddles = riddle_kind.places:PLACES\n"
_RIDDLES = (
    "r1 | What has keys and opens nothing? | piano\n"
    "r2 | What gets wet while it dries? | towel\n"
    "r3 | What has a neck and no head? | bottle\n"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that pip has installed the distribution to."""
    folder = tmp_path_factory.mktemp("distribution")
    wheel = folder / f"{_NAME}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in sorted(_SOURCE.glob("*.py")):
            archive.write(path, f"riddle_kind/{path.name}")
        facts = {
            "METADATA": "Metadata-Version: 2.1\nName: riddle-kind\nVersion: 1.0\n",
            "WHEEL": _WHEEL,
            "entry_points.txt": _ENTRY_POINT,
            "RECORD": "",
        }
        for name, text in facts.items():
            archive.writestr(f"{_NAME}.dist-info/{name}", text)
    return shared_installation(tmp_path_factory, "riddles", "--no-index", str(wheel))


@pytest.fixture
def project(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with riddles, in which the distribution can be imported."""
    monkeypatch.setenv("PYTHONPATH", str(site))
    riddles = tmp_path / "riddles"
    riddles.mkdir()
    (riddles / "riddles.txt").write_text(_RIDDLES, encoding="utf-8")
    return tmp_path


def _answer(request: Request) -> str:
    return "It is a piano." if "keys" in request.prompt else "It is a towel."


def _pytest(project: Path, provider: Provider, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*pytest_command(), "riddles", "-p", "no:cacheprovider", "--tb=short"]
    command += [f"--helmbench-model={MODEL}", f"--helmbench-base-url={provider.url}", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("mode", ["-n2"])
def test_its_benchmarks_are_run_scored_and_reported(project: Path, provider: Provider, mode: str) -> None:
    provider.reply = _answer

    done = _pytest(
        project, provider, mode, "-rA", "--helmbench-markdown=report.md", "--helmbench-min-score=0.9"
    )

    assert done.returncode == 1, done.stdout + done.stderr
    for name, word in (("r1", "PASSED"), ("r2", "PASSED"), ("r3", "FAILED")):
        assert f"{word} riddles/riddles.txt::{name}[{MODEL}]" in done.stdout
    assert "  expected: bottle\n  observed: It is a towel.\n" in done.stdout
    assert "66.7 %" in (project / "report.md").read_text(encoding="utf-8")
    database = project / "helmbench.db"
    assert rows(database, "SELECT kind, name FROM benchmarks") == [("riddles", "riddles")]
    assert rows(database, "SELECT code, outcome FROM results ORDER BY code") == [
        ("r1", "passed"),
        ("r2", "passed"),
        ("r3", "failed"),
    ]


def test_a_killed_session_goes_on(project: Path, provider: Provider) -> None:
    provider.reply = lambda request: Answer(
        text=_answer(request), latency_s=20 if "neck" in request.prompt else 0
    )
    database = project / "helmbench.db"
    session = Session(project, provider.url, "-q", paths=["riddles"])
    count = "SELECT count(*) FROM results"
    until(
        lambda: database.exists() and "results" in _tables(database) and rows(database, count) == [(2,)],
        "2 cases",
    )
    session.kill_all()
    provider.reply = _answer
    asked = provider.count

    done = _pytest(project, provider, "--helmbench-resume", "-q")

    assert "1 failed, 2 passed" in done.stdout
    assert provider.count == asked + 1
    assert rows(database, "SELECT status, passed_tests, failed_tests FROM evaluation_runs") == [
        ("complete", 2, 1)
    ]


def _tables(database: Path) -> set[str]:
    return {name for (name,) in rows(database, "SELECT name FROM sqlite_master WHERE type = 'table'")}
