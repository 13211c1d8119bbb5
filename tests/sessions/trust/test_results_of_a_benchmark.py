"""Results files of others: not found by files of a benchmark, and not asked where prompts and keys go."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from inner_pytest import run_pytest
from provider import Provider
from trees import category, clear_environment, write_tree

_TOKEN = "ghp-value-of-the-token"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)
    monkeypatch.setenv("GITHUB_TOKEN", _TOKEN)


def _brought(pytester: pytest.Pytester, address: str, models: Sequence[str] = ("a/b",)) -> Path:
    """Write a benchmark with the record of a session that has not finished, to go on at an address of its own."""
    folder = write_tree(pytester.path / "downloads" / "other", {"P1-B1-S1": category("RISK")})
    db = folder / "helmbench.db"
    run_pytest(pytester, "downloads/other", "--helmbench-model=baseline/first", f"--helmbench-db={db}")
    with sqlite3.connect(db) as record:
        [(text,)] = record.execute("SELECT settings FROM evaluation_runs")
        route = {"id": models[0], "address": address, "key_env": "GITHUB_TOKEN", "usable": True}
        words = {"models": models, "base_url": address, "api_key_env": "GITHUB_TOKEN", "routes": [route]}
        settings = {**json.loads(text), **words}
        record.execute("UPDATE llms SET name = ?", models)
        record.execute(
            "UPDATE evaluation_runs SET status = 'interrupted', settings = ?", (json.dumps(settings),)
        )
    record.close()
    return folder


@pytest.mark.parametrize("mark", ["setup.py", "pyproject.toml"])
def test_files_of_a_benchmark_do_not_say_where_results_are(
    pytester: pytest.Pytester, provider: Provider, mark: str
) -> None:
    folder = _brought(pytester, provider.url)
    (folder / mark).touch()
    before = (folder / "helmbench.db").read_bytes()

    resumed = run_pytest(pytester, "downloads/other", "--helmbench-resume")
    assert resumed.ret == pytest.ExitCode.USAGE_ERROR
    assert f"nothing to resume: {pytester.path / 'helmbench.db'} does not exist" in resumed.stderr.str()
    run_pytest(pytester, "downloads/other", "--helmbench-model=baseline/first")
    assert (pytester.path / "helmbench.db").is_file()
    assert (folder / "helmbench.db").read_bytes() == before
    assert provider.count == 0


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (["a/b"], "address of a/b was {url}, now https://openrouter.ai/api/v1"),
        (["a/b"], "key variable of a/b was GITHUB_TOKEN, now OPENROUTER_API_KEY"),
        (["python:os:system"], "names code, and a results file does not decide what runs: python:os:system"),
    ],
)
def test_no_results_file_says_where_keys_go_or_what_runs(
    pytester: pytest.Pytester, provider: Provider, models: list[str], said: str
) -> None:
    folder = _brought(pytester, provider.url, models)
    os.chdir(folder)

    refused = run_pytest(pytester, "--helmbench-resume", f"--helmbench-db={folder / 'helmbench.db'}")

    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert said.format(url=provider.url) in refused.stderr.str()
    assert provider.count == 0
