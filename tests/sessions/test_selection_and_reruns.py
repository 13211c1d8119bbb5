"""pytest's own ways to choose and repeat work on cases as on any test."""

from __future__ import annotations

import pytest
from provider import Provider, Request
from trees import Part, category, collected, rows, run_tree, write_tree


def _asked(provider: Provider) -> list[int]:
    """Return the numbers of the messages that were sent, and forget the requests."""
    numbers = sorted(int(request.prompt.split("Message ")[1].split(".")[0]) for request in provider.requests)
    provider.requests.clear()
    return numbers


@pytest.mark.parametrize(
    ("pattern", "codes"),
    [
        ("P1-B1", ["P1-B1-S1-C1-PT1", "P1-B1-S1-C1-PT2", "P1-B1-S1-C2-PT1", "P1-B1-S1-C2-PT2"]),
        ("P1-B1-S1-C1-PT2,P1-B10", ["P1-B1-S1-C1-PT2", "P1-B10-S1-C1-U1-PT1", "P1-B10-S1-C1-U2-PT1"]),
        ("*-*-S1-C2", ["P1-B1-S1-C2-PT1", "P1-B1-S1-C2-PT2"]),
        ("*-*-*-*-U2", ["P1-B10-S1-C1-U2-PT1"]),
        ("P1-B10-S1-C1-PT1", ["P1-B10-S1-C1-U1-PT1", "P1-B10-S1-C1-U2-PT1"]),
        ("P1,~P1-B1", ["P1-B10-S1-C1-U1-PT1", "P1-B10-S1-C1-U2-PT1"]),
    ],
)
def test_select_matches_whole_components(pytester: pytest.Pytester, pattern: str, codes: list[str]) -> None:
    conditions = {code: Part("## Tone\n\nBe calm.") for code in ("C1", "C2")}
    contexts = {code: Part("## Who\n\nA friend.") for code in ("U1", "U2")}
    trees = {
        "P1-B1-S1": category("RISK", "RISK", conditions=conditions),
        "P1-B10-S1": category("RISK", user_contexts=contexts),
        "P2-B1-S2": category("RISK"),
    }
    write_tree(pytester.path / "benchmark", trees)

    result = run_tree(pytester, f"--helmbench-select={pattern}", "--collect-only", "-q")

    assert collected(result) == [f"{code}[no-model]" for code in codes]


def test_deselected_cases_are_never_asked_and_the_run_says_selected(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM", "RISK")})
    narrowed = (
        ["-k", "PT2 or PT3"],
        ["-m", "helmbench(perturbation='PT3')"],
        ["--helmbench-select=P1-B1-S1-C1-PT1"],
        ["benchmark/scenarios/P1-B1-S1/S1.md::P1-B1-S1-C1-PT2[test/good]"],
    )
    for options in narrowed:
        run_tree(pytester, *options, url=provider.url)

    assert _asked(provider) == [1, 2, 2, 3, 3]
    assert rows(pytester.path / "helmbench.db", "SELECT scope, total_tests, status FROM evaluation_runs") == [
        ("selected", 2, "complete"),
        ("selected", 1, "complete"),
        ("selected", 1, "complete"),
        ("selected", 1, "complete"),
    ]


def test_a_benchmark_that_is_named_inside_of_another_is_run_whole(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM")})
    (pytester.path / "benchmark" / "README.md").write_text(
        "# A file beside which pytest finds the other benchmark\n"
    )
    write_tree(pytester.path / "benchmark" / "inner", {"P1-B1-S1": category("RISK")})

    run_tree(pytester, "benchmark/inner", url=provider.url)

    found = rows(pytester.path / "helmbench.db", "SELECT scope, total_tests FROM evaluation_runs")
    assert found == [("whole", 1)]


def test_last_failed_failed_first_and_stepwise_know_the_cases(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    trees = {"P1-B1-S1": category("RISK", "CALM", "RISK"), "P1-B1-S2": category("RISK")}
    write_tree(pytester.path / "benchmark", trees)

    run_tree(pytester, url=provider.url).assert_outcomes(failed=1, passed=3)
    provider.reset()

    result = run_tree(pytester, "--lf", url=provider.url)
    result.assert_outcomes(failed=1)
    assert _asked(provider) == [2]
    result.stdout.fnmatch_lines(["run-last-failure: rerun previous 1 failure*"])

    result = run_tree(pytester, "--ff", "--tb=no", "-rA", url=provider.url)
    result.assert_outcomes(failed=1, passed=3)
    first = next(line for line in result.outlines if line.startswith("benchmark/scenarios/P1-B1-S1/S1.md "))
    assert first.split()[1].startswith("F")

    result = run_tree(pytester, "--sw", url=provider.url)
    result.assert_outcomes(failed=1, passed=1)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result = run_tree(pytester, "--sw", url=provider.url)
    result.assert_outcomes(failed=1, deselected=1)
    scopes = rows(pytester.path / "helmbench.db", "SELECT scope FROM evaluation_runs")
    assert [scope for (scope,) in scopes] == ["whole", "by_outcome", "whole", "whole", "by_outcome"]


@pytest.mark.parametrize("mode", ["-n2"])
def test_reruns_ask_again_after_an_error_and_never_after_a_verdict(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("CALM", "RISK", "RISK")})
    provider.answers(times=1, status=400, when=lambda request: "Message 2." in request.prompt)

    result = run_tree(pytester, mode, "--reruns=2", url=provider.url)

    result.assert_outcomes(passed=2, failed=1)
    assert result.parseoutcomes()["rerun"] == 3
    assert _asked(provider) == [1, 2, 2, 3]
    notes = [line for line in result.outlines if "a judged case was run again" in line]
    assert len(notes) == 1
    assert "use --helmbench-repeat" in notes[0]
    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT code, outcome FROM results ORDER BY code") == [
        ("P1-B1-S1-C1-PT1", "failed"),
        ("P1-B1-S1-C1-PT2", "passed"),
        ("P1-B1-S1-C1-PT3", "passed"),
    ]
    assert rows(database, "SELECT status, passed_tests, failed_tests, error_tests FROM evaluation_runs") == [
        ("complete", 2, 1, 0)
    ]


@pytest.mark.parametrize("mode", ["-n2"])
def test_repetitions_ask_as_often_and_are_stored_apart(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    seen: list[str] = []

    def reply(request: Request) -> str:
        seen.append(request.prompt)
        return '{"response": "", "category": "%s"}' % ("CALM" if len(seen) == 2 else "RISK")

    provider.reply = reply
    result = run_tree(
        pytester, mode, "--helmbench-repeat=3", "--helmbench-concurrency=1", "-rA", url=provider.url
    )

    result.assert_outcomes(passed=2, failed=1)
    assert rows(
        pytester.path / "helmbench.db", "SELECT repetition, node_id FROM results ORDER BY repetition"
    ) == [
        (1, "benchmark/scenarios/P1-B1-S1/S1.md::P1-B1-S1-C1-PT1[test/good]"),
        (2, "benchmark/scenarios/P1-B1-S1/S1.md::P1-B1-S1-C1-PT1[test/good-r2]"),
        (3, "benchmark/scenarios/P1-B1-S1/S1.md::P1-B1-S1-C1-PT1[test/good-r3]"),
    ]


def test_skip_and_xfail_marks_of_a_conftest_are_obeyed_and_cost_no_call(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM", "RISK")})
    pytester.makeconftest(
        """
        import pytest

        def pytest_collection_modifyitems(items):
            items[0].add_marker(pytest.mark.skip(reason="not today"))
            items[1].add_marker(pytest.mark.xfail(reason="known"))
        """
    )

    result = run_tree(pytester, "-rs", url=provider.url)

    result.assert_outcomes(skipped=1, xfailed=1, passed=1)
    assert _asked(provider) == [2, 3]


def test_the_last_line_says_which_cases_were_chosen(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM", "RISK", "CALM")})

    def last(*arguments: str) -> str:
        return run_tree(pytester, *arguments, url=provider.url).stdout.lines[-1]

    assert not last().endswith("cases")
    for chosen in (("--helmbench-select=*-*-*-*-PT1,*-*-*-*-PT2",), ("-k", "PT1 or PT2")):
        assert " % of the 2 selected cases (" in last(*chosen)
    last()
    assert last("--lf") == "test/good: 0 of the 2 cases that failed last passed"
    assert last("--lf", "-k", "PT2").endswith(" of the 1 case that failed last passed")
