"""Question packs run with pytest: what is collected, what is chosen, what is never imported."""

from __future__ import annotations

from pathlib import Path

import pytest
from inner_pytest import run_pytest, run_pytest_apart
from pack_rows import choice, free, short
from packs import write_pack
from provider import Provider
from trees import category, rows, run_tree, write_tree

_BOMB = "raise SystemExit('something of a pack was imported')\n"
_BOMBS = (
    "conftest.py",
    "test_bomb.py",
    "__init__.py",
    "assets/conftest.py",
    "assets/test_bomb.py",
    "hidden/tests/conftest.py",
    "hidden/tests/test_outputs.py",
    "tests/conftest.py",
    "tests/test_bomb.py",
)
_LIST = ("--collect-only", "-q", "--helmbench-model=test/good")


def _write_project(folder: Path) -> Path:
    """Write a tree with two packs below it; one has its rows in several files, both have bombs."""
    benchmark = write_tree(folder / "benchmark", {"P1-B1-S1": category("RISK")})
    bombs = dict.fromkeys(_BOMBS, _BOMB)
    trusted = "helmbench_trusted = benchmark/packs/quiz benchmark/packs/talk"  # nothing is run even so
    (folder / "pytest.ini").write_text(f"[pytest]\nfilterwarnings = error\n{trusted}\n")
    quiz = write_pack(benchmark / "packs" / "quiz", [], "id: quiz\nversion: 3\n", bombs)
    (quiz / "tasks.jsonl").unlink()
    algebra, biology = ({"metadata": {"subject": name}} for name in ("algebra", "biology"))
    parts = {
        "part10.jsonl": [choice("q1", **biology)],
        "part2.jsonl": [choice("q10", **algebra), short("q2", **algebra), choice("q1b", **biology)],
    }
    for name, found in parts.items():
        write_pack(folder / "scratch", found)
        (folder / "scratch" / "tasks.jsonl").rename(quiz / name)
    write_pack(benchmark / "packs" / "talk", [free("f1"), short("f2")], "id: talk\nversion: 1\n", bombs)
    return benchmark


_QUIZ = "benchmark/packs/quiz"
_ROWS = [
    f"{_QUIZ}/part2.jsonl::q10[test/good]",
    f"{_QUIZ}/part2.jsonl::q2[test/good]",
    f"{_QUIZ}/part2.jsonl::q1b[test/good]",
    f"{_QUIZ}/part10.jsonl::q1[test/good]",
    "benchmark/packs/talk/tasks.jsonl::f1[test/good]",
    "benchmark/packs/talk/tasks.jsonl::f2[test/good]",
]
_CODE = "P1-B1-S1-C1-PT1"
_TREE = f"benchmark/scenarios/P1-B1-S1/S1.md::{_CODE}[test/good]"


_MARKS = (
    "helmbench(family='multiple_choice', subject='biology')"
    " or helmbench(benchmark='talk', row='f2', model='test/good')"
)


def _ids(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["."], [*_ROWS, _TREE]),
        (["-k", "talk or short_answer or q10"], [*_ROWS[:2], *_ROWS[4:]]),
        (["benchmark/packs", "-m", _MARKS], [_ROWS[2], _ROWS[3], _ROWS[5]]),
        (["benchmark", "--helmbench-select=P1-B1"], [_TREE]),
        (["benchmark", "--helmbench-select=~P1"], _ROWS),
    ],
    ids=["dot", "keyword", "marker", "select", "exclude"],
)
def test_rows_are_collected_in_file_order_and_chosen_like_tests(
    pytester: pytest.Pytester, arguments: list[str], wanted: list[str]
) -> None:
    _write_project(pytester.path)

    result = run_pytest(pytester, *arguments, *_LIST, "-p", "no:cacheprovider")

    assert result.ret == pytest.ExitCode.OK, result.stdout.str()
    assert _ids(result) == wanted
    assert not (pytester.path / "helmbench.db").exists()


def test_ids_name_row_model_and_repetition_and_escape_what_a_terminal_could_choke_on(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    names = ["a::b", "Ü", "\x1b[31m", "q[1]", "two words", "..", "x" * 200, "-"]
    write_pack(pytester.path / "benchmark", [choice(name) for name in names])
    provider.answers(text="Answer: B")
    models = ("--helmbench-model=test/one", "--helmbench-model=test/two", "--helmbench-repeat=2")

    result = run_tree(pytester, *models, "--junitxml=report.xml", "-rA", url=provider.url)

    result.assert_outcomes(passed=32)
    shown = [r"a\x3a\x3ab", "Ü", r"\x1b[31m", *names[3:]]
    brackets = ["[test/one]", "[test/one-r2]", "[test/two]", "[test/two-r2]"]
    ids = [f"benchmark/tasks.jsonl::{name}{bracket}" for name in shown for bracket in brackets]
    assert [line.removeprefix("PASSED ") for line in result.outlines if line.startswith("PASSED ")] == ids
    assert all(line.isprintable() for line in result.outlines if "::" in line)
    assert 'name="Ü[test/one]"' in (pytester.path / "report.xml").read_text()
    database = pytester.path / "helmbench.db"
    assert sorted(rows(database, "SELECT node_id FROM results")) == sorted((node,) for node in ids)
    assert {code for (code,) in rows(database, "SELECT code FROM results")} == set(names)
    assert rows(database, "SELECT total_tests, score, coverage, status FROM evaluation_runs") == [
        (16, 1.0, 1.0, "complete"),
        (16, 1.0, 1.0, "complete"),
    ]
    # One row by its id, as it was printed.
    again = run_tree(pytester, *models[:1], ids[0], ids[12], url=provider.url)
    again.assert_outcomes(passed=2)


def test_a_session_that_does_not_ask_leaves_packs_alone(pytester: pytest.Pytester) -> None:
    write_pack(pytester.path / "benchmark", [choice("q1")], files={"hidden/data.txt": "x"})
    pytester.makepyfile(
        test_own="""
        import sys

        def test_own():
            assert [name for name in sys.modules if name.startswith("pytest_helmbench.benchmarks")] == []
        """
    )
    for arguments in ((), (".",), ("test_own.py",)):
        result = run_pytest_apart(pytester, *arguments, "-p", "no:cacheprovider")
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(["collected 1 item", "*1 passed in*"])
    assert not (pytester.path / "helmbench.db").exists()
