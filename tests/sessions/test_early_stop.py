"""`--helmbench-early-stop`: repetitions that a comparison does not need are not asked, and that is no loss."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest
from provider import Answer, Provider, Request
from sessions import Session, until
from trees import category, clear_environment, rows, run_tree, write_tree

from pytest_helmbench.cli.main import main

_OK, _FAILED, _USAGE = 0, 1, 4
_STOP = ("--helmbench-early-stop", "--helmbench-repeat=3", "--helmbench-baseline=1", "--tb=no")
_REASONS = (
    "SELECT repetition, count(*) FROM results WHERE run_id = {} AND reason = 'stopped_early' GROUP BY 1"
)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def _wrong_on(provider: Provider, numbers: Collection[int], refused: Collection[int] = ()) -> None:
    """Let the model be wrong on some messages, and the server refuse others."""

    def reply(request: Request) -> str | Answer | None:
        if any(f"Message {number}." in request.prompt for number in refused):
            return Answer(status=400)
        said = "CALM" if any(f"Message {number}." in request.prompt for number in numbers) else "RISK"
        return json.dumps({"response": "So.", "category": said})

    provider.reply = reply
    provider.requests.clear()


def _baseline(pytester: pytest.Pytester, provider: Provider, cases: int = 8) -> Path:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * cases)})
    _wrong_on(provider, ())
    run_tree(pytester, "--helmbench-repeat=2", url=provider.url)
    return pytester.path / "helmbench.db"


@pytest.mark.parametrize("mode", ["-n0", "-n2"])
def test_repetitions_end_when_the_comparison_has_said_enough(
    pytester: pytest.Pytester, provider: Provider, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    database = _baseline(pytester, provider)

    _wrong_on(provider, ())
    same = run_tree(pytester, mode, *_STOP, "--helmbench-json=report.json", url=provider.url)
    same.assert_outcomes(passed=8, skipped=16)
    assert (same.ret, provider.count) == (_OK, 8)
    said = "early stop after 1 of 3 repetitions: p = 1, more repetitions would hardly show a regression"
    same.stdout.fnmatch_lines(
        [
            "helmbench: test/good: 24 cases, at most 24 calls, fewer after an early stop *",
            f"skipped: 16 × {said}",
            "compare test/good with run 1: no verdict differs in 8 cases",
        ]
    )
    assert "not judged" not in same.stdout.str()
    assert rows(database, _REASONS.format(2)) == [(2, 8), (3, 8)]
    columns = "status, coverage, passed_tests, skipped_tests"
    assert rows(database, f"SELECT {columns} FROM evaluation_runs WHERE id = 2") == [("complete", 1.0, 8, 16)]
    report = json.loads((pytester.path / "report.json").read_text())["runs"][0]
    assert "early stop: 16 repetitions of cases were not asked" in report["warnings"]
    assert (report["score"]["coverage"], report["score"]["judged_rows"]) == (1, 8)

    _wrong_on(provider, range(1, 9))
    worse = run_tree(pytester, mode, *_STOP, url=provider.url)
    assert (worse.ret, provider.count) == (_FAILED, 8)
    worse.stdout.fnmatch_lines(
        [
            "skipped: 16 × early stop after 1 of 3 *: p = 0.0039, a regression is shown",
            "compare *p = 0.0039: regressed*",
        ]
    )

    _wrong_on(provider, range(1, 6))  # p = 1/32: neither enough nor hopeless until the last
    unsure = run_tree(pytester, mode, *_STOP, url=provider.url)
    assert (unsure.ret, provider.count) == (_FAILED, 24)
    unsure.stdout.fnmatch_lines(["compare *early stop: a regression is called at p = 0.01 *0.04*"])
    unsure.stdout.fnmatch_lines(["compare *p = 0.031: regressed*"])

    capsys.readouterr()
    assert main(["compare", "1", "4", f"--db={database}"]) == _FAILED
    assert "early stop: a regression is called at" in capsys.readouterr().out
    assert main(["rescore", "2", f"--db={database}"]) == _OK
    assert rows(database, f"SELECT {columns} FROM evaluation_runs WHERE id = 5") == [("complete", 1.0, 8, 16)]


def test_an_early_stop_needs_repetitions_and_a_baseline_and_a_resume_keeps_it(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    database = _baseline(pytester, provider, 12)
    for missing in (_STOP[:2], (_STOP[0], _STOP[2])):
        refused = run_tree(pytester, *missing, url=provider.url)
        assert refused.ret == _USAGE
        refused.stderr.fnmatch_lines(
            ["*early-stop looks between repetitions*", "*hint: add --helmbench-repeat=3 and*"]
        )

    _wrong_on(provider, (), refused=(3,))
    broken = run_tree(pytester, *_STOP, "--helmbench-min-coverage=0.5", url=provider.url)
    assert provider.count == 12
    broken.assert_outcomes(passed=11, skipped=24, errors=1)
    assert rows(database, "SELECT status FROM evaluation_runs WHERE id = 2") == [("partial",)]

    _wrong_on(provider, ())
    other = run_tree(pytester, "--helmbench-resume", *_STOP[1:], url=provider.url)
    assert other.ret == _USAGE
    assert "--helmbench-early-stop was true, now false" in other.stderr.str()
    whole = run_tree(pytester, "--helmbench-resume", *_STOP, url=provider.url)
    assert (whole.ret, provider.count) == (_OK, 1)  # what was judged is looked at again, and ends it again
    assert rows(database, "SELECT status FROM evaluation_runs WHERE id = 2") == [("complete",)]
    assert rows(database, _REASONS.format(2)) == [(2, 12), (3, 12)]


def test_a_session_that_is_killed_and_goes_on_stops_where_an_undisturbed_one_does(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    database = _baseline(pytester, provider)
    _wrong_on(provider, ())
    provider.latency_s = 0.2
    options = ("--helmbench-concurrency=2", *_STOP)
    session = Session(pytester.path, provider.url, *options)
    until(lambda: provider.count >= 5, "half of the first repetition is asked")
    session.kill()
    provider.latency_s = 0
    before = rows(database, "SELECT count(*) FROM results WHERE run_id = 2 AND outcome = 'passed'")[0][0]
    assert before < 8

    run_tree(pytester, "--helmbench-resume", *options, url=provider.url)

    assert rows(database, _REASONS.format(2)) == [(2, 8), (3, 8)]
    assert rows(database, "SELECT status, coverage, passed_tests FROM evaluation_runs WHERE id = 2") == [
        ("complete", 1.0, 8)
    ]
    asked = rows(database, "SELECT max(repetition), count(DISTINCT code) FROM calls WHERE run_id = 2")
    assert asked == [(1, 8)]
    assert rows(database, "SELECT verdict FROM comparisons WHERE run_id = 2") == [("no change",)]
