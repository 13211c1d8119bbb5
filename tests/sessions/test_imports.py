"""Results of other tools become runs that are shown, scored, compared and reported like ours."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import captured
from trees import rows

from pytest_helmbench.cli.main import main

_TIME = "2026-11-20T10-00-00.5"


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a project of its own: else results would go to a file that stands in any folder above."""
    (tmp_path / "pytest.ini").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)


def _import(capsys: pytest.CaptureFixture[str], *files: str) -> str:
    """Import files; return what is printed, once the database of this test has it."""
    code, out, err = captured(capsys, "import", *files)
    assert (code, Path("helmbench.db").exists()) == (0, True), (err, out, Path.cwd())
    assert f" in {Path.cwd() / 'helmbench.db'}\n" in err
    return out


def _promptfoo(path: Path, verdicts: Mapping[str, Sequence[bool | None]]) -> Path:
    """Write what promptfoo 0.123 writes: a row per provider × test; a repetition is another test of the same words."""
    found = []
    for provider, said in verdicts.items():
        for number, passed in enumerate(said):
            question = f"question {number // 2}"  # --repeat 2
            found.append(
                {
                    "cost": 0.001,
                    "gradingResult": None
                    if passed is None
                    else {
                        "pass": passed,
                        "componentResults": [
                            {"pass": passed, "assertion": {"type": "contains", "value": "Paris"}}
                        ],
                    },
                    "latencyMs": 27,
                    "promptIdx": 0,
                    "provider": {"id": provider, "label": ""},
                    "response": {
                        "output": "Paris" if passed else "Rome",
                        "tokenUsage": {"prompt": 10, "completion": 2},
                    },
                    "success": passed is True,
                    "testCase": {"vars": {"q": question}, "assert": [{"type": "contains", "value": "Paris"}]},
                    "testIdx": number,
                    "vars": {"q": question},
                    "failureReason": 2 if passed is None else 0 if passed else 1,
                    "error": None if passed else "why",
                }
            )
    document = {
        "evalId": "eval-1",
        "results": {"version": 3, "timestamp": "2026-11-20T10:00:00.114Z", "results": found},
        "config": {"description": "capitals"},
        "metadata": {"promptfooVersion": "0.123.1"},
    }
    path.write_text(json.dumps(document))
    return path


def _lm_eval(folder: Path, samples: list[dict[str, Any]]) -> Path:
    """Write what lm-eval 0.4.13 writes with --log_samples."""
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"target": "4", "filtered_resps": ["4"], "filter": "none", **one}) for one in samples]
    (folder / f"samples_sums_{_TIME}.jsonl").write_text("\n".join(lines) + "\n")
    document = {
        "results": {"sums": {"exact_match,none": 0.5}},
        "configs": {"sums": {}},
        "versions": {"sums": 1.0},
        "n-shot": {"sums": 0},
        "date": 1795411951.7,
        "lm_eval_version": "0.4.13",
        "model_name": "org/small",
    }
    path = folder / f"results_{_TIME}.json"
    path.write_text(json.dumps(document))
    return path


def test_promptfoo_gives_a_run_per_provider_with_repetitions_errors_and_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = [True, True, True, False, None, True] * 3, [False, False, True, False, False, True] * 3
    _promptfoo(tmp_path / "out.json", {"openai:a": good, "openai:b": bad})

    assert _import(capsys, "out.json").splitlines() == [
        "run 1: openai:a on capitals: 18 cases, 3 without a verdict (from out.json)",
        "run 2: openai:b on capitals: 18 cases (from out.json)",
    ]
    found = rows(
        tmp_path / "helmbench.db",
        "SELECT outcome, reason, COUNT(*), MAX(repetition), SUM(prompt_tokens), ROUND(SUM(cost_usd), 6)"
        " FROM results WHERE run_id = 1 GROUP BY outcome ORDER BY outcome",
    )
    assert found == [
        ("error", "provider", 3, 1, 30, 0.003),
        ("failed", None, 3, 2, 30, 0.003),
        ("passed", None, 12, 2, 120, 0.012),
    ]
    assert main(["report", "1", "--format=json"]) == 0
    score = json.loads(capsys.readouterr().out)["runs"][0]["score"]
    assert score["judged_rows"] == 15
    assert main(["compare", "1", "2"]) in (0, 1)
    compared = capsys.readouterr().out
    assert "points" in compared
    assert main(["report", "1", "2", "--format", "html", "-o", "page.html"]) == 0
    assert "openai:b" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert main(["rescore", "1"]) == 2
    assert "run 1 cannot be judged anew: another tool has run it" in capsys.readouterr().err


def test_lm_eval_gives_a_run_per_task_and_filter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples = [
        {
            "doc_id": number,
            "metrics": ["bleu", "exact_match"],
            "bleu": 0.3,
            "exact_match": number % 2,
            "filter": name,
        }
        for number in range(4)
        for name in ("strict", "flexible")
    ]
    samples.append({"doc_id": 4, "metrics": ["bleu"], "bleu": 0.7, "filter": "strict"})
    _lm_eval(tmp_path / "out", samples)

    assert _import(capsys, f"out/results_{_TIME}.json").splitlines() == [
        f"run 1: org/small on sums (strict): 5 cases, 1 without a verdict (from results_{_TIME}.json)",
        f"run 2: org/small on sums (flexible): 4 cases (from results_{_TIME}.json)",
    ]
    found = rows(
        tmp_path / "helmbench.db",
        "SELECT status, score, passed_tests, failed_tests, error_tests FROM evaluation_runs",
    )
    assert found == [("partial", 0.5, 2, 2, 1), ("complete", 0.5, 2, 2, 0)]
    assert main(["show", "1", "0"]) == 0
    assert "exact_match" in capsys.readouterr().out


_NAN = float("nan")
_PASSED, _FAILED, _ERROR = "passed", "failed", "error"


@pytest.mark.parametrize(
    ("samples", "about", "wanted"),
    [  # values by metric in order, what the results say of the metrics, verdicts
        ([{"f1": 1.0, "em": 0}, {"f1": 0.4, "em": 1}], {}, [_FAILED, _PASSED]),
        ([{"em": 1, "prefix": 1}, {"em": _NAN, "prefix": 1}, {"prefix": 1}], {}, [_PASSED, _ERROR, _ERROR]),
        ([{"em": None, "prefix": 1}, {"em": 0, "prefix": 1}], {}, [_ERROR, _FAILED]),
        (
            [{"toxic": 0.0}, {"toxic": True}, {"toxic": _NAN}],
            {"higher_is_better": {"sums": {"toxic": False}}},
            [_PASSED, _FAILED, _ERROR],
        ),
        (
            [{"wer": 1}, {"wer": 0}],
            {"configs": {"sums": {"metric_list": [{"metric": "wer", "higher_is_better": False}]}}},
            [_FAILED, _PASSED],
        ),
        (
            [{"em": 1}, {"em": 0}],
            {"higher_is_better": {"sums": {"em": None, "wer": False}}},
            [_PASSED, _FAILED],
        ),
        ([{"rouge": 0.2}, {"rouge": 0.9}], {}, [_ERROR, _ERROR]),
    ],
)
def test_one_metric_of_an_lm_eval_task_judges_all_its_cases_in_its_direction(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    samples: list[dict[str, Any]],
    about: dict[str, Any],
    wanted: list[str],
) -> None:
    names = list(dict.fromkeys(name for values in samples for name in values))
    path = _lm_eval(
        tmp_path / "out", [{"doc_id": at, "metrics": names, **one} for at, one in enumerate(samples)]
    )
    path.write_text(json.dumps({**json.loads(path.read_text()), **about}))

    _import(capsys, f"out/{path.name}")

    found = rows(tmp_path / "helmbench.db", "SELECT outcome FROM v_results ORDER BY code")
    assert [outcome for (outcome,) in found] == wanted


def test_a_run_of_the_benchlocal_app_gives_a_run_per_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [("A", "pass", None), ("B", "partial", None), ("C", "fail", None), ("D", "fail", "provider_error")]
    results = [
        {
            "scenarioId": code,
            "status": status,
            "summary": "s",
            "rawLog": "secret",
            "timings": {"durationMs": 40},
        }
        | ({"errorType": fault} if fault else {})
        for code, status, fault in said
    ]
    summary = {
        **{"runId": "r-1", "benchPackId": "bugs-15", "packVersion": "1.2.0", "events": []},
        **{"startedAt": "2026-11-20T10:00:00.000Z", "completedAt": "2026-11-20T10:05:00.000Z"},
        "resultsByModel": {"lms:big": results, "lms:small": [*results[:2], results[0] | {"status": "fail"}]},
        "scores": {"lms:big": {"totalScore": 62.5, "categories": []}},
    }
    (tmp_path / "summary.json").write_text(json.dumps(summary))

    assert _import(capsys, "summary.json").splitlines() == [
        "run 1: lms:big on bugs-15: 4 cases, 1 without a verdict (from summary.json)",
        "run 2: lms:small on bugs-15: 5 cases, 2 without a verdict (from summary.json)",
    ]
    database = tmp_path / "helmbench.db"
    columns = "SELECT code, repetition, outcome, reason, latency_ms FROM results WHERE run_id ="
    assert rows(database, f"{columns} 1") == [
        ("A", 1, "passed", None, 40),
        ("B", 1, "failed", None, 40),
        ("C", 1, "failed", None, 40),
        ("D", 1, "error", "provider_error", 40),
    ]
    assert [row[:4] for row in rows(database, f"{columns} 2")] == [
        ("A", 1, "passed", None),
        ("A", 2, "failed", None),
        ("B", 1, "failed", None),
        ("C", 1, "error", "not_run"),
        ("D", 1, "error", "not_run"),
    ]
    assert rows(database, "SELECT status, score FROM evaluation_runs") == [
        ("partial", 1 / 3),
        ("partial", 1 / 3),
    ]
    assert b"secret" not in database.read_bytes()


def test_a_log_of_inspect_comes_back_as_it_went(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("inspect_ai.log", reason="the extra `inspect` is not installed")
    _promptfoo(tmp_path / "out.json", {"openai:a": [True, False, None, True]})
    _import(capsys, "out.json")
    assert main(["export", "1", "--format", "inspect", "-o", "log.eval"]) == 0
    _import(capsys, "log.eval")
    columns = "SELECT code, repetition, outcome, score, prompt_tokens, cost_usd FROM results WHERE run_id ="
    database = tmp_path / "helmbench.db"
    assert sorted(rows(database, f"{columns} 1"), key=str) == sorted(rows(database, f"{columns} 2"), key=str)
    capsys.readouterr()


def test_what_cannot_be_read_is_told_at_once_and_stores_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _promptfoo(tmp_path / "good.json", {"a": [True]})
    _promptfoo(tmp_path / "empty.json", {})
    (tmp_path / "torn.json").write_text('{"evalId": ')
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    alone = _lm_eval(tmp_path / "alone", [])
    broken = _lm_eval(tmp_path / "broken", [{"doc_id": 1, "metrics": []}, {"metrics": []}])
    names = ("good", "empty", "torn", "other", "list", "deep", "none")
    samples = broken.with_name(f"samples_sums_{_TIME}.jsonl")
    files = [*(f"{name}.json" for name in names), str(alone), str(broken), str(samples)]

    assert main(["import", *files]) == 2
    said = capsys.readouterr().err
    for sentence in (
        "empty.json: no results in it\n  hint: promptfoo eval -o FILE.json",
        "torn.json: no JSON: ",
        "other.json: of no tool that is known here\n  hint: a log of Inspect AI",
        "list.json: no JSON object",
        "deep.json: no JSON: ",
        "none.json: cannot be read: No such file or directory",
        f"no samples beside it (samples_TASK_{_TIME}.jsonl)\n  hint: lm_eval writes them with --log_samples",
        f"samples_sums_{_TIME}.jsonl:2: no doc_id",
        f"these are the samples of one task of lm-eval\n  hint: name results_{_TIME}.json, which says the model",
    ):
        assert sentence in said
    assert not (tmp_path / "helmbench.db").exists()


def test_hostile_values_are_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _promptfoo(tmp_path / "out.json", {"\x1b[31mred\n::error::x": [True]})
    document = json.loads(path.read_text())
    row = document["results"]["results"][0]
    row |= {
        "cost": "NaN",
        "latencyMs": -1,
        "promptIdx": 10**30,
        "testIdx": "\n",
        "response": ["\ud800"],
        "vars": 7,
    }
    document["results"]["timestamp"] = 1e300
    path.write_text(json.dumps(document).replace('"NaN"', "NaN"))
    said = _import(capsys, "out.json")
    assert "\x1b" not in said
    assert len(said.splitlines()) == 1
    assert rows(tmp_path / "helmbench.db", "SELECT outcome, cost_usd FROM results") == [("passed", None)]


@pytest.mark.parametrize("number", ["9" * 400, "1e300", "-1e300", str(2**63), "-5", "NaN", "-Infinity"])
def test_numbers_that_nothing_costs_or_takes_are_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], number: str
) -> None:
    path = _promptfoo(tmp_path / "out.json", {"a": [True] * 4})
    text = path.read_text().replace('"cost": 0.001', f'"cost": {number}')
    path.write_text(
        text.replace('"prompt": 10', f'"prompt": {number}').replace(
            '"latencyMs": 27', f'"latencyMs": {number}'
        )
    )

    _import(capsys, "out.json")

    columns = "SELECT DISTINCT cost_usd, prompt_tokens, latency_ms FROM results"
    assert rows(tmp_path / "helmbench.db", columns) == [(None, None, None)]
    assert main(["report", "1", "--format", "html", "-o", "page.html"]) == 0


def test_nothing_but_files_of_the_folder_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "endless.json").symlink_to("/dev/zero")
    (tmp_path / "secret.jsonl").write_text('{"doc_id": 1, "metrics": ["m"], "m": 1, "target": "secret"}')
    linked = _lm_eval(tmp_path / "linked", [])
    samples = tmp_path / "linked" / f"samples_sums_{_TIME}.jsonl"
    samples.unlink()
    samples.symlink_to(tmp_path / "secret.jsonl")
    led = _lm_eval(tmp_path / "led", [])
    document = json.loads(led.read_text())
    led.write_text(json.dumps({**document, "versions": {"/../../secret": 1, "x" * 5000: 1, "\0": 1}}))

    assert main(["import", "pipe.json", "endless.json", str(linked), str(led)]) == 2
    said = capsys.readouterr().err
    assert "pipe.json: no file\n" in said
    assert "endless.json: no file\n" in said
    assert said.count("no samples beside it") == 2
    assert not (tmp_path / "helmbench.db").exists()
