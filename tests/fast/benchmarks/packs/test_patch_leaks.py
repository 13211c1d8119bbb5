"""A gold patch that stands openly: found in every form in which an agent can read it, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import indent

import pytest
from repositories import patch_task

from pytest_helmbench.benchmarks.packs.families.repo_patch.leaks import gold_leaks
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


_DELETION = _patch("    rest += 1\n", "")
_REPAIR = _patch("    rest = rest + 1\n", "    rest = max(rest, sold - stock)\n")
_SHORT = _patch("    rest = 0\n", "    x = 1\n")
_PATCHES = {"deletion": _DELETION, "repair": _REPAIR, "short": _SHORT}
_FORMS: dict[str, Callable[[str], str]] = {
    "as it is": lambda patch: patch,
    "with CRLF": lambda patch: patch.replace("\n", "\r\n"),
    "in a code block": lambda patch: f"Look:\n\n{indent(patch, '    ', lambda _: True)}\n",
    "quoted": lambda patch: f"He wrote:\n\n{indent(patch, '> ', lambda _: True)}\n",
    "quoted twice": lambda patch: indent(patch, "> > ", lambda _: True),
    "in JSON": lambda patch: json.dumps({"patch": patch}),
    "in a line of JSON": lambda patch: f'{{"a": 1}}\n{json.dumps({"all": [{"patch": patch}]})}\n',
    "in JSON in JSON": lambda patch: json.dumps([json.dumps({"patch": patch})]),
    "with less around it": lambda patch: "\n".join(patch.split("\n")[5:-2]),
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
@pytest.mark.parametrize("patch", _PATCHES)
def test_a_patch_that_stands_openly_is_found(tmp_path: Path, patch: str, form: str) -> None:
    gold = _PATCHES[patch]
    text = _FORMS[form](gold)
    assert _leaks(gold, asset=text, folder=tmp_path) == ["the public asset 'notes'"]
    for hints in (text, ["Think.", text], [*text.split("\n")]):
        assert _leaks(gold, hints=hints, folder=tmp_path) == ["input.hints"]


@pytest.mark.parametrize(
    ("patch", "made"),
    [("deletion", ""), ("repair", "    rest = max(rest, sold - stock)\n"), ("short", "    x = 1\n")],
)
def test_the_file_as_the_patch_leaves_it_is_found(tmp_path: Path, patch: str, made: str) -> None:
    solved = f"# Stock.\n{_BEFORE}{made}{_BEHIND}"
    assert _leaks(_PATCHES[patch], asset=solved, folder=tmp_path) == ["the public asset 'notes'"]


@pytest.mark.parametrize("patch", _PATCHES)
@pytest.mark.parametrize(
    "asset",
    [
        "",
        "There is nothing here.\n",
        _BEFORE,
        _BEHIND,
        f"{_BEFORE}    rest += 1\n    rest = rest + 1\n    rest = 0\n{_BEHIND}",
        "* a list\n- of lines\n- rest\n+ and more\n> quoted\n",
        _patch("    rest -= 2\n", "    rest -= 3\n"),
        json.dumps(
            {"file": f"{_BEFORE}    rest += 1\n    rest = rest + 1\n    rest = 0\n{_BEHIND}", "n": "\\n\n"}
        ),
        '"' + '\\"' * 200_000,
        "\x00\xff\n" * 1_000,
    ],
    ids=["empty", "prose", "before", "behind", "as it was", "lists", "other", "JSON", "strings", "bytes"],
)
def test_what_an_agent_may_see_is_no_leak(tmp_path: Path, patch: str, asset: str) -> None:
    assert _leaks(_PATCHES[patch], asset=asset, folder=tmp_path) == []
    assert _leaks(_PATCHES[patch], hints=[asset, "Look at stock.py."], folder=tmp_path) == []


def test_one_of_two_equal_lines_that_goes_does_not_make_the_file_a_leak(tmp_path: Path) -> None:
    twice = _patch("    rest = stock - sold\n", "", context=1)
    assert _leaks(twice, asset=f"{_BEFORE}    rest = stock - sold\n{_BEHIND}", folder=tmp_path) == []


def test_a_whole_file_that_goes_and_what_cannot_be_read(tmp_path: Path) -> None:
    gone = "--- a/x.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-import everything\n-everything.run()\n"
    assert _leaks(gone, asset=f"# Do this\n{gone}", folder=tmp_path) == ["the public asset 'notes'"]
    assert _leaks(gone, asset="import everything\neverything.run()\n", folder=tmp_path) == []
    for gold in ("", "no patch", "--- a/x\n+++ b/x\n"):
        assert _leaks(gold, asset=gold, folder=tmp_path) == []


def test_a_missing_end_of_line_hides_nothing(tmp_path: Path) -> None:
    gold = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-first\n\\ No newline at end of file\n+the second one\n"
    assert _leaks(gold, asset="x\nthe second one", folder=tmp_path) == ["the public asset 'notes'"]


_WITHOUT_HUNKS = {
    "rename": "diff --git a/old name.py b/new.py\nsimilarity index 100%\nrename from old name.py\nrename to new.py\n",
    "mode": "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n",
    "empty": "diff --git a/p/__init__.py b/p/__init__.py\nnew file mode 100644\nindex 0000000..e69de29\n",
    "binary": "diff --git a/x.png b/x.png\nindex 5d30a56..5b7f4ff 100644\nGIT binary patch\n"
    "literal 6\nNcmZQzU}j)oU|;|M00961\n\nliteral 5\nMcmZQzU}9ol0001h00062\n\n",
    "two": "diff --git a/a.sh b/a.sh\nold mode 100644\nnew mode 100755\n"
    "diff --git a/b b/c\nsimilarity index 100%\nrename from b\nrename to c\n",
}


@pytest.mark.parametrize("form", _FORMS.keys() - {"with less around it"})
@pytest.mark.parametrize("patch", _WITHOUT_HUNKS)
def test_a_patch_without_hunks_that_stands_openly_is_found(tmp_path: Path, patch: str, form: str) -> None:
    gold = _WITHOUT_HUNKS[patch]
    text = _FORMS[form](gold)
    assert _leaks(gold, asset=text, folder=tmp_path) == ["the public asset 'notes'"]
    assert _leaks(gold, hints=text, folder=tmp_path) == ["input.hints"]
    # Without hashes, which are different where the file is.
    bare = "".join(line for line in gold.splitlines(keepends=True) if "index " not in line)
    assert _leaks(gold, asset=bare, folder=tmp_path) == ["the public asset 'notes'"]


@pytest.mark.parametrize("patch", _WITHOUT_HUNKS)
def test_what_has_no_hunks_either_is_no_leak(tmp_path: Path, patch: str) -> None:
    gold = _WITHOUT_HUNKS[patch]
    others = [other for name, other in _WITHOUT_HUNKS.items() if name not in (patch, "two")]
    talk = "Rename 'old name.py' to 'new.py', b to c, and make run.sh and a.sh executable.\nnew file mode\n"
    for text in (*others, talk, _REPAIR, gold.splitlines()[0]):
        assert _leaks(gold, asset=text, folder=tmp_path) == []
