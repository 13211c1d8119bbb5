"""Bench Packs on record: what the results file keeps of them, and runs that are replayed out of it."""

from __future__ import annotations

import json
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bench_pack_sessions import ASKS, run_packs, write_asking_pack
from provider import Provider, Request
from records import final_state, integrity
from trees import rows

_TELLING = """async () => {
    emit({ type: 'model_progress', modelId: input.model.id, message: 'asking' });
    context.logger.info('halfway', { step: 1 });
    const said = await ask('telling');
    emit({ type: 'model_progress', modelId: input.model.id, message: `it says ${said}` });
    return result({
      status: 'fail', score: 12.5, points: 3, summary: 'wrong', note: 'a note', rawLog: `said: ${said}`,
      output: { finalAnswer: said }, verifier: { status: 'none' }, artifacts: [{ id: 'a', path: 'x.txt' }],
      timings: { durationMs: 5 }, own: { kept: true },
    });
}"""
_THRICE = """async () => {
    const said = [];
    for (let n = 0; n < 3; n += 1) said.push(await ask('the same'));
    said.push(...await Promise.all(['p', 'p'].map((one) => ask(one))).then((found) => found.sort()));
    return result({ output: { said }, summary: said.join(' ') });
}"""
_KEPT = """
    SELECT code, repetition, outcome, reason, results.score, prompt_tokens, completion_tokens, status,
        pack_results.score, points, note, summary, raw_log, output, verifier, artifacts
    FROM results LEFT JOIN pack_results ON result_id = results.id WHERE run_id = {} ORDER BY code, repetition
"""
_EVENTS = """
    SELECT type, payload FROM events LEFT JOIN results ON results.id = result_id
    WHERE {} ORDER BY events.at, events.id
"""


def _numbering(provider: Provider) -> None:
    """Let the provider give the n-th same request the answer `TEXT n`."""
    asked: Counter[str] = Counter()

    def reply(request: Request) -> str:
        asked[request.prompt] += 1
        return f"{request.prompt} {asked[request.prompt]}"

    provider.reply = reply


def _payloads(database: Path, where: str) -> list[tuple[str, Any]]:
    return [(kind, json.loads(payload)) for kind, payload in rows(database, _EVENTS.format(where))]


def test_results_scores_events_and_calls_are_on_record(pytester: pytest.Pytester, provider: Provider) -> None:
    write_asking_pack(
        pytester.path / "pack", {"telling": _TELLING, "plain": ASKS, "failing": "async () => { throw 7; }"}
    )
    before = {path: path.read_bytes() for path in (pytester.path / "pack").rglob("*") if path.is_file()}

    run_packs(pytester, url=provider.url).assert_outcomes(passed=1, failed=1, errors=1)

    database = pytester.path / "helmbench.db"
    texts = """
        SELECT status, pack_results.score, points, note, summary, raw_log
        FROM pack_results JOIN results ON id = result_id ORDER BY code
    """
    assert rows(database, texts) == [
        ("pass", 100.0, None, None, "done", None),
        ("fail", 12.5, 3.0, "a note", "wrong", "said: ok"),
    ]
    values = "SELECT output, verifier, artifacts, timings FROM pack_results WHERE note IS NOT NULL"
    assert [tuple(map(json.loads, row)) for row in rows(database, values)] == [
        ({"finalAnswer": "ok"}, {"status": "none"}, [{"id": "a", "path": "x.txt"}], {"durationMs": 5})
    ]
    total = "SELECT total, unit, categories, summary, partial FROM pack_scores"
    assert rows(database, total) == [(56.25, None, '[{"id":"all","label":"All","score":56.25}]', None, 1)]
    told = _payloads(database, "code = 'telling'")
    assert [kind for kind, _ in told] == [
        "scenario_started",
        "model_progress",
        "log",
        "model_progress",
        "scenario_result",
        "scenario_finished",
    ]
    assert [payload["message"] for _, payload in told[1:4]] == ["asking", "halfway", "it says ok"]
    assert told[0][1] == {
        "type": "scenario_started",
        "scenarioId": "telling",
        "title": "Scenario telling",
        "index": 1,
        "total": 3,
    }
    assert told[4][1]["result"]["own"] == {"kept": True}
    failing = _payloads(database, "code = 'failing'")
    assert [kind for kind, _ in failing] == ["scenario_started", "scenario_error", "scenario_finished"]
    assert "runScenario() threw 7" in failing[1][1]["message"]
    of_run = _payloads(database, "events.result_id IS NULL")
    assert [kind for kind, _ in of_run] == ["run_started", "run_finished"]
    assert of_run[1][1]["scores"]["test/good"]["totalScore"] == 56.25
    assert rows(database, "SELECT DISTINCT purpose FROM calls") == [("pack",)]
    assert integrity(database) == "ok"
    home = pytester.path / ".helmbench"
    assert sorted(path.name for path in (home / "small-pack").iterdir()) == ["cache", "data", "runs"]
    assert (home / ".gitignore").read_text() == "*\n"
    # The pack's folder is as it was.
    assert {
        path: path.read_bytes() for path in (pytester.path / "pack").rglob("*") if path.is_file()
    } == before


def test_one_process_and_two_workers_keep_the_same(pytester: pytest.Pytester, provider: Provider) -> None:
    write_asking_pack(
        pytester.path / "pack", {"telling": _TELLING, "plain": ASKS, "failing": "async () => { throw 7; }"}
    )
    states = []
    for workers in ("-n0", "-n2"):
        database = pytester.path / f"{workers}.db"
        run_packs(pytester, workers, "--helmbench-repeat=2", f"--helmbench-db={database}", url=provider.url)
        states.append(
            (
                final_state(database),
                rows(database, _KEPT.format(1)),
                rows(database, "SELECT * FROM pack_scores"),
            )
        )
    assert states[0] == states[1]


def test_a_recorded_run_replays_without_a_provider(pytester: pytest.Pytester, provider: Provider) -> None:
    write_asking_pack(pytester.path / "pack", {"telling": _TELLING, "thrice": _THRICE, "plain": ASKS})
    _numbering(provider)
    options = ("--helmbench-repeat=2",)
    run_packs(pytester, *options, "--helmbench-cache=reuse", url=provider.url).assert_outcomes(
        passed=4, failed=2
    )
    asked = provider.count
    assert asked == 2 * (1 + 5 + 1)
    database = pytester.path / "helmbench.db"
    said = (
        "SELECT output FROM pack_results JOIN results ON id = result_id WHERE code = 'thrice' AND run_id = {}"
    )
    first = sorted(rows(database, said.format(1)))

    with socket.create_server(("127.0.0.1", 0)) as nobody:
        dead = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
    replay = run_packs(pytester, *options, "-n2", "--helmbench-cache=only", url=dead)

    replay.assert_outcomes(passed=4, failed=2)
    assert provider.count == asked
    # The n-th same request of an item has its n-th reply again.
    assert sorted(rows(database, said.format(2))) == first
    assert rows(database, _KEPT.format(2)) == rows(database, _KEPT.format(1))
    scores = "SELECT total, unit, categories, summary, partial FROM pack_scores WHERE run_id = {}"
    assert rows(database, scores.format(2)) == rows(database, scores.format(1))
    valid = "SELECT json_extract(timings, '$.valid') FROM pack_results JOIN results ON id = result_id WHERE run_id = {}"
    assert rows(database, valid.format(1)) == [(None,)] * 6
    assert rows(database, valid.format(2)) == [(0,)] * 6
    spent = "SELECT min(from_cache), total(cost_usd), count(*) FROM calls WHERE run_id = 2"
    assert rows(database, spent) == [(1, 0.0, asked)]
    # Another session of the kind makes no call either.
    run_packs(pytester, *options, "--helmbench-cache=reuse", url=provider.url).assert_outcomes(
        passed=4, failed=2
    )
    assert provider.count == asked


def test_a_request_that_is_not_on_record_is_an_error_of_its_item(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    swallows = """async () => {
        const answer = await chat(input.scenario.id);
        return result({ status: answer.ok ? 'pass' : 'fail' });
    }"""
    root = write_asking_pack(pytester.path / "pack", {"a": swallows, "b": swallows})
    run_packs(pytester, "-k", "a[", url=provider.url).assert_outcomes(passed=1)
    result = run_packs(pytester, "--helmbench-cache=only", url=provider.url)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["no stored reply to this request (--helmbench-cache=only)"])
    assert provider.count == 1
    assert root.is_dir()
