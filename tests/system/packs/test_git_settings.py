"""Settings of git, however they are written: as git itself lists them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.packs.families.terminal_task.quiet_git import git_settings

_TEXTS = (
    '[core]\n\tbare = false\n[diff "x"]\n\ttextconv = cat # more\n',
    '[core][diff.Z] textconv = a; b\n[x] [diff "a\\"b"]\n\ttextconv = "c; d" e\n',
    '\ufeff[Alias] ST = "!touch y" \\\n more\n; no\n# no\n[user]\nname\n',
    '[a "b\\\\c"]\r\n\tk = v\\tw\\\r\n  x\r\n',
    "[a]\nk = \n[a] k = ' \" \" '\n",
)


@pytest.mark.parametrize("text", _TEXTS)
def test_settings_are_those_that_git_lists(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_bytes(text.encode())
    git = ("git", "config", "--file", str(path), "--no-includes", "--list", "-z")
    told = subprocess.run(git, capture_output=True, check=True).stdout.decode()
    listed = [
        (name, value if is_set else None)
        for name, is_set, value in (one.partition("\n") for one in told.split("\0")[:-1])
    ]
    assert [(one.name, one.value) for one in git_settings(text)] == listed


def test_a_setting_says_where_it_stands() -> None:
    text = '[core][include] path = "a" # b\n\tpath = c\n[user] name = d\n'
    found = [one for one in git_settings(text) if one.section == "include"]
    assert [text[one.start : one.end] for one in found] == ['path = "a" # b', "path = c"]
