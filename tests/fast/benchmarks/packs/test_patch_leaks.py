"""A gold patch that stands openly: found in every form in which an agent can read it, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import indent

import pytest
from repositories import patch_task

from pytest_helmbench.benchmarks.packs.families.repo_patch.patches import gold_leaks
from pytest_helmbench.benchmarks.packs.task import PlannedFile, Resource, Visibility
from pytest_helmbench.core.json_types import JsonValue

_BEFORE = 'def left(stock, sold):\n    """Return what is left."""\n    rest = stock - sold\n'
_BEHIND = "    if rest < 0:\n        raise ValueError\n    return rest\n"
_HEAD = "diff --git a/stock.py b/stock.py\n--- a/stock.py\n+++ b/stock.py\n"


def _patch(removed: str, added: str, *, context: int = 3) -> str:
    before = _BEFORE.splitlines(keepends=True)[3 - context :]
    behind = _BEHIND.splitlines(keepends=True)[:context]
    counts = (2 * context + removed.count("\n"), 2 * context + added.count("\n"))
    lines = [
        *(f" {line}" for line in before),
        *(f"-{line}" for line in removed.splitlines(keepends=True)),
        *(f"+{line}" for line in added.splitlines(keepends=True)),
        *(f" {line}" for line in behind),
    ]
    return f"{_HEAD}@@ -1,{counts[0]} +1,{counts[1]} @@\n{''.join(lines)}"


_REPAIR = _patch("    rest = rest + 1\n", "    rest = max(rest, sold - stock)\n")
_FORMS: dict[str, Callable[[str], str]] = {
    "as it is": lambda patch: patch,
    "with CRLF": lambda patch: patch.replace("\n", "\r\n"),
    "in a code block": lambda patch: f"Look:\n\n{indent(patch, '    ', lambda _: True)}\n",
    "quoted": lambda patch: f"He wrote:\n\n{indent(patch, '> ', lambda _: True)}\n",
    "quoted twice": lambda patch: indent(patch, "> > ", lambda _: True),
}


def _leaks(
    gold: str, *, asset: str | None = None, folder: Path, hints: str | Sequence[str] = ""
) -> list[str]:
    task = patch_task("base", None)
    shown: JsonValue = hints if isinstance(hints, str) else [*hints]
    task = replace(task, resources={**task.resources, "hints": Resource(shown, Visibility.PUBLIC)})
    if asset is None:
        return list(gold_leaks(task, gold, ()))
    path = folder / "notes"
    path.write_bytes(asset.encode())
    return list(gold_leaks(task, gold, [PlannedFile(path, "notes", 0o644, path.stat().st_size, False, True)]))


@pytest.mark.parametrize("form", _FORMS)
def test_a_patch_that_stands_openly_is_found(tmp_path: Path, form: str) -> None:
    text = _FORMS[form](_REPAIR)
    assert _leaks(_REPAIR, asset=text, folder=tmp_path) == ["the public asset 'notes'"]
    for hints in (text, ["Think.", text], [*text.split("\n")]):
        assert _leaks(_REPAIR, hints=hints, folder=tmp_path) == ["input.hints"]


def test_the_file_as_the_patch_leaves_it_is_found(tmp_path: Path) -> None:
    solved = f"# Stock.\n{_BEFORE}    rest = max(rest, sold - stock)\n{_BEHIND}"
    assert _leaks(_REPAIR, asset=solved, folder=tmp_path) == ["the public asset 'notes'"]


@pytest.mark.parametrize(
    "asset", ["", "Nothing here.\n", _BEFORE, f"{_BEFORE}    rest = rest + 1\n{_BEHIND}", "\xff\n"]
)
def test_what_an_agent_may_see_is_no_leak(tmp_path: Path, asset: str) -> None:
    assert _leaks(_REPAIR, asset=asset, folder=tmp_path) == []
    assert _leaks(_REPAIR, hints=[asset, "Look at stock.py."], folder=tmp_path) == []


def test_so_few_letters_stand_anywhere(tmp_path: Path) -> None:
    short = _patch("    rest = 0\n", "    x = 1\n")
    assert _leaks(short, asset=short, folder=tmp_path) == []
    for gold in ("", "no patch", "--- a/x\n+++ b/x\n"):
        assert _leaks(gold, asset=gold, folder=tmp_path) == []
