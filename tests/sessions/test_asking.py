"""When a session asks for cases, which benchmark it runs, and what one that does not ask never does."""

from __future__ import annotations

from pathlib import Path

import pytest
from inner_pytest import run_pytest
from trees import category, collected, run_tree, write_tree

_CODE = "P1-B1-S1-C1-PT1[no-model]"


@pytest.fixture
def repository(pytester: pytest.Pytester) -> Path:
    """A project with tests of its own and a benchmark where it is looked for."""
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK")})
    (pytester.path / "tests").mkdir()
    (pytester.path / "tests" / "test_own.py").write_text("def test_own(): pass\n")
    return pytester.path


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts and path.suffix != ".pyc"}


@pytest.mark.parametrize("argument", [(), (".",), ("tests",), ("-n2",)], ids=["bare", "dot", "other", "n2"])
@pytest.mark.parametrize(
    "ini",
    [
        "[pytest]\naddopts = --helmbench-model=baseline/first --helmbench-dry-run\n",
        "[pytest]\nhelmbench_model = baseline/first\nhelmbench_dry_run = true\ntestpaths = tests benchmark\n",
    ],
    ids=["addopts", "ini-keys"],
)
def test_a_session_that_does_not_ask_shows_and_leaves_nothing_of_ours(
    pytester: pytest.Pytester, repository: Path, argument: tuple[str, ...], ini: str
) -> None:
    (repository / "pytest.ini").write_text(ini)
    before = _files(repository)

    result = run_pytest(pytester, "-p", "no:cacheprovider", *argument)

    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK
    shown = [line for line in result.outlines if not line.startswith(("plugins:", "rootdir:"))]
    assert "helmbench" not in "\n".join(shown)
    assert "P1-B1" not in result.stdout.str()
    assert {path for path in _files(repository) - before if "runpytest" not in str(path)} <= {
        repository / "stdout",
        repository / "stderr",
    }


@pytest.mark.parametrize(
    "path",
    [
        "benchmark",
        "benchmark/scenarios",
        "benchmark/scenarios/P1-B1-S1",
        "benchmark/scenarios/P1-B1-S1/S1.md",
        f"benchmark/scenarios/P1-B1-S1/S1.md::{_CODE}",
    ],
    ids=["root", "scenarios", "scenario", "file", "id"],
)
def test_a_path_at_or_inside_a_benchmark_asks(pytester: pytest.Pytester, repository: Path, path: str) -> None:
    result = run_pytest(pytester, path, "--collect-only", "-q")

    assert collected(result) == [_CODE]


@pytest.mark.parametrize("option", ["--helmbench-dry-run", "--helmbench-select=P1", "--helmbench-model=a/b"])
def test_an_option_that_asks_runs_the_default_benchmark_and_nothing_else(
    pytester: pytest.Pytester, repository: Path, option: str
) -> None:
    (repository / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")

    result = run_pytest(pytester, option, "--collect-only", "-q")

    model = "a/b" if "model" in option else "no-model"
    assert collected(result) == [f"P1-B1-S1-C1-PT1[{model}]"]


def test_a_dot_with_an_option_that_asks_collects_tests_and_cases(
    pytester: pytest.Pytester, repository: Path
) -> None:
    result = run_pytest(pytester, ".", "--helmbench-dry-run", "--collect-only", "-q")

    assert collected(result) == [_CODE, "test_own"]


def test_the_benchmark_that_the_current_folder_is_inside_of_goes_before_all_others(
    pytester: pytest.Pytester, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(repository / "second", {"P7-B1-S1": category("RISK")})
    (repository / "pytest.ini").write_text("[pytest]\nhelmbench_paths = benchmark\n")
    monkeypatch.chdir(repository / "second" / "scenarios" / "P7-B1-S1")

    result = run_pytest(pytester, "--helmbench-dry-run", "--collect-only", "-q")

    assert collected(result) == ["P7-B1-S1-C1-PT1[no-model]"]


def test_helmbench_paths_name_the_benchmarks_relative_to_rootdir(
    pytester: pytest.Pytester, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(repository / "more" / "second", {"P7-B1-S1": category("RISK")})
    (repository / "pytest.ini").write_text("[pytest]\nhelmbench_paths = more/second benchmark\n")
    monkeypatch.chdir(repository / "tests")

    result = run_pytest(pytester, "--helmbench-dry-run", "--collect-only", "-q")

    assert collected(result) == ["P7-B1-S1-C1-PT1[no-model]", _CODE]


def test_asking_where_there_is_no_benchmark_is_a_usage_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own="def test_own(): pass")

    result = run_pytest(pytester, "--helmbench-model=baseline/first")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"ERROR: no benchmark at {pytester.path}/benchmark",
            "  hint: give the path of one, or set helmbench_paths; a benchmark is a folder with scenarios/P1-B1-S1/*"
            " `pytest tests --helmbench-model=baseline/first` runs *",
        ]
    )

    pytester.makeini("[pytest]\ntestpaths = test_own.py")
    result = run_pytest(pytester, "--helmbench-model=baseline/first")
    result.assert_outcomes(passed=1)


def test_ini_keys_give_values_that_the_command_line_goes_before(
    pytester: pytest.Pytester, repository: Path
) -> None:
    (repository / "pytest.ini").write_text(
        "[pytest]\n"
        "helmbench_model =\n    baseline/first\n    baseline/random\n"
        "helmbench_repeat = 2\n"
        "helmbench_db = kept/results.db\n"
        "helmbench_select = P1-B1\n"
    )
    (repository / "kept").mkdir()

    result = run_tree(pytester, "--collect-only", "-q")
    assert collected(result) == [
        f"P1-B1-S1-C1-PT1[{model}{repetition}]"
        for model in ("baseline/first", "baseline/random")
        for repetition in ("", "-r2")
    ]

    result = run_tree(pytester, "--helmbench-model=baseline/lexical", "--helmbench-repeat=1", "-q")
    result.stdout.fnmatch_lines(["helmbench: baseline/lexical: 1 case, 1 call*results in kept/results.db"])
    assert (repository / "kept" / "results.db").is_file()
    assert not (repository / "helmbench.db").exists()


@pytest.mark.parametrize(
    ("ini", "message"),
    [
        ("helmbench_repeat = many", "--helmbench-repeat is 'many'"),
        ("helmbench_repeat = 0", "--helmbench-repeat is '0'"),
        ("helmbench_max_cost = -1", "--helmbench-max-cost is '-1'"),
        ("helmbench_extra_body = [1]", "--helmbench-extra-body is '[1]'"),
        ('helmbench_extra_body = {"a": 1e400}', "--helmbench-extra-body is '{\"a\": 1e400}'"),
        ("helmbench_temperature = nan", "--helmbench-temperature is 'nan'"),
        ("helmbench_ask_above = much", "ini helmbench_ask_above is 'much'"),
        ("helmbench_select = P1-X2", "--helmbench-select: 'X2' in 'P1-X2' is not a code component"),
        ("helmbench_base_url = ftp://x/v1", "base URL 'ftp://x/v1' is not an http:// or https:// address"),
    ],
)
def test_a_value_that_cannot_be_used_is_a_usage_error_that_names_it(
    pytester: pytest.Pytester, repository: Path, ini: str, message: str
) -> None:
    (repository / "pytest.ini").write_text(f"[pytest]\n{ini}\n")

    result = run_tree(pytester, "--helmbench-model=a/b")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {message}" in result.stderr.str()
    assert "  hint: " in result.stderr.str()
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
