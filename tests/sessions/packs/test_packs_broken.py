"""Broken rows, files and manifests of packs: the messages, the rows that still run, and how the session ends."""

from __future__ import annotations

from typing import Any

import pytest
from pack_rows import choice, short
from packs import write_pack
from provider import Provider
from trees import category, rows, run_tree, write_tree

_LIST = ("--collect-only", "-q", "--helmbench-model=test/good")


def _ids(result: pytest.RunResult) -> list[str]:
    return [line.rpartition("/")[2] for line in result.outlines if "::" in line and "[" not in line]


def test_broken_rows_error_with_all_that_is_wrong_and_stop_no_other(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    lines: list[dict[str, Any] | str] = [
        choice("one"),
        "",
        '{"id": "cut"',
        short("two", **{"eval.tolerance": -1, "eval.accepted_answers": [], "input.qestion": "x"}),
        "[1, 2]",
        choice("one"),
        '{"id": "nan", "family": "free_response", "eval": NaN}',
        choice("three"),
        choice("four", **{"metadata": "none", "input.choices": []}),
    ]
    write_pack(pytester.path / "benchmark", lines)
    provider.answers(text="Answer: B")

    result = run_tree(pytester, "-n2", "-rA", "--junitxml=report.xml", url=provider.url)

    result.assert_outcomes(passed=2, errors=6)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert provider.count == 2
    shown = result.stdout.str()
    for text in (
        "benchmark/tasks.jsonl:3: row: this is not valid JSON: expecting ',' delimiter (column 13)\n"
        "  hint: every line is one JSON object of its own",
        "benchmark/tasks.jsonl:4: input: unknown key 'qestion'\n"
        "  hint: did you mean 'question'? known keys: question, answer_format, context, messages\n"
        "benchmark/tasks.jsonl:4: eval.accepted_answers: the list is empty\n"
        "benchmark/tasks.jsonl:4: eval.tolerance: the number is out of range\n"
        "  hint: write a number that is 0 or more",
        "benchmark/tasks.jsonl:5: row: this is a list, not an object",
        "benchmark/tasks.jsonl:6: id: 'one' is the id of another row (first in line 1)\n  hint: rename one of them",
        "benchmark/tasks.jsonl:9: metadata: this is text, not an object",
        "benchmark/tasks.jsonl:9: input.choices: the list is empty",
        "6 broken files or rows: none of their cases ran (see ERRORS)",
    ):
        assert text in shown
    assert "Traceback" not in shown
    errors = [line.split()[1].rpartition("::")[2] for line in result.outlines if line.startswith("ERROR b")]
    assert sorted(errors) == ["four", "line-3", "line-5", "line-6", "nan", "two"]
    assert rows(pytester.path / "helmbench.db", "SELECT code, outcome FROM results ORDER BY code") == [
        ("one", "passed"),
        ("three", "passed"),
    ]
    run = rows(
        pytester.path / "helmbench.db", "SELECT status, total_tests, score, coverage FROM evaluation_runs"
    )
    assert run == [("partial", 2, 1.0, 0.25)]


def test_a_broken_manifest_is_one_item_and_leaves_other_benchmarks_alone(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    benchmark = write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    manifest = """\
id: bad
version: 1
defaults:
  family: 7
  environment:
    timeout_seconds: 0
asset_roots:
  eval: ../up
nmae: x
"""
    write_pack(benchmark / "packs" / "bad", [choice("one"), '{"id": "cut"'], manifest)
    write_pack(benchmark / "packs" / "good", [choice("two")], "id: good\nversion: 1\nfarbe: rot\n")
    provider.answers(text="Answer: B", when=lambda request: "item" in request.prompt)

    result = run_tree(pytester, "-rA", url=provider.url)

    result.assert_outcomes(passed=2, errors=2)
    shown = result.stdout.str()
    place = "benchmark/packs/bad/manifest.yaml"
    for text in (
        f"{place}:4: defaults.family is 7, not text",
        f"{place}:6: defaults.environment.timeout_seconds is 0, out of range\n  hint: write a number of seconds",
        f"{place}:8: asset_roots.eval '../up' leads out by '..'",
        f"ERROR {place}::bad - ",
        "ERROR benchmark/packs/bad/tasks.jsonl::line-2 - ",
        "PASSED benchmark/packs/good/tasks.jsonl::two[test/good]",
        "warning: benchmark/packs/good/manifest.yaml:3: unknown key 'farbe'",
        "2 broken files or rows: none of their cases ran (see ERRORS)",
    ):
        assert text in shown
    assert result.ret == pytest.ExitCode.TESTS_FAILED
