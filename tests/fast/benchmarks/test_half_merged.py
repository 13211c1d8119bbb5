"""Marks of a merge that was not finished, and components without text, are named by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from packs import MANIFEST, write_pack
from trees import Part, Tree, write_tree

from pytest_helmbench.benchmarks.packs.format.pack_loader import load_pack
from pytest_helmbench.benchmarks.packs.format.row_files import TableError
from pytest_helmbench.benchmarks.packs.task import UnreadablePackError
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree

_OURS, _DIVIDER, _THEIRS = "<<<<<<< HEAD", "=======", ">>>>>>> feature/tea"
_CONFLICT = f"{_OURS}\nIs it hot?\n{_DIVIDER}\nIs it warm?\n{_THEIRS}\n"
_SENTENCE = "a merge was left half done"
_ROW = '{"id": "%s", "family": "short_answer", "input": {"question": "How many?"}, "eval": {"accepted_answers": [3]}}'


def _found(root: Path, body: str) -> list[str]:
    """Return what is wrong and odd with a tree of one perturbation."""
    tree = Tree(("evaluation: {type: contains, expected: tea}",), perturbations={"PT1": Part(body, 2)})
    loaded = load_tree(write_tree(root, {"P1-B1-S1": tree}))
    errors = [f"error {one.text(root)}" for problems in loaded.problems.values() for one in problems]
    return [*errors, *(f"warning {one.text(root)}" for one in loaded.warnings)]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (f"Say.\n\n{_CONFLICT}", "error 8"),
        (f"{_OURS}\nIs it hot?\n{_DIVIDER}\nIs it warm?", "error 6"),
        (f"Is it hot?\n{_DIVIDER}\nIs it warm?\n{_THEIRS}", "error 9"),
        (f"{_OURS}\nHot?\n||||||| base\nIt?\n{_DIVIDER}\nWarm?\n{_THEIRS}", "error 6"),
        (f"Merge this:\n\n```\n{_CONFLICT}```", "warning 9"),
        (f"A heading\n{_DIVIDER}\n\nIs it hot?", ""),
        ("> > >>>>>>> a quote\n<<<<<<<<<<\n  <<<<<<< indented", ""),
        (">>>>>>> the seventh who quotes this", ""),
    ],
)
def test_marks_of_a_merge_in_a_component(tmp_path: Path, body: str, wanted: str) -> None:
    kind, _, line = wanted.partition(" ")
    found = [one for one in _found(tmp_path, body) if _SENTENCE in one]

    assert [one.partition(": a merge")[0] for one in found] == (
        [f"{kind} scenarios/P1-B1-S1/perturbations.md:{line}"] if wanted else []
    )


@pytest.mark.parametrize(
    "file", ["benchmark.yml", "scenarios/P1-B1-S1/S1.md", "scenarios/P1-B1-S1/conditions.md"]
)
def test_marks_of_a_merge_in_any_file_of_a_tree(tmp_path: Path, file: str) -> None:
    write_tree(tmp_path, {"P1-B1-S1": Tree(("category: tea",), perturbations={"PT1": Part("Say.")})})
    path = tmp_path / file
    path.write_text((path.read_text() if path.exists() else "name: Tea\n") + _CONFLICT)

    loaded = load_tree(tmp_path)

    problems = [one.text(tmp_path) for problems in loaded.problems.values() for one in problems]
    assert any(one.startswith(f"{file}:") and _SENTENCE in one for one in problems)


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        (
            "tasks.jsonl",
            f"{_ROW % 'a'}\n{_OURS}\n{_ROW % 'b'}\n{_DIVIDER}\n{_ROW % 'c'}\n{_THEIRS}\n",
            [2, 4, 6],
        ),
        (
            "qa.csv",
            f"question,answer\nHow many?,3\n{_OURS}\nHot?,no\n{_DIVIDER}\nWarm?,no\n{_THEIRS}\n",
            [3, 5, 7],
        ),
        (
            "qa.tsv",
            f"answer\tquestion\n{_OURS}\n3\tHow many?\n{_DIVIDER}\n4\tHow many?\n{_THEIRS}\n",
            [2, 4, 6],
        ),
        ("qa.csv", f"{_OURS}\nquestion,answer\n{_DIVIDER}\nprompt,answer\n{_THEIRS}\nHot?,no\n", [1]),
        ("qa.json", f'[\n{_OURS}\n{{"question": "Hot?", "answer": "no"}}\n{_DIVIDER}\n{_THEIRS}\n]\n', [2]),
    ],
)
def test_marks_of_a_merge_in_packs_and_tables(tmp_path: Path, name: str, text: str, lines: list[int]) -> None:
    path = tmp_path / name
    if name == "tasks.jsonl":
        write_pack(tmp_path, text.encode())
    else:
        path.write_text(text)
    try:
        problems = [
            one.text(tmp_path)
            for one in load_pack(tmp_path if name == "tasks.jsonl" else path).all_problems()
        ]
    except TableError as error:
        problems = [str(error)]

    assert [one.partition(":")[2].partition(":")[0] for one in problems if _SENTENCE in one] == [
        *map(str, lines)
    ]
    assert all(_SENTENCE in one for one in problems)


def test_marks_of_a_merge_in_a_manifest(tmp_path: Path) -> None:
    pack = write_pack(tmp_path, [_ROW % "a"], f"{MANIFEST}{_OURS}\n{_DIVIDER}\n{_THEIRS}\n")

    with pytest.raises(UnreadablePackError, match=rf"manifest\.yaml:3: {_SENTENCE}"):
        load_pack(pack)


@pytest.mark.parametrize(
    ("body", "has_text"),
    [
        ("", False),
        ("## Say\n", False),
        ("<!-- to be written -->", False),
        ("Go.", True),
        ("<!-- a --> Go.", True),
    ],
)
def test_a_component_without_text_is_a_warning(tmp_path: Path, body: str, has_text: bool) -> None:
    warned = [one for one in _found(tmp_path, body) if "PT1 has no text" in one]

    assert [one.partition(": ")[0] for one in warned] == ["warning scenarios/P1-B1-S1/perturbations.md:1"] * (
        not has_text
    )


def test_a_file_with_such_marks_is_read_on(tmp_path: Path) -> None:
    found = _found(tmp_path, f"{_CONFLICT}\n# PT2\n---\nseverity: 3\n---\n\n# PT3\n\nGo.")

    assert [one.partition(": ")[2] for one in found if "no text" in one or _SENTENCE in one] == [
        f"{_SENTENCE}: both of its versions stand here\n  hint: keep one version, and remove the lines of <<<<<<<,"
        " ======= and >>>>>>>",
        "PT2 has no text\n  hint: write its text below its frontmatter; a case without an addition is fine as it is",
    ]
