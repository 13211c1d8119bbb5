"""One session over the three code families: verdicts, transcripts, and nothing hidden anywhere."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from engines import Running
from packs import row, write_pack
from provider import Answer, Provider, Request
from repositories import bundle_of, make_repository
from trees import rows, run_tree

from pytest_helmbench.cli.main import main

_BWRAP = "--helmbench-sandbox=bwrap"
_ADDS = "```python\ndef add(a, b):\n    return a + b\n```"
_REPAIRS = "```bash\nsed -i 's/a - b/a + b/' src/calculator.py\n```"
_OUTCOMES = "SELECT code, outcome, reason FROM results"
_REPLIES = {
    "c-right": _ADDS,
    "c-wrong": _ADDS.replace("+", "-"),
    "c-exit": "```python\nimport os\nos._exit(0)\n```",
    "t-right": "```bash\necho 42 > answer.txt\n```",
    "t-wrong": "```bash\necho 41 > answer.txt\n```",
    "r-right": _REPAIRS,
    "r-empty": "I would rather not.",
    "r-lost": _REPAIRS,
}


def _write_pack(folder: Path) -> None:
    commit = make_repository(folder / "repository")
    pack = folder / "benchmark"
    (pack / "assets").mkdir(parents=True)
    bundle_of(folder / "repository", pack / "assets" / "calculator.bundle")
    script = {"language": "javascript", "starter_code": "function add(a, b) {"}
    found = [
        *(_code(name) for name in ("c-right", "c-wrong", "c-exit")),
        row("code_completion", {"input": {"prompt": "Add.", **script}}, "c-script"),
        *(_task(name) for name in ("t-right", "t-wrong")),
        row("terminal_task", {"eval.needed_commands": ["chroot"]}, "t-denied"),
        *(_patch(name, commit) for name in ("r-right", "r-empty")),
        _patch("r-lost", "0123456789abcdef0123456789abcdef01234567"),
    ]
    write_pack(pack, found)


def _code(name: str) -> dict[str, Any]:
    hidden = {
        "eval.tests.code": "assert add(1, 2) == 3  # HELD_BACK",
        "eval.reference_solution": "CANARY_REFERENCE = 1",
        "eval.canonical_solution": "CANARY_CANONICAL = 1",
    }
    return row("code_completion", {"input.prompt": f"Add two numbers (item {name}).", **hidden}, name)


def _task(name: str) -> dict[str, Any]:
    task = {"input.instructions": f"Write 42 into answer.txt (item {name})."}
    return row("terminal_task", {**task, "eval.expected_state": {"answer.txt": "CANARY_STATE"}}, name)


def _patch(name: str, commit: str) -> dict[str, Any]:
    changes = {
        "input.base_commit": commit,
        "input.instructions": f"Make add() add (item {name}).",
        "eval.tests": {
            "source": "command",
            "command": "python3 -c 'from src.calculator import add; assert add(1, 2) == 3'",
        },
        "eval.gold_patch": "CANARY_GOLD",
        "environment": {"repository": "calculator.bundle"},
    }
    return row("repo_patch", changes, name)


def _reply(request: Request) -> str | Answer | None:
    """Answer a row by its id; an agent that has seen what its command said is done."""
    name = request.prompt.partition("(item ")[2].partition(")")[0]
    is_first = sum(message["role"] == "user" for message in request.body["messages"]) == 1
    return _REPLIES[name] if is_first else "Done."


_EXPECTED = {
    ("c-right", "passed", None),
    ("c-wrong", "failed", "tests_failed"),
    ("c-exit", "failed", "tests_failed"),
    ("c-script", "skipped", "unsupported"),
    ("t-right", "passed", None),
    ("t-wrong", "failed", "check_failed"),
    ("t-denied", "skipped", "denied_command"),
    ("r-right", "passed", None),
    ("r-empty", "failed", "empty_patch"),
    ("r-lost", "error", "wrong_base_commit"),
}


def test_code_rows_are_judged_and_nothing_hidden_leaves_the_evaluator(
    pytester: pytest.Pytester,
    provider: Provider,
    bwrap: Running,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _write_pack(pytester.path)
    provider.reply = _reply
    reports = ("--junitxml=junit.xml", "--helmbench-markdown=report.md", "--helmbench-json=report.json")

    result = run_tree(
        pytester, "-n2", _BWRAP, "-vv", "-rA", "--helmbench-with-text=all", *reports, url=provider.url
    )

    shown = result.stdout.str()
    database = pytester.path / "helmbench.db"
    assert set(rows(database, _OUTCOMES)) == _EXPECTED, shown
    result.assert_outcomes(passed=3, failed=4, errors=1, skipped=2)
    for sentence in (
        "the language 'javascript' needs environment.image and eval.tests.command",
        "base_commit is '0123456789abcdef0123456789abcdef01234567', which calculator.bundle does not hold",
        "it needs chroot, which --helmbench-allow-command=chroot would allow",
        "eval.checker.command: ended with exit code 1",
        "expected its tests pass, observed ",
        "not judged   ",
    ):
        assert sentence in shown
    kept = "\n".join(str(value) for table in _tables(database) for value in table)
    files = "\n".join(
        (pytester.path / name).read_text() for name in ("junit.xml", "report.md", "report.json")
    )
    sent = "\n".join(request.raw.decode() for request in provider.requests)
    assert "CANARY" not in shown + kept + files + sent
    assert "HELD_BACK" not in shown + files
    stored = rows(database, "SELECT expected || observed || coalesce(justification, '') FROM evaluations")
    assert not [text for (text,) in stored if "HELD_BACK" in text]
    marked = "SELECT DISTINCT family, beside FROM v_results WHERE beside IS NOT NULL"
    assert set(rows(database, marked)) == {("repo_patch", "in_process"), ("terminal_task", "in_process")}
    assert "verdicts in_process (docs/trust.md)" in shown + files
    assert "HELD_BACK" not in sent
    ET.fromstring((pytester.path / "junit.xml").read_text())
    _check_transcripts(database)

    monkeypatch.chdir(pytester.path)
    capsys.readouterr()
    for command in (["show", "last", "t-right"], ["show", "last", "c-wrong", "--json"], ["query"], ["list"]):
        assert main(command) == 0
    said = capsys.readouterr().out
    assert "CANARY" not in said


@pytest.mark.parametrize("shows", [False, True], ids=["hidden", "shown"])
def test_what_a_checker_wrote_stands_everywhere_where_it_may_be_shown(
    pytester: pytest.Pytester,
    provider: Provider,
    bwrap: Running,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    shows: bool,
) -> None:
    says = {"eval.checker": {"command": "cat answer.txt; echo WRITTEN_BY_CHECKER; exit 1"}}
    task = {"input.instructions": "Write 42 into answer.txt (item t-wrong)."}
    write_pack(pytester.path / "benchmark", [row("terminal_task", {**task, **says}, "t-wrong")])
    provider.reply = _reply
    reports = ("--junitxml=junit.xml", "--helmbench-json=report.json")
    asks = ("--helmbench-show-hidden",) if shows else ()

    result = run_tree(pytester, "-n0", _BWRAP, *reports, *asks, url=provider.url)

    result.assert_outcomes(failed=1)
    database = pytester.path / "helmbench.db"
    monkeypatch.chdir(pytester.path)
    capsys.readouterr()
    assert main(["show", "last", "t-wrong"]) == 0
    places = [
        result.stdout.str(),
        (pytester.path / "junit.xml").read_text(),
        (pytester.path / "report.json").read_text(),
        capsys.readouterr().out,
        *(str(text) for text in rows(database, "SELECT observed, justification FROM evaluations")[0]),
    ]
    assert [("41 WRITTEN_BY_CHECKER" in " ".join(text.split())) for text in places] == [shows] * len(places)


def _tables(database: Path) -> list[tuple[Any, ...]]:
    names = rows(database, "SELECT name FROM sqlite_master WHERE type = 'table'")
    return [
        tuple(value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values)
        for (name,) in names
        for values in rows(database, f"SELECT * FROM {name}")
    ]


def _check_transcripts(database: Path) -> None:
    """The agents' rows have theirs, with the commands that were run."""
    found = rows(
        database,
        "SELECT code, type, payload FROM events JOIN results ON results.id = result_id ORDER BY events.id",
    )
    commands = {code: json.loads(payload)["command"] for code, kind, payload in found if kind == "command"}
    assert commands["t-right"].strip() == "echo 42 > answer.txt"
    assert "sed -i" in commands["r-right"]
    purposes = rows(
        database,
        "SELECT DISTINCT purpose FROM calls JOIN results USING (run_id, code, repetition)"
        " WHERE results.family = 'terminal_task'",
    )
    assert purposes == [("agent",)]
