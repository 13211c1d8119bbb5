"""Outcomes of hand-written tests that ask a model: passed, failed, an error, skipped, judged once."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from own_tests import every_number, results_of_own_tests, run_own_tests, write_own_tests
from provider import Provider

_JUDGED_AGAIN = (
    "a judged test was run again: its first verdict stands, its code did not run"
    " (asking until it passes would bias the score; use --helmbench-repeat)"
)
_NEVER_JUDGED = "not a model failure: never judged"


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

def test_caught_after_a_reply(helmbench_openai):
    assert ask(helmbench_openai, "answered")
    with pytest.raises(openai.InternalServerError, match="scripted 500"):
        ask(helmbench_openai, "in body")

def test_refused(helmbench_openai):
    ask(helmbench_openai, "in body", n=2)

@pytest.mark.xfail(strict=True)
def test_expected(helmbench_openai):
    ask(helmbench_openai, "in body")
"""


@every_number
def test_what_the_provider_or_the_test_has_broken_is_an_error_and_never_a_failed_test(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    write_own_tests(pytester.path, _FAULTY)
    provider.answers(status=500, when=lambda request: request.prompt != "answered")
    options = ("--helmbench-max-retries=0", "--junitxml=report.xml", "--helmbench-min-score=0.1")

    result = run_own_tests(pytester, provider, *options, workers)

    result.assert_outcomes(errors=5, passed=1, xfailed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert results_of_own_tests(pytester) == [
        ("test_assertion", 1, "error", "provider_error"),
        ("test_body", 1, "error", "provider_error"),
        ("test_caught", 1, "error", "provider_error"),
        ("test_caught_after_a_reply", 1, "passed", None),
        ("test_expected", 1, "error", "provider_error"),
        ("test_refused", 1, "error", "refused_request"),
        ("test_setup", 1, "error", "provider_error"),
    ]
    text = result.stdout.str()
    assert text.count(_NEVER_JUDGED) == 5
    assert "n: one choice per request is answered here; ask again for another" in text
    assert provider.count == 7
    tree = ET.parse(pytester.path / "report.xml").getroot()
    assert (len(list(tree.iter("error"))), len(list(tree.iter("failure")))) == (5, 1)  # the gate
    result.stdout.fnmatch_lines(["✗ FAILS   *: 6 of 7 cases not judged"])


def test_each_way_to_end_has_its_outcome(pytester: pytest.Pytester, provider: Provider) -> None:
    write_own_tests(
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

    result = run_own_tests(pytester, provider, "-rsE")

    result.assert_outcomes(errors=1, skipped=3, xfailed=1, failed=1, passed=1)
    assert results_of_own_tests(pytester) == [
        ("test_broken", 1, "error", "setup_failed"),
        ("test_exits", 1, "skipped", "no_model_call"),
        ("test_expected", 1, "failed", None),
        ("test_late", 1, "passed", None),
        ("test_skips", 1, "skipped", "skipped"),
        ("test_unwilling", 1, "skipped", "skipped"),
    ]
    text = result.stdout.str()
    assert "KeyError: 'mine'" in text


def test_the_first_judged_verdict_stands_under_reruns_and_only_an_error_is_replaced(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    provider.answers(when=lambda request: "broken" in request.prompt, times=1, status=500)
    write_own_tests(
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

    result = run_own_tests(pytester, provider, "--reruns=2", "--helmbench-max-retries=0", "-rRFs")

    result.assert_outcomes(failed=2, passed=2)
    text = result.stdout.str()
    assert text.count("RERUN test_own.py") == 5
    said = "expected the test passes, observed AssertionError at test_own.py:11"
    assert f"{said}\n  case: test_own.py::test_wrong[test/good]\n" in text
    assert f"\n{_JUDGED_AGAIN}\n" in text.replace("\r", "")
    assert results_of_own_tests(pytester) == [
        ("test_broken", 1, "passed", None),
        ("test_passed", 1, "failed", None),
        ("test_wrong", 1, "failed", None),
    ]
    assert [request.prompt for request in provider.requests] == ["wrong", "broken", "broken", "passed"]


_SOFT = """
import pytest

@pytest.fixture
def asserts_afterwards(helmbench_openai):
    yield
    assert False

@pytest.fixture
def crashes_afterwards(helmbench_openai):
    yield
    raise OSError("no space")

def test_subtest(helmbench_openai, subtests):
    for word in "abc":
        with subtests.test(word):
            assert ask(helmbench_openai, word) == "b"
def test_faulty_subtest(helmbench_openai, subtests):
    with subtests.test():
        ask(helmbench_openai, "broken")
def test_fixture(helmbench_openai, asserts_afterwards): ask(helmbench_openai, "x")
def test_crash(helmbench_openai, crashes_afterwards): ask(helmbench_openai, "y")
def test_hook(helmbench_openai): ask(helmbench_openai, "z")
@pytest.mark.xfail(strict=True)
def test_unexpected(helmbench_openai): ask(helmbench_openai, "u")
def test_passed(helmbench_openai, subtests):
    with subtests.test():
        assert ask(helmbench_openai, "p")
"""
_FAILING_HOOK = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call" and "test_hook" in item.name:
        report.outcome, report.longrepr = "failed", "soft assertions failed"
    return report
"""


@every_number
@pytest.mark.parametrize("options", [(), ("--reruns=1",), ("--helmbench-min-score=0.01",)], ids=str)
def test_the_verdict_is_that_of_the_last_report_of_all_phases(
    pytester: pytest.Pytester, provider: Provider, workers: str, options: tuple[str, ...]
) -> None:
    provider.answers(when=lambda request: "broken" in request.prompt, status=500)
    write_own_tests(pytester.path, _SOFT)
    (pytester.path / "conftest.py").write_text(_FAILING_HOOK)

    result = run_own_tests(pytester, provider, workers, "--helmbench-max-retries=0", "-rA", *options)

    assert results_of_own_tests(pytester) == [
        ("test_crash", 1, "error", "teardown_failed"),
        ("test_faulty_subtest", 1, "error", "provider_error"),
        ("test_fixture", 1, "failed", None),
        ("test_hook", 1, "failed", None),
        ("test_passed", 1, "passed", None),
        ("test_subtest", 1, "failed", None),
        ("test_unexpected", 1, "failed", None),
    ]
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "skipped" not in result.parseoutcomes()
    assert "INTERNALERROR" not in result.stdout.str()


@every_number
def test_a_failed_subtest_is_judged_and_fails_no_session_whose_gate_holds(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    write_own_tests(pytester.path, _SOFT)
    chosen = ("-ktest_subtest or test_passed", "--helmbench-min-score=0.4")
    result = run_own_tests(pytester, provider, workers, *chosen)
    assert results_of_own_tests(pytester) == [
        ("test_passed", 1, "passed", None),
        ("test_subtest", 1, "failed", None),
    ]
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("how", ["auto", "short", "line", "native", "no"])
def test_failures_are_shown_as_pytest_shows_them_whatever_their_number(
    pytester: pytest.Pytester, provider: Provider, how: str
) -> None:
    tests = "".join(
        f"def test_{number}(helmbench_openai):\n    assert ask(helmbench_openai, 'hi') == 'no {number}'\n"
        for number in range(12)
    )
    write_own_tests(pytester.path, tests)

    result = run_own_tests(pytester, provider, "-q", "-ra", f"--tb={how}")

    result.assert_outcomes(failed=12)
    text = result.stdout.str()
    for number in range(12):
        assert re.search(rf"^FAILED test_own\.py::test_{number}\[test/good\] - ", text, re.MULTILINE)
        assert how == "no" or len(re.findall(rf"[Aa]ssert.* == 'no {number}'", text)) >= 2
    assert "more failed cases" not in text
