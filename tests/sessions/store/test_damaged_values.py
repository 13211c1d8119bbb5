"""A results file that somebody has changed by hand: commands say which value is wrong, and show no traceback."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
from commands import captured, helmbench
from inner_pytest import forked_pytest

from pytest_helmbench.store.reading import damage_of


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results file with one run of the starter benchmark."""
    path = tmp_path_factory.mktemp("damaged")
    assert helmbench(path, "init", "benchmark").returncode == 0
    helmbench(path, "run-all", "--models", "baseline/lexical", "--", "-q", "-p", "no:cacheprovider")
    return path / "helmbench.db"


@pytest.fixture
def database(recorded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(recorded, tmp_path / "helmbench.db"))


def _put(database: Path, where: str, value: object) -> None:
    table, column = where.split(".")
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as conn:
        conn.execute(f"UPDATE {table} SET {column} = ?", (value,))


@pytest.mark.parametrize(
    ("where", "value", "said", "command"),
    [
        ("results.score", "high", "no real", ("report", "last", "--format", "html", "-o", "page.html")),
        ("evaluation_runs.settings", "{no", "no JSON object", ("show", "last")),
        ("evaluation_runs.settings", "[1]", "no JSON object", ("score", "last")),
        ("scenarios.evaluation", "-1", "no JSON object", ("rescore", "last")),
        ("results.outcome", "perhaps", "no known outcome", ("report", "last", "--format", "json")),
        (
            "results.started_at",
            "soon",
            "no time",
            ("export", "last", "--format", "inspect", "-o", "log.eval"),
        ),
        ("evaluation_runs.settings", "{no", "no JSON object", ("costs",)),
        ("requests.body", b"\xff", "no JSON object", ("rescore", "last")),
    ],
)
def test_a_command_says_which_value_is_wrong(
    database: Path,
    where: str,
    value: object,
    said: str,
    command: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(database.parent)
    if "inspect" in command:
        pytest.importorskip("inspect_ai.log", reason="the extra `inspect` is not installed")
    _put(database, where, value)
    code, out, err = captured(capsys, *command, "--db", database)
    assert (code, out) == (2, "")
    row = "1" if where.startswith(("evaluation_runs", "results", "scenarios")) else ""
    assert f"{database}: it holds what pytest-helmbench has not written: {where} of row {row}" in err
    assert f" is {said}" in err
    assert "\n  hint: take back what has changed the file by hand" in err
    assert "Traceback" not in err


def test_many_wrong_values_are_ten(database: Path) -> None:
    _put(database, "results.score", "high")
    damage = damage_of(database)
    assert damage is not None
    assert damage.problem.count("results.score of row") == 10
    assert damage.problem.endswith("; and more")


def test_a_sound_file_has_none(recorded: Path) -> None:
    assert damage_of(recorded) is None


def test_a_fault_of_ours_keeps_its_traceback(
    database: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_path: Path, _run: int | None) -> None:
        raise TypeError("a fault")

    monkeypatch.setattr("pytest_helmbench.cli.recorded.run_detail", broken)
    with pytest.raises(TypeError, match="a fault"):
        captured(capsys, "score", "last", "--db", database)


@pytest.mark.parametrize("more", [("--helmbench-resume",), ("--helmbench-baseline=1",), ()])
def test_a_session_asks_nothing_beside_it(database: Path, recorded: Path, more: tuple[str, ...]) -> None:
    _put(database, "evaluation_runs.settings", "{no")
    benchmark = recorded.parent / "benchmark"
    model = ("--helmbench-model=baseline/lexical", f"--helmbench-db={database}")
    command = [*forked_pytest(), "-q", "-p", "no:cacheprovider", str(benchmark), *model, *more]
    done = subprocess.run(command, cwd=recorded.parent, check=False, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert "evaluation_runs.settings of row 1 is no JSON object" in done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr
