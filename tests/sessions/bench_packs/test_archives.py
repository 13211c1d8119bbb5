"""A Bench Pack in an archive runs, and is checked and listed, like its folder."""

from __future__ import annotations

import tarfile
from xml.etree import ElementTree

import pytest
from bench_pack_sessions import ASKS, run_packs, write_asking_pack
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


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_items_of_an_archive_bear_its_name_and_run_by_it(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    clear_environment(monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    for name in ("q1", "q2"):
        folder = write_asking_pack(
            pytester.path / name, dict.fromkeys(("a", "b"), ASKS), manifest={"name": name}
        )
        with tarfile.open(pytester.path / f"{name}.tgz", "w:gz") as archive:
            archive.add(folder, "package")
    report = pytester.path / "junit.xml"
    both = run_packs(
        pytester, workers, f"--junitxml={report}", "-v", url=provider.url, paths=("q1.tgz", "q2.tgz")
    )
    both.assert_outcomes(passed=4)
    cases = {(case.get("classname"), case.get("name")) for case in ElementTree.parse(report).iter("testcase")}
    assert len(cases) == 4
    printed = "q1.tgz/benchlocal.pack.json::a[test/good]"
    assert printed in both.stdout.str()
    for one in (printed, "q1.tgz::a[test/good]"):
        run_packs(pytester, workers, url=provider.url, paths=(one,)).assert_outcomes(passed=1)
