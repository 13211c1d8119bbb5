"""Hand-written tests that ask a model through our fixtures: cases like any other, judged by their own code."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import run_command
from inner_pytest import run_pytest, run_pytest_apart
from provider import Provider, Request
from sessions import Session, run_undisturbed, until
from trees import category, clear_environment, collected, rows, write_tree

_NO_MODEL = "no model: give --helmbench-model=ID on the command line"
_NOTHING_NAMED = (
    "the fixtures helmbench_model, helmbench_openai and helmbench_async_openai cannot be asked for here\n"
    "  hint: name one of them among the arguments of a test function, so that the test is planned for every model"
)
_JUDGED_AGAIN = (
    "a judged test was run again: its first verdict stands, its code did not run"
    " (asking until it passes would bias the score; use --helmbench-repeat)"
)
_NOT_COMPOSED = (
    "hand-written tests were not composed: only their own code knows what they ask; one call each is assumed"
)
_NEVER_JUDGED = "not a model failure: never judged"
_RESULTS = "SELECT code, repetition, outcome, reason FROM results WHERE run_id = {} ORDER BY code, repetition"
_CALLS = "SELECT code, repetition, purpose, from_cache, result_id IS NULL FROM calls WHERE run_id = {}"
_VERDICTS = """
    SELECT code, repetition, outcome, results.score, rule, rule_hash, expected, observed, prompt_tokens,
        completion_tokens FROM results JOIN evaluations ON result_id = results.id WHERE run_id = {} ORDER BY 1, 2
"""
_every_number = pytest.mark.parametrize("workers", ["-n0", "-n2"])

_ASK = """
def ask(client, text, **more):
    reply = client.chat.completions.create(model="any", messages=[{"role": "user", "content": text}], **more)
    return reply.choices[0].message.content
"""
_MANY = """
import asyncio
import os
import pytest
from asking import ask


@pytest.mark.parametrize("word", ["left", "right"])
def test_says(helmbench_openai, word):
    assert helmbench_openai.api_key.startswith("relay-")
    assert "KEY" not in "".join(map(str, helmbench_openai.default_headers.values()))
    assert ask(helmbench_openai, f"Say it.\\nANSWER: {word}") == word


class TestAsync:
    def test_loops_of_its_own(self, helmbench_async_openai, helmbench_model):
        async def both():
            return await asyncio.gather(*(one(word) for word in ("a", "b")))

        async def one(word):
            message = {"role": "user", "content": f"ANSWER: {word}"}
            reply = await helmbench_async_openai.chat.completions.create(model="any", messages=[message])
            return reply.choices[0].message.content

        assert asyncio.run(both()) == ["a", "b"]
        assert asyncio.run(one(helmbench_model)) == helmbench_model

    @pytest.mark.anyio
    async def test_loop_of_a_plugin(self, anyio_backend_name, helmbench_async_openai):
        message = {"role": "user", "content": "ANSWER: c"}
        stream = await helmbench_async_openai.chat.completions.create(
            model="any", messages=[message], stream=True
        )
        assert "".join([part.choices[0].delta.content or "" async for part in stream if part.choices]) == "c"


@pytest.fixture
def anyio_backend():
    return "asyncio"


def test_wrong(helmbench_openai):
    answer = ask(helmbench_openai, "ANSWER: wrong")
    assert answer == "right"


def test_own():
    assert "OPENAI_API_KEY" not in os.environ
"""
_MANY_CODES = (
    "TestAsync::test_loop_of_a_plugin",
    "TestAsync::test_loops_of_its_own",
    "test_says[left]",
    "test_says[right]",
    "test_wrong",
)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def _write(folder: Path, text: str) -> None:
    """Write `test_own.py` and what it imports, warnings as errors."""
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\npythonpath = .\n")
    (folder / "asking.py").write_text(_ASK)
    (folder / "test_own.py").write_text(
        text if "asking import" in text else f"from asking import ask\n{text}"
    )


def _run(
    pytester: pytest.Pytester,
    provider: Provider | None,
    *arguments: str,
    models: Sequence[str] = ("test/good",),
) -> pytest.RunResult:
    """Run `test_own.py`, or the paths among the arguments, in a process of its own."""
    paths = [] if any(argument[0] != "-" for argument in arguments) else ["test_own.py"]
    given = [f"--helmbench-model={model}" for model in models]
    if provider is not None:
        given.append(f"--helmbench-base-url={provider.url}")
    return run_pytest(pytester, "-p", "no:cacheprovider", *paths, *given, *arguments)


def _results(pytester: pytest.Pytester, run_id: int = 1) -> list[tuple[Any, ...]]:
    """Return code (without its file), repetition, outcome and reason of every result."""
    found = rows(pytester.path / "helmbench.db", _RESULTS.format(run_id))
    return [(code.removeprefix("test_own.py::"), *rest) for code, *rest in found]


def _files(folder: Path) -> set[Path]:
    found = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {path for path in found if path.name not in ("stdout", "stderr") and "runpytest" not in str(path)}


def test_in_a_session_that_does_not_ask_they_are_skipped_with_what_to_give(
    pytester: pytest.Pytester,
) -> None:
    _write(
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


@_every_number
def test_every_test_runs_on_every_model_in_every_repetition_and_is_on_record_like_a_case(
    pytester: pytest.Pytester, provider: Provider, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(pytester.path, _MANY)
    monkeypatch.setenv("SOME_KEY", "KEY-of-twenty-characters")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody is there
    models = ("test/good", "test/other")
    options = (
        "--helmbench-repeat=2",
        "--helmbench-api-key-env=SOME_KEY",
        "--junitxml=report.xml",
        workers,
        "-v",
    )

    result = _run(pytester, provider, *options, models=models)

    result.assert_outcomes(passed=17, failed=4)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    database = pytester.path / "helmbench.db"
    ids = rows(database, "SELECT node_id FROM results ORDER BY id")
    assert {
        "test_own.py::test_says[test/good-left]",
        "test_own.py::test_says[test/other-r2-right]",
        "test_own.py::TestAsync::test_loops_of_its_own[test/good]",
        "test_own.py::test_wrong[test/other-r2]",
    } <= {node_id for (node_id,) in ids}
    assert len(ids) == 20
    for run_id in (1, 2):
        assert _results(pytester, run_id) == [
            (code, repetition, "failed" if code == "test_wrong" else "passed", None)
            for code in _MANY_CODES
            for repetition in (1, 2)
        ]
        calls = rows(database, _CALLS.format(run_id))
        assert len(calls) == 14
        assert {call[2:] for call in calls} == {("case", 0, 0)}
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
    line = _MANY.splitlines().index('    assert answer == "right"') + 1
    assert rows(database, evaluations) == [
        ("assertions", 0, 0.0, "the test passes", f"AssertionError at test_own.py:{line}"),
        ("assertions", 1, 1.0, "the test passes", "it passes"),
    ]
    _check_junit(pytester.path / "report.xml")
    result.stdout.fnmatch_lines(["test/good  *80.0 %*10/10"])


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
    _write(pytester.path, _MANY)

    result = _run(pytester, None, "--collect-only", "-q", "-kleft", models=("a/b", "tést/x::y"))
    assert collected(result) == ["test_says[a/b-left]", r"test_says[t\\xc3\\xa9st/x\\x3a\\x3ay-left]"]

    marked = "-mhelmbench(model='a/b', test='test_own.py::test_says[right]')"
    result = _run(pytester, None, "test_own.py", "--collect-only", "-q", marked, models=("a/b", "c/d"))
    assert collected(result) == ["test_says[a/b-right]"]

    result = _run(
        pytester,
        None,
        "test_own.py::test_says[a/b-r2-left]",
        "--collect-only",
        "-q",
        "--helmbench-repeat=2",
        models=("a/b",),
    )
    assert collected(result) == ["test_says[a/b-r2-left]"]

    result = _run(pytester, None, "--collect-only", "-q", "--helmbench-select=P1", models=("a/b",))
    assert collected(result) == ["test_own"]


_FAULTY = """
import pytest
import openai

@pytest.fixture
def answer(helmbench_openai):
    return ask(helmbench_openai, "in setup")

def test_body(helmbench_openai):
    ask(helmbench_openai, "in body")

def test_assertion(helmbench_openai):
    with pytest.raises(openai.APIStatusError):
        ask(helmbench_openai, "in body")
    assert False

def test_setup(answer):
    assert answer

def test_caught(helmbench_openai):
    with pytest.raises(openai.InternalServerError, match="scripted 500"):
        ask(helmbench_openai, "in body")

def test_refused(helmbench_openai):
    ask(helmbench_openai, "in body", n=2)

@pytest.mark.xfail(strict=True)
def test_expected(helmbench_openai):
    ask(helmbench_openai, "in body")
"""


@_every_number
def test_what_the_provider_or_the_test_has_broken_is_an_error_and_never_a_failed_test(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    _write(pytester.path, _FAULTY)
    provider.answers(status=500)
    options = ("--helmbench-max-retries=0", "--junitxml=report.xml", "--helmbench-min-score=0.1")

    result = _run(pytester, provider, *options, workers)

    result.assert_outcomes(errors=4, passed=1, xfailed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert _results(pytester) == [
        ("test_assertion", 1, "error", "provider_error"),
        ("test_body", 1, "error", "provider_error"),
        ("test_caught", 1, "passed", None),
        ("test_expected", 1, "error", "provider_error"),
        ("test_refused", 1, "error", "refused_request"),
        ("test_setup", 1, "error", "provider_error"),
    ]
    text = result.stdout.str()
    assert text.count(_NEVER_JUDGED) == 2  # the same error of three tests stands once
    assert "n: one choice per request is answered here; ask again for another" in text
    assert provider.count == 5
    tree = ET.parse(pytester.path / "report.xml").getroot()
    assert (len(list(tree.iter("error"))), len(list(tree.iter("failure")))) == (4, 1)  # the gate
    result.stdout.fnmatch_lines(["*no gate forgives the 4 failed that are no judged case*"])


def test_how_tests_end_by_themselves_is_told_apart(pytester: pytest.Pytester, provider: Provider) -> None:
    _write(
        pytester.path,
        """
import pytest

@pytest.fixture
def broken(helmbench_openai):
    raise KeyError("mine")

@pytest.fixture
def unwilling(helmbench_openai):
    pytest.skip("not today")

@pytest.fixture
def late(helmbench_openai):
    yield
    ask(helmbench_openai, "late")

def test_broken(broken): pass
def test_unwilling(unwilling): pass
def test_late(late): ask(late or 0, "") if late else None
def test_skips(helmbench_openai): pytest.skip("no need")
@pytest.mark.skip(reason="never")
def test_marked(helmbench_openai): pass
@pytest.mark.xfail
def test_expected(helmbench_openai): assert not ask(helmbench_openai, "x")
def test_exits(helmbench_openai): raise SystemExit(3)
""",
    )

    result = _run(pytester, provider, "-rsE")

    result.assert_outcomes(errors=2, skipped=3, xfailed=1, failed=1, passed=1)
    assert _results(pytester) == [
        ("test_broken", 1, "error", "setup_failed"),
        ("test_exits", 1, "skipped", "no_model_call"),
        ("test_expected", 1, "failed", None),
        ("test_late", 1, "skipped", "no_model_call"),
        ("test_skips", 1, "skipped", "skipped"),
        ("test_unwilling", 1, "skipped", "skipped"),
    ]
    text = result.stdout.str()
    assert "KeyError: 'mine'" in text
    assert "the item that this address was made for has ended" in text


def test_a_gate_forgives_failed_tests_as_it_does_cases(pytester: pytest.Pytester, provider: Provider) -> None:
    _write(pytester.path, _MANY)

    held = _run(pytester, provider, "--helmbench-min-score=0.3", "-q")
    missed = _run(pytester, provider, "--helmbench-min-score=0.99", "-q", "-kwrong or left")

    assert (held.ret, missed.ret) == (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    held.assert_outcomes(passed=5, failed=1)
    scopes = "SELECT scope, status, score FROM evaluation_runs ORDER BY id"
    assert rows(pytester.path / "helmbench.db", scopes) == [
        ("whole", "complete", 0.8),
        ("selected", "complete", 0.5),
    ]


_TALK = """
import openai

def test_talks(helmbench_openai):
    replies = [ask(helmbench_openai, "the same") for _ in range(3)]
    assert replies == ["1", "2", "3"]

def test_differs(helmbench_openai):
    assert ask(helmbench_openai, "another", temperature=0.5) == "nothing like it"
"""


@_every_number
def test_a_replay_without_network_gives_identical_results_in_the_same_order(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    _write(pytester.path, _TALK)
    seen: list[str] = []

    def reply(request: Request) -> str:
        seen.append(request.prompt)
        return str(seen.count(request.prompt))

    provider.reply = reply
    _run(pytester, provider, workers).assert_outcomes(passed=1, failed=1)
    asked = provider.count

    again = _run(
        pytester, None, "--helmbench-cache=only", "--helmbench-base-url=http://127.0.0.1:9/v1", workers
    )

    again.assert_outcomes(passed=1, failed=1)
    assert (asked, provider.count) == (4, 4)
    database = pytester.path / "helmbench.db"
    assert rows(database, _VERDICTS.format(2)) == rows(database, _VERDICTS.format(1))
    assert [call[3] for call in rows(database, _CALLS.format(2))] == [1] * 4
    assert rows(database, "SELECT count(DISTINCT hash) FROM benchmarks") == [(1,)]

    _write(pytester.path, _TALK.replace("the same", "something else"))
    missing = _run(
        pytester, None, "--helmbench-cache=only", "--helmbench-base-url=http://127.0.0.1:9/v1", workers
    )
    missing.assert_outcomes(errors=1, failed=1)
    assert "no reply to this request is on record (--helmbench-cache=only)" in missing.stdout.str()
    assert rows(database, "SELECT count(DISTINCT hash) FROM benchmarks") == [(2,)]


def test_what_the_budget_cannot_pay_is_skipped(pytester: pytest.Pytester, provider: Provider) -> None:
    provider.cost_usd = 1.0
    _write(
        pytester.path,
        """
def test_first(helmbench_openai): assert ask(helmbench_openai, "a", max_tokens=1)
def test_second(helmbench_openai): assert ask(helmbench_openai, "b", max_tokens=1)
""",
    )

    result = _run(pytester, provider, "--helmbench-max-cost=0.5", "-rs")

    result.assert_outcomes(passed=1, skipped=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert _results(pytester) == [("test_first", 1, "passed", None), ("test_second", 1, "skipped", "budget")]
    result.stdout.fnmatch_lines(["SKIPPED [[]1[]] test_own.py:4: budget spent: *"])
    assert provider.count == 1


def test_a_dry_run_skips_them_and_a_model_that_cannot_be_used_skips_its_own(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _write(pytester.path, "def test_one(helmbench_openai): assert ask(helmbench_openai, 'a')\n")
    before = _files(pytester.path)

    for options in (("--helmbench-model=openai/gpt-x",), ("--helmbench-dry-run",)):
        dry = run_pytest(pytester, "-p", "no:cacheprovider", "test_own.py", "-rs", *options)
        dry.assert_outcomes(skipped=1)
        dry.stdout.fnmatch_lines([_NOT_COMPOSED, "SKIPPED [[]1[]] test_own.py:2: dry run"])
        assert _files(pytester.path) == before

    (pytester.path / "models.yml").write_text(f"models:\n  - {{id: test/good, base_url: '{provider.url}'}}\n")
    mixed = _run(pytester, None, "-rs", models=("test/good", "openai/gpt-x"))
    mixed.assert_outcomes(passed=1, skipped=1)
    assert _results(pytester, 2) == [("test_one", 1, "skipped", "no_model")]
    mixed.stdout.fnmatch_lines(
        ["SKIPPED [[]1[]] test_own.py:2: openai/gpt-x cannot be called: *OPENROUTER_API_KEY*"]
    )


def test_the_first_judged_verdict_stands_under_reruns_and_only_an_error_is_replaced(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    provider.answers(when=lambda request: "broken" in request.prompt, times=1, status=500)
    _write(
        pytester.path,
        """
import pathlib
import pytest

@pytest.fixture
def stumbles():
    yield
    assert pathlib.Path("stumbled").exists() or pathlib.Path("stumbled").touch()

def test_wrong(helmbench_openai): assert ask(helmbench_openai, "wrong") == "right"
def test_broken(helmbench_openai): assert ask(helmbench_openai, "broken")
def test_passed(helmbench_openai, stumbles): assert ask(helmbench_openai, "passed")
""",
    )

    result = _run(pytester, provider, "--reruns=2", "--helmbench-max-retries=0", "-rRFs")

    result.assert_outcomes(failed=1, passed=2, skipped=1)
    text = result.stdout.str()
    assert text.count("RERUN test_own.py") == 4
    said = "expected the test passes, observed AssertionError at test_own.py:11"
    assert f"{said}\n  case: test_own.py::test_wrong[test/good]\n" in text
    assert f"\n{_JUDGED_AGAIN}\n" in text.replace("\r", "")
    assert "it was judged before in this session: passed, and its first verdict stands" in text
    assert _results(pytester) == [
        ("test_broken", 1, "passed", None),
        ("test_passed", 1, "passed", None),
        ("test_wrong", 1, "failed", None),
    ]
    assert [request.prompt for request in provider.requests] == ["wrong", "broken", "broken", "passed"]


@_every_number
def test_an_interrupted_session_goes_on_and_no_answered_call_is_made_again(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    _write(
        pytester.path,
        """
def test_one(helmbench_openai): assert ask(helmbench_openai, "one") == "no"

def test_two(helmbench_openai):
    assert ask(helmbench_openai, "two")
    assert ask(helmbench_openai, "hangs")
""",
    )
    provider.answers(when=lambda request: request.prompt == "hangs", times=1, hang=True)

    session = Session(pytester.path, provider.url, workers, paths=["test_own.py"])
    until(lambda: provider.count == 3 and _results(pytester), "a verdict and the call that hangs")
    session.interrupt(everybody=True)

    assert session.end() == pytest.ExitCode.INTERRUPTED
    assert "Error" not in session.text.replace("AssertionError", "").replace("KeyboardInterrupt", "")
    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT status FROM evaluation_runs") == [("interrupted",)]
    assert _results(pytester) == [("test_one", 1, "failed", None)]

    resumed = _run(pytester, provider, "--helmbench-resume", workers)

    resumed.assert_outcomes(failed=1, passed=1)
    resumed.stdout.fnmatch_lines(["went on with run 1: 1 judged cases were on record"])
    assert "has changed" not in resumed.stdout.str()
    assert sorted(request.prompt for request in provider.requests) == ["hangs", "hangs", "one", "two"]
    assert _results(pytester) == [("test_one", 1, "failed", None), ("test_two", 1, "passed", None)]
    # The call that was interrupted may be billed: what it cost is unknown.
    run = "SELECT id, status, cost_usd, known_cost_usd FROM evaluation_runs"
    assert rows(database, run) == [(1, "complete", None, 0.003)]


def test_a_session_that_stops_ends_the_call_that_another_worker_waits_for(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    provider.answers(when=lambda request: request.prompt == "hangs", hang=True)
    _write(
        pytester.path,
        """
import pathlib, time

def test_hangs(helmbench_openai): ask(helmbench_openai, "hangs")

def test_wrong(helmbench_openai):
    ask(helmbench_openai, "wrong")
    assert pathlib.Path("never").exists()
""",
    )

    result = run_undisturbed(pytester, provider.url, "-n2", "--maxfail=1", paths=["test_own.py"])

    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert result.parseoutcomes()["failed"] == 1
    assert _results(pytester) == [("test_wrong", 1, "failed", None)]


def test_a_test_whose_worker_dies_runs_once_more_with_the_replies_it_had(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _write(
        pytester.path,
        """
import os, pathlib

def test_dies(helmbench_openai):
    assert ask(helmbench_openai, "paid")
    died = pathlib.Path("died")
    if not died.exists():
        died.touch()
        os._exit(1)

def test_lives(helmbench_openai): assert ask(helmbench_openai, "lives")
""",
    )

    result = _run(pytester, provider, "-n2")

    assert _results(pytester) == [("test_dies", 1, "passed", None), ("test_lives", 1, "passed", None)]
    assert sorted(request.prompt for request in provider.requests) == ["lives", "paid"]
    assert "2 passed" in result.stdout.str()


def test_what_cannot_be_planned_or_has_no_client_says_what_to_do(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    (pytester.path / "conftest.py").write_text("import sys\nsys.modules['openai'] = None\n")
    _write(
        pytester.path,
        """
import pytest, unittest

def test_late(request): request.getfixturevalue("helmbench_openai")
def test_client(helmbench_openai): pass
def test_id(helmbench_model): assert helmbench_model == "test/good"

@pytest.mark.usefixtures("helmbench_model")
class TestOld(unittest.TestCase):
    def test_old(self): pass
""",
    )

    result = _run(pytester, provider)

    result.assert_outcomes(errors=2, failed=1, passed=1)
    text = result.stdout.str()
    assert text.count(_NOTHING_NAMED) == 2
    assert "ModuleNotFoundError: import of openai halted" in text
    assert _results(pytester) == [
        ("test_client", 1, "error", "setup_failed"),
        ("test_id", 1, "skipped", "no_model_call"),
    ]

    checked = _run(pytester, None, "--helmbench-self-check", "-rs", "-kclient")
    checked.assert_outcomes(skipped=1)
    assert "--helmbench-self-check asks no model" in checked.stdout.str()


def test_tests_and_cases_of_a_benchmark_in_the_same_folder_are_two_runs(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    folder = pytester.mkdir("twice")
    write_tree(folder, {"P1-B1-S1": category("RISK", "CALM")})
    _write(folder, "def test_one(helmbench_openai): assert ask(helmbench_openai, 'a')\n")

    result = _run(pytester, provider, "twice", "-c", "twice/pytest.ini")

    result.assert_outcomes(passed=2, failed=1)
    runs = "SELECT kind, total_tests, status FROM evaluation_runs JOIN benchmarks ON benchmarks.id = benchmark_id"
    assert rows(folder / "helmbench.db", runs) == [
        ("scenario_tree", 2, "complete"),
        ("python_tests", 1, "complete"),
    ]
    result.stdout.fnmatch_lines(["test/good on twice (twice) *2/2", "test/good on twice ([*].py) *1/1"])

    rescored = run_command(pytester, "rescore", "2", "--db=twice/helmbench.db")
    rescored.stderr.fnmatch_lines(
        ["*run 2 cannot be judged anew: hand-written tests alone can judge their replies*"]
    )
