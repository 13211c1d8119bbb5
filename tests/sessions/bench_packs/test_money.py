"""Calls of Bench Packs: metered per item, bound by budget and limits, and never with a key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench_pack_sessions import ASKS, bench_pack_outcomes, model_reasons, run_packs, write_asking_pack
from provider import Provider
from trees import rows

_KEY = "sk-secret-of-forty-characters-0123456789"
_TWICE = "async () => { await ask('first'); await ask('second, and longer'); return result(); }"


def test_every_call_of_an_item_is_metered(pytester: pytest.Pytester, provider: Provider) -> None:
    write_asking_pack(pytester.path / "pack", {"one": ASKS, "two": _TWICE})
    provider.answers(text="a reply of some length", finish_reason="length", latency_s=0.05)

    run_packs(pytester, url=provider.url).assert_outcomes(passed=2)

    database = pytester.path / "helmbench.db"
    per_item = """
        SELECT code, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, cost_usd
        FROM results ORDER BY code
    """
    assert rows(database, per_item) == [("one", 1, 5, 3, 2, 0.001), ("two", 5, 10, 6, 4, 0.002)]
    assert all(50 <= ms < 5_000 for (ms,) in rows(database, "SELECT latency_ms FROM results"))
    calls = """
        SELECT calls.code, purpose, sequence, attempt, status_code, finish_reason, calls.cost_usd, from_cache,
            results.code, calls.latency_ms >= 50
        FROM calls JOIN results USING (run_id, code, repetition) ORDER BY 1, 3
    """
    assert rows(database, calls) == [
        (code, "pack", sequence, 1, 200, "length", 0.001, 0, code, 1)
        for code, sequence in (("one", 1), ("two", 1), ("two", 2))
    ]
    assert rows(database, "SELECT round(cost_usd, 6), status FROM evaluation_runs") == [(0.003, "complete")]


def test_overrides_are_held_even_by_packs_that_send_others(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    sent = "{ seed: 1, max_tokens: 9999, temperature: 1.5, top_p: 0.5 }"
    generated = "{ ...input.generation, request_timeout_seconds: undefined }"
    write_asking_pack(
        pytester.path / "pack",
        {
            "own": f"async () => {{ await ask('own', {sent}); return result(); }}",
            "told": f"async () => {{ await ask('told', {generated}); return result(); }}",
            "none": "async () => { await ask('none'); return result(); }",
        },
        manifest={"samplingDefaults": {"temperature": 0, "top_p": 0.9, "own_knob": 7}},
    )
    options = ("--helmbench-seed=42", "--helmbench-max-tokens=64", "--helmbench-temperature=0.3")
    run_packs(pytester, *options, "--helmbench-repeat=2", url=provider.url).assert_outcomes(passed=6)

    bodies: dict[str, list[dict[str, Any]]] = {}
    for request in provider.requests:
        knobs = {name: value for name, value in request.body.items() if name not in ("model", "messages")}
        bodies.setdefault(request.prompt, []).append(knobs)
    for name, more in {
        "own": {"temperature": 0.3, "top_p": 0.5},
        "told": {"temperature": 0.3, "top_p": 0.9, "own_knob": 7},
        "none": {"temperature": 0.3},
    }.items():
        found = sorted(bodies[name], key=lambda knobs: knobs["seed"])
        # A seed moves on with the repetition.
        assert found == [{**more, "seed": seed, "max_tokens": 64} for seed in (42, 43)], name


def test_a_spent_budget_skips_what_it_cannot_pay_and_resume_pays_for_the_rest(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    provider.cost_usd = 0.1
    runs = {f"s{number}": ASKS for number in range(5)} | {"s5": _TWICE}
    root = write_asking_pack(pytester.path / "pack", runs, manifest={"concurrency": 1})
    (root / "models.yml").write_text(
        "- id: test/good\n  price: {input: 0, output: 10000}\n  max_tokens: 10\n"
    )
    budget = ("--helmbench-max-cost=0.35", "-rs")

    short_of = run_packs(pytester, *budget, url=provider.url)

    short_of.assert_outcomes(passed=3, skipped=3)
    assert short_of.ret == pytest.ExitCode.TESTS_FAILED
    short_of.stdout.fnmatch_lines(["✗ FAILS   *: the budget was spent: what it could not pay was skipped"])
    database = pytester.path / "helmbench.db"
    found = model_reasons(bench_pack_outcomes(database))
    assert [found[f"s{number}"] for number in range(6)] == ["passed"] * 3 + ["skipped budget"] * 3
    assert provider.count == 3
    assert rows(database, "SELECT total, partial FROM pack_scores") == [(100.0, 1)]

    rest = run_packs(pytester, "--helmbench-resume", "--helmbench-max-cost=0.9", url=provider.url)
    rest.assert_outcomes(passed=6)
    assert provider.count == 7
    run = "SELECT id, status, round(cost_usd, 6), total, partial FROM evaluation_runs JOIN pack_scores ON run_id = id"
    assert rows(database, run) == [(1, "complete", 0.7, 100.0, 0)]


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_dead_model_is_no_model_failure(
    pytester: pytest.Pytester, provider: Provider, workers: str
) -> None:
    said = "async () => { const answer = await chat('x'); return result({ status: answer.ok ? 'pass' : 'fail' }); }"
    write_asking_pack(pytester.path / "pack", {f"s{number}": said for number in range(6)})
    provider.answers(status=401)

    result = run_packs(pytester, workers, "--helmbench-concurrency=1", url=provider.url)

    result.assert_outcomes(errors=1, skipped=5)
    assert provider.count == 1
    result.stdout.fnmatch_lines(["✗ FAILS   test/good: stopped: *401*"])
    found = model_reasons(bench_pack_outcomes(pytester.path / "helmbench.db"))
    assert sorted(found.values()) == ["error model_stopped", *["skipped model_stopped"] * 5]


_STEALS = """
const found = [];
const look = (value) => {
  try { found.push(typeof value === "function" ? value() : JSON.stringify(value)); } catch {}
};
"""
_STEALING = """async () => {
    await ask('honest');
    const fs = require('node:fs');
    look(process.env); look(process.argv); look(process.execArgv); look(context); look(input);
    for (const name of ['environ', 'cmdline']) for (const who of ['self', process.ppid]) {
      look(() => fs.readFileSync(`/proc/${who}/${name}`, 'utf8'));
    }
    return result({ rawLog: found.join('\\n') });
}"""


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "with-a-verifier"])
def test_the_key_and_the_provider_stay_with_the_gateway(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    verifier = {"id": "v", "transport": "http", "required": False, "defaultMode": "custom_url"}
    manifest = {} if guarded else {"verifiers": [verifier], "capabilities": {"verification": True}}
    write_asking_pack(pytester.path / "pack", {"a": _STEALING}, head=_STEALS, manifest=manifest)
    monkeypatch.setenv("SOME_KEY", _KEY)
    monkeypatch.setenv("HELMBENCH_API_KEY", _KEY)

    options = ("--helmbench-api-key-env=SOME_KEY", "--helmbench-with-text=all", "--junitxml=report.xml")
    run_packs(pytester, *options, url=provider.url).assert_outcomes(passed=1)

    [request] = provider.requests
    assert request.headers["authorization"] == f"Bearer {_KEY}"
    [(log,)] = rows(pytester.path / "helmbench.db", "SELECT raw_log FROM pack_results")
    # It saw an address of the relay's and a token, which is not kept; nothing of its parent's or the provider's.
    assert '"baseUrl":"http://127.0.0.1:' in log
    assert '"apiKey":"<redacted>"' in log
    assert provider.url.removeprefix("http://").removesuffix("/v1") not in log
    assert "HELMBENCH_API_KEY" not in log
    for path in filter(Path.is_file, pytester.path.rglob("*")):
        assert _KEY.encode() not in path.read_bytes(), path
