"""Secrets of the environment that the user has typed into an option: sent, and not stored."""

from __future__ import annotations

import json

import pytest
from provider import Provider
from trees import category, clear_environment, rows, run_tree, write_tree

_SECRET = 'a "quoted" välue/0123456789'


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["one", "n2"])
def test_a_secret_that_was_typed_is_not_stored(
    pytester: pytest.Pytester,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    workers: tuple[str, ...],
) -> None:
    clear_environment(monkeypatch)
    monkeypatch.setenv("ROUTE_TOKEN", _SECRET)
    monkeypatch.setenv("PLAIN_WORDS", "words-that-are-no-secret")
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    extra = {"route": {"token": f"Bearer {_SECRET}"}, "plain": "words-that-are-no-secret"}
    files = ("--junitxml=junit.xml", "--helmbench-markdown=report.md", "--helmbench-json=report.json")
    options = (f"--helmbench-extra-body={json.dumps(extra)}", f"--helmbench-agent=run --token '{_SECRET}'")

    result = run_tree(pytester, *options, *files, "--helmbench-with-text=all", *workers, url=provider.url)

    result.assert_outcomes(passed=1)
    assert provider.requests[0].body["route"] == extra["route"]
    seen = result.stdout.str().encode() + result.stderr.str().encode()
    for path in pytester.path.glob("*.*"):
        if path.suffix in (".xml", ".md", ".json", ".db", ".db-wal"):
            seen += path.read_bytes()
    assert b"0123456789" not in seen
    [(settings,)] = rows(pytester.path / "helmbench.db", "SELECT settings FROM evaluation_runs")
    told = json.loads(settings)
    assert told["agent"] == "run --token '<redacted>'"
    assert told["sampling"]["extra_body"] == {
        "route": {"token": "Bearer <redacted>"},
        "plain": "words-that-are-no-secret",
    }
    [(body,)] = rows(pytester.path / "helmbench.db", "SELECT body FROM requests")
    assert json.loads(body)["route"] == {"token": "Bearer <redacted>"}
