"""Scenarios of Bench Packs as pytest items: ids, selection, models, repetitions, reports and summary."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from bench_pack_sessions import ASKS, run_packs, write_asking_pack
from provider import Provider
from trees import rows

_HOSTILE_ID = "B::2 [x]\t\u202e\x1b[31m/../é"
_ESCAPED = r"B\x3a\x3a2 [x]\x09\xe2\x80\xae\x1b[31m/../é"
_SCENARIOS = {
    "TC-01": "async () => { await ask('one'); return result({ score: 80, points: 4 }); }",
    "TC-02": "async () => { await ask('two'); return result({ status: 'fail', score: 20, summary: 'wrong colour' }); }",
    "TC-03": "async () => { await ask('three'); return result({ status: 'partial', score: 60, note: 'half of it' }); }",
    _HOSTILE_ID: ASKS,
}
_SCORE = """
    return {
      totalScore: results.reduce((sum, one) => sum + one.score, 0),
      categories: results.map((one, at) => ({ id: `c${at}`, label: one.scenarioId, score: one.score, weight: 1 })),
      summary: results.map((one) => one.scenarioId).join(" "),
      unit: "points",
    };
"""
_FILE = "pack/benchlocal.pack.json::"


@pytest.fixture
def pack(pytester: pytest.Pytester) -> None:
    """Four scenarios: passed, failed, partial, and passed with an id that would break a terminal."""
    write_asking_pack(pytester.path / "pack", _SCENARIOS, score=_SCORE)


@pytest.mark.usefixtures("pack")
@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_every_scenario_is_an_item_with_a_verdict_and_the_pack_keeps_its_own_scale(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    result = run_packs(pytester, workers, "-v", "-rA", "--junitxml=report.xml", url=provider.url)

    result.assert_outcomes(passed=2, failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    printed = result.stdout.str()
    for name in ("TC-01", "TC-02", "TC-03", _ESCAPED):
        assert f"{_FILE}{name}[test/good]" in printed
    assert "\x1b[31m" not in printed
    assert "\u202e" not in printed
    result.stdout.fnmatch_lines_random(
        [
            "expected pass, observed fail (score 20)",
            "wrong colour",
            "expected pass, observed partial (score 60)",
            "half of it",
            "test/good: the pack's own total: 260 points; TC-01 80, TC-02 20, TC-03 60, *100*",
            "test/good *50.0 * 50.0 % *0 *",
        ]
    )
    assert provider.count == 4
    suite = ElementTree.parse(pytester.path / "report.xml").getroot()[0]
    assert _properties(suite.find("properties")) == {
        "pack_total[small-pack][test/good]": "260.0",
        "pack_category[small-pack][test/good][c0]": "80.0",
        "pack_category[small-pack][test/good][c1]": "20.0",
        "pack_category[small-pack][test/good][c2]": "60.0",
        "pack_category[small-pack][test/good][c3]": "100.0",
    }
    cases = {case.attrib["name"]: _properties(case.find("properties")) for case in suite.iter("testcase")}
    first = cases["TC-01[test/good]"]
    assert {name: first[name] for name in ("model", "cost_usd", "prompt_tokens", "completion_tokens")} == {
        "model": "test/good",
        "cost_usd": "0.001",
        "prompt_tokens": "1",
        "completion_tokens": "1",
    }
    stated = [name for name in first if name.startswith("pack_")]
    assert {name: first[name] for name in stated} == {
        "pack_status": "pass",
        "pack_score": "80.0",
        "pack_points": "4.0",
    }


def _properties(element: ElementTree.Element | None) -> dict[str, str]:
    return {} if element is None else {one.attrib["name"]: one.attrib["value"] for one in element}


@pytest.mark.usefixtures("pack")
def test_models_and_repetitions_have_runs_and_totals_of_their_own(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    models = ("--helmbench-model=test/good", "--helmbench-model=test/better")
    options = (*models, "--helmbench-repeat=2", "--helmbench-partial=60", "--junitxml=report.xml")
    result = run_packs(pytester, *options, "-v", url=provider.url)

    result.assert_outcomes(passed=12, failed=4)
    result.stdout.fnmatch_lines_random(
        [f"{_FILE}TC-01[[]test/good] PASSED*", f"{_FILE}TC-01[[]test/better-r2] PASSED*"]
    )
    database = pytester.path / "helmbench.db"
    assert {request.model for request in provider.requests} == {"test/good", "test/better"}
    # The total of a run is the mean of its repetitions, each with one result per scenario.
    kept = "SELECT run_id, total, partial, json_array_length(categories), summary FROM pack_scores ORDER BY run_id"
    order = f"TC-01 TC-02 TC-03 {_HOSTILE_ID}"
    assert rows(database, kept) == [(run, 260.0, 0, 4, order) for run in (1, 2)]
    counted = (
        "SELECT run_id, repetition, count(*) FROM pack_results JOIN results ON id = result_id GROUP BY 1, 2"
    )
    assert rows(database, counted) == [(run, repetition, 4) for run in (1, 2) for repetition in (1, 2)]
    suite = ElementTree.parse(pytester.path / "report.xml").getroot()[0]
    totals = [name for name in _properties(suite.find("properties")) if name.startswith("pack_total")]
    assert totals == ["pack_total[small-pack][test/good]", "pack_total[small-pack][test/better]"]


@pytest.mark.usefixtures("pack")
@pytest.mark.parametrize(
    ("policy", "outcome", "expected"),
    [
        ("pass", "passed", "pass or partial"),
        ("60.5", "failed", "pass, or partial with a score of at least 60.5"),
    ],
)
def test_a_partial_result_counts_as_asked(
    pytester: pytest.Pytester, provider: Provider, policy: str, outcome: str, expected: str
) -> None:
    run_packs(pytester, "-k", "TC-03", f"--helmbench-partial={policy}", url=provider.url)

    database = pytester.path / "helmbench.db"
    query = """
        SELECT outcome, expected, observed, reason, passed, credit
        FROM evaluations JOIN results ON results.id = result_id
    """
    passed = outcome == "passed"
    assert rows(database, query) == [
        (outcome, expected, "partial (score 60)", None if passed else "partial", passed, float(passed))
    ]
    assert rows(database, "SELECT status, score FROM pack_results") == [("partial", 60.0)]


def test_one_result_per_scenario_reaches_the_pack_and_none_of_an_error(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    swallows = "async () => { await chat('b'); return result(); }"
    scenarios = {"a": ASKS, "b": swallows, "c": ASKS}
    score = "return { totalScore: results.length, categories: [], summary: JSON.stringify(results) };"
    write_asking_pack(pytester.path / "pack", scenarios, score=score)
    provider.answers(status=400, when=lambda request: request.prompt == "b")

    run_packs(pytester, url=provider.url).assert_outcomes(passed=2, errors=1)

    database = pytester.path / "helmbench.db"
    [(total, partial, summary)] = rows(database, "SELECT total, partial, summary FROM pack_scores")
    assert (total, partial) == (2.0, 1)
    given: list[dict[str, Any]] = json.loads(summary)
    assert [(one["scenarioId"], one["output"]) for one in given] == [
        ("a", {"said": "ok"}),
        ("c", {"said": "ok"}),
    ]


@pytest.mark.parametrize(
    ("score", "sentence"),
    [
        ("throw new Error('no weights');", "scoreModelResults() threw Error: no weights"),
        ("return { totalScore: NaN, categories: [] };", "totalScore is 'NaN', not a finite number"),
    ],
    ids=["throws", "no-number"],
)
def test_a_pack_that_cannot_add_up_loses_its_total_and_no_verdict(
    pytester: pytest.Pytester, provider: Provider, score: str, sentence: str
) -> None:
    write_asking_pack(pytester.path / "pack", {"a": ASKS}, score=score)
    result = run_packs(pytester, url=provider.url)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines([f"small-pack has no total for test/good: {sentence}*"])
    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT count(*) FROM pack_scores") == [(0,)]
    [(payload,)] = rows(database, "SELECT payload FROM events WHERE type = 'run_error'")
    assert sentence in json.loads(payload)["message"]
