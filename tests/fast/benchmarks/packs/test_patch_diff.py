"""The patch in a reply, cut out of what is around it. Git alone says what it touches."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from textwrap import indent

import pytest
from growth import grows_in_proportion

from pytest_helmbench.benchmarks.packs.families.repo_patch.patches import (
    MalformedPatchError,
    encoded,
    read_patch,
    strip_of,
)

_FIX = """\
diff --git a/src/calculator.py b/src/calculator.py
index c43e75b..11d8eb8 100644
--- a/src/calculator.py
+++ b/src/calculator.py
@@ -1,5 +1,5 @@
 def add(a, b):
-    return a - b
+    return a + b
_
_
 def twice(a):
""".replace("\n_", "\n ")
_PLAIN = """\
--- src/calculator.py
+++ src/calculator.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""
_OTHER = _FIX.replace("calculator", "other")


@pytest.mark.parametrize(
    "reply",
    [
        _FIX,
        f"Here is the fix:\n\n```diff\n{_FIX}```\n\nIt adds now.\n",
        f"````\n{_FIX}````",
        f"~~~patch\n{_FIX}~~~\n- a list\n- of remarks\n",
        f"<think>Let me see.</think>\n```diff\n{_FIX}",
        f"```python\nprint(1)\n```\nand\n```diff\n{_FIX}```",
        f"First try:\n```diff\n{_FIX.replace('a + b', 'a * b')}```\nNo, better:\n```diff\n{_FIX}```\n",
        _FIX.replace("\n", "\r\n"),
        f"From 0123 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] Fix\n\n---\n x | 2 +-\n\n{_FIX}-- \n2.39.5\n",
        f"{_FIX}\nThis fixes the bug.\n",
        f"1. Apply this:\n\n   ```diff\n{indent(_FIX, '   ', lambda _: True)}   ```\n\n2. Test it.\n",
        f"1. Apply this:\n\n\t```diff\n{indent(_FIX, chr(9), lambda _: True)}\t```\n",
        f"- ```diff\n{indent(_FIX, '  ', lambda _: True)}  ```\n".replace("\n", "\r\n"),
        f"   ```diff\n{_FIX}   ```\n",
        f"   ```diff\n{indent(_FIX, '   ', lambda _: True)}",
    ],
)
def test_the_patch_in_a_reply(reply: str) -> None:
    assert read_patch(reply).startswith(_FIX.rstrip("_\n "))
    assert "a * b" not in read_patch(reply)


def test_fences_of_the_patched_file_are_none_of_the_reply() -> None:
    text = "--- a/x.md\n+++ b/x.md\n@@ -1,4 +1,4 @@\n ```\n-one\n+two\n ```\n \n"
    fences = f"{text}{text.replace('x.md', 'y.md')}@@ -9 +9,2 @@\n ```\n+three\n"
    for reply in (fences, f"````diff\n{fences}````\n", f"```diff\n{fences}```\n"):
        assert read_patch(reply) == fences


def test_blocks_for_several_files_are_one_patch() -> None:
    assert read_patch(f"```diff\n{_FIX}```\nand\n```diff\n{_OTHER}```\n") == _FIX + _OTHER


@pytest.mark.parametrize(
    ("text", "strip"),
    [
        (_FIX, 1),
        (_PLAIN, 0),
        ("--- /dev/null\n+++ b/x\n", 1),
        ("--- /dev/null\n+++ src/x\n", 0),
        ("--- c/x.c\n+++ c/x.c\n", 0),
        ('diff --git "a/\\303" "b/\\303"\n', 1),
    ],
)
def test_prefixes_of_paths_are_left_out_where_there_are_any(text: str, strip: int) -> None:
    assert strip_of(text) == strip


_NO_LINE = "no line starts with 'diff --git' or '---'"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\nprint(1)\n```", f"there is no patch in it: {_NO_LINE}"),
        ("--- a/x\n+++ b/x\n", f"there is no patch in it: {_NO_LINE}"),
        (
            "*** Begin Patch\n*** Update File: x\n",
            "there seems to be a patch in it, but none that git reads: no",
        ),
        (json.dumps({"patch": _FIX}), "there seems to be a patch in it, but none that git reads: no line"),
    ],
)
def test_what_is_no_patch(text: str, message: str) -> None:
    with pytest.raises(MalformedPatchError) as caught:
        read_patch(text)
    assert str(caught.value).startswith(message)


_HOSTILE: dict[str, Callable[[int], str]] = {
    "fences": lambda length: "```\n" * (length // 4),
    "longer fences": lambda length: "".join(
        f"{'`' * count}x\n" for count in range(3, math.isqrt(2 * length))
    ),
    "blank lines": lambda length: "--- a/x\n+++ b/x\n@@ -1,99999999 +1,99999999 @@\n" + "\n" * length,
    "many blocks": lambda length: f"```diff\n{_PLAIN}```\n" * (length // len(_PLAIN)),
    "overhang": lambda length: _FIX + "+\n" * (length // 2),
    "many headers": lambda length: "diff --git a/x b/x\n" * (length // 19),
    "half headers": lambda length: "--- a/x\n" * (length // 8),
}


def _read(text: str) -> None:
    with suppress(MalformedPatchError):
        read_patch(text)


@pytest.mark.parametrize("made", _HOSTILE.values(), ids=_HOSTILE.keys())
def test_hostile_texts_cost_no_more_than_their_length(made: Callable[[int], str]) -> None:
    assert grows_in_proportion(_read, made, 400_000)


def test_texts_that_cannot_be_encoded_are_made_so() -> None:
    assert encoded("caf\udce9") == b"caf\xe9"
    assert encoded("half \ud83d of a pair") == "half \N{REPLACEMENT CHARACTER} of a pair".encode()
