"""`--helmbench-items=scenario`: one pytest item per scenario file and model, and the record by case."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import pytest
from provider import Provider
from trees import category, clear_environment, collected, every_mode, rows, run_tree, write_tree

_ITEMS = "--helmbench-items=scenario"


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def _benchmark(pytester: pytest.Pytester) -> Path:
    trees = {
        "P1-B1-S1": category("RISK", "CALM", "RISK", "CALM"),
        "P1-B1-S2": category("RISK", "RISK"),
        "P2-B1-S1": category("RISK", "RISK", "RISK"),
        "P2-B1-S2": category("RISK"),
    }
    return write_tree(pytester.path / "benchmark", trees)


def _verdicts(pytester: pytest.Pytester) -> dict[str, int]:
    """Return how many cases of the last run have each verdict."""
    last = "(SELECT max(id) FROM evaluation_runs)"
    query = f"SELECT outcome, count(*) FROM results WHERE run_id = {last} GROUP BY outcome"
    return dict(rows(pytester.path / "helmbench.db", query))


@every_mode
def test_items_stand_for_scenarios_and_the_record_for_cases(
    pytester: pytest.Pytester, provider: Provider, mode: Sequence[str]
) -> None:
    broken = _benchmark(pytester) / "scenarios" / "P2-B1-S2" / "S2.md"
    broken.write_text("---\ncategory: [\n---\n", encoding="utf-8")
    provider.answers(status=400, when=lambda request: "Message 3." in request.prompt)

    result = run_tree(pytester, *mode, _ITEMS, "--junitxml=junit.xml", url=provider.url)

    # P1-B1-S1 and P2-B1-S1 have an error, P2-B1-S2 is broken.
    result.assert_outcomes(passed=1, errors=3)
    assert _verdicts(pytester) == {"passed": 5, "failed": 2, "error": 2}
    result.stdout.fnmatch_lines_random(
        [
            "of 4 cases 1 are errors, 2 failed: P1-B1-S1-C1-PT3, P1-B1-S1-C1-PT*",
            "  P1-B1-S1-C1-PT3*: the provider answered 400*",
            "  P1-B1-S1-C1-PT4*: expected RISK, observed CALM",
        ]
    )
    cases = {case.get("name"): case for case in ET.parse("junit.xml").getroot().iter("testcase")}
    assert set(cases) == {"P1-B1-S1[test/good]", "P1-B1-S2[test/good]", "P2-B1-S1[test/good]", "P2-B1-S2"}
    properties = {one.get("name"): one.get("value") for one in cases["P1-B1-S1[test/good]"].iter("property")}
    assert (properties["cases"], properties["passed"], properties["failed"]) == ("4", "1", "2")

    provider.reset()
    again = run_tree(pytester, *mode, _ITEMS, "--helmbench-resume", url=provider.url)

    assert provider.count == 2  # the errors, and nothing that is on record
    again.assert_outcomes(passed=2, failed=1, errors=1)
    assert _verdicts(pytester) == {"passed": 7, "failed": 2}


def test_scenarios_are_selected_by_k_and_m_and_by_the_codes_of_their_cases(pytester: pytest.Pytester) -> None:
    _benchmark(pytester)
    first = "P1-B1-S1[no-model]"

    for options, items in (
        (("-k", "P1-B1-S1"), [first]),
        (("-m", "helmbench(pillar='P1')"), [first, "P1-B1-S2[no-model]"]),
        (("--helmbench-select=*-*-*-*-PT4",), [first]),
        (
            ("--helmbench-select=*-*-*-*-PT3", "--helmbench-repeat=2"),
            [first, "P1-B1-S1[no-model-r2]", "P2-B1-S1[no-model]", "P2-B1-S1[no-model-r2]"],
        ),
    ):
        result = run_tree(pytester, _ITEMS, *options, "--collect-only", "-q")
        assert collected(result) == items, options


def test_stopping_gates_shards_and_reruns_see_cases(pytester: pytest.Pytester, provider: Provider) -> None:
    _benchmark(pytester)

    stopped = run_tree(pytester, _ITEMS, "-x", "--helmbench-concurrency=1", url=provider.url)
    stopped.assert_outcomes(failed=1)
    assert provider.count < 6

    provider.reset()
    gated = run_tree(pytester, _ITEMS, "--helmbench-min-score=0.7", url=provider.url)
    gated.assert_outcomes(failed=1, passed=3)
    assert (gated.ret, provider.count) == (0, 10)

    provider.reset()
    for index in (1, 2):
        run_tree(pytester, _ITEMS, f"--helmbench-shard={index}/2", url=provider.url)
    assert provider.count == 10

    provider.reset()
    provider.answers(status=400, times=1)
    rerun = run_tree(
        pytester, _ITEMS, "--reruns=1", "--helmbench-max-retries=0", "-k", "P1-B1-S1", url=provider.url
    )
    rerun.assert_outcomes(failed=1)  # judged wrong now; no verdict was asked for twice
    assert provider.count == 5
