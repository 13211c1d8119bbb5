"""A Bench Pack in an archive runs, and is checked and listed, like its folder."""

from __future__ import annotations

import tarfile

import pytest
from bench_pack_sessions import write_asking_pack
from provider import Provider
from trees import clear_environment, rows, run_tree

from pytest_helmbench.cli.main import main


def test_a_pack_runs_from_its_archive(
    pytester: pytest.Pytester,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    clear_environment(monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    folder = write_asking_pack(
        pytester.path / "source",
        dict.fromkeys(("one", "two"), "async () => { await ask('x'); return result(); }"),
    )
    with tarfile.open(pytester.path / "benchmark-pack.tgz", "w:gz") as archive:
        archive.add(folder, "package")

    result = run_tree(pytester, "benchmark-pack.tgz", url=provider.url)

    result.assert_outcomes(passed=2)
    assert rows(pytester.path / "helmbench.db", "SELECT code, outcome FROM results ORDER BY code") == [
        ("one", "passed"),
        ("two", "passed"),
    ]
    capsys.readouterr()
    assert main(["check", "benchmark-pack.tgz"]) == 0
    assert main(["list", "benchmark-pack.tgz"]) == 0
    assert "Scenario two" in capsys.readouterr().out
    (pytester.path / "benchmark-bad.tgz").write_bytes(b"")
    refused = run_tree(pytester, "benchmark-bad.tgz", url=provider.url)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*benchmark-bad.tgz: the archive cannot be unpacked*"])
