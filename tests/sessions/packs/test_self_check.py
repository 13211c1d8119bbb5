"""The self-check of a pack: its own answers pass, empty talk does not, and no model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_scripts import code_row, task_row
from commands import run_command
from engines import Running
from packs import GONE, row, write_pack
from provider import Provider
from repositories import bundle_of, git, make_repository

_TESTS = {
    "source": "command",
    "command": "python3 -c 'from src.calculator import add; assert add(1, 2) == 3'",
}


def _check(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run `helmbench check`."""
    return run_command(pytester, "check", *arguments)


def _write_pack(folder: Path, found: Sequence[Mapping[str, Any] | str]) -> None:
    write_pack(folder / "benchmark", found, "id: demo\nversion: 1\n")


def _repository(folder: Path) -> tuple[str, str]:
    """Make the bundle of a repository; return its commit, and the patch that repairs it."""
    commit = make_repository(folder / "repository")
    (folder / "benchmark" / "assets").mkdir(parents=True)
    bundle_of(folder / "repository", folder / "benchmark" / "assets" / "calculator.bundle")
    source = folder / "repository" / "src" / "calculator.py"
    source.write_text(source.read_text().replace("a - b", "a + b"))
    return commit, git(folder / "repository", "diff")


def _patch_row(identity: str, commit: str, gold: Any, **others: Any) -> dict[str, Any]:
    changes = {
        "input.base_commit": commit,
        "eval.tests": _TESTS,
        "eval.gold_patch": gold,
        "eval.candidate_policy": GONE,
        "environment": {"repository": "calculator.bundle"},
        **others,
    }
    return row("repo_patch", changes, identity)


def test_a_healthy_pack_passes_without_a_model_or_a_record(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running
) -> None:
    commit, gold = _repository(pytester.path)
    found = [
        *(row(family, {}, family) for family in ("multiple_choice", "short_answer", "free_response")),
        code_row("code"),
        _patch_row("patch", commit, gold),
        task_row("task"),
    ]
    _write_pack(pytester.path, found)

    checked = _check(pytester, "benchmark")
    assert checked.ret == 0, checked.stdout.str() + checked.stderr.str()
    checked.stdout.fnmatch_lines(["demo: 6 healthy rows; 0 errors, 0 warnings"])
    assert checked.stderr.str() == ""
    assert provider.count == 0
    assert not list(pytester.path.glob("helmbench*"))


def test_every_contradiction_is_named_by_its_line_and_no_hidden_value_is_shown(
    pytester: pytest.Pytester, bwrap: Running
) -> None:
    commit, gold = _repository(pytester.path)
    no_gold = gold.replace("a + b", "a * b  # CANARY")
    both = {
        "eval.rubric": {
            "type": "contains_any",
            "accepted_answers": ["CANARY"],
            "rejected_answers": ["CANARY"],
        },
        "eval.reference_answer": GONE,
    }
    unknown = {
        "eval.rubric.accepted_answers": ["I do not know"],
        "eval.reference_answer": "Nobody says CANARY.",
    }
    wrong = {"eval.reference_solution": "def add(a, b):\n    return a - b  # CANARY\n"}
    starter = "def add(a, b):\n    pass\n"
    lenient = {"input.starter_code": starter, "eval.tests.code": "add(1, 2)  # CANARY"}
    endless = {"eval.canonical_solution": "def add(a, b):\n    while True: pass  # CANARY\n"}
    found: list[Mapping[str, Any] | str] = [
        row("multiple_choice", {}, "fine"),
        row("free_response", both, "contradicts"),
        "",
        row("free_response", unknown, "unknown"),
        code_row("wrong", **wrong),
        code_row("lenient", **lenient),
        code_row("endless", **endless),
        _patch_row("no-gold", commit, no_gold),
        _patch_row("lost", "0123456789abcdef0123456789abcdef01234567", gold),
        _patch_row("leaks", commit, gold) | {"assets": [{"path": "notes.md"}]},
        task_row("no-tests", **{"eval.checker": {"source": "pytest", "path": "empty"}}),
        task_row("no-folder", **{"eval.checker": {"command": ["python3", "-m", "pytest", "lost"]}}),
        task_row("solved", **{"eval.checker": {"command": "test ! -e wrong.txt"}}),
        task_row("chroots", **{"eval.needed_commands": ["chroot"], "eval.checker": {"command": "true"}}),
        _patch_row("lost-too", "0123456789abcdef", GONE),
        task_row("no-start", **{"eval.checker": {"command": "bash securebench/evaluation_inputs/run.sh"}}),
    ]
    (pytester.path / "benchmark" / "hidden" / "empty").mkdir(parents=True)
    (pytester.path / "benchmark" / "assets" / "notes.md").write_text(f"# Notes\n\n{gold}")
    _write_pack(pytester.path, found)
    expected = [
        (2, "contradicts: accepted answer 1 must pass, but it fails"),
        (4, "unknown: the reference answer must pass, but it fails"),
        (4, "unknown: 'I do not know' must fail, but it passes"),
        (5, "wrong: reference_solution must pass, but it fails"),
        (6, "lenient: the starter code, untouched must fail, but it passes"),
        (7, "endless: canonical_solution must pass, but it fails"),
        (8, "no-gold: eval.gold_patch must pass, but it fails"),
        (9, "lost: eval.gold_patch must pass, but it cannot be judged (base_commit is"),
        (
            10,
            "leaks: an agent that reads the public asset 'notes.md', where eval.gold_patch stands, must fail, but",
        ),
        (
            11,
            "no-tests: the untouched workspace must have a verdict, but it cannot be judged"
            " (eval.checker.path: there are no tests",
        ),
        (
            12,
            "no-folder: the untouched workspace must have a verdict, but it cannot be judged"
            " (eval.checker.command: ended with exit code 4",
        ),
        (
            15,
            "lost-too: an empty patch must fail, but it cannot be judged (base_commit is '0123456789abcdef',"
            " which calculator.bundle does not hold: it is at",
        ),
        (
            16,
            "no-start: the untouched workspace must have a verdict, but it cannot be judged"
            " (eval.checker.command: cannot be started (exit code 127)",
        ),
    ]

    checked = _check(pytester, "benchmark")

    assert checked.ret == 1, checked.stderr.str()
    for line, sentence in expected:
        assert f"benchmark/tasks.jsonl:{line}: error: {sentence}" in checked.stdout.str()
    healthy = 15 - len({line for line, _ in expected})
    checked.stdout.fnmatch_lines([f"demo: {healthy} healthy rows; 14 errors, *"])
    assert "CANARY" not in checked.stdout.str()
    assert not (pytester.path / "helmbench.db").exists()


def test_what_cannot_be_checked_here_is_said_and_broken_rows_are_errors(pytester: pytest.Pytester) -> None:
    found: list[Mapping[str, Any] | str] = [
        row("code_completion", {"environment": {"image": "own:1"}}, "image"),
        '{"id": "cut"',
        *(row("short_answer", {"input.question": "Who is {{#if a}}?"}, name) for name in ("one", "two")),
    ]
    _write_pack(pytester.path, found)

    checked = _check(pytester, "benchmark")

    assert checked.ret == 1
    place = "benchmark/tasks.jsonl:3: warning: one (and 1 other row): {{#if a}} is sent as it stands*"
    checked.stdout.fnmatch_lines([place, "*1 row not self-checked: the image own:1 *"])
