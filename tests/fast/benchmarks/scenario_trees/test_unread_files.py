"""No case vanishes: whatever looks like a part of a tree is read, or is an error that names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.kind import LoadedTree
from pytest_helmbench.benchmarks.scenario_trees.tree import ScenarioTree

_SCHEMA = {
    "type": "object",
    "properties": {"category": {"type": "string", "enum": ["A", "B"]}},
    "required": ["category"],
    "additionalProperties": False,
}
_HEALTHY = {
    "S1.md": "---\ncategory: A\n---\n\nSort it.\n",
    "S1.json": json.dumps(_SCHEMA),
    "perturbations.md": "# PT1\n---\nseverity: 5\n---\n\nHelp.\n",
}
_PT2 = "---\nseverity: 3\n---\n\nAgain.\n"


def _load(root: Path, changes: dict[str, str], folder: str = "P1-B1-S1") -> ScenarioTree:
    for name, text in {**{f"{folder}/{name}": text for name, text in _HEALTHY.items()}, **changes}.items():
        path = root / "scenarios" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return load_tree(root)


def _problems(tree: ScenarioTree) -> list[str]:
    return [problem.text(tree.root / "scenarios") for found in tree.problems.values() for problem in found]


def _codes(tree: ScenarioTree) -> list[str]:
    return [case.code for scenario in tree.scenarios.values() for case in scenario.combinations()]


def test_a_consolidated_file_wins_over_files_of_their_own_with_one_warning(tmp_path: Path) -> None:
    tree = _load(tmp_path, {"P1-B1-S1/perturbations/PT2.md": _PT2, "P1-B1-S1/perturbations/PT3.md": _PT2})
    assert (_problems(tree), _codes(tree)) == ([], ["P1-B1-S1-PT1"])
    assert [warning.text(tmp_path / "scenarios") for warning in tree.warnings] == [
        "P1-B1-S1/perturbations: the folder is ignored beside perturbations.md\n  hint: keep one"
    ]


_LOOSE = "is not read\n  hint: it seems to belong into "
_BURIED = "is not read: its folder is none of the format\n  hint: move it to P1-B1-S1/"
_BESIDE = "is not read: it lies beside the scenario folders\n  hint: move it to "


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("P1-B1-S1/PT4.md", f"PT4.md {_LOOSE}perturbations/"),
        ("P1-B1-S1/pt-4.md", f"pt-4.md {_LOOSE}perturbations/"),
        ("P1-B1-S1/PT3.md.txt", f"PT3.md.txt {_LOOSE}perturbations/"),
        ("P1-B1-S1/PT3", f"PT3 {_LOOSE}perturbations/"),
        ("P1-B1-S1/C1-notes.txt", f"C1-notes.txt {_LOOSE}conditions/"),
        ("P1-B1-S1/U2.yaml", f"U2.yaml {_LOOSE}user-contexts/"),
        ("P1-B1-S1/P1-B1-S1-C1-PT4.md", f"P1-B1-S1-C1-PT4.md {_LOOSE}perturbations/"),
        ("P1-B1-S1/user_context.md", f"user_context.md {_LOOSE}user-contexts.md"),
        ("P1-B1-S1/Conditions.md", f"Conditions.md {_LOOSE}conditions.md"),
        ("P1-B1-S1/conditions.yaml", f"conditions.yaml {_LOOSE}conditions.md"),
        ("P1-B1-S1/user_contexts/U1.md", f"U1.md {_BURIED}user-contexts/"),
        ("P1-B1-S1/perturbations/more/PT7.md", f"PT7.md {_BURIED}perturbations/"),
        ("P1-B1-S1/old/perturbations.md", f"perturbations.md {_BURIED}perturbations.md"),
        ("P1-B1-S1/conditions/C1 copy.md", "the file is ignored: "),
        ("P1-B1-S1/conditions/PT1.md", "the file is ignored: "),
        ("S9.md", f"S9.md {_BESIDE}a folder like P1-B1-S9"),
        ("P1-B1-S9.md", f"P1-B1-S9.md {_BESIDE}P1-B1-S9"),
        ("PT4 copy.md.txt", f"PT4 copy.md.txt {_BESIDE}the folder of its scenario"),
        ("MCSQE.md", f"MCSQE.md {_BESIDE}the folder of its scenario"),
        ("P2/B1/S9.md", f"S9.md {_BESIDE}a folder like P1-B1-S9"),
    ],
)
def test_what_looks_like_a_part_and_is_not_read_is_an_error(tmp_path: Path, name: str, told: str) -> None:
    notes = {"P1-B1-S1/pictures/notes.md": "Later.\n", "README.md": "Read me.\n", "notes.md": "Later.\n"}
    tree = _load(tmp_path, {name: _PT2, **notes})
    (problem,) = _problems(tree)
    assert problem.startswith(f"{name}: {told}")
    assert _codes(tree) == (["P1-B1-S1-PT1"] if _BESIDE in told else [])


def test_pictures_backups_and_readmes_are_no_components(tmp_path: Path) -> None:
    others = ("README.md", ".DS_Store", ".PT3.md.swp", "PT3.md~", "PT3.md.bak", "PT3.png", "LICENSE")
    places = ("P1-B1-S1", "P1-B1-S1/conditions", "P1-B1-S1/pictures")
    tree = _load(tmp_path, {f"{place}/{name}": "x" for place in places for name in others})
    assert (_problems(tree), list(tree.warnings), _codes(tree)) == ([], [], ["P1-B1-S1-PT1"])


@pytest.mark.parametrize("folder", ["P1_B1_S2", "p1-b1-s2", "extra", "safety/P1-B1-S2"])
def test_a_folder_that_is_no_scenario_but_holds_one_is_an_error_and_an_item(
    tmp_path: Path, folder: str
) -> None:
    tree = _load(
        tmp_path, {f"{folder}/S2.md": _HEALTHY["S1.md"], f"{folder}/perturbations.md": "# PT1\n\nx\n"}
    )
    outer = folder.partition("/")[0]
    assert _problems(tree) == [
        f"{outer}: the folder is not read: {outer!r} is not a code\n"
        "  hint: name it like P1-B1-S1 (or P1, with B1 and S1 inside)"
    ]
    assert _codes(tree) == ["P1-B1-S1-PT1"]
    loaded = LoadedTree(tree, (), add_no_context=False)
    assert sum(bool(loaded.broken_in(path)) for path in (tmp_path / "scenarios" / outer).rglob("*")) == 1


def test_a_missing_severity_among_others_is_0_with_one_warning_a_file(tmp_path: Path) -> None:
    several = f"{_HEALTHY['perturbations.md']}\n# PT2\n\nAgain.\n\n# PT3\n\nMore.\n"
    tree = _load(tmp_path, {"P1-B1-S1/perturbations.md": several})
    assert _problems(tree) == []
    assert [warning.text(tmp_path / "scenarios") for warning in tree.warnings] == [
        "P1-B1-S1/perturbations.md:8: no severity, so it counts as 0: PT2, PT3\n"
        "  hint: write 'severity: 0' in the frontmatter if that is meant"
    ]
    misspelt = several.replace("# PT3\n", "# PT3\n---\nseverty: 3\n---\n").replace(
        "# PT2\n", "# PT2\n---\nseverity: [\n---\n"
    )
    assert not _load(tmp_path, {"P1-B1-S1/perturbations.md": misspelt}).warnings
    none = _load(tmp_path, {"P1-B1-S1/perturbations.md": "# PT1\n\nOne.\n\n# PT2\n\nTwo.\n"})
    assert (_problems(none), list(none.warnings)) == ([], [])


@pytest.mark.parametrize("target", ["/nonexistent", "itself"])
@pytest.mark.parametrize(
    "name", ["scenarios/P1-B1-S1/conditions.md", "scenarios/P1-B1-S1/user-contexts/U3.md", "scoring.yaml"]
)
def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path, name: str, target: str) -> None:
    link = tmp_path / name
    _load(tmp_path, {})
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(link.name if target == "itself" else target)
    (link.parent / ".#S1.md").symlink_to("user@host.4711")  # the lock of an editor
    (problem,) = _problems(load_tree(tmp_path))
    assert f"{link.name}: the file cannot be read: " in problem
