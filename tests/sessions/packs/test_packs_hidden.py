"""Hidden values of packs stay with the evaluator: none in a prompt, on screen, in a report, log, export, database."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pack_rows import answer_rows, choice, free, short, worded
from packs import row, write_pack
from provider import Provider
from trees import run_tree

from pytest_helmbench.cli.main import main

_CANARY = re.compile(r"CANARY\w*|7357735\d*", re.IGNORECASE)
_HIDDEN: Mapping[str, Mapping[str, Any]] = {
    "mc": choice("mc", **{"eval.answer": ["B"]}),
    "sa": short("sa", **{"eval.accepted_answers": ["CANARY_TEXT", 73577351], "eval.tolerance": 0.73577352}),
    "fr": free(
        "fr",
        **{
            "eval.rubric": {
                "accepted_answers": ["CANARY_ACCEPTED"],
                "rejected_answers": ["CANARY_REJECTED"],
                "min_token_f1": 0.73577353,
            },
            "eval.reference_answer": "CANARY_REFERENCE",
        },
    ),
    "jr": worded("jr", **{"eval.rubric": "CANARY_RUBRIC", "eval.reference_answer": "CANARY_JUDGED"}),
    "jp": worded("jp", **{"eval.rubric": "CANARY_WORDS", "eval.reference_answer": {"path": "canary.txt"}}),
    "un": row("multiple_choice", {"family": "riddle", "eval": {"secret": "CANARY_RIDDLE"}}, "un"),
}
# Values of a wrong kind: their rows are reported as broken, and still hide what is hidden.
_WRONG: tuple[tuple[str, str, Any], ...] = (
    ("multiple_choice", "eval.answer", {"CANARY_A": 1}),
    ("multiple_choice", "eval.answer", ["CANARY_B", None]),
    ("multiple_choice", "eval.answer", ["CANARY_CHOICE", "B"]),
    ("short_answer", "eval.accepted_answers", "CANARY_C"),
    ("short_answer", "eval.accepted_answers", ["CANARY_D", {}]),
    ("short_answer", "eval.tolerance", "CANARY_E"),
    ("short_answer", "eval.tolerance", -73577354),
    ("free_response", "eval.rubric", ["CANARY_F"]),
    ("free_response", "eval.rubric.type", "CANARY_G"),
    ("free_response", "eval.rubric.accepted_answers", ["CANARY_H", 5]),
    ("free_response", "eval.rubric.rejected_answers", "CANARY_I"),
    ("free_response", "eval.rubric.min_token_f1", 73577355),
    ("free_response", "eval.reference_answer", ["CANARY_J"]),
    ("free_response", "eval.reference_answer", {"path": "../CANARY_K"}),
    ("free_response", "eval.reference_answer", {"path": "CANARY_L.txt"}),
    ("code_completion", "eval.reference_solution", ["CANARY_M"]),
    ("code_completion", "eval.canonical_solution", {"source": "CANARY_N", "code": "CANARY_O"}),
    ("repo_patch", "eval.gold_patch", {"source": "inline", "patch": ["CANARY_P"]}),
    ("terminal_task", "eval.expected_state", {"path": "CANARY_Q"}),
)
_HIDDEN_BY = "hidden (--helmbench-show-hidden)"
_JUDGE = "--helmbench-marking-model=test/judge"
_OF_ANSWERS = ("ACCEPTED", "REJECTED", "TEXT")  # a model reads free answers that words do not decide
_CANARIES_OF_JUDGES = {f"CANARY_{name}" for name in ("RUBRIC", "JUDGED", "WORDS", "FILE", *_OF_ANSWERS)}
_CANARIES_OF_JUDGES |= {"73577351", "73577352"}


def _write_pack(folder: Path) -> None:
    broken = [
        row(family, {place: value}, f"broken{number}")
        for number, (family, place, value) in enumerate(_WRONG, start=1)
    ]
    lines = ['{"id": "cut", "eval": {"answer": "CANARY_LINE"}', '{"id": "x", "eval": "CANARY_EVAL"}']
    twice = '{"id": "y", "family": "multiple_choice", "eval": {"answer": {"CANARY_R": 1, "CANARY_R": 2}}}'
    files = {"hidden/canary.txt": "CANARY_FILE"}
    write_pack(folder, [*_HIDDEN.values(), *broken, *lines, twice], files=files)


def _found(text: str) -> set[str]:
    return set(_CANARY.findall(text.replace("canary.txt", "")))


def _database_text(path: Path) -> Iterator[str]:
    """Yield every value of every table, without what a judge was sent and has said."""
    with closing(sqlite3.connect(path)) as conn:
        judged = {name for (name,) in conn.execute("SELECT request_hash FROM calls WHERE purpose = 'judge'")}
        tables = [name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert len(judged) == 5
        assert {"results", "evaluations", "scenarios", "plans", "requests", "responses"} <= set(tables)
        for table in tables:
            for values in conn.execute(f"SELECT * FROM {table}"):
                if judged.isdisjoint(str(value) for value in values):
                    yield from (
                        value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
                        for value in values
                    )


@pytest.mark.parametrize(
    ("mode", "in_ci"), [("-n0", False), ("-n2", True)], ids=["terminal", "ci-with-workers"]
)
def test_no_hidden_value_leaves_the_evaluator(
    pytester: pytest.Pytester,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mode: str,
    in_ci: bool,
) -> None:
    _write_pack(pytester.path / "benchmark")
    answer_rows(provider, {f"{code} judge": "FAIL" for code in ("mc", "jr", "jp", "fr", "sa")})
    if in_ci:
        monkeypatch.setenv("CI", "1")
    logs = (f"--log-file-level={logging.DEBUG}", "--log-file=log.txt", "-olog_level=DEBUG")
    reports = ("--junitxml=junit.xml", "--helmbench-markdown=report.md", "--helmbench-json=report.json")

    result = run_tree(
        pytester,
        mode,
        "-vv",
        "-rA",
        "--showlocals",
        "--helmbench-with-text=all",
        _JUDGE,
        *logs,
        *reports,
        url=provider.url,
    )

    outcomes = result.parseoutcomes()
    assert outcomes == {"failed": 5, "skipped": 1, "errors": len(_WRONG) + 3}, result.stdout.str()
    result.stdout.fnmatch_lines([f"expected {_HIDDEN_BY}, observed ok", f"  expected: {_HIDDEN_BY}"])
    assert _found(result.stdout.str() + result.stderr.str()) == set()
    for name in ("junit.xml", "report.md", "report.json", "log.txt"):
        text = (pytester.path / name).read_text()
        assert "test/good" in text, name
        assert _found(text) == set(), name
    assert _found("\n".join(_database_text(pytester.path / "helmbench.db"))) == set()
    own = [request.raw.decode() for request in provider.requests if not request.is_judge]
    assert len(own) == 5
    assert _found("\n".join(own)) == set()
    # The canaries sing where they should: before the judge.
    judge = "\n".join(request.prompt for request in provider.requests if request.is_judge)
    assert _found(judge) == _CANARIES_OF_JUDGES
    if not in_ci:
        monkeypatch.chdir(pytester.path)
        _check_commands(capsys)


def _check_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """Hold every command that reads the pack or the record to it."""
    prompts = [["prompt", name] for name in _HIDDEN if name != "un"]
    shows = [["show", "last", name, *more] for name in ("mc", "jr") for more in ([], ["--json"])]
    exports = [["export", "--format", form, "--with-text=all"] for form in ("csv", "json")]
    reports = [["report", "--format", form, "--with-text=all"] for form in ("markdown", "json")]
    tables = [[name, *more] for name in ("list", "show", "runs", "query") for more in ([], ["--json"])]
    checks = [["check", *more] for more in ([], ["--json"])]
    capsys.readouterr()
    for command in (*prompts, *shows, *exports, *reports, *tables, *checks):
        assert main(command) == int(command[0] == "check"), command
        said = capsys.readouterr()
        assert said.out
        assert said.err == ""
        assert _found(said.out) == set(), command
