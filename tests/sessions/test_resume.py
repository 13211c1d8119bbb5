"""Going on with a session that did not finish: what runs again, what stands, and what is refused."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from commands import run_command
from provider import Answer, Provider, Request
from records import final_state
from sessions import Session, until
from trees import (
    MODEL,
    Part,
    category,
    every_mode,
    judged,
    judged_twice,
    rows,
    run_tree,
    threshold,
    write_tree,
)

from pytest_helmbench.run.resume import Continued, ResumeError, find_resumption
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey

_JUDGE = "--helmbench-marking-model=test/judge"
_RESUME = "--helmbench-resume"
_workers = pytest.mark.parametrize("workers", ["-n0", "-n2"])


def _about(number: int, *, judge: bool = False) -> Callable[[Request], bool]:
    """Return whether a request is about the n-th message."""
    return lambda request: f"Message {number}." in request.prompt and request.is_judge == judge


def _asked(provider: Provider) -> list[str]:
    """Return what was asked: `2` for the second message, `2 judge` for its judge."""
    return [
        f"{found[1]}{' judge' if request.is_judge else ''}"
        for request in provider.requests
        if (found := re.search(r"Message (\d+)\.", request.prompt)) is not None
    ]


def _results(database: Path) -> dict[int, tuple[str, str | None]]:
    """Return outcome and reason by number of the message."""
    found = rows(database, "SELECT code, outcome, reason FROM results")
    return {int(code.rpartition("PT")[2]): (outcome, reason) for code, outcome, reason in found}


@every_mode
def test_errors_and_skips_run_again_and_judged_cases_stand(
    pytester: pytest.Pytester, provider: Provider, mode: tuple[str, ...]
) -> None:
    root = write_tree(
        pytester.path / "benchmark",
        {"P1-B1-S1": category("RISK", "CALM", "not json", "RISK"), "P1-B1-S2": judged("fine")},
    )
    provider.reply = lambda request: Answer(text="no JSON at all") if _about(3)(request) else None
    provider.answers(times=1, status=400, when=_about(4))
    # Without a judge, the fifth case is skipped.
    first = run_tree(pytester, *mode, "-rA", url=provider.url)
    first.assert_outcomes(passed=1, failed=2, errors=1, skipped=1)
    database = pytester.path / "helmbench.db"
    before = rows(database, "SELECT code, id FROM results ORDER BY code")
    times = "SELECT code, started_at FROM results WHERE outcome IN ('passed', 'failed') AND family = 'category_match'"
    judged_at = set(rows(database, times))
    assert rows(database, "SELECT status FROM evaluation_runs") == [("partial",)]

    provider.requests.clear()
    (root / "scenarios" / "P1-B1-S2").rename(pytester.path / "away")
    second = run_tree(pytester, *mode, "-rA", _RESUME, url=provider.url)
    second.assert_outcomes(passed=2, failed=2)
    assert _asked(provider) == ["4"]
    assert rows(database, "SELECT code, id FROM results ORDER BY code") == before
    assert judged_at <= set(rows(database, times))
    assert rows(database, "SELECT count(*), min(status), min(error_tests) FROM evaluation_runs") == [
        (1, "partial", 0)
    ]
    # Judged cases are shown in the same words.
    for result in (first, second):
        shown = result.stdout.str()
        assert "  expected: RISK\n  observed: CALM\n" in shown
        assert "  observed: (no readable JSON): " in shown
        assert "no JSON at all" in shown
    # Only what is left is announced, with its price.
    second.stdout.fnmatch_lines(["helmbench: test/good: 4 cases, 1 call (32 at a time), *"])
    # The table has the whole run, the last line of the summary what was done now.
    second.stdout.fnmatch_lines(
        [
            "test/good * 50.0 % *1  0.0040",
            "notes        *went on with run 1: 3 judged cases were stored*",
            "1 judged in * s *",
        ]
    )


@_workers
def test_a_reply_whose_judge_was_in_flight_is_not_asked_for_again(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged_twice("fine", "fine", "fine")})
    undisturbed = run_tree(pytester, workers, _JUDGE, "--helmbench-db=other.db", url=provider.url)
    undisturbed.assert_outcomes(passed=3)
    provider.requests.clear()
    # For the second message one judge answers, the other hangs.
    provider.answers(
        hang=True, when=lambda request: _about(2, judge=True)(request) and "Point 2." in request.prompt
    )
    session = Session(pytester.path, provider.url, workers, _JUDGE)
    database = pytester.path / "helmbench.db"
    until(lambda: database.exists() and _answered(database) == 3 + 5, "all others are answered")
    until(lambda: provider.in_flight == 1, "one call is out")
    until(lambda: _results(database).keys() >= {1, 3}, "the verdicts of the others are stored")
    session.kill_all()
    assert _results(database).keys() == {1, 3}

    provider.reset()
    result = run_tree(pytester, workers, _JUDGE, _RESUME, url=provider.url)
    result.assert_outcomes(passed=3)
    assert _asked(provider) == ["2 judge"]
    assert "Point 2." in provider.requests[0].prompt
    assert final_state(database) == final_state(pytester.path / "other.db")
    taken = "SELECT purpose, attempt, cost_usd FROM calls WHERE from_cache = 1 ORDER BY purpose"
    assert rows(database, taken) == [("case", 0, 0.0), ("judge", 0, 0.0)]


def _answered(database: Path) -> int:
    tables = rows(database, "SELECT count(*) FROM sqlite_master WHERE name = 'calls'")
    return int(rows(database, "SELECT count(response_id) FROM calls")[0][0]) if tables == [(1,)] else 0


@_workers
def test_a_changed_prompt_rule_or_severity_runs_again_and_is_named(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    tree = category("RISK", "RISK", "CALM")
    root = write_tree(
        pytester.path / "benchmark",
        {"P1-B1-S1": tree, "P1-B1-S2": threshold("A,B,C,D", "A"), "P1-B1-S3": category("RISK", "RISK")},
    )
    provider.answers(times=1, status=400, when=lambda request: "Message 3." in request.prompt)
    run_tree(pytester, workers, url=provider.url).assert_outcomes(passed=5, failed=1, errors=1)
    provider.requests.clear()

    parts = dict(tree.perturbations)
    parts["PT2"] = Part("## User's input\n\nMessage 2, reworded.\n\nANSWER: CALM", 5)
    write_tree(root, {"P1-B1-S1": replace(tree, perturbations=parts)})
    scenario = root / "scenarios" / "P1-B1-S2" / "S2.md"
    scenario.write_text(scenario.read_text().replace("max_incorrect: 1", "max_incorrect: 0"))
    weights = root / "scenarios" / "P1-B1-S3" / "perturbations.md"
    weights.write_text(weights.read_text().replace("severity: 5", "severity: 7", 1))

    result = run_tree(pytester, workers, _RESUME, "-v", url=provider.url)
    result.assert_outcomes(passed=3, failed=4)
    # A rule or a severity costs nothing: the reply is on record.
    prompts = sorted(request.prompt.partition("Message ")[2][:12] for request in provider.requests)
    assert [prompt[:2] for prompt in prompts] == ["2,", "3."]
    named = next(line for line in result.outlines if line.startswith("request or rule has changed"))
    assert named.startswith("request or rule has changed since they were judged, so they ran again: ")
    assert set(named.partition("again: ")[2].split(", ")) == {
        f"{code}[{MODEL}]"
        for code in ("P1-B1-S1-C1-PT2", "P1-B1-S2-C1-PT1", "P1-B1-S2-C1-PT2", "P1-B1-S3-C1-PT1")
    }
    database = pytester.path / "helmbench.db"
    by_code = "SELECT code, outcome, severity FROM results WHERE code IN ({}) ORDER BY code"
    codes = "'P1-B1-S1-C1-PT2', 'P1-B1-S2-C1-PT1', 'P1-B1-S3-C1-PT1'"
    assert rows(database, by_code.format(codes)) == [
        ("P1-B1-S1-C1-PT2", "failed", 5),
        ("P1-B1-S2-C1-PT1", "failed", 5),
        ("P1-B1-S3-C1-PT1", "passed", 7),
    ]
    assert rows(database, "SELECT status, total_tests FROM evaluation_runs") == [("complete", 7)]
    assert rows(database, "SELECT count(*) FROM evaluations") == [(7,)]


def test_other_models_sampling_or_judge_are_refused_with_the_differences(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(
        pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK"), "P1-B1-S2": judged("fine")}
    )
    provider.answers(times=1, status=400, when=_about(2))
    settings = ("--helmbench-temperature=0.5", _JUDGE)
    run_tree(pytester, *settings, url=provider.url).assert_outcomes(passed=2, errors=1)
    provider.requests.clear()
    for mode in ("-n0", "-n2"):
        result = run_tree(pytester, mode, _RESUME, "--helmbench-marking-model=test/strict", url=provider.url)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert (
            'the unfinished session was another one: sampling of test/good was {"temperature": 0.5}, now {};'
            " judge of test/good was test/judge, now test/strict\n"
            "  hint: give the same options, name an older session by a run of it (--helmbench-resume=N, `helmbench"
            " runs` lists them), or leave --helmbench-resume out for a fresh run"
        ) in result.stderr.str() + result.stdout.str()
    assert provider.count == 0
    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT status, error_tests FROM evaluation_runs") == [("partial", 1)]

    recorded = json.loads(rows(database, "SELECT settings FROM evaluation_runs")[0][0])
    place = BenchmarkKey("benchmark", "scenario_tree", "benchmark")
    same = Continued(recorded["benchmark_path"], place, MODEL, recorded)
    other = replace(same, model="test/other")
    found = find_resumption(database, None, [same])
    assert found is not None
    assert (found.runs, len(found.judged)) == ({same.key: 1}, 2)
    for planned, difference in (
        ([other], "models of benchmark were test/good, now test/other"),
        ([same, other], "models of benchmark were test/good, now test/good, test/other"),
        ([replace(same, benchmark=replace(place, name="demo"))], "it had no run of demo"),
        ([_with(same, repeat=2)], "--helmbench-repeat was 1, now 2"),
        ([_with(same, strict_json=True)], "--helmbench-strict-json was false, now true"),
        (
            [_with(same, judge_sampling={})],
            'sampling of the judge of test/good was {"temperature": 0.0, "max_tokens": 1024}, now {}',
        ),
    ):
        with pytest.raises(ResumeError) as refused:
            find_resumption(database, None, planned)
        assert str(refused.value).splitlines()[0] == f"the unfinished session was another one: {difference}"
    for text, why in (
        ('{"models": "x"}', "run 1 cannot go on: its setting models is x"),
        ('{"max_cost_usd": "5"}', "run 1 cannot go on: its setting max_cost_usd is 5"),
        ("[]", "damaged (`settings` of run 1 is not a JSON object: []"),
        ('{"judge": ', "damaged (`settings` of run 1 is not a JSON object: Expecting value"),
    ):
        with closing(sqlite3.connect(database)) as conn, conn:
            conn.execute("UPDATE evaluation_runs SET settings = ?", (text,))
        refused_by_file = run_tree(pytester, _RESUME, url=provider.url)
        assert refused_by_file.ret == pytest.ExitCode.USAGE_ERROR
        assert why in refused_by_file.stderr.str()


def _with(run: Continued, **settings: object) -> Continued:
    return replace(run, settings={**run.settings, **settings})


@_workers
def test_a_resume_takes_models_from_the_session_and_neither_servers_nor_variables_of_keys(
    pytester: pytest.Pytester, provider: Provider, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(
        pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK"), "P1-B1-S2": judged("fine")}
    )
    provider.answers(times=2, status=400, when=_about(2))
    run_tree(
        pytester,
        workers,
        _JUDGE,
        f"--helmbench-model={MODEL}",
        "--helmbench-model=test/other",
        url=provider.url,
    ).assert_outcomes(passed=4, errors=2)
    provider.requests.clear()
    monkeypatch.setenv("ONE_KEY", "a-key-of-twenty-characters")
    judge = f"--helmbench-marking-base-url={provider.url}"
    at = f"--helmbench-base-url={provider.url}"
    router = "https://openrouter.ai/api/v1"
    for options, differences in {
        (): f"address of test/good was {provider.url}, now {router};"
        " key variable of test/good was none, now OPENROUTER_API_KEY; address of test/judge was",
        (at, judge, "--helmbench-api-key-env=ONE_KEY"): "key variable of test/good was none, now ONE_KEY;",
    }.items():
        refused = run_tree(pytester, workers, _RESUME, *options)
        assert refused.ret == pytest.ExitCode.USAGE_ERROR
        said = refused.stderr.str() + refused.stdout.str()
        assert f"the unfinished session was another one: {differences}" in said
    assert provider.count == 0
    result = run_tree(pytester, workers, _RESUME, at, judge)
    result.assert_outcomes(passed=6)
    assert sorted(request.model for request in provider.requests) == ["test/good", "test/other"]
    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT status FROM evaluation_runs") == [("complete",)] * 2


def test_a_file_that_a_kill_has_left_empty_holds_nothing_to_resume(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    database = pytester.path / "helmbench.db"
    database.touch()

    nothing = run_tree(pytester, _RESUME, url=provider.url)
    told = [run_command(pytester, *command, f"--db={database}") for command in (["runs"], ["show", "1"])]

    assert nothing.ret == pytest.ExitCode.USAGE_ERROR
    nothing.stderr.fnmatch_lines(
        ["*nothing to resume: *helmbench.db holds no unfinished session; nothing was *"]
    )
    assert all("helmbench.db: holds no run yet" in one.stderr.str() for one in told)
    assert database.stat().st_size == 0
    fresh = run_tree(pytester, "--helmbench-resume=or-start", url=provider.url)
    fresh.assert_outcomes(passed=1)


def test_with_nothing_unfinished_a_resume_ends_before_the_first_call(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    for run, why in ((1, "does not exist"), (2, "holds no unfinished session")):
        nothing = run_tree(pytester, _RESUME, url=provider.url)
        assert nothing.ret == pytest.ExitCode.USAGE_ERROR
        nothing.stderr.fnmatch_lines(
            [
                f"*nothing to resume: *helmbench.db {why}; nothing was called",
                "*hint: leave --helmbench-resume out for a fresh run, or give --helmbench-resume=or-start *",
            ]
        )
        assert provider.count == run - 1
        result = run_tree(pytester, "--helmbench-resume=or-start", url=provider.url)
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(["notes        nothing was unfinished: this was a fresh run *"])
        assert provider.count == run
    complete = run_tree(pytester, "--helmbench-resume=1", url=provider.url)
    assert complete.ret == pytest.ExitCode.USAGE_ERROR
    complete.stderr.fnmatch_lines(
        ["*nothing to resume: the session of run 1 in *helmbench.db is complete; nothing was *"]
    )
    missing = run_tree(pytester, "--helmbench-resume=9", url=provider.url)
    assert missing.ret == pytest.ExitCode.USAGE_ERROR
    missing.stderr.fnmatch_lines(
        ["*there is no run 9 in *helmbench.db", "*hint: `helmbench runs` lists them"]
    )
    nobody = run_tree(pytester, "--helmbench-resume=or-start", "benchmark")
    assert nobody.ret == pytest.ExitCode.USAGE_ERROR
    nobody.stderr.fnmatch_lines(
        ["*nothing can be resumed: no model is named", "*hint: give the command of the*"]
    )
    wrong = run_tree(pytester, "--helmbench-resume=benchmark", url=provider.url)
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    wrong.stderr.fnmatch_lines(
        ["*--helmbench-resume is 'benchmark'", "*hint: it takes nothing, or behind = the number of a run *"]
    )
    dry = run_tree(pytester, _RESUME, "benchmark", "--helmbench-dry-run", url=provider.url)
    dry.stdout.fnmatch_lines(
        ["--helmbench-resume had no effect: nothing is called in a dry run, so nothing went on"]
    )
    assert provider.count == 2


def test_a_named_run_goes_on_and_a_rescored_one_is_refused(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "RISK")})
    for _ in range(2):
        provider.answers(times=1, status=400, when=_about(2))
        run_tree(pytester, url=provider.url).assert_outcomes(passed=1, errors=1)
    provider.requests.clear()
    run_tree(pytester, "--helmbench-resume=1", url=provider.url).assert_outcomes(passed=2)
    assert _asked(provider) == ["2"]
    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT id, status FROM evaluation_runs") == [(1, "complete"), (2, "partial")]
    rescored = run_command(pytester, "rescore", "1")
    assert rescored.ret == 0, rescored.stderr.str()
    refused = run_tree(pytester, "--helmbench-resume=3", url=provider.url)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(
        [
            "*run 3 has only judged the replies of run 1 again: it asks nothing",
            "*hint: --helmbench-resume=1",
        ]
    )


@_workers
def test_a_run_that_lives_is_refused_and_a_dead_one_is_closed_by_the_next_session(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM", "RISK")})
    provider.answers(hang=True, when=_about(3))
    session = Session(pytester.path, provider.url, workers)
    database = pytester.path / "helmbench.db"
    until(
        lambda: database.exists() and _answered(database) == 2 and len(_results(database)) == 2,
        "two are judged",
    )
    refused = run_tree(pytester, workers, _RESUME, url=provider.url)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    said = refused.stderr.str() + refused.stdout.str()
    assert re.search(
        r"run 1 is still being written, by process \d+ on \S+\n  hint: wait for it, or stop it", said
    )

    session.kill_all()
    provider.reset()
    run_tree(pytester, workers, url=provider.url).assert_outcomes(passed=2, failed=1)
    counts = "SELECT status, passed_tests, failed_tests, error_tests, total_evaluations, round(cost_usd, 6)"
    assert rows(database, f"{counts} FROM evaluation_runs ORDER BY id") == [
        ("interrupted", 1, 1, 0, 2, 0.002),
        ("complete", 2, 1, 0, 3, 0.003),
    ]


def test_an_answer_of_the_judge_that_is_none_is_asked_for_again(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged_twice("fine")})
    provider.answers(times=2, text="I will not say.", when=lambda request: "Point 2." in request.prompt)
    run_tree(pytester, _JUDGE, url=provider.url).assert_outcomes(errors=1)
    provider.requests.clear()
    run_tree(pytester, _JUDGE, _RESUME, url=provider.url).assert_outcomes(passed=1)
    assert [("Point 2." in request.prompt, request.is_judge) for request in provider.requests] == [
        (True, True)
    ]


def test_replies_of_other_runs_stay_free_when_a_session_goes_on(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged("fine")})
    run_tree(pytester, _JUDGE, url=provider.url).assert_outcomes(passed=1)
    database = pytester.path / "helmbench.db"
    # The judge is another one: the case is answered from the record, and its new judge hangs.
    other = ("--helmbench-marking-model=test/other", "--helmbench-cache=reuse")
    provider.answers(hang=True)
    session = Session(pytester.path, provider.url, *other)
    until(
        lambda: _answered(database) == 3 and provider.in_flight == 1, "the case is answered from the record"
    )
    session.kill_all()
    provider.reset()
    run_tree(pytester, *other, _RESUME, url=provider.url).assert_outcomes(passed=1)
    assert [request.is_judge for request in provider.requests] == [True]
    costs = "SELECT run_id, results.cost_usd, evaluation_runs.cost_usd FROM results"
    assert rows(database, f"{costs} JOIN evaluation_runs ON evaluation_runs.id = run_id ORDER BY 1") == [
        (1, 0.001, 0.002),
        (2, 0.0, 0.001),
    ]


def test_two_benchmarks_of_one_name_go_on_each_with_its_own_run(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    for folder, answers in (("a", ("RISK", "RISK")), ("b", ("CALM", "RISK"))):
        write_tree(pytester.path / folder / "benchmark", {"P1-B1-S1": category(*answers)})
    provider.answers(times=2, status=400, when=_about(2))
    both = ("a/benchmark", "b/benchmark")
    run_tree(pytester, *both, url=provider.url).assert_outcomes(passed=1, failed=1, errors=2)
    run_tree(pytester, *both, _RESUME, url=provider.url).assert_outcomes(passed=3, failed=1)
    database = pytester.path / "helmbench.db"
    runs = "SELECT status, passed_tests, failed_tests FROM evaluation_runs ORDER BY passed_tests"
    assert rows(database, runs) == [("complete", 1, 1), ("complete", 2, 0)]
    assert len({request.raw for request in provider.requests}) == 3
    assert json.loads(rows(database, "SELECT settings FROM evaluation_runs")[0][0])["benchmark_path"]


def test_a_verdict_on_an_old_prompt_never_stands_for_the_answer_to_a_new_one(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    tree = judged("fine")
    root = write_tree(pytester.path / "benchmark", {"P1-B1-S1": tree, "P1-B1-S2": category("RISK")})
    provider.answers(times=1, status=400, when=lambda request: "ANSWER: RISK" in request.prompt)
    run_tree(pytester, _JUDGE, url=provider.url).assert_outcomes(passed=1, errors=1)
    # The new prompt is answered, but the session dies before it is judged.
    reworded = Part("## User's input\n\nMessage 1, reworded.\n\nANSWER: fine", 5)
    write_tree(root, {"P1-B1-S1": replace(tree, perturbations={"PT1": reworded})})
    provider.reset()
    provider.answers(hang=True, when=lambda request: request.is_judge)
    session = Session(pytester.path, provider.url, _JUDGE, _RESUME)
    database = pytester.path / "helmbench.db"
    until(lambda: _answered(database) == 2 + 2 and provider.in_flight == 1, "both cases are answered")
    session.kill_all()

    provider.reset()
    provider.verdict = "BAD"
    run_tree(pytester, _JUDGE, _RESUME, url=provider.url).assert_outcomes(passed=1, failed=1)
    assert [request.is_judge for request in provider.requests] == [True]
    assert "Message 1, reworded." in provider.requests[0].prompt


def test_a_part_can_go_on_and_then_the_rest(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(
        pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * 4), "P1-B2-S1": category("CALM")}
    )
    provider.answers(times=4, status=400)
    run_tree(pytester, "-k", "P1-B1", url=provider.url).assert_outcomes(errors=4, deselected=1)
    run_tree(pytester, _RESUME, "-k", "PT2", url=provider.url).assert_outcomes(passed=1, deselected=4)
    database = pytester.path / "helmbench.db"
    run = "SELECT status, scope, total_tests, passed_tests, error_tests FROM evaluation_runs"
    assert rows(database, run) == [("partial", "selected", 4, 1, 3)]
    run_tree(pytester, _RESUME, url=provider.url).assert_outcomes(passed=4, failed=1)
    assert rows(database, run) == [("complete", "whole", 5, 4, 0)]
    assert provider.count == 4 + 1 + 4


def test_refreshing_is_not_paying_twice(pytester: pytest.Pytester, provider: Provider) -> None:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": judged("fine")})
    run_tree(pytester, _JUDGE, url=provider.url).assert_outcomes(passed=1)
    provider.requests.clear()
    refresh = (_JUDGE, "--helmbench-cache=refresh")
    provider.answers(hang=True, when=lambda request: request.is_judge)
    session = Session(pytester.path, provider.url, *refresh)
    until(
        lambda: provider.count == 2 and _answered(pytester.path / "helmbench.db") == 3, "the judge is asked"
    )
    session.kill_all()
    provider.reset()
    run_tree(pytester, *refresh, _RESUME, url=provider.url).assert_outcomes(passed=1)
    assert [request.is_judge for request in provider.requests] == [True]
