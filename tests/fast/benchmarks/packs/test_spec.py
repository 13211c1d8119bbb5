"""Compiled tasks of specifications, and the texts of `eval` in their three forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from packs import row, write_pack
from specs import task_from_spec

from pytest_helmbench.benchmarks.packs.families.code_completion.check import CodeTests
from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PatchTests
from pytest_helmbench.benchmarks.packs.families.repo_patch.paths import PatchPolicy
from pytest_helmbench.benchmarks.packs.families.terminal_task.check import TerminalTests
from pytest_helmbench.benchmarks.packs.format.pack_loader import load_pack
from pytest_helmbench.benchmarks.packs.format.row_fields import eval_text
from pytest_helmbench.benchmarks.packs.task import (
    CommandCheck,
    Environment,
    FileCheck,
    MaterializationError,
)


def spec(**changes: Any) -> dict[str, Any]:
    """Return a healthy specification with changes."""
    found: dict[str, Any] = {
        "id": "t1",
        "benchmark_id": "demo",
        "task_type": "multiple_choice",
        "metadata": {"subject": "law"},
        "resources": {
            "question": {"value": "Q", "visibility": "public"},
            "answer": {"value": "B", "visibility": "hidden"},
        },
    }
    return {**found, **changes}


def hidden(value: object, visibility: str = "evaluation_inputs") -> dict[str, object]:
    return {"value": value, "visibility": visibility}


def test_a_task_is_built() -> None:
    task = task_from_spec(spec(environment={"image": "a:1", "timeout_seconds": 3}))

    assert (task.id, task.benchmark_id, task.task_type) == ("t1", "demo", "multiple_choice")
    assert task.metadata == {"subject": "law"}
    assert (task.public(), task.evaluation()) == ({"question": "Q"}, {"answer": "B"})
    assert task.environment == Environment("a:1", timeout_s=3.0)
    assert task.check is None


@pytest.mark.parametrize(
    ("family", "resources", "check"),
    [
        ("code_completion", {"tests": hidden({"source": "inline", "code": "x"})}, CodeTests("x")),
        (
            "repo_patch",
            {
                "tests": hidden({"source": "command", "command": "make"}),
                "candidate_policy": hidden({"allow_paths": ["src/"]}),
            },
            PatchTests(CommandCheck(("sh", "-lc", "make")), policy=PatchPolicy(("src/",))),
        ),
        (
            "terminal_task",
            {"checker": hidden({"source": "pytest", "path": "tests"}), "needed_commands": hidden(["chroot"])},
            TerminalTests(FileCheck("pytest", "tests"), ("chroot",)),
        ),
        ("terminal_task", {"instructions": hidden("x", "public")}, None),
    ],
)
def test_code_families_get_their_check(family: str, resources: dict[str, Any], check: object) -> None:
    assert task_from_spec(spec(task_type=family, resources=resources)).check == check


def test_the_removed_key_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="question: this is not a resource"):
        task_from_spec(spec(resources={"question": {"value": "Q", "visibility": "public", "expose": False}}))


@pytest.mark.parametrize(
    ("family", "name", "value", "expected"),
    [
        ("repo_patch", "gold_patch", "--- a\n", "--- a\n"),
        ("repo_patch", "gold_patch", {"source": "inline", "patch": "--- b\n"}, "--- b\n"),
        ("repo_patch", "gold_patch", {"path": "gold.patch"}, "--- file\n"),
        ("code_completion", "canonical_solution", {"source": "inline", "code": "x = 1"}, "x = 1"),
        ("code_completion", "reference_solution", {"path": "gold.patch"}, "--- file\n"),
        ("free_response", "reference_answer", 42, "42"),
        ("free_response", "reference_answer", None, None),
    ],
)
def test_texts_of_eval_in_all_their_forms(
    tmp_path: Path, family: str, name: str, value: object, expected: str | None
) -> None:
    pack = load_pack(
        write_pack(
            tmp_path, [row(family, {f"eval.{name}": value})], files={"hidden/gold.patch": "--- file\n"}
        )
    )

    assert eval_text(pack.task(pack.rows[0]), name) == expected


def test_a_text_that_is_gone_or_no_text_is_an_error_without_its_name(tmp_path: Path) -> None:
    pack = load_pack(
        write_pack(
            tmp_path,
            [row("repo_patch", {"eval.gold_patch": {"path": "zq9.patch"}})],
            files={"hidden/zq9.patch": "x"},
        )
    )
    task = pack.task(pack.rows[0])
    (tmp_path / "hidden" / "zq9.patch").write_bytes(b"\xff")

    with pytest.raises(
        MaterializationError, match=r"^r1: eval.gold_patch: the file that it names is not text in UTF-8"
    ):
        eval_text(task, "gold_patch")
