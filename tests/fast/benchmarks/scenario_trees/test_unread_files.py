"""No case vanishes: whatever looks like a part of a tree is read, or is an error that names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.jobs import LoadedTree
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


def test_a_consolidated_file_and_files_of_their_own_are_both_read(tmp_path: Path) -> None:
    tree = _load(
        tmp_path,
        {
            "P1-B1-S1/perturbations/PT2.md": _PT2,
            "P1-B1-S1/conditions.md": "# C1\n\nOne.\n",
            "P1-B1-S1/conditions/C2.md": "Two.\n",
        },
    )
    assert _problems(tree) == []
    assert _codes(tree) == [f"P1-B1-S1-C{c}-PT{p}" for c in (1, 2) for p in (1, 2)]


def test_a_code_in_both_places_is_an_error(tmp_path: Path) -> None:
    tree = _load(tmp_path, {"P1-B1-S1/perturbations/PT1.md": _PT2})
    assert _problems(tree) == [
        "P1-B1-S1/perturbations/PT1.md: PT1 is also in perturbations.md\n  hint: keep one file of each code"
    ]


_LOOSE = "is read by nobody: files of their own stand in a folder of their axis\n  hint: move it to "
_BURIED = "is read by nobody: its folder is none of the format\n  hint: move it to P1-B1-S1/"
_BESIDE = "is read by nobody: it lies beside the scenario folders\n  hint: move it to "
_IGNORED = "the file is ignored: "


@pytest.mark.parametrize(
    ("name", "told"),
    [
        *((f"P1-B1-S1/{name}", f"{name} {_LOOSE}perturbations/") for name in ("PT4.md", "pt-4.md", "P4.md")),
        *(
            (f"P1-B1-S1/{name}", f"{name} {_LOOSE}perturbations/")
            for name in ("PT3 copy.md", "PT3.md.txt", "PT3")
        ),
        *((f"P1-B1-S1/{name}", f"{name} {_LOOSE}conditions/") for name in ("C1.md", "C1-notes.txt")),
        ("P1-B1-S1/U2.yaml", f"U2.yaml {_LOOSE}user-contexts/"),
        ("P1-B1-S1/P1-B1-S1-C1-PT4.md", f"P1-B1-S1-C1-PT4.md {_LOOSE}perturbations/"),
        ("P1-B1-S1/user_contexts/U1.md", f"U1.md {_BURIED}user-contexts/"),
        ("P1-B1-S1/perturbation/PT4 copy.md", f"PT4 copy.md {_BURIED}perturbations/"),
        ("P1-B1-S1/perturbations/more/PT7.md", f"PT7.md {_BURIED}perturbations/"),
        ("P1-B1-S1/old/perturbations.md", f"perturbations.md {_BURIED}perturbations.md"),
        *(
            (f"P1-B1-S1/{name}", f"{_IGNORED}{name!r} is no name of the format\n  hint: did you mean ")
            for name in (
                "user_contexts.md",
                "Conditions.md",
                "conditions.yaml",
                "conditions.md.txt",
                "perturbations",
            )
        ),
        *(
            (f"P1-B1-S1/perturbations/{name}", _IGNORED)
            for name in (
                "PT3.md.txt",
                "PT3",
                "PT3.yaml",
                "PT3 (angry skipper).md",
                "PT3copy.md",
                "C1.md",
                "PT-2.md",
            )
        ),
        ("S9.md", f"S9.md {_BESIDE}a folder like P1-B1-S9"),
        ("P1-B1-S9.md", f"P1-B1-S9.md {_BESIDE}P1-B1-S9/S9.md"),
        ("PT4 copy.md.txt", f"PT4 copy.md.txt {_BESIDE}the folder of its scenario"),
        ("perturbations.yaml", f"perturbations.yaml {_BESIDE}the folder of its scenario"),
        ("MCSQE.md", f"MCSQE.md {_BESIDE}the folder of its scenario"),
        ("P2/B1/S9.md", f"S9.md {_BESIDE}a folder like P1-B1-S9"),
    ],
)
def test_what_looks_like_a_part_and_is_read_by_nobody_is_an_error(
    tmp_path: Path, name: str, told: str
) -> None:
    notes = {"P1-B1-S1/pictures/notes.md": "Later.\n", "README.md": "Read me.\n", "notes.md": "Later.\n"}
    tree = _load(tmp_path, {name: _PT2, **notes})
    (problem,) = _problems(tree)
    assert problem.startswith(f"{name}: {told}")
    is_beside = _BESIDE in told
    assert _codes(tree) == (["P1-B1-S1-PT1"] if is_beside else [])


def test_pictures_backups_and_readmes_are_no_components(tmp_path: Path) -> None:
    others = (
        "README.md",
        "README",
        ".DS_Store",
        ".PT3.md.swp",
        "PT3.md~",
        "PT3.md.bak",
        "PT3.png",
        "LICENSE",
    )
    places = ("P1-B1-S1", "P1-B1-S1/perturbations", "P1-B1-S1/pictures")
    tree = _load(tmp_path, {f"{place}/{name}": "x" for place in places for name in others})
    assert (_problems(tree), list(tree.warnings)) == ([], [])
    assert _codes(tree) == ["P1-B1-S1-PT1"]


@pytest.mark.parametrize("folder", ["P1_B1_S2", "P1-B1S2", "p1-b1-s2", "extra"])
def test_a_folder_that_is_no_scenario_but_holds_one_is_an_error_and_an_item(
    tmp_path: Path, folder: str
) -> None:
    tree = _load(
        tmp_path, {f"{folder}/S2.md": _HEALTHY["S1.md"], f"{folder}/perturbations.md": "# PT1\n\nx\n"}
    )
    assert _problems(tree) == [
        f"{folder}: the folder is read by nobody: {folder!r} is no code\n"
        "  hint: name it like P1-B1-S1 (or P1, with B1 and S1 inside)"
    ]
    assert _codes(tree) == ["P1-B1-S1-PT1"]
    hosts = [
        path
        for path in (tmp_path / "scenarios" / folder).iterdir()
        if LoadedTree(tree, (), add_no_context=False).broken_in(path)
    ]
    assert len(hosts) == 1


def test_a_prompt_of_another_name_is_named_in_the_hint(tmp_path: Path) -> None:
    _load(tmp_path, {"P1-B1-S1/prompt.md": _HEALTHY["S1.md"]})
    (tmp_path / "scenarios" / "P1-B1-S1" / "S1.md").unlink()
    assert _problems(load_tree(tmp_path)) == [
        "P1-B1-S1/S1.md: the scenario has no prompt file\n  hint: rename prompt.md to S1.md"
    ]


def test_a_perturbation_without_severity_among_others_that_have_one_is_an_error(tmp_path: Path) -> None:
    several = f"{_HEALTHY['perturbations.md']}\n# PT2\n\nAgain.\n"
    assert _problems(_load(tmp_path, {"P1-B1-S1/perturbations.md": several})) == [
        "P1-B1-S1/perturbations.md:8: PT2 has no severity, and PT1 has one\n"
        "  hint: write 'severity: 0' in its frontmatter if it is harmless: scores ignore it then"
    ]


def test_perturbations_none_of_which_has_a_severity_are_no_error(tmp_path: Path) -> None:
    tree = _load(tmp_path, {"P1-B1-S1/perturbations.md": "# PT1\n\nOne.\n\n# PT2\n\nTwo.\n"})
    assert _problems(tree) == []


def test_a_perturbation_without_text_is_an_error(tmp_path: Path) -> None:
    several = f"{_HEALTHY['perturbations.md']}\n# PT2\n---\nseverity: 3\n---\n\n"
    (problem,) = _problems(_load(tmp_path, {"P1-B1-S1/perturbations.md": several}))
    assert "PT2 has no text\n  hint: write what is added to the prompt" in problem


@pytest.mark.parametrize("target", ["/nonexistent", "itself"])
@pytest.mark.parametrize(
    "name",
    [
        "P1-B1-S1/conditions.md",
        "P1-B1-S1/perturbations/PT3.md",
        "P1-B1-S9",
        "P2/B1",
    ],
)
def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path, name: str, target: str) -> None:
    link = tmp_path / "scenarios" / name
    _load(tmp_path, {})
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(link.name if target == "itself" else target)
    (link.parent / ".#S1.md").symlink_to("somebody@host.4711")  # the lock of an editor

    assert _problems(load_tree(tmp_path)) == [
        f"{name}: the link leads nowhere, so nobody can tell what it stands for\n  hint: mend or remove the link"
    ]


@pytest.mark.parametrize("target", ["/nonexistent", "scoring.yaml"])
def test_weights_behind_a_link_that_leads_nowhere_are_an_error(tmp_path: Path, target: str) -> None:
    _load(tmp_path, {})
    (tmp_path / "scoring.yaml").symlink_to(target)
    (problem,) = _problems(load_tree(tmp_path))
    assert "scoring.yaml: the file cannot be read: " in problem
