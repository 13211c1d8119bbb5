"""Places of packs: which files never run, and how packs are found, named and distinguished."""

from __future__ import annotations

import json
import os

import pytest
from inner_pytest import run_pytest
from pack_rows import answer_rows, choice, worded
from packs import write_pack
from provider import Answer, Provider
from trees import rows, run_tree

_BOMB = "raise SystemExit('something of a pack was imported')\n"
_BOMBS = dict.fromkeys(
    ("conftest.py", "test_bomb.py", "tests/conftest.py", "tests/test_bomb.py", "hidden/a/conftest.py"), _BOMB
)
_PACK = "benchmark/packs/test-quiz"  # pytest runs the conftest.py of test* folders before it collects


@pytest.mark.parametrize(
    ("place", "arguments", "ids"),
    [
        ("", [f"{_PACK}/tasks.jsonl::q1[test/good]"], ["q1[test/good]"]),
        ("", ["benchmark/packs"], ["q1[test/good]"]),
        ("", [_PACK, "--helmbench-repeat=2"], ["q1[test/good]", "q1[test/good-r2]"]),
        (f"{_PACK}/hidden/a", [], ["q1[test/good]"]),
        ("", None, []),
    ],
    ids=["row", "folder", "pack", "inside", "never-asked"],
)
def test_nothing_of_a_pack_is_ever_run(
    pytester: pytest.Pytester, place: str, arguments: list[str] | None, ids: list[str]
) -> None:
    write_pack(pytester.path / _PACK, [choice("q1")], files=_BOMBS)
    pytester.makeini(f"[pytest]\ntestpaths = benchmark/packs\nhelmbench_trusted = {_PACK}\n")
    os.chdir(pytester.path / place)
    asks = [] if arguments is None else [*arguments, "--helmbench-model=test/good"]

    result = run_pytest(pytester, *asks, "--collect-only", "-q", "-p", "no:cacheprovider")

    shown = result.stdout.str() + result.stderr.str()
    assert "something of a pack" not in shown
    assert [line.rpartition("::")[2] for line in result.outlines if "::" in line] == ids, shown


def test_packs_of_the_same_id_are_told_apart_and_each_is_gated(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    for name in ("bad", "good"):
        write_pack(pytester.path / "benchmark" / name, [choice(name)])
    answer_rows(provider, {"bad": "A", "good": "B"})

    result = run_tree(pytester, "--helmbench-min-score=0.5", "--tb=no", url=provider.url)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "demo (bad) * 0.0 *",
            "demo (good) * 100.0 *",
            "✗ FAILS   test/good on demo (bad): 0.0 %, threshold 50.0",
            "✓ HOLDS   test/good on demo (good): 100.0 % *",
        ]
    )


def test_the_words_of_a_judge_are_as_hidden_as_its_rubric(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_pack(pytester.path / "benchmark", [worded("wrong"), worded("odd")])
    said = {"judgment": "FAIL", "justification": "The rubric wants CANARY.", "evidence": []}
    answers = {
        "wrong judge": Answer(text=json.dumps(said)),
        "odd judge": Answer(text=json.dumps({**said, "judgment": "CANARY"})),
    }
    answer_rows(provider, answers)
    options = (
        "--helmbench-marking-model=test/judge",
        "--helmbench-with-text=all",
        "--helmbench-json=report.json",
    )

    for asks in ((), ("--helmbench-show-hidden",)):
        result = run_tree(pytester, *options, *asks, url=provider.url)
        result.assert_outcomes(failed=1, errors=1)
        kept = rows(pytester.path / "helmbench.db", "SELECT justification FROM evaluations ORDER BY id")
        text = result.stdout.str() + (pytester.path / "report.json").read_text() + str(kept[-1])
        assert text.count("CANARY") == (0 if not asks else 4), text
    assert kept == [("<redacted>",), ("The rubric wants CANARY.",)]
