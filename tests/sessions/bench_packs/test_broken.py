"""Bench Packs that cannot run: skipped with the reason, or broken with all that is wrong, beside healthy ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from bench_pack_folders import write_bench_pack_folder
from bench_pack_sessions import ASKS, node_processes, run_packs, write_asking_pack
from provider import Provider
from trees import clear_environment, rows

from pytest_helmbench.cli.main import main

_VERIFIER = {"id": "exact", "transport": "http", "required": True, "defaultMode": "custom_url"}


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_environment(monkeypatch)
    monkeypatch.delenv("HELMBENCH_NODE", raising=False)


def test_what_nobody_can_run_is_skipped_with_the_reason(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    packs = pytester.path / "packs"
    write_asking_pack(packs / "healthy", {"a": ASKS})
    skipped: dict[str, dict[str, Any]] = {
        "newer": {"requirements": {"benchlocal": {"minVersion": "9.0.0"}}},
        "older": {"requirements": {"benchlocal": {"maxVersionExclusive": "0.3.0"}}},
        "featured": {"requirements": {"hostFeatures": ["inferenceEndpoints", "holograms"]}},
        "verified": {"verifiers": [_VERIFIER], "capabilities": {"verification": True}},
        "website": {"type": "web", "entry": "https://bench.example/"},
    }
    for name, manifest in skipped.items():
        write_asking_pack(packs / name, {"a": ASKS, "b": ASKS}, manifest={"id": name, **manifest})

    result = run_packs(pytester, "-rs", "-v", url=provider.url, paths=("packs",))

    # Listing works without what a run would need; a web page does not list its scenarios.
    result.assert_outcomes(passed=1, skipped=9)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines_random(
        [
            "SKIPPED [[]2] * it requires BenchLocal 9.0.0 or newer; this host offers what 0.3.0 does*",
            "SKIPPED [[]2] * it requires a BenchLocal older than 0.3.0; this host offers what 0.3.0 does*",
            "SKIPPED [[]2] * it requires 'holograms' of its host, which offers *",
            "SKIPPED [[]2] * verifier 'exact' *",
            "SKIPPED [[]1] * web *",
        ]
    )
    assert provider.count == 1
    found = """
        SELECT DISTINCT benchmarks.name, outcome, reason FROM results
        JOIN evaluation_runs ON evaluation_runs.id = run_id JOIN benchmarks ON benchmarks.id = benchmark_id
        ORDER BY 1
    """
    assert rows(pytester.path / "helmbench.db", found) == [
        ("featured", "skipped", "unsupported"),
        ("newer", "skipped", "unsupported"),
        ("older", "skipped", "unsupported"),
        ("small-pack", "passed", None),
        ("verified", "skipped", "no_verifier"),
        ("website", "skipped", "unsupported"),
    ]


def test_without_node_a_pack_is_skipped_with_what_to_install(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_asking_pack(pytester.path / "pack", {"a": ASKS, "b": ASKS})
    empty = pytester.mkdir("empty")
    monkeypatch.setenv("PATH", str(empty))
    nowhere = run_packs(pytester, "-rs", url=provider.url)
    nowhere.assert_outcomes(skipped=1)
    nowhere.stdout.fnmatch_lines(
        [
            "SKIPPED * Bench Packs need Node.js 20 or newer: there is no `node` on PATH*",
            "*install Node.js 20 or newer from https://nodejs.org*--helmbench-node or HELMBENCH_NODE*",
        ]
    )
    old = empty / "old-node"
    old.write_text("#!/bin/sh\necho v18.19.1\n")
    old.chmod(0o755)
    too_old = run_packs(pytester, "-rs", f"--helmbench-node={old}", url=provider.url)
    too_old.assert_outcomes(skipped=1)
    too_old.stdout.fnmatch_lines(["SKIPPED * Bench Packs need Node.js 20 or newer: *old-node is 18.19.1*"])
    assert provider.count == 0


def _write_broken(packs: Path, url: str) -> dict[str, str]:
    """Write a pack for each way of being broken, and return a sentence of each; one asks a provider when it lists."""
    asks = f"await fetch('{url}/chat/completions', {{ method: 'POST', body: '{{}}' }}).catch(() => 0)"
    entries = {
        "throws": ("throw new Error('no such dataset');", "no such dataset"),
        "syntax": ("module.exports = {", "SyntaxError"),
        "exports-nothing": ("module.exports = 7;", "cannot be loaded"),
        "imports-what-is-not-there": ("require('left-pad');", "left-pad"),
        "exits": ("process.exit(3);", "process.exit(3)"),
    }
    for name, (source, _) in entries.items():
        write_bench_pack_folder(packs / name, {}, source=source)
    listings = {
        "twice": (
            "return ['a', 'b', 'a'].map((id) => ({ id, title: 'A' }))",
            "scenario 3 has the id of scenario 1: 'a'",
        ),
        "none": ("return []", "listScenarios() returned 0 scenarios"),
        "no-list": ("return { id: 'a' }", "listScenarios() returned an object, not a list"),
        "blank": (
            "return [{ id: '  ', title: 'A' }]",
            "scenario 1: id is blank text, not a text with something in it",
        ),
        "list-throws": (f"{asks}; throw new Error('disk is full')", "disk is full"),
    }
    for name, (body, _) in listings.items():
        rest = "prepare() {}, scoreModelResults() {}"
        source = f"module.exports = {{ listScenarios: async () => {{ {body}; }}, {rest} }};"
        write_bench_pack_folder(packs / name, {}, source=source)
    return {name: sentence for name, (_, sentence) in (entries | listings).items()}


def test_a_broken_pack_is_one_error_and_its_neighbours_run(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    packs = pytester.path / "packs"
    write_asking_pack(packs / "healthy", {"a": ASKS, "b": ASKS})
    sentences = _write_broken(packs, provider.url)
    manifest = packs / "manifest" / "benchlocal.pack.json"
    manifest.parent.mkdir()
    manifest.write_text('{\n  "schemaVersion": 2,\n  "id": "m",\n  "entry": "../outside.js"\n}\n')
    unread = packs / "unread" / "benchlocal.pack.json"
    unread.parent.mkdir()
    unread.write_text('{\n  "schemaVersion": 1,\n  "id": "m"\n')

    result = run_packs(pytester, url=provider.url, paths=("packs", "--helmbench-show=all"))

    result.assert_outcomes(passed=2, errors=len(sentences) + 2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert {} not in [request.body for request in provider.requests]  # listing sends no request
    printed = result.stdout.str()
    for name, sentence in sentences.items():
        assert f"ERROR at setup of {name} " in printed, name
        assert sentence in printed, name
    # All problems of a manifest, each with its line.
    for line in (
        "packs/manifest/benchlocal.pack.json:1: there is no 'protocolVersion'",
        "packs/manifest/benchlocal.pack.json:2: schemaVersion is 2",
        "packs/manifest/benchlocal.pack.json:4: entry: '../outside.js' leads out of the pack",
        "packs/unread/benchlocal.pack.json:4: this is not valid JSON: expecting ',' delimiter",
    ):
        assert line in printed, line
    result.stdout.fnmatch_lines(
        [f"{len(sentences) + 2} broken files or rows: none of their cases ran (see ERRORS)"]
    )
    assert node_processes(pytester.path) == []


def test_the_commands_know_bench_packs(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    cards = [{"title": "What this tests", "content": "patience"}]
    listed: list[dict[str, Any]] = [
        {"id": "A-1", "title": "First", "category": "easy", "promptText": "Say blue.", "detailCards": cards},
        {"id": "A-2", "title": "Second", "category": "easy"},
        {"id": "B-1", "title": "Third", "category": "hard", "tags": ["slow"]},
    ]
    head = f"const LISTED = {json.dumps(listed)};"
    root = write_asking_pack(
        pytester.path / "benchmark", dict.fromkeys(("A-1", "A-2", "B-1"), ASKS), head=head
    )
    entry = root / "dist/benchlocal/index.js"
    source = entry.read_text()
    start = source.index("return [", source.index("listScenarios"))
    entry.write_text(source[:start] + "return LISTED;" + source[source.index(";", start) + 1 :])
    (pytester.path / "pytest.ini").write_text(
        "[pytest]\nfilterwarnings = error\naddopts = -p no:cacheprovider\n"
    )
    os.chdir(pytester.path)

    assert main(["check", "benchmark"]) == 0
    assert "small-pack: 3 scenarios" in capsys.readouterr().out
    assert main(["list"]) == 0
    table = capsys.readouterr().out
    assert [line.split() for line in table.splitlines()[2:5]] == [
        [one["id"], one["category"], one["title"]] for one in listed
    ]
    assert main(["prompt", "A-1"]) == 0
    shown = capsys.readouterr().out
    assert "Say blue." in shown
    assert "[What this tests]" in shown
    options = ["--", f"--helmbench-base-url={provider.url}"]
    assert main(["run-single", "--models", "test/good", *options]) == 0
    assert sorted(request.prompt for request in provider.requests) == ["A-1", "B-1"]
    assert main(["run-batch", "--scenario", "A-2", "--models", "test/good", *options]) == 0
    assert [request.prompt for request in provider.requests[2:]] == ["A-2"]
    assert main(["show", "last", "A-2"]) == 0
    detail = capsys.readouterr().out
    assert "pack: pass, score 100 (its own scale)" in detail
    assert main(["show", "last"]) == 0
    assert "the pack's own total: 100 (not over all scenarios); All 100" in capsys.readouterr().out

    entry.write_text("throw new Error('no such dataset');")
    assert main(["check", "benchmark"]) == 1
    assert "no such dataset" in capsys.readouterr().out


def test_a_pack_brings_no_links_for_its_data(pytester: pytest.Pytester, provider: Provider) -> None:
    pack = write_asking_pack(pytester.path / "pack", {"A": ""})
    (pytester.path / "victim").mkdir()
    (pack / ".helmbench" / "small-pack").mkdir(parents=True)
    (pack / ".helmbench" / "small-pack" / "data").symlink_to("../../../victim")
    pytester.chdir()
    found = run_packs(
        pytester, "--rootdir=pack", "--helmbench-db=pack/helmbench.db", url=provider.url, paths=("pack",)
    )
    found.stdout.fnmatch_lines(["*data: a link *"])
    assert provider.count == 0
