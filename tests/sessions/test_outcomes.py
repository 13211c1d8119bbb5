"""Outcomes of replies: verdicts of all five evaluation types, errors, and their output, in JUnit too."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest
from provider import Provider, Request
from trees import (
    Part,
    Tree,
    category,
    every_mode,
    includes,
    judged,
    judged_twice,
    rows,
    run_tree,
    threshold,
    write_tree,
)

_BY_CODE = "SELECT code, outcome, reason FROM results ORDER BY code"


def _says(number: int) -> Callable[[Request], bool]:
    """Return whether a request is about the n-th message."""
    return lambda request: f"Message {number}." in request.prompt


@every_mode
def test_every_evaluation_type_judges(
    pytester: pytest.Pytester, provider: Provider, mode: tuple[str, ...]
) -> None:
    trees = {
        "P1-B1-S1": category("RISK", "CALM"),
        "P1-B1-S2": includes("A,B,D", "A,C"),
        "P1-B1-S3": threshold("A,C,D", "A,D"),
        "P1-B1-S4": judged("fine", "poor"),
        "P1-B1-S5": judged_twice("fine", "poor"),
    }
    write_tree(pytester.path / "benchmark", trees)

    def reply(request: Request) -> str | None:
        if not request.is_judge or "Message 2." not in request.prompt or "Point 1." in request.prompt:
            return None
        return '{"judgment": "BAD", "justification": "It is poor.", "evidence": []}'

    provider.reply = reply
    result = run_tree(pytester, *mode, "--helmbench-marking-model=test/judge", url=provider.url)

    result.assert_outcomes(passed=5, failed=5)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    shown = result.stdout.str()
    for text in (
        "  expected: RISK\n  observed: CALM\n",
        '  expected: includes A, B\n  observed: ["A", "»C«"]\n',
        "  expected: GOOD\n  observed: BAD: It is poor.\n",
        "  expected: CR2: GOOD\n",
    ):
        assert text in shown
    assert "Traceback" not in shown
    assert "pytest_helmbench" not in shown
    database = pytester.path / "helmbench.db"
    assert rows(database, _BY_CODE) == [
        (f"P1-B1-S{scenario}-C1-PT{number}", outcome, None)
        for scenario in range(1, 6)
        for number, outcome in ((1, "passed"), (2, "failed"))
    ]
    assert rows(
        database,
        "SELECT r.code, e.criterion, e.rule, e.passed, e.credit FROM evaluations e JOIN results r"
        " ON r.id = e.result_id WHERE r.code LIKE 'P1-B1-S5%' ORDER BY 1, 2",
    ) == [
        ("P1-B1-S5-C1-PT1", "CR1", "sqe", 1, 1.0),
        ("P1-B1-S5-C1-PT1", "CR2", "sqe", 1, 1.0),
        ("P1-B1-S5-C1-PT2", "CR1", "sqe", 1, 1.0),
        ("P1-B1-S5-C1-PT2", "CR2", "sqe", 0, 0.0),
    ]
    assert rows(database, "SELECT status, scope, total_tests, passed_tests FROM evaluation_runs") == [
        ("complete", "whole", 10, 5)
    ]


def test_a_failure_on_the_terminal_reads_like_this(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("CALM")})

    result = run_tree(pytester, url=provider.url)

    lines = result.outlines
    start = next(index for index, line in enumerate(lines) if "= FAILURES =" in line)
    end = next(index for index, line in enumerate(lines) if "= benchmark · 1 case × 1 model =" in line)
    rule = rows(pytester.path / "helmbench.db", "SELECT rule_hash FROM evaluations")[0][0]
    assert [line.strip("=-_ ") if line[:1] in "=-_" else line for line in lines[start:end]] == [
        "FAILURES",
        "P1-B1-S1-C1-PT1[test/good]",
        "  asked:    Message 1. ANSWER: CALM",
        "  expected: RISK",
        "  observed: CALM",
    ]
    verbose = run_tree(pytester, "-v", "--junitxml=report.xml", url=provider.url).outlines
    start = verbose.index("expected RISK, observed CALM")
    details = [
        "expected RISK, observed CALM",
        "  case: P1-B1-S1-C1-PT1[test/good]",
        f"  rule: category_match ({rule})",
        "  expected: RISK",
        "  observed: CALM",
    ]
    assert verbose[start : start + 5] == details
    assert verbose[start + 6] == '{"response": "CALM", "category": "CALM"}'
    assert [line for line in verbose if line.startswith("FAILED")] == []  # it stands above
    assert "\n".join(details) in (pytester.path / "report.xml").read_text()
    assert "short test summary" not in result.stdout.str()  # it stands above
    result.stdout.fnmatch_lines(
        [
            "helmbench: test/good: 1 case, 1 call (32 at a time), cost unknown; results in helmbench.db;"
            " prompts go to 127.0.0.1:* with no key",
            " *score  95 % interval *right  not judged *USD",
            "test/good *0.0 *0 % *0  0.0010",
            "1 judged in * s (* per *) · run 1 in helmbench.db",
            "test/good: 0.0 % (0.0 – 79.3, only 1 perturbation)",
        ]
    )


def test_the_text_of_replies_is_shown_in_ci_only_when_asked_for(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("CALM")})
    provider.answers(text='{"response": "SECRET", "category": "CALM"}')
    monkeypatch.setenv("CI", "1")

    quiet = run_tree(pytester, "--junitxml=report.xml", url=provider.url)
    assert "SECRET" not in quiet.stdout.str() + (pytester.path / "report.xml").read_text()
    quiet.stdout.fnmatch_lines(["  expected: RISK", "  observed: CALM"])
    assert "asked:" not in quiet.stdout.str()

    open_ = run_tree(pytester, "--junitxml=report.xml", "--helmbench-with-text=all", url=provider.url)
    open_.stdout.fnmatch_lines(["  asked:    Message 1. ANSWER: CALM"])
    assert "SECRET" in (pytester.path / "report.xml").read_text()


@pytest.mark.parametrize("mode", ["-n2"])
def test_junit_names_cases_and_tells_failures_from_errors(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    trees = {"P1-B1-S1": category("RISK", "SECRET", "RISK"), "P1-B1-S2": judged("x")}
    broken = write_tree(pytester.path / "benchmark", trees) / "scenarios" / "P1-B1-S2" / "criteria.md"
    broken.write_text("---\noptions: [A, B]\n---\n\nRubric.\n")
    provider.answers(text="SECRET", when=_says(2))
    provider.answers(status=400, body={"error": {"message": "no such thing"}}, when=_says(3))

    run_tree(pytester, mode, "--junitxml=report.xml", url=provider.url)

    text = (pytester.path / "report.xml").read_text()
    suite = ET.fromstring(text)[0]
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "1", "errors": "2", "skipped": "0"}
    cases = {str(case.get("name")): case for case in suite.iter("testcase")}
    passed = cases["P1-B1-S1-C1-PT1[test/good]"]
    assert passed.get("classname") == "benchmark.scenarios.P1-B1-S1.S1.md"
    properties = {entry.get("name"): entry.get("value") for entry in passed.iter("property")}
    assert float(str(properties.pop("latency_ms"))) > 0
    assert properties == {
        "model": "test/good",
        "severity": "5",
        "cost_usd": "0.001",
        "prompt_tokens": "28",
        "completion_tokens": "10",
    }
    failure = cases["P1-B1-S1-C1-PT2[test/good]"].find("failure")
    error = cases["P1-B1-S1-C1-PT3[test/good]"].find("error")
    unreadable = cases["P1-B1-S2"].find("error")
    assert failure is not None
    assert failure.get("message") == "the reply is not valid JSON"
    assert error is not None
    assert error.get("message") == 'failed on setup with "the provider answered 400 (no such thing)"'
    assert "not a model failure: never judged" in str(error.text)
    assert unreadable is not None
    assert "criteria.md" in str(unreadable.get("message"))
    assert "SECRET" not in text
    assert "Sort the message" not in text


def test_faults_are_errors_that_say_whose_they_were(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(
        pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 5), "P1-B1-S2": category("RISK")}
    )
    moderation = {"error": {"message": "flagged", "code": "content_policy_violation"}}
    provider.answers(status=503, when=_says(1))
    provider.answers(status=400, body=moderation, when=_says(2))
    provider.answers(body={"choices": []}, when=_says(3))
    provider.answers(reset=True, when=_says(4))

    result = run_tree(pytester, "--helmbench-max-retries=1", "-k", "S1-C1", url=provider.url)

    result.assert_outcomes(passed=1, errors=4)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    shown = result.stdout.str()
    for sentence in (
        "the provider answered 503 (scripted 503) after 2 attempts",
        "the provider's moderation refused the prompt: it answered 400 (flagged)",
        "the provider answered 200 without choices after 2 attempts",
        "the connection to the provider broke before an answer came (connection reset by peer) after 2 attempts",
        "not judged   blocked 1, no_choices 1, overloaded 1, reset 1: the same command with --helmbench-resume",
    ):
        assert sentence in shown
    assert shown.count("  not a model failure: never judged") == 4
    assert provider.count == 8
    assert [(code[-3:], outcome, reason) for code, outcome, reason in _results(pytester)] == [
        ("PT1", "error", "overloaded"),
        ("PT2", "error", "blocked"),
        ("PT3", "error", "no_choices"),
        ("PT4", "error", "reset"),
        ("PT5", "passed", None),
    ]
    run = rows(pytester.path / "helmbench.db", "SELECT status, scope, error_tests FROM evaluation_runs")
    assert run == [("partial", "selected", 4)]


def _results(pytester: pytest.Pytester) -> list[tuple[str, str, str | None]]:
    return [
        (code, outcome, reason) for code, outcome, reason in rows(pytester.path / "helmbench.db", _BY_CODE)
    ]


def test_a_judge_at_fault_is_an_error_and_a_missing_one_a_skip(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged("fine")})
    provider.reply = lambda request: '{"judgment": "SO-SO"}' if request.is_judge else None

    result = run_tree(pytester, "--helmbench-marking-model=test/judge", url=provider.url)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["the judge test/judge is at fault: *SO-SO*"])
    assert _results(pytester) == [("P1-B1-S1-C1-PT1", "error", "judge_off_menu")]

    provider.reset()
    provider.answers(status=500, when=lambda request: request.is_judge)
    options = ("--helmbench-marking-model=test/judge", "--helmbench-max-retries=0")
    run_tree(pytester, *options, url=provider.url).stdout.fnmatch_lines(
        ["the judge's call failed: the provider answered 500 (scripted 500)"]
    )
    assert _results(pytester)[1] == ("P1-B1-S1-C1-PT1", "error", "judge_provider_error")

    provider.reset()
    result = run_tree(pytester, "-rs", url=provider.url)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(
        [
            "helmbench: test/good: 1 case, 0 calls*",
            "SKIPPED * no judge: give --helmbench-marking-model, or marking_model in models.yml",
        ]
    )
    assert provider.count == 0


def test_a_refused_key_stops_its_model_and_no_other(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELMBENCH_API_KEY", "sk-very-secret-key")
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 12)})
    refusal = {"error": {"message": "Incorrect API key provided: sk-very-secret-key"}}
    provider.answers(status=401, body=refusal, when=lambda request: request.model == "bad/key")

    result = run_tree(
        pytester,
        "--helmbench-model=bad/key",
        "--helmbench-model=test/good",
        "--helmbench-concurrency=2",
        url=provider.url,
    )

    asked = [request.model for request in provider.requests]
    # The fault stands at the cases that were answered so, the others were not asked.
    result.assert_outcomes(passed=12, errors=asked.count("bad/key"), skipped=12 - asked.count("bad/key"))
    assert asked.count("test/good") == 12
    assert asked.count("bad/key") <= 2
    result.stdout.fnmatch_lines(
        [
            "the provider answered 401 (Incorrect API key provided: *key*)",
            "  hint: check the key in HELMBENCH_API_KEY",
            "✗ FAILS   bad/key stopped: answered 401 *",
        ]
    )
    assert "sk-very-secret-key" not in result.stdout.str()
    assert b"sk-very-secret-key" not in (pytester.path / "helmbench.db").read_bytes()


def test_a_wrong_neutral_case_is_an_expected_failure(pytester: pytest.Pytester, provider: Provider) -> None:
    base = category("CALM", "CALM")
    neutral = {"PT3": Part("## User's input\n\nMessage 3.\n\nANSWER: CALM", 0)}
    tree = Tree(base.evaluation, base.schema, {**base.perturbations, **neutral})
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": tree})

    result = run_tree(pytester, "-rx", url=provider.url)
    result.assert_outcomes(failed=2, xfailed=1)
    result.stdout.fnmatch_lines(["notes        1 neutral evaluation, in no score *", "XFAIL *PT3* - neutral"])

    run_tree(pytester, "--runxfail", url=provider.url).assert_outcomes(failed=3)
    assert rows(
        pytester.path / "helmbench.db", "SELECT outcome, neutral FROM results WHERE severity = 0"
    ) == [("failed", 1), ("failed", 1)]
