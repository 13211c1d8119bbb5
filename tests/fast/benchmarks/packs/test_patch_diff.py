"""What a patch announces: diffs as real git writes them, and as models do."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from textwrap import indent

import pytest

from pytest_helmbench.benchmarks.packs.families.repo_patch.diff import (
    MalformedPatchError,
    encoded,
    read_patch,
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


def test_a_rename_names_both_ends_and_a_copy_does_not_change_its_source() -> None:
    text = (
        "diff --git a/old.txt b/new.txt\nsimilarity index 100%\nrename from old.txt\nrename to new.txt\n"
        "diff --git a/one.txt b/two.txt\nsimilarity index 100%\ncopy from one.txt\ncopy to two.txt\n"
    )
    patch = read_patch(text)
    assert patch.named == {"old.txt", "new.txt", "one.txt", "two.txt"}
    assert patch.changed == {"old.txt", "new.txt", "two.txt"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('diff --git "a/\\303\\244.txt" "b/\\303\\244.txt"\nold mode 100644\nnew mode 100755\n', {"ä.txt"}),
        ('diff --git a/x "b/y\\tz"\nrename from x\nrename to "y\\tz"\n', {"x", "y\tz"}),
        ('--- "a/\\377\\001"\n+++ "b/\\377\\001"\n@@ -1 +1 @@\n-a\n+b\n', {"\udcff\x01"}),
        ("diff --git a/a b/c b/a b/c\nold mode 100644\nnew mode 100755\n", {"a b/c"}),
        ("diff --git a/x y b/x y\ndeleted file mode 100644\n", {"x y"}),
        ("--- a/x\t2026-01-01 00:00:00\n+++ b/x\t2026-01-01 00:00:01\n@@ -1 +1 @@\n-a\n+b\n", {"x"}),
        ("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b\n", {"x"}),
        ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", {"x"}),
        ("--- /dev/null\n+++ a/x\n@@ -0,0 +1 @@\n+b\n", {"x"}),
        ("--- /dev/null\n+++ src/x\n@@ -0,0 +1 @@\n+b\n", {"src/x"}),
        ("diff --git a/x b/x\n--- a/x\n+++ b/tests/y\n@@ -1 +1 @@\n-a\n+b\n", {"x", "tests/y"}),
        ("--- a//etc/passwd\n+++ b//etc/passwd\n@@ -1 +1 @@\n-a\n+b\n", {"/etc/passwd"}),
        ("--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n", {"../x"}),
        ("--- c/x.c\n+++ c/x.c\n@@ -1 +1 @@\n-a\n+b\n", {"c/x.c"}),
        ("diff --git a/s b/s\nindex 123..456 160000\n--- a/s\n+++ b/s\n@@ -1 +1 @@\n-a\n+b\n", {"s"}),
        (
            "diff --git a/p.bin b/p.bin\nindex 12..34 100644\nBinary files a/p.bin and b/p.bin differ\n",
            {"p.bin"},
        ),
    ],
)
def test_names_of_headers(text: str, names: set[str]) -> None:
    assert read_patch(text).named == names


def test_links_and_submodules_are_special() -> None:
    for mode in ("120000", "160000"):
        for line in (
            f"new file mode {mode}",
            f"deleted file mode {mode}",
            f"old mode {mode}",
            f"index 1..2 {mode}",
        ):
            (change,) = read_patch(f"diff --git a/x b/x\n{line}\n").changes
            assert change.special, line
    assert not read_patch(_FIX).changes[0].special


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
    patch = read_patch(reply)
    assert patch.text == _FIX
    assert not patch.miscounted


def test_fences_of_the_patched_file_are_none_of_the_reply() -> None:
    text = "--- a/x.md\n+++ b/x.md\n@@ -1,4 +1,4 @@\n ```\n-one\n+two\n ```\n \n"
    fences = f"{text}{text.replace('x.md', 'y.md')}@@ -9 +9,2 @@\n ```\n+three\n"
    for reply in (fences, f"````diff\n{fences}````\n", f"```diff\n{fences}```\n"):
        patch = read_patch(reply)
        assert patch.text == fences
        assert patch.changed == {"x.md", "y.md"}


def test_blocks_for_several_files_are_one_patch() -> None:
    assert read_patch(f"```diff\n{_FIX}```\nand\n```diff\n{_OTHER}```\n").text == _FIX + _OTHER


def test_a_patch_in_plain_form_without_prefixes() -> None:
    patch = read_patch(_PLAIN + _PLAIN.replace("calculator", "other"))
    assert (patch.strip, len(patch.changes)) == (0, 2)
    assert patch.changed == {"src/calculator.py", "src/other.py"}


@pytest.mark.parametrize(
    "counts", ["-1,5 +1,9", "-1,9 +1,5", "-1,2 +1,2", "-1,1 +1,1", "-1,50 +1,50", "-1 +1", "-1,4 +1,4"]
)
def test_wrong_counts_are_noticed_and_no_line_is_lost(counts: str) -> None:
    patch = read_patch(f"```diff\n{_FIX.replace('-1,5 +1,5', counts)}```\n\nThat was it.\n")
    assert patch.miscounted
    assert patch.text == _FIX.replace("-1,5 +1,5", counts)


def test_a_hunk_that_ends_with_stripped_blank_lines_is_complete() -> None:
    stripped = _FIX.replace("\n \n", "\n\n").replace("\n \n", "\n\n")
    patch = read_patch(stripped)
    assert (patch.text, patch.miscounted) == (stripped, False)


def test_a_hunk_that_looks_like_headers_is_content() -> None:
    text = "--- a/x.sql\n+++ b/x.sql\n@@ -1,3 +1,3 @@\n--- a/tests/y\n+++ b/tests/y\n x\n y\n"
    patch = read_patch(text)
    assert patch.named == {"x.sql"}
    assert not patch.miscounted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("I do not know.", "there is no patch in it: no line starts with 'diff --git' or '---'"),
        ("```python\nprint(1)\n```", "there is no patch in it: no line starts with 'diff --git' or '---'"),
        ("--- a/x\n+++ b/x\n", "there is no patch in it: no line starts with 'diff --git' or '---'"),
        (
            "*** Begin Patch\n*** Update File: x\n",
            "there seems to be a patch in it, but none that git reads: no line",
        ),
        (json.dumps({"patch": _FIX}), "there seems to be a patch in it, but none that git reads: no line"),
        ("```diff\n- a\n+ b\n```", "there seems to be a patch in it, but none that git reads: no line"),
        (
            "```diff\n--- a/x\n+++ b/x\n@@\n-a\n+b\n```",
            "there seems to be a patch in it, but none that git reads: a hunk needs its line numbers, as in "
            "'@@ -1,3 +1,4 @@', this one has '@@'",
        ),
        (
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ def f():\n-a\n+b\n",
            "a hunk needs its line numbers, as in '@@ -1,3 +1,4 @@', one has '@@ def f():'",
        ),
        (_FIX + _PLAIN, "some of its paths start with a/ and b/, some do not"),
        ('--- "a/x\n+++ b/x\n@@ -1 +1 @@\n', "a path is quoted wrongly: '\"a/x'"),
        ('--- "a/\\q"\n+++ b/x\n@@ -1 +1 @@\n', "a path is quoted wrongly: '\"a/\\\\q\"'"),
        ("diff --git a/one b/two b/three\nold mode 100644\n", "a part of it names no file:"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "a part of it names no file:"),
        (f"--- a/{'x' * 30_000}\n+++ b/x\n@@ -1 +1 @@\n", "a path is too long: 'a/xxxxxx"),
        (f"diff --git a/{'x' * 50_000} b/x\n", "a path is too long: 'a/xxxxxx"),
    ],
)
def test_what_is_no_patch(text: str, message: str) -> None:
    with pytest.raises(MalformedPatchError) as caught:
        read_patch(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "text",
    [
        "```\n" * 100_000,
        "".join(f"{'`' * count}x\n" for count in range(3, 1_000)),
        "--- a/x\n+++ b/x\n@@ -1,99999999 +1,99999999 @@\n" + "\n" * 300_000,
        f"```diff\n{_PLAIN}```\n" * 5_000,
        _FIX + "+\n" * 300_000,
        "diff --git a/x b/x\n" * 50_000,
        "--- a/x\n" * 100_000,
    ],
    ids=["fences", "longer fences", "blank lines", "many blocks", "overhang", "many headers", "half headers"],
)
def test_hostile_texts_take_no_more_than_their_length(text: str) -> None:
    start = time.thread_time()
    with suppress(MalformedPatchError):
        read_patch(text)
    assert time.thread_time() - start < 5


def test_texts_that_cannot_be_encoded_are_made_so() -> None:
    assert encoded("caf\udce9") == b"caf\xe9"
    assert encoded("half \ud83d of a pair") == "half \N{REPLACEMENT CHARACTER} of a pair".encode()
