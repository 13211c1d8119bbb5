"""The hint for a Bench Pack that lacks a package."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.bench_packs.loading import package_hint


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("Cannot find module 'zod' Require stack: - /pack/index.js", "zod"),
        ("Cannot find package '@a/b' imported from /pack/index.mjs", "@a/b"),
        ("Cannot find module '@a/b/c.js'", "@a/b"),
    ],
)
def test_the_hint_names_the_command_and_the_package(words: str, name: str) -> None:
    assert package_hint(f"Error: {words}", root=Path("/my pack")) == (
        f"run `npm install --ignore-scripts` in '/my pack', with the name {name} where its package.json does not"
        " list it; or ship the package in the pack's node_modules"
    )


@pytest.mark.parametrize(
    "words", ["Cannot find module './lib/x.js'", "Cannot find module '/x'", "cannot find it"]
)
def test_other_messages_have_no_hint(words: str) -> None:
    assert package_hint(f"Error: {words}", root=Path("/pack")) == ""
