"""Runs in the forms of other programs, each read by the program that it is for."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import helmbench
from inner_pytest import pytest_command
from trees import rows

from pytest_helmbench.cli.main import main

_TEXT = "courgettes"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the starter benchmark, two runs with verdicts, and one that asked a server that is down."""
    path = tmp_path_factory.mktemp("exports")
    assert helmbench(path, "init", "benchmark").returncode == 0
    options = "--models baseline/lexical -- -q -p no:cacheprovider --helmbench-temperature=0"
    done = helmbench(path, "run-all", *options.split())
    assert "judged" in done.stdout
    down = (
        "--helmbench-base-url=http://127.0.0.1:9/v1",
        "--helmbench-marking-base-url=http://127.0.0.1:9/v1",
        "--helmbench-max-retries=0",
        "--helmbench-model=test/x",
    )
    session = [*pytest_command(), "-q", "-p", "no:cacheprovider", "benchmark", *down]
    subprocess.run(session, cwd=path, check=False, capture_output=True)
    return path


@pytest.fixture(autouse=True)
def _there(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def _export(*arguments: str) -> None:
    assert main(["export", *arguments]) == 0


def test_several_runs_go_into_one_table_or_list(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _export("1", "2", "--format", "csv")
    table = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(table) == len(rows(project / "helmbench.db", "SELECT 1 FROM evaluations"))
    assert {row["run"] for row in table} == {"1", "2"}
    _export("1", "2", "1", "--format", "json")
    assert [one["run"]["id"] for one in json.loads(capsys.readouterr().out)] == [1, 2]


def test_a_baseline_is_of_the_session_of_a_run_and_says_so(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = ("baseline/lexical", "baseline/random")
    pair = ("--models", ",".join(models), "--db", "pair.db")
    assert helmbench(project, "run-single", *pair, "--", "-q", "-p", "no:cacheprovider").stdout
    _export("last", "--format", "baseline", "-o", "below/main.json", "--db=pair.db")
    assert capsys.readouterr().err.endswith(" results of runs 1, 2 in below/main.json\n")
    assert [run["model"] for run in json.loads(Path("below/main.json").read_text())["runs"]] == pair[1].split(
        ","
    )

    assert main(["export", "1", "3", "--format", "baseline"]) == 2
    assert "a baseline is of one session" in capsys.readouterr().err


def test_an_extra_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    assert main(["export", "--format", "inspect", "-o", "out.json"]) == 2
    assert "hint: pip install 'pytest-helmbench[inspect]'" in capsys.readouterr().err
    assert not Path("out.json").exists()


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_inspect_reads_its_log_with_our_verdicts_and_numbers(project: Path, name: str) -> None:
    log_module = pytest.importorskip("inspect_ai.log", reason="the extra `inspect` is not installed")
    _export("2", "--format", "inspect", "-o", name)
    assert _TEXT.encode() not in Path(name).read_bytes()
    log = log_module.read_eval_log(name)
    ((score, low, high, coverage),) = rows(
        project / "helmbench.db",
        "SELECT score, score_low, score_high, coverage FROM evaluation_runs WHERE id = 2",
    )
    metrics = {metric: found.value for metric, found in log.results.scores[0].metrics.items()}
    assert metrics["score"] == score
    assert (metrics["score_low"], metrics["score_high"], metrics["coverage"]) == (low, high, coverage)
    (run,) = json.loads(helmbench(project, "report", "2", "--format", "json").stdout)["runs"]
    assert metrics["pass_rate"] == run["score"]["pass_rate"]
    query = (
        "SELECT results.code, passed FROM evaluations JOIN results ON results.id = result_id WHERE run_id = 2"
    )
    assert {(sample.id, int(sample.scores["helmbench"].value == "C")) for sample in log.samples} == set(
        rows(project / "helmbench.db", query)
    )
    assert (log.status, log.eval.model, log.samples[0].metadata["behaviour"]) == (
        "success",
        "baseline/lexical",
        "P1-B1",
    )


def test_inspect_has_texts_where_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    log_module = pytest.importorskip("inspect_ai.log", reason="the extra `inspect` is not installed")
    _export("2", "--format", "inspect", "-o", "texts.json", "--with-text=all")
    samples = log_module.read_eval_log("texts.json").samples
    assert any(_TEXT in str(sample.input) for sample in samples)
    assert all(sample.output.completion for sample in samples)
    assert all(sample.messages[-1].text == sample.output.completion for sample in samples)
    assert main(["export", "2", "--format", "inspect", "-o", "log.txt"]) == 2
    assert "log.txt: Inspect reads no such file" in capsys.readouterr().err
    assert main(["export", "1", "2", "--format", "inspect", "-o", "both.eval"]) == 2
    assert "a log of Inspect holds one run" in capsys.readouterr().err
    _export("3", "--format", "inspect", "-o", "down.json")
    unjudged = log_module.read_eval_log("down.json")
    assert not unjudged.results.scores
    assert {(sample.scores, sample.error.message.partition(":")[0]) for sample in unjudged.samples} == {
        (None, "error")
    }


def test_every_eval_ever_has_an_aggregate_and_its_cases(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _export("1", "2", "--format", "eee", "-o", "eee")
    _export("1", "2", "--format", "eee", "-o", "eee")  # the same names
    cards = [json.loads(path.read_text()) for path in Path("eee").rglob("*.json")]
    assert len(cards) == 2
    for card in cards:
        (result,) = card["evaluation_results"]
        text = Path("eee", card["detailed_evaluation_results"]["file_path"]).read_bytes()
        assert card["detailed_evaluation_results"]["checksum"] == hashlib.sha256(text).hexdigest()
        assert {json.loads(line)["evaluation_id"] for line in text.splitlines()} == {card["evaluation_id"]}
        assert _TEXT.encode() not in text
        assert result["generation_config"]["generation_args"] == {"temperature": 0}
        interval = result["score_details"]["uncertainty"]["confidence_interval"]
        found = (result["score_details"]["score"], interval["lower"], interval["upper"])
        assert found in rows(
            project / "helmbench.db", "SELECT score, score_low, score_high FROM evaluation_runs"
        )
    assert main(["export", "2", "--format", "eee"]) == 2
    assert "this takes several files\n  hint: name a folder with -o" in capsys.readouterr().err
    assert main(["export", "3", "--format", "eee", "-o", "none"]) == 2
    assert "run 3 has no score" in capsys.readouterr().err


@pytest.mark.skipif(
    importlib.util.find_spec("every_eval_ever") is None, reason="every-eval-ever needs Python 3.12"
)
@pytest.mark.parametrize("texts", [(), ("--with-text=all",)])
def test_every_eval_ever_accepts_its_files(texts: tuple[str, ...]) -> None:
    _export("2", "--format", "eee", "-o", "checked", *texts)
    done = subprocess.run(
        [sys.executable, "-m", "every_eval_ever", "validate", "data/*/*/*/*"],
        cwd="checked",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
