"""Packs that measure speed: what they measure is the model's, and what comes from a record is no measurement."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bench_pack_sessions import run_packs, write_asking_pack
from provider import Provider
from trees import clear_environment, rows

_TOKENS = 12
_MEASURE = """async () => {
  const began = performance.now();
  const response = await chat("Count.", { stream: true });
  const times = [];
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    for (const line of decoder.decode(chunk, { stream: true }).split("\\n")) {
      if (line.includes('"content":"w')) times.push(performance.now());
    }
  }
  const seconds = (times[times.length - 1] - times[0]) / 1000;
  const rate = (times.length - 1) / Math.max(seconds, 1e-6);
  return result({ score: rate, summary: `${rate.toFixed(1)} tok/s`, output: { ttftMs: times[0] - began } });
}"""
_TALKS = """async () => {
  const response = await chat("Talk.", { stream: true });
  const text = await response.text();
  return result({ status: text.includes("w1 ") ? "pass" : "fail", timings: { durationMs: 5 } });
}"""


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)


def _stream() -> list[bytes]:
    def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return b"data: " + json.dumps({"choices": [choice]}, separators=(",", ":")).encode() + b"\n\n"

    words = [event({"content": f"w{number} "}) for number in range(_TOKENS)]
    return [*words, event({}, "stop"), b"data: [DONE]\n\n"]


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_ten_tokens_a_second_are_ten_tokens_a_second(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    provider.answers(events=_stream(), pace_s=0.1)
    write_asking_pack(pytester.path / "pack", {"speed": _MEASURE, "talk": _TALKS})
    run_packs(pytester, workers, url=provider.url).assert_outcomes(passed=2)
    ((rate,),) = rows(pytester.path / "helmbench.db", "SELECT score FROM pack_results WHERE score <> 100")
    assert 7 < rate < 12

    # Judged again from the record: the talk has its verdict, the speed has none.
    again = run_packs(pytester, workers, "--helmbench-cache=only", "-rs", url=provider.url)
    again.assert_outcomes(passed=1, skipped=1)
    again.stdout.fnmatch_lines(["*a speed is no measurement when replies come from the record*"])
    assert provider.count == 2
    outcomes = "SELECT code, outcome, reason FROM results WHERE run_id = 2 ORDER BY code"
    assert rows(pytester.path / "helmbench.db", outcomes) == [
        ("speed", "skipped", "not_measured"),
        ("talk", "passed", None),
    ]


def test_a_manifest_may_say_that_its_pack_measures_speed(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    provider.answers(events=_stream())
    write_asking_pack(pytester.path / "pack", {"talk": _TALKS}, manifest={"measures": "speed"})
    run_packs(pytester, url=provider.url).assert_outcomes(passed=1)
    run_packs(pytester, "--helmbench-cache=reuse", url=provider.url).assert_outcomes(skipped=1)


_SAYS: dict[str, tuple[str, bool]] = {
    "a-long-log": (r"rawLog: 'x'.repeat(21000), timings: { ttftMs: 300, tokensPerSecond: 10 }", True),
    "throughput": ("summary: 'throughput 10.1'", True),
    "latency": ("timings: { latencyMs: 300, durationMs: 1900 }", True),
    "german": ("summary: '10,1 Token/Sekunde'", True),
    "characters": ("summary: 'done', timings: { charsPerSecond: 40 }", True),
    "capitals": ("summary: 'TPS 10.1'", True),
    "unit": ("score: 10, unit: 'tok/s'", True),
    "unit-of-a-score": ("score: 10, scoreUnit: 'ms'", True),
    "unit-of-no-speed": ("score: 10, unit: 'points', totalUnit: '%'", False),
    "key": ("own: { parts: [{ medianTtft: 3 }] }", True),
    "a-time": ("note: 'first token after 302 ms'", True),
    "the-models-words": ("rawLog: 'TTFT 5 ms, 10 tok/s', output: { text: '10 tok/s', speed: 3 }", False),
    "a-text": ("summary: 'The reply names the first token of the line'", False),
    "a-span": ("timings: { startedAt: 1, completedAt: 2, durationMs: 5, end: 3 }", False),
    "another-speed": ("summary: 'the speed is 60 km/h', points: 3", False),
}


def test_a_replayed_speed_is_known_by_what_the_pack_says_and_where(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    provider.answers(events=_stream())
    act = """async () => {{
      await (await chat(input.scenario.id, {{ stream: true }})).text();
      return result({{ {says} }});
    }}"""
    runs = {name: act.format(says=says) for name, (says, _) in _SAYS.items()}
    write_asking_pack(pytester.path / "pack", runs)
    run_packs(pytester, url=provider.url).assert_outcomes(passed=len(_SAYS))
    run_packs(pytester, "--helmbench-cache=only", url=provider.url)
    outcomes = "SELECT code, outcome FROM results WHERE run_id = 2"
    assert dict(rows(pytester.path / "helmbench.db", outcomes)) == {
        name: "skipped" if is_speed else "passed" for name, (_, is_speed) in _SAYS.items()
    }


@pytest.mark.parametrize(
    ("total", "replayed"),
    [
        ("totalUnit: 'tok/s'", {"skipped": 1, "passed": 2}),
        ("totalUnit: 'tokens per second'", {"skipped": 1, "passed": 2}),
        ("unit: 'ms'", {"skipped": 1, "passed": 2}),
        ("totalUnit: 'points'", {"passed": 3}),
        ("totalUnit: '%'", {"passed": 3}),
        ("totalUnit: results.length < 3 ? results.at(7).unit : 'tok/s'", {"passed": 3}),
    ],
)
def test_a_replayed_score_whose_total_has_a_unit_of_speed_is_no_measurement(
    pytester: pytest.Pytester, provider: Provider, total: str, replayed: dict[str, int]
) -> None:
    provider.answers(events=_stream(), when=lambda request: bool(request.body.get("stream")))
    runs = {
        "speed": "async () => { await (await chat('a', { stream: true })).text(); return result({ score: 9 }); }",
        "talk": "async () => { await (await chat('b', { stream: true })).text();"
        " return result({ score: undefined }); }",
        "whole": "async () => { await ask('c'); return result({ score: 7 }); }",
    }
    score = f"return {{ totalScore: 8, categories: [], {total} }};"
    write_asking_pack(pytester.path / "pack", runs, score=score)
    run_packs(pytester, url=provider.url).assert_outcomes(passed=3)
    run_packs(pytester, "--helmbench-cache=only", url=provider.url).assert_outcomes(**replayed)
