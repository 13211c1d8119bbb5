"""Every connection is closed, and no named placeholder gets a sequence: newer Pythons warn of both."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakSet

import pytest
from provider import Provider
from trees import category, clear_environment, rows, run_tree, write_tree

from pytest_helmbench.cli.main import main

_NAMED = re.compile(r"(?<![:\w]):[a-z_]\w*")
_TEXTS = re.compile(r"'[^']*'")
_COMMANDS = (
    "runs",
    "show last",
    "query",
    "report last",
    "export last --format csv",
    "rescore last",
)


class _Strict(sqlite3.Connection):
    """A connection that minds what Python 3.12 warns of, and is known while it is open."""

    opened: ClassVar[WeakSet[_Strict]] = WeakSet()
    slips: ClassVar[list[str]] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.opened.add(self)

    def close(self) -> None:
        self.opened.discard(self)
        super().close()

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        self._look(sql, parameters)
        return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        each = list(parameters)
        for one in each:
            self._look(sql, one)
        return super().executemany(sql, each)

    def _look(self, sql: str, parameters: object) -> None:
        if _NAMED.search(_TEXTS.sub("", sql)) and parameters and not isinstance(parameters, Mapping):
            self.slips.append(sql)


def test_sessions_and_commands_close_what_they_open_and_name_what_they_bind(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear_environment(monkeypatch)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: connect(*args, factory=_Strict, **kwargs))
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category("RISK", "CALM")})
    provider.answers(times=1, status=400)
    run_tree(pytester, "-n0", url=provider.url)
    run_tree(pytester, "-n0", "--helmbench-resume", "--helmbench-cache=reuse", url=provider.url)
    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT count(*) FROM results WHERE outcome IN ('passed', 'failed')") == [(2,)]
    opened = len(_Strict.opened)
    monkeypatch.chdir(Path(pytester.path))
    for command in _COMMANDS:
        assert main([*command.split(), f"--db={database}"]) == 0, command
    assert (list(_Strict.opened), opened, _Strict.slips) == ([], 0, [])
