"""The settings that commands read for themselves are those that pytest reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_helmbench.cli.output import CommandError
from pytest_helmbench.cli.project import Project
from pytest_helmbench.options.declarations import OPTIONS
from pytest_helmbench.options.option import Option

_PROJECTS: Mapping[str, Mapping[str, str]] = {
    "pytest.ini": {
        "pytest.ini": "[pytest]\nhelmbench_model =\n    a/b\n    c/d\nhelmbench_db : x.db\nhelmbench_pull = true\n"
        'helmbench_paths = "b 1" b2\n'
    },
    "comments": {
        "pytest.ini": "[pytest]\nhelmbench_db = x.db  # mine\nhelmbench_model = a/b\n    # d\n    e\n"
    },
    "percent": {"pytest.ini": "[pytest]\nhelmbench_db = %(x)s.db\n"},
    "byte order mark": {"pytest.ini": "\ufeff[pytest]\nhelmbench_db = x\n"},
    "blank values": {"pytest.ini": "[pytest]\nhelmbench_db =\nhelmbench_model =\nhelmbench_pull = no\n"},
    "empty pytest.ini": {"pytest.ini": "", "setup.cfg": "[tool:pytest]\nhelmbench_db = x\n"},
    "setup.cfg": {"setup.cfg": "[tool:pytest]\nhelmbench_db = x\n"},
    "tox.ini": {"tox.ini": "[pytest]\nhelmbench_db = x\n"},
    "tox.ini of tox alone": {"tox.ini": "[tox]\nenvlist = a\n", "pyproject.toml": '[project]\nname = "x"\n'},
    "pyproject.toml": {
        "pyproject.toml": '[tool.pytest.ini_options]\nhelmbench_model = ["a/b"]\nhelmbench_repeat = 3\n'
        'helmbench_pull = true\nhelmbench_paths = "a b"\n'
    },
    "settings above a pyproject.toml without": {
        "sub/pyproject.toml": '[project]\nname = "x"\n',
        "pytest.ini": "[pytest]\nhelmbench_db = up\n",
    },
    "setup.py": {"setup.py": ""},
    "nothing": {},
    "addopts": {
        "pytest.ini": "[pytest]\naddopts = --helmbench-db=a.db --helmbench-model x/y --helmbench-model=z"
        " --helmbench-pull -q\nhelmbench_db = b.db\n"
    },
    "-o in addopts": {"pytest.ini": "[pytest]\naddopts = -o helmbench_db=a.db\nhelmbench_db = b.db\n"},
    "--override-ini in addopts": {"pytest.ini": "[pytest]\naddopts = --override-ini=helmbench_repeat=3\n"},
}


@pytest.mark.parametrize("files", _PROJECTS.values(), ids=_PROJECTS)
def test_a_project_has_the_root_and_the_settings_that_pytest_gives_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str]
) -> None:
    start = pytester.path / "project" / "sub"
    start.mkdir(parents=True)
    for name, text in files.items():
        (start.parent / name).write_text(text)
    monkeypatch.chdir(start)

    project = Project.at(start, environ={})
    config = pytester.parseconfig()

    assert project.root == config.rootpath
    given = {option.name: project.given(option) for option in OPTIONS}
    assert _said(given) == _said({option.name: _asked(config, option) for option in OPTIONS})


def _asked(config: pytest.Config, option: Option) -> object:
    value: object = None if option.use == "ini" else config.getoption(option.key)
    return config.getini(option.key) if value is None else value


def _said(values: Mapping[str, object]) -> Mapping[str, object]:
    return {name: value for name, value in values.items() if value}


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("pyproject.toml", "[tool", "Expected"),
        ("pytest.ini", "[pytest]\na = 1\na = 2\n", "option 'a' .* already exists"),
        ("tox.ini", "[pytest]\n[pytest]\n", "section 'pytest' already exists"),
    ],
)
def test_a_file_that_pytest_refuses_is_refused(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(CommandError, match=f"{name}: cannot be read: .*{reason}"):
        Project.at(tmp_path)


def test_settings_inside_a_benchmark_do_not_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "benchlocal.pack.json").write_text("{}")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nhelmbench_node = evil\naddopts = --helmbench-agent=evil\n"
    )
    project = Project.at(tmp_path, {})
    assert all(project.given(option) is None for option in OPTIONS)
    assert "pytest.ini: nothing in it counts, since it is inside a benchmark" in capsys.readouterr().err
