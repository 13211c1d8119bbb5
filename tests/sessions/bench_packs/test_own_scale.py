"""A pack's own score of a run stands in the summary with its unit; with verifiers it has its time for each."""

from __future__ import annotations

import json

import pytest
from bench_pack_sessions import ASKS, run_packs, write_asking_pack
from provider import Provider
from trees import rows

_ODD = """return {
  totalScore: 9.9, categories: [{ id: "c", label: "C", score: 5, unit: "s" }], ok: true, tokens: 1234567890123,
  ttft: { value: 502, unit: "ms" }, spread: [1, 2.5], nested: { said: "a quoted reply" },
};"""


def test_what_a_pack_says_beyond_the_protocol_is_shown_words_only_with_texts(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_asking_pack(pytester.path / "pack", {"a": ASKS}, score=_ODD)
    formats = {form: pytester.path / f"r.{form}" for form in ("json", "markdown", "html")}
    reports = [f"--helmbench-{form}={path}" for form, path in formats.items()]
    values = {"ok": True, "tokens": 1234567890123, "ttft": {"value": 502, "unit": "ms"}, "spread": [1, 2.5]}

    result = run_packs(pytester, *reports, "--helmbench-with-text=all", url=provider.url)
    result.stdout.fnmatch_lines(
        [
            "*total: 9.9; C 5 s; ok true, tokens 1234567890123, ttft 502 ms, spread *1, 2.5*;"
            ' it says: nested: {"said": "a quoted reply"}',
        ]
    )
    (run,) = json.loads(formats["json"].read_text())["runs"]
    assert run["pack_score"]["extra"] == {**values, "nested": {"said": "a quoted reply"}}
    for form in ("markdown", "html"):
        text = formats[form].read_text()
        assert all(word in text for word in ("502 ms", "1234567890123", "a quoted reply", "5 s"))

    monkeypatch.setenv("CI", "1")
    plain = run_packs(pytester, *reports, url=provider.url)
    assert "ok true, tokens 1234567890123, ttft 502 ms" in plain.stdout.str()
    (run,) = json.loads(formats["json"].read_text())["runs"]
    assert run["pack_score"]["extra"] == values
    for text in (plain.stdout.str(), *(path.read_text() for path in formats.values())):
        assert "502" in text
        assert "quoted reply" not in text


@pytest.mark.parametrize(
    ("declared", "most"),
    [({}, 1), ({"concurrency": 2}, 2)],
)
def test_a_pack_with_a_verifier_runs_one_scenario_at_a_time_unless_it_says_otherwise(
    pytester: pytest.Pytester,
    provider: Provider,
    declared: dict[str, int],
    most: int,
) -> None:
    provider.latency_s = 0.05
    verifier = {"id": "v", "transport": "http", "required": False, "defaultMode": "custom_url"}
    manifest = {"capabilities": {"verification": True}, "verifiers": [verifier], **declared}
    write_asking_pack(pytester.path / "pack", {f"s{n}": ASKS for n in range(6)}, manifest=manifest)
    run_packs(pytester, url=provider.url).assert_outcomes(passed=6)
    assert provider.max_in_flight == most


def test_a_sample_of_scenarios_is_asked_scored_and_its_total_is_not_over_all(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    write_asking_pack(pytester.path / "pack", {f"s{number}": ASKS for number in range(6)})
    sample = ("--helmbench-sample=0.5",)

    first = run_packs(pytester, *sample, url=provider.url)
    again = run_packs(pytester, *sample, "--helmbench-baseline=last", url=provider.url)

    first.assert_outcomes(passed=3)
    database = pytester.path / "helmbench.db"
    ((sample,),) = rows(database, "SELECT sample FROM plans WHERE run_id = 1")
    assert '"rule":"0.5","seed":1,"of":6' in sample
    assert "sample of 3 of 6" in first.stdout.str()
    codes = [rows(database, f"SELECT code FROM results WHERE run_id = {run} ORDER BY code") for run in (1, 2)]
    assert codes[0] == codes[1]
    assert rows(database, "SELECT partial FROM pack_scores") == [(1,), (1,)]
    again.stdout.fnmatch_lines(["  baseline   run 1: 100.0 %: no verdict differs in 3 cases"])
    ((low, high),) = rows(database, "SELECT score_low, score_high FROM evaluation_runs WHERE id = 1")
    assert (low > 0.4, high) == (True, 1.0)  # three of six: half of what could be is known
