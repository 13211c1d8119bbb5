"""Families: one object each, found by name, whose rules are named by pinned hashes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from packs import FAMILIES, healthy, write_pack
from paths import ROOT

from pytest_helmbench.benchmarks.packs.families.registry import FAMILY_NAMES, family_named, family_of
from pytest_helmbench.benchmarks.packs.format.pack_loader import load_pack
from pytest_helmbench.benchmarks.packs.task import PackRule, PackTask
from pytest_helmbench.core.outcome import Reply, Usage

_ROOM = ROOT / "pytest_helmbench" / "benchmarks" / "packs"
_HASHES = {
    "multiple_choice": ("52790e5ce8ea119a", "637b4fd13caf56da"),
    "short_answer": ("b4f25d88c4761a4c", "41206f76c6b925c4"),
    "free_response": ("c860e4aa015097e3", "96afba1e99a18fae"),
    "code_completion": ("e0cc4b4d91337fda", "3dacd1c54351cb2b"),
    "repo_patch": ("954a1e490fc58bb3", "d88255f77eae5a1a"),
    "terminal_task": ("ad9cd136bd771b30", "1ce9e9bade488776"),
}


def healthy_task(root: Path, family: str) -> PackTask:
    """Return a healthy row of a family, compiled."""
    pack = load_pack(write_pack(root, [healthy(family)]))
    return pack.task(pack.rows[0])


def said(text: str) -> Reply:
    """Return a reply on record."""
    return Reply(text, None, "stop", Usage(), 1.0, "mock", "key")


def test_every_family_is_found_by_its_name_and_no_other_is() -> None:
    assert set(FAMILY_NAMES) == set(FAMILIES)
    for name in FAMILY_NAMES:
        family = family_named(name)
        assert family is not None
        assert family.name == name
    assert family_named("essay") is None


@pytest.mark.parametrize("name", FAMILIES)
def test_the_hashes_of_rules_are_pinned(tmp_path: Path, name: str) -> None:
    """Another hash has every verdict on record reached anew: it changes only when a verdict could."""
    task = healthy_task(tmp_path, name)
    family = family_of(task)
    assert family is not None
    assert (family.rule_hash(PackRule(task)), family.rule_hash(PackRule(task, parity=True))) == _HASHES[name]


@pytest.mark.parametrize("name", FAMILIES)
def test_stored_replies_are_judged_again_but_where_an_agent_has_worked(name: str) -> None:
    family = family_named(name)
    assert family is not None
    assert (family.not_rescored is None) == family.is_one_question


def test_families_do_not_know_each_other_nor_who_lists_them() -> None:
    packages = {name: f"pytest_helmbench.benchmarks.packs.families.{name}" for name in FAMILY_NAMES}
    for name in FAMILY_NAMES:
        for path in (_ROOM / "families" / name).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
                others = {other for other, package in packages.items() if module.startswith(package)}
                assert others <= {name}, f"{path}: {module}"
                assert not module.endswith("families.registry"), path


def test_a_family_is_named_by_its_folder_and_the_registry_alone() -> None:
    for path in _ROOM.rglob("*.py"):
        if path.parent.name in FAMILY_NAMES or path.parent.parent.name in FAMILY_NAMES:
            continue
        words = {
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant)
        }
        assert path.name == "registry.py" or not words & set(FAMILY_NAMES), path
