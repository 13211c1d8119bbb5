"""Several workers: one gate, one record, every item reported once, whatever happens to a worker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from provider import Provider, Request
from sessions import Session, until
from trees import MODEL, category, judged, rows, run_tree, write_tree

_CASES = 40


def _benchmark(pytester: pytest.Pytester, cases: int = _CASES) -> Path:
    return write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * cases)})


def _asked(request: Request) -> str:
    """The case that a request belongs to."""
    found = re.search(r"Message (\d+)\.", request.prompt)
    assert found is not None
    return found[1]


def test_workers_share_concurrency_cases_and_python_tests(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_tree(
        pytester.path / "benchmark",
        {"P1-B1-S1": category(*["RISK"] * _CASES), "P1-B1-S2": judged(*["fine"] * 6)},
    )
    pytester.makepyfile(
        test_plain="""
        import pytest

        @pytest.mark.parametrize("n", range(12))
        def test_python(n):
            assert n != 7

        def test_worker(worker_id):
            assert worker_id in ("gw0", "gw1")
        """
    )
    provider.latency_s = 0.05
    provider.verdict = "GOOD"
    result = run_tree(
        pytester,
        "-n2",
        "benchmark",
        "test_plain.py",
        "--helmbench-concurrency=6",
        "--helmbench-marking-model=test/judge",
        "-v",
        f"--helmbench-model={MODEL}",
        url=provider.url,
    )
    result.assert_outcomes(passed=_CASES + 6 + 12, failed=1)
    assert provider.max_in_flight == 6
    assert provider.count == _CASES + 6 + 6
    database = pytester.path / "helmbench.db"
    assert rows(database, "select count(*), count(distinct code) from results") == [(_CASES + 6,) * 2]
    assert rows(database, "select count(*) from calls where response_id is not null") == [(provider.count,)]
    assert rows(database, "select distinct status from evaluation_runs") == [("complete",)]
    by_worker = {name: result.stdout.str().count(f"[{name}]") for name in ("gw0", "gw1")}
    assert min(by_worker.values()) >= (_CASES + 6) // 2


def test_a_killed_worker_costs_nothing_that_was_paid(pytester: pytest.Pytester, provider: Provider) -> None:
    _benchmark(pytester)
    # The first cases are answered, the rest hang: both workers have calls in flight, though one had all the answers.
    answered = _CASES // 4
    provider.answers(times=answered)
    provider.answers(hang=True)
    pytester.makepyfile(
        test_slow="""
        import os, pathlib, time

        def test_slow():
            while not pathlib.Path(os.environ["PIDS"], "go").exists():
                time.sleep(0.01)
        """
    )
    # Python first: nothing is reported before it is done, so the outcomes wait in their worker.
    session = Session(
        pytester.path,
        provider.url,
        "-n2",
        "-rA",
        "--helmbench-concurrency=6",
        paths=("test_slow.py", "benchmark"),
    )
    until(lambda: provider.count == answered + 6, "the calls of the rest go out")
    database = pytester.path / "helmbench.db"
    until(
        lambda: rows(database, "select count(*) from results")[0][0] == answered, "the first ones are judged"
    )
    in_flight = [_asked(request) for request in provider.requests[-6:]]
    provider.answers()
    session.kill_workers("gw0", "gw1")
    until(lambda: session.worker("gw2") and session.worker("gw3"), "others take their place")
    (pytester.path / "pids" / "go").touch()
    assert session.end() == pytest.ExitCode.OK, session.text
    assert f"{_CASES + 1} passed" in session.text
    # Judged cases were not asked again; those in flight were.
    counts: dict[str, int] = {}
    for request in provider.requests:
        counts[_asked(request)] = counts.get(_asked(request), 0) + 1
    assert {case for case, count in counts.items() if count > 1} == set(in_flight)
    assert len(counts) == _CASES
    assert rows(database, "select count(*), count(distinct code) from results") == [(_CASES, _CASES)]
    assert rows(database, "select status, passed_tests from evaluation_runs") == [("complete", _CASES)]
    assert len(re.findall(r"^PASSED .*test/good", session.text, re.MULTILINE)) == _CASES


def test_an_item_that_kills_its_worker_twice_is_an_error_and_the_others_go_on(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _benchmark(pytester, 10)
    pytester.makepyfile(test_deadly="import os\n\ndef test_deadly():\n    os._exit(1)\n")
    result = run_tree(
        pytester, "-n2", "benchmark", "test_deadly.py", f"--helmbench-model={MODEL}", url=provider.url
    )
    result.assert_outcomes(passed=10, errors=1)
    result.stdout.fnmatch_lines(["*crashed while running 'test_deadly.py::test_deadly', for the second time"])
    assert provider.count <= 10 + 2


def test_items_that_no_worker_was_left_for_fail_the_session(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _benchmark(pytester, 30)
    provider.answers(hang=True)
    session = Session(
        pytester.path, provider.url, "-n2", "--max-worker-restart=0", "--helmbench-concurrency=2"
    )
    until(lambda: provider.in_flight == 2, "the calls go out")
    session.kill_workers("gw0", "gw1")
    assert session.end() != pytest.ExitCode.OK
    assert "30 items were never run: their worker died and no other took them" in session.text


@pytest.mark.parametrize("mode", ["worksteal", "each"])
def test_other_modes_of_distribution_are_refused(
    pytester: pytest.Pytester, provider: Provider, mode: str
) -> None:
    _benchmark(pytester, 2)
    result = run_tree(pytester, "-n2", f"--dist={mode}", url=provider.url)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"*helmbench cases run with --dist=load, not --dist={mode}",
            "  hint: add --dist=load: it goes over addopts; each worker gets an equal share",
        ]
    )
    assert provider.count == 0


def test_collect_only_starts_no_worker_and_calls_nothing(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _benchmark(pytester, 3)
    result = run_tree(pytester, "-n2", "--collect-only", "-q", url=provider.url)
    assert result.ret == pytest.ExitCode.OK
    assert result.stdout.str().count("P1-B1-S1-C1-PT") == 3
    assert provider.count == 0
    assert not (pytester.path / "helmbench.db").exists()


def test_workers_that_collect_differently_are_named_in_a_sentence(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _benchmark(pytester, 3)
    pytester.makeconftest(
        """
        def pytest_collection_modifyitems(config, items):
            if getattr(config, "workerinput", {}).get("workerid") == "gw1":
                items.reverse()
        """
    )
    result = run_tree(pytester, "-n2", url=provider.url)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stdout.str() + result.stderr.str()
    assert "workers have collected different items: gw" in text
    assert "the first difference is item 1: 'benchmark/scenarios/P1-B1-S1/S1.md::P1-B1-S1-C1-PT" in text
    assert "hint: something makes collection random (a set, the time, unseeded sampling)" in text
    assert "INTERNALERROR" not in text
    assert provider.count == 0


def test_a_database_that_cannot_be_used_is_a_usage_error_with_workers_too(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _benchmark(pytester, 3)
    (pytester.path / "broken.db").write_text("this is no database, whatever its name says", encoding="utf-8")
    result = run_tree(pytester, "-n2", "--helmbench-db=broken.db", url=provider.url)
    text = result.stdout.str() + result.stderr.str()
    assert result.ret == pytest.ExitCode.USAGE_ERROR, text
    assert "broken.db" in text
    assert "INTERNALERROR" not in text
    assert provider.count == 0


def test_the_budget_holds_for_all_workers_together(pytester: pytest.Pytester, provider: Provider) -> None:
    root = _benchmark(pytester, 30)
    # Each call is reserved at a cent: a thousand tokens at 10 USD per million.
    (root / "models.yml").write_text(
        f"models:\n  - id: {MODEL}\n    max_tokens: 1000\n    price: {{input: 0, output: 10}}\n",
        encoding="utf-8",
    )
    provider.latency_s = 0.05
    provider.cost_usd = 0.01
    result = run_tree(
        pytester, "-n2", "--helmbench-max-cost=0.085", "--helmbench-concurrency=6", url=provider.url
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=8, skipped=22)
    assert provider.count == 8
    text = result.stdout.str()
    assert "the budget was spent: what it could not pay was skipped" in text
