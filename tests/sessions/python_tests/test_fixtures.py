"""Hand-written tests that ask a model through our fixtures: cases like any other, judged by their own code."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from inner_pytest import run_pytest, run_pytest_apart
from own_tests import CALLS, MANY, every_number, results_of_own_tests, run_own_tests, write_own_tests
from provider import Provider
from trees import category, collected, rows, write_tree

_NO_MODEL = "no model: give --helmbench-model=ID on the command line"
_NOT_COMPOSED = (
    "hand-written tests were not composed: only their own code knows what they ask; one call each is assumed"
)
_MANY_CODES = (
    "TestAsync::test_loop_of_a_plugin",
    "TestAsync::test_loops_of_its_own",
    "test_says[left]",
    "test_says[right]",
    "test_wrong",
)


def _files(folder: Path) -> set[Path]:
    found = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {path for path in found if path.name not in ("stdout", "stderr") and "runpytest" not in str(path)}


def test_in_a_session_that_does_not_ask_they_are_skipped_with_what_to_give(
    pytester: pytest.Pytester,
) -> None:
    write_own_tests(
        pytester.path,
        """
import pytest
def test_client(helmbench_openai): raise AssertionError
async def test_async(helmbench_async_openai): raise AssertionError
def test_id(helmbench_model): raise AssertionError
def test_late(request): request.getfixturevalue("helmbench_openai")
def test_own(): pass
""",
    )
    (pytester.path / "conftest.py").write_text(
        "import sys\n\n"
        "def pytest_unconfigure(config):\n"
        "    kinds = ('pytest_helmbench.benchmarks', 'pytest_helmbench.pytest_side', 'openai')\n"
        "    print('LOADED', *(name for name in sys.modules if name.startswith(kinds)))\n"
    )
    before = _files(pytester.path)

    result = run_pytest_apart(pytester, "-p", "no:cacheprovider", "-p", "no:anyio", "-s", "-rs", "-v")

    result.assert_outcomes(passed=1, skipped=4)
    assert result.stdout.str().count(_NO_MODEL) >= 4
    assert "LOADED" in result.outlines
    assert "test_own.py::test_client SKIPPED" in result.stdout.str()
    assert _files(pytester.path) == before


@every_number
def test_every_test_runs_on_every_model_in_every_repetition_and_is_on_record_like_a_case(
    pytester: pytest.Pytester, provider: Provider, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_own_tests(pytester.path, MANY)
    monkeypatch.setenv("SOME_KEY", "KEY-of-twenty-characters")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # without a server
    models = ("test/good", "test/other")
    options = (
        "--helmbench-repeat=2",
        "--helmbench-api-key-env=SOME_KEY",
        "--junitxml=report.xml",
        workers,
        "-v",
    )

    result = run_own_tests(pytester, provider, *options, models=models)

    result.assert_outcomes(passed=17, failed=4)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    database = pytester.path / "helmbench.db"
    ids = rows(database, "SELECT node_id FROM results ORDER BY rowid")
    assert {
        "test_own.py::test_says[test/good-left]",
        "test_own.py::test_says[test/other-r2-right]",
        "test_own.py::TestAsync::test_loops_of_its_own[test/good]",
        "test_own.py::test_wrong[test/other-r2]",
    } <= {node_id for (node_id,) in ids}
    assert len(ids) == 20
    for run_id in (1, 2):
        assert results_of_own_tests(pytester, run_id) == [
            (code, repetition, "failed" if code == "test_wrong" else "passed", None)
            for code in _MANY_CODES
            for repetition in (1, 2)
        ]
        calls = rows(database, CALLS.format(run_id))
        assert len(calls) == 14
        assert {call[2:] for call in calls} == {("case", 0)}
    assert provider.count == 28
    assert {request.headers["authorization"] for request in provider.requests} == {
        "Bearer KEY-of-twenty-characters"
    }
    assert {request.model for request in provider.requests} == set(models)
    runs = """
        SELECT llms.name, benchmarks.name, kind, status, scope, total_tests, passed_tests, failed_tests, score,
            coverage, cost_usd FROM evaluation_runs AS runs JOIN llms ON llms.id = llm_id
            JOIN benchmarks ON benchmarks.id = benchmark_id ORDER BY runs.id
    """
    name = pytester.path.name
    assert rows(database, runs) == [
        (model, name, "python_tests", "complete", "whole", 10, 8, 2, 0.8, 1.0, pytest.approx(0.014))
        for model in models
    ]
    facts = """
        SELECT latency_ms > 0, prompt_tokens, completion_tokens, cost_usd, text, full_code, scenarios.family
        FROM results JOIN responses ON responses.id = response_id
        JOIN scenarios ON scenarios.id = scenario_id WHERE results.code LIKE '%wrong' LIMIT 1
    """
    assert rows(database, facts) == [(1, 3, 1, 0.001, "wrong", "test_own.py::test_wrong", "python_test")]
    evaluations = "SELECT DISTINCT rule, passed, credit, expected, observed FROM evaluations ORDER BY passed"
    line = MANY.splitlines().index('    assert answer == "right"') + 1
    assert rows(database, evaluations) == [
        ("assertions", 0, 0.0, "the test passes", f"AssertionError at test_own.py:{line}"),
        ("assertions", 1, 1.0, "the test passes", "it passes"),
    ]
    _check_junit(pytester.path / "report.xml")
    result.stdout.fnmatch_lines(["test/good  *80.0 *80.0 % *0  0.0140 *"])


def _check_junit(path: Path) -> None:
    cases = {case.get("name"): case for case in ET.parse(path).getroot().iter("testcase")}
    wrong = cases["test_wrong[test/good]"]
    assert wrong.find("failure") is not None
    properties = {item.get("name"): item.get("value") for item in wrong.iter("property")}
    assert (properties["model"], properties["cost_usd"], properties["prompt_tokens"]) == (
        "test/good",
        "0.001",
        "3",
    )


def test_models_and_own_parameters_share_the_brackets_and_ids_and_markers_select(
    pytester: pytest.Pytester,
) -> None:
    write_own_tests(pytester.path, MANY)

    result = run_own_tests(pytester, None, "--collect-only", "-q", "-kleft", models=("a/b", "tést/x::y"))
    assert collected(result) == ["test_says[a/b-left]", r"test_says[t\xe9st/x\\x3a\\x3ay-left]"]

    marked = "-mhelmbench(model='a/b', test='test_own.py::test_says[right]')"
    result = run_own_tests(
        pytester, None, "test_own.py", "--collect-only", "-q", marked, models=("a/b", "c/d")
    )
    assert collected(result) == ["test_says[a/b-right]"]

    result = run_own_tests(
        pytester,
        None,
        "test_own.py::test_says[a/b-r2-left]",
        "--collect-only",
        "-q",
        "--helmbench-repeat=2",
        models=("a/b",),
    )
    assert collected(result) == ["test_says[a/b-r2-left]"]

    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    paths = ("test_own.py", "benchmark", "--collect-only", "-q")
    result = run_own_tests(pytester, None, *paths, "--helmbench-select=P1", models=("a/b",))
    assert collected(result) == ["test_own", "P1-B1-S1-C1-PT1[a/b]"]


def test_a_dry_run_skips_them_and_a_model_that_cannot_be_used_skips_its_own(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_own_tests(pytester.path, "def test_one(helmbench_openai): assert ask(helmbench_openai, 'a')\n")
    before = _files(pytester.path)

    for options in (("--helmbench-model=openai/gpt-x",), ("--helmbench-dry-run",)):
        dry = run_pytest(pytester, "-p", "no:cacheprovider", "test_own.py", "-rs", *options)
        dry.assert_outcomes(skipped=1)
        dry.stdout.fnmatch_lines([_NOT_COMPOSED, "SKIPPED [[]1[]] test_own.py:2: dry run"])
        assert _files(pytester.path) == before

    (pytester.path / "models.yml").write_text(f"models:\n  - {{id: test/good, base_url: '{provider.url}'}}\n")
    mixed = run_own_tests(pytester, None, "-rs", models=("test/good", "openai/gpt-x"))
    mixed.assert_outcomes(passed=1, skipped=1)
    assert results_of_own_tests(pytester, 2) == [("test_one", 1, "skipped", "no_model")]
    mixed.stdout.fnmatch_lines(
        ["SKIPPED [[]1[]] test_own.py:2: openai/gpt-x cannot be called: *OPENROUTER_API_KEY*"]
    )
