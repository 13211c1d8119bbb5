"""Ini files and conftest.py around and inside benchmarks: those that are not the user's end a session that asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from bench_pack_sessions import write_asking_pack
from inner_pytest import run_pytest, run_pytest_forked
from pack_rows import choice
from packs import write_pack
from trees import category, write_tree

_ASKS = "--helmbench-model=baseline/first"


def _tree(folder: Path) -> None:
    write_tree(folder, {"P1-B1-S1": category("RISK")})


def _pack(folder: Path) -> None:
    write_pack(folder, [choice("q1")])


def _bench_pack(folder: Path) -> None:
    write_asking_pack(folder, {"A": ""})


_KINDS: dict[str, Callable[[Path], None]] = {"tree": _tree, "pack": _pack, "bench-pack": _bench_pack}


@pytest.fixture(params=tuple(_KINDS))
def benchmark(request: pytest.FixtureRequest, pytester: pytest.Pytester) -> Path:
    """A downloaded benchmark of some kind."""
    folder = pytester.path / "downloads" / "other"
    _KINDS[request.param](folder)
    return folder


def _refused(result: pytest.RunResult, file: Path) -> None:
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {file}: pytest would " in result.stderr.str().replace("\n", " ")
    assert "collected" not in result.stdout.str()


@pytest.mark.parametrize("name", ["pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml"])
@pytest.mark.parametrize("place", [".", ".."], ids=["inside", "one-above"])
@pytest.mark.parametrize("asks", [(), (_ASKS,)], ids=["by-path", "by-option"])
def test_the_settings_of_a_benchmark_end_the_session(
    pytester: pytest.Pytester, benchmark: Path, name: str, place: str, asks: tuple[str, ...]
) -> None:
    section = {"setup.cfg": "tool:pytest", "pyproject.toml": "tool.pytest.ini_options"}.get(name, "pytest")
    ini = (benchmark / place / name).resolve()
    ini.write_text(f'[{section}]\naddopts = "--helmbench-base-url=http://127.0.0.1:9/v1"\n')
    _refused(run_pytest(pytester, "downloads/other", *asks), ini)


def test_settings_inside_a_benchmark_do_not_count_where_pytest_starts_in_it(
    pytester: pytest.Pytester, benchmark: Path
) -> None:
    (benchmark / "pytest.ini").write_text("[pytest]\nhelmbench_agent = sh -c 'touch taken'\n")
    (benchmark / "inner").mkdir()
    for place in (benchmark, benchmark / "inner"):
        os.chdir(place)
        _refused(run_pytest(pytester, _ASKS), benchmark / "pytest.ini")


@pytest.mark.parametrize(
    "addopts",
    [
        "--tx popen//python={program} -d",
        "-c pytest.ini",
        "--rootdir=downloads/other",
        "-o helmbench_trusted=.",
    ],
)
def test_no_word_of_addopts_in_a_benchmark_has_an_effect(
    pytester: pytest.Pytester, benchmark: Path, addopts: str
) -> None:
    program = pytester.path / "program"
    program.write_text(f"#!/bin/sh\ntouch {pytester.path}/taken\n")
    program.chmod(0o755)
    ini = benchmark / "pytest.ini"
    ini.write_text(f"[pytest]\naddopts = {addopts.format(program=program)}\n")

    result = run_pytest_forked(pytester, "downloads/other", _ASKS)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not (pytester.path / "taken").exists()


def test_settings_that_are_named_count(pytester: pytest.Pytester) -> None:
    _tree(pytester.path / "other")
    (pytester.path / "other" / "pytest.ini").write_text("[pytest]\nhelmbench_repeat = 2\n")
    for named in (("-c", "other/pytest.ini"), ("--rootdir=other",)):
        run_pytest(pytester, "other", _ASKS, *named).assert_outcomes(passed=2)
    (pytester.path / "own.ini").write_text("[pytest]\nhelmbench_repeat = 3\n")
    run_pytest(pytester, "other", _ASKS, "-c", "own.ini").assert_outcomes(passed=3)


def _takes(folder: Path) -> str:
    return f"import pathlib\npathlib.Path({str(folder / 'taken')!r}).touch()\n"


@pytest.mark.parametrize("named", [True, False], ids=["by-path", "by-default"])
def test_a_conftest_inside_a_benchmark_ends_the_session(
    pytester: pytest.Pytester, benchmark: Path, *, named: bool
) -> None:
    pytester.makeini("[pytest]\nhelmbench_paths = downloads/other\n")
    (benchmark / "conftest.py").write_text(_takes(pytester.path))
    paths = ("downloads/other",) if named else ()

    _refused(run_pytest(pytester, *paths, _ASKS), benchmark / "conftest.py")

    assert not (pytester.path / "taken").exists()


@pytest.mark.parametrize("place", ["scenarios", "scenarios/P1-B1-S1", "env", "tests", "link"])
@pytest.mark.parametrize("path", ["other", ".", "other/scenarios/P1-B1-S1"])
def test_a_conftest_deep_in_a_tree_ends_the_session_where_pytest_would_run_it(
    pytester: pytest.Pytester, place: str, path: str
) -> None:
    _tree(pytester.path / "other")
    (pytester.path / "other" / ".hidden").mkdir()
    (pytester.path / "other" / "link").symlink_to(".hidden")
    folder = pytester.path / "other" / place
    folder.mkdir(exist_ok=True)
    (folder / "conftest.py").write_text(_takes(pytester.path))

    result = run_pytest(pytester, path, _ASKS)

    if not path.endswith("S1") or place.startswith("scenarios"):
        _refused(result, folder / "conftest.py")
    assert not (pytester.path / "taken").exists()


def test_a_conftest_of_a_benchmark_that_is_trusted_is_run(pytester: pytest.Pytester) -> None:
    _tree(pytester.path / "other")
    (pytester.path / "other" / "conftest.py").write_text(_takes(pytester.path))
    (pytester.path / "project").mkdir()
    ini = pytester.path / "project" / "pytest.ini"
    ini.write_text("[pytest]\nhelmbench_trusted = ../elsewhere\n")
    run = ("../other", _ASKS, "-c", "pytest.ini")
    os.chdir(ini.parent)
    _refused(run_pytest(pytester, *run), pytester.path / "other" / "conftest.py")
    ini.write_text("[pytest]\nhelmbench_trusted = ../elsewhere ../other\n")
    run_pytest(pytester, *run).assert_outcomes(passed=1)
    assert (pytester.path / "taken").exists()
    run_pytest(pytester, *run, "-n2").assert_outcomes(passed=1)


def test_a_conftest_among_the_data_of_a_pack_is_data(pytester: pytest.Pytester) -> None:
    folder = pytester.path / "other"
    write_pack(
        folder, [choice("q1")], files=dict.fromkeys(("assets/conftest.py", "tests/conftest.py"), "1 / 0")
    )
    run_pytest(pytester, "other", _ASKS).assert_outcomes(failed=1)


def test_folders_of_a_benchmark_are_no_packages(pytester: pytest.Pytester, benchmark: Path) -> None:
    """pytest imports the `__init__.py` of a folder before it runs what is in it."""
    taken = pytester.path / "taken"
    folders = [benchmark, *(path for path in benchmark.rglob("*") if path.is_dir())]
    for folder in folders:
        (folder / "__init__.py").write_text(f"open({str(taken)!r}, 'a').close()\n")

    for options in ((_ASKS,), (_ASKS, "-n2"), (_ASKS, "--import-mode=importlib")):
        assert "error" not in run_pytest(pytester, "downloads/other", *options).parseoutcomes()
        assert not taken.exists()


@pytest.mark.parametrize("place", [".", "scenarios", "scenarios/P1-B1-S1"])
def test_a_text_of_a_benchmark_is_no_doctest(pytester: pytest.Pytester, place: str) -> None:
    _tree(pytester.path / "other")
    text = pytester.path / "other" / place / "test_more.txt"
    text.write_text(f">>> open({str(pytester.path / 'taken')!r}, 'w').close()\n")
    own = pytester.path / "test_own.txt"
    own.write_text(">>> 1 + 1\n2\n")

    for more in ((), ("--doctest-glob=*.txt",), ("-n2",)):
        run_pytest(pytester, "other", "test_own.txt", _ASKS, *more).assert_outcomes(passed=2)
    assert run_pytest(pytester, str(text), _ASKS).ret == pytest.ExitCode.USAGE_ERROR
    assert not (pytester.path / "taken").exists()
    run_pytest(pytester, "other", _ASKS, "-o", "helmbench_trusted=other").assert_outcomes(passed=2)
    assert (pytester.path / "taken").exists()


@pytest.mark.parametrize(
    ("settings", "words"), [("testpaths = downloads/*\n", ()), ("", ("--pyargs", "downloads.other"))]
)
def test_a_conftest_is_refused_however_the_benchmark_is_found(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, settings: str, words: tuple[str, ...]
) -> None:
    folder = pytester.path / "downloads" / "other"
    _tree(folder)
    for file in (folder.parent / "__init__.py", folder / "__init__.py"):
        file.touch()
    (folder / "conftest.py").write_text("raise SystemExit(77)\n")
    pytester.makefile(".ini", pytest=f"[pytest]\n{settings}")
    monkeypatch.syspath_prepend(pytester.path)

    result = run_pytest(pytester, *words, _ASKS)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "conftest.py: pytest would run code of the benchmark that it is to run" in result.stderr.str()
