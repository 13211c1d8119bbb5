"""Results files that a benchmark brings: neither found by its files, nor asked where prompts and keys go."""

from __future__ import annotations

import json
import os
import sqlite3
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


def _brought(pytester: pytest.Pytester, address: str) -> Path:
    """Write a benchmark with the record of a session that has not finished, to go on at an address of its own."""
    folder = write_tree(pytester.path / "downloads" / "other", {"P1-B1-S1": category("RISK")})
    db = folder / "helmbench.db"
    run_pytest(pytester, "downloads/other", "--helmbench-model=baseline/first", f"--helmbench-db={db}")
    with sqlite3.connect(db) as record:
        [(text,)] = record.execute("SELECT settings FROM evaluation_runs")
        settings = {**json.loads(text), "models": ["a/b"], "base_url": address, "api_key_env": "GITHUB_TOKEN"}
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

    named = run_pytest(
        pytester, "--rootdir=downloads/other", "downloads/other", "--helmbench-resume=or-start"
    )
    assert "stands in a benchmark" in named.stderr.str()


def test_a_results_file_in_a_benchmark_does_not_say_where_keys_go(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    folder = _brought(pytester, provider.url)
    os.chdir(folder)

    refused = run_pytest(pytester, "--helmbench-resume")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    said = " ".join(refused.stderr.str().split())
    assert (
        f"does not decide where prompts and keys go: base_url {provider.url}; api_key_env GITHUB_TOKEN"
        in said
    )
    assert "hint: where it is yours, name it: --helmbench-db=" in said
    assert provider.count == 0

    named = run_pytest(pytester, f"--helmbench-db={folder / 'helmbench.db'}", "--helmbench-resume")
    assert "stands in a benchmark" not in named.stderr.str()
    assert (
        "models of" in named.stderr.str() + named.stdout.str()
    )  # it was another model's, as the record says
