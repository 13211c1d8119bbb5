"""Packs that measure speed: they measure the model, and a recorded reply does not count as a measurement."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bench_pack_sessions import run_packs, write_asking_pack
from provider import Provider
from trees import rows

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
    assert 1 < rate < 30  # a busy provider is slower; all at once would be thousands


def test_a_manifest_may_say_that_its_pack_measures_speed(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    provider.answers(events=_stream())
    write_asking_pack(pytester.path / "pack", {"talk": _TALKS}, manifest={"measures": "speed"})
    run_packs(pytester, url=provider.url).assert_outcomes(passed=1)
    run_packs(pytester, "--helmbench-cache=reuse", url=provider.url).assert_outcomes(skipped=1)
