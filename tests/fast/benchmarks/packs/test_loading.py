"""Healthy packs: what is read, how it is compiled, who may see it, and what it costs."""

from __future__ import annotations

import gc
import hashlib
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from packs import FAMILIES, GONE, MANIFEST, healthy, row, write_pack
from paths import SHARED as _SHARED

from pytest_helmbench.benchmarks.packs.families.code_completion.check import CodeTests
from pytest_helmbench.benchmarks.packs.families.registry import family_named, family_of
from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PatchTests
from pytest_helmbench.benchmarks.packs.families.repo_patch.paths import PatchPolicy
from pytest_helmbench.benchmarks.packs.families.terminal_task.check import TerminalTests
from pytest_helmbench.benchmarks.packs.families.terminal_task.place import plan_checker_files
from pytest_helmbench.benchmarks.packs.format.pack_loader import Pack, load_pack
from pytest_helmbench.benchmarks.packs.format.row_files import decode_row, row_lines
from pytest_helmbench.benchmarks.packs.places import is_pack
from pytest_helmbench.benchmarks.packs.task import (
    CommandCheck,
    ConfigError,
    Environment,
    FileCheck,
    PackTask,
    Visibility,
)
from pytest_helmbench.files.field_values import RowFaults
from pytest_helmbench.files.source import Fault
from pytest_helmbench.files.strict_json import StrictJSON

SHARED = _SHARED / "data" / "packs"


def loaded(root: Path, *rows: dict[str, Any] | str, manifest: str = MANIFEST, **files: str) -> Pack:
    """Write a pack and load it; it has no problem."""
    pack = load_pack(
        write_pack(root, rows, manifest, {name.replace("__", "/"): text for name, text in files.items()})
    )
    assert [problem.text() for problem in pack.all_problems()] == []
    return pack


def task_of(root: Path, *rows: dict[str, Any] | str, manifest: str = MANIFEST, **files: str) -> PackTask:
    """Return the first row of a pack, compiled."""
    pack = loaded(root, *rows, manifest=manifest, **files)
    return pack.task(pack.rows[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_loads_and_shows_only_its_input(tmp_path: Path, family: str) -> None:
    written = healthy(family)

    task = task_of(tmp_path, written)

    assert task.task_type == family
    assert (known := family_of(task)) is not None
    assert known.name == family
    assert (task.id, task.benchmark_id) == ("r1", "demo")
    assert task.public() == written["input"]
    assert task.evaluation() == written["eval"]


ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2.5, 10**400, "", " ", "x", "\0", [], [[]], [None], ["x"], [{}], {}, {"": None}),
    *({"path": "x"}, {"path": 3}, {"path": "x", "mount": []}, {"source": []}, {"source": {}, "command": {}}),
)


def places_in(value: Any, outer: str = "") -> list[str]:
    """Return the dotted places of all values in an object."""
    found: list[str] = []
    for key, inner in value.items() if isinstance(value, dict) else ():
        found += [f"{outer}{key}", *places_in(inner, f"{outer}{key}.")]
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_no_value_anywhere_breaks_the_loader(tmp_path: Path, family: str) -> None:
    extra = ["assets", "metadata", "environment.timeout_seconds", "environment.repository", "eval.test_files"]
    extra += ["eval.expected_state", "eval.reference_solution", "eval.gold_patch", "eval.needed_commands"]
    places = sorted({*places_in(healthy(family)), *extra, "environment.materialize_workdir_from_image"})
    changes = [(place, value) for place in places for value in ODD_VALUES]
    rows = [row(family, {place: value}, f"r{number}") for number, (place, value) in enumerate(changes)]

    pack = load_pack(write_pack(tmp_path, rows))

    assert len(pack.rows) + len(pack.broken) == len(changes)
    assert pack.problems == ()
    assert all(broken.problems for broken in pack.broken)
    assert len(pack.broken) > len(changes) / 3
    for ref in pack.rows:
        assert pack.task(ref).id == ref.id


VISIBLE_TO_EVALUATION = {
    ("code_completion", "tests"),
    ("repo_patch", "tests"),
    ("repo_patch", "candidate_policy"),
    ("terminal_task", "checker"),
    ("terminal_task", "needed_commands"),
    ("terminal_task", "run_tests"),
    ("terminal_task", "test_files"),
}
FIELDS = {
    "multiple_choice": ["answer"],
    "short_answer": ["accepted_answers", "tolerance"],
    "free_response": ["reference_answer", "rubric"],
    "code_completion": ["tests", "reference_solution", "canonical_solution"],
    "repo_patch": ["tests", "candidate_policy", "gold_patch"],
    "terminal_task": ["checker", "needed_commands", "run_tests", "test_files", "expected_state"],
}


@pytest.mark.parametrize(
    ("family", "field"), [(name, item) for name, items in FIELDS.items() for item in items]
)
def test_visibility_is_as_tabled(family: str, field: str) -> None:
    inputs = (family, field) in VISIBLE_TO_EVALUATION
    known = family_named(family)
    assert known is not None
    assert known.visibility(field) is (Visibility.EVALUATION_INPUTS if inputs else Visibility.HIDDEN)


def test_hidden_values_are_in_no_repr_and_redacted(tmp_path: Path) -> None:
    written = row(
        "terminal_task", {"eval.expected_state": "zq9-state", "eval.checker.command": "zq9-command"}
    )

    task = task_of(tmp_path, written)

    assert "zq9" not in repr(task)
    assert task.redacted() == {
        "instructions": "Write 42 into answer.txt.",
        "checker": {"command": "zq9-command", "timeout_seconds": 10},
        "expected_state": "<redacted>",
    }
    assert task.input_value("expected_state") is None
    assert task.eval_value("expected_state") == "zq9-state"
    assert task.eval_value("instructions", "none") == "none"


_POLICY = {"allow_paths": ["src/"], "allow_sensitive_paths": ["setup.py"]}
_PATCH = "--- a/x\n+++ b/x\n"
DIALECTS: list[tuple[str, dict[str, Any], Any]] = [
    (
        "repo_patch",
        {"eval.candidate_policy": _POLICY},
        PatchTests(
            CommandCheck(("python", "-m", "pytest"), "/testbed"),
            policy=PatchPolicy(("src/",), ("setup.py",)),
        ),
    ),
    (
        "repo_patch",
        {"eval.candidate_policy": GONE, "eval.tests.candidate_policy": _POLICY},
        PatchTests(
            CommandCheck(("python", "-m", "pytest"), "/testbed"),
            policy=PatchPolicy(("src/",), ("setup.py",)),
        ),
    ),
    (
        "repo_patch",
        {
            "eval.candidate_policy": GONE,
            "eval.tests.command": "pytest | tee log",
            "eval.tests.workdir": GONE,
            "eval.tests.timeout_seconds": 5,
        },
        PatchTests(CommandCheck(("sh", "-lc", "pytest | tee log"), None, 5.0)),
    ),
    (
        "repo_patch",
        {
            "eval.candidate_policy": {},
            "eval.tests.setup_patch": _PATCH,
            "eval.tests.test_patch": {"source": "inline", "patch": _PATCH},
        },
        PatchTests(CommandCheck(("python", "-m", "pytest"), "/testbed"), _PATCH, _PATCH),
    ),
    (
        "terminal_task",
        {},
        TerminalTests(CommandCheck(("sh", "-lc", "test $(cat answer.txt) = 42"), None, 10.0)),
    ),
    (
        "terminal_task",
        {"eval.checker": {"command": ["make", ""], "workdir": "sub"}, "eval.needed_commands": ["chroot"]},
        TerminalTests(CommandCheck(("make", ""), "sub"), ("chroot",)),
    ),
    ("code_completion", {}, CodeTests("assert add(1, 2) == 3")),
    ("code_completion", {"input.language": "Python3"}, CodeTests("assert add(1, 2) == 3")),
    (
        "code_completion",
        {
            "input.language": "Rust",
            "eval.tests.command": "cargo test",
            "environment": {"image": "rust:1"},
        },
        CodeTests("assert add(1, 2) == 3", "rust", CommandCheck(("sh", "-lc", "cargo test"))),
    ),
    ("multiple_choice", {}, None),
]


@pytest.mark.parametrize(("family", "changes", "check"), DIALECTS, ids=range(len(DIALECTS)))
def test_all_generations_of_the_format_become_one_shape(
    tmp_path: Path, family: str, changes: dict[str, Any], check: Any
) -> None:
    assert task_of(tmp_path, row(family, changes)).check == check


@pytest.mark.parametrize("source", ["pytest", "script"])
def test_a_checker_can_be_a_file_below_the_eval_root(tmp_path: Path, source: str) -> None:
    written = row(
        "terminal_task", {"eval.checker": {"source": source, "path": "t/check.py/", "timeout_seconds": 2.5}}
    )

    task = task_of(
        tmp_path,
        written,
        manifest=f"{MANIFEST}asset_roots:\n  eval: secret/\n",
        **{"secret__t__check.py": ""},
    )

    assert isinstance(task.check, TerminalTests)
    assert task.check.checker == FileCheck("pytest" if source == "pytest" else "script", "t/check.py", 2.5)


def test_the_rows_environment_lies_over_the_manifests(tmp_path: Path) -> None:
    manifest = (
        f"{MANIFEST}defaults:\n  environment:\n    image: a:1\n    workdir: /w\n    timeout_seconds: 5\n"
        "    materialize_workdir_from_image: true\n"
    )
    rows = [
        row("terminal_task", {}, "a"),
        row("terminal_task", {"environment": {"image": "b:2", "timeout_seconds": 0.5}}, "b"),
        row(
            "terminal_task",
            {"environment": {"workdir": None, "materialize_workdir_from_image": False}},
            "c",
        ),
    ]

    pack = loaded(tmp_path, *rows, manifest=manifest)

    assert [pack.task(ref).environment for ref in pack.rows] == [
        Environment("a:1", "/w", 5.0, True),
        Environment("b:2", "/w", 0.5, True),
        Environment("a:1", None, 5.0, False),
    ]


def test_files_of_a_row_are_placed(tmp_path: Path) -> None:
    written = row(
        "terminal_task",
        {
            "assets": [{"path": "a.txt"}, {"path": "data/", "mount": "in/data", "read_only": False}],
            "eval.test_files": [{"path": "t.py", "mount": "tests/t.py"}, "a name, not a reference"],
            "eval.run_tests": {"path": "run.sh"},
            "eval.expected_state": {"path": "answer.txt", "content": "42"},
        },
    )

    task = task_of(
        tmp_path,
        written,
        **{"assets__a.txt": "", "assets__data__x": "", "hidden__t.py": "", "hidden__run.sh": ""},
    )

    assert [(item.path, item.mount, item.read_only) for item in task.assets] == [
        ("a.txt", "a.txt", True),
        ("data", "in/data", False),
    ]
    assert [(item.path, item.mount, item.visibility) for item in task.eval_files] == [
        ("run.sh", "run.sh", Visibility.EVALUATION_INPUTS),
        ("t.py", "tests/t.py", Visibility.EVALUATION_INPUTS),
    ]
    assert task.public()["assets"] == [
        {"path": "a.txt", "mount": "a.txt", "read_only": True},
        {"path": "data", "mount": "in/data", "read_only": False},
    ]


SKIPS = [
    ({"family": "essay"}, "the family 'essay' is not known here"),
    (
        {"family": "multiple-choice"},
        "the family 'multiple-choice' is not known here (did you mean 'multiple_choice'?)",
    ),
]


@pytest.mark.parametrize(("changes", "reason"), SKIPS)
def test_rows_of_other_families_are_skipped_with_the_reason(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    pack = loaded(tmp_path, row("multiple_choice", {**changes, "eval.more": 1}))

    assert pack.rows[0].skip_reason == reason
    task = pack.task(pack.rows[0])
    assert (family_of(task), task.check) == (None, None)
    assert {item.visibility for name, item in task.resources.items() if name in ("answer", "more")} == {
        Visibility.HIDDEN
    }


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({}, "environment.image and eval.tests.command"),
        ({"environment": {"image": "rust:1"}}, "eval.tests.command"),
        ({"eval.tests.command": "cargo test"}, "environment.image"),
    ],
)
def test_other_languages_need_an_image_and_a_command(
    tmp_path: Path, changes: dict[str, Any], missing: str
) -> None:
    pack = loaded(tmp_path, row("code_completion", {"input.language": "Rust", **changes}))

    assert pack.rows[0].skip_reason == f"the language 'rust' needs {missing}"


def test_lines_are_found_again_whatever_stands_between_them(tmp_path: Path) -> None:
    rows = [
        row("multiple_choice", {"input.question": f"Wie heißt {number}?"}, f"ü{number}")
        for number in range(3)
    ]
    lines = [json.dumps(item, ensure_ascii=number == 1).encode() for number, item in enumerate(rows)]
    raw = b"\xef\xbb\xbf" + lines[0] + b"\r\n\n  \t\r\n" + lines[1] + b"\n\n"
    write_pack(tmp_path, raw + lines[2])

    pack = load_pack(tmp_path)

    assert [ref.line for ref in pack.rows] == [1, 4, 6]
    assert [pack.task(ref).input_value("question") for ref in pack.rows] == [
        f"Wie heißt {number}?" for number in range(3)
    ]


def test_every_row_file_is_read_unless_there_is_a_tasks_file(tmp_path: Path) -> None:
    write_pack(tmp_path, [healthy("multiple_choice", "t")])
    for number in (10, 2):
        (tmp_path / f"part{number}.jsonl").write_text(
            json.dumps(healthy("multiple_choice", f"p{number}")) + "\n[]\n"
        )

    assert [ref.id for ref in load_pack(tmp_path).rows] == ["t"]
    (tmp_path / "tasks.jsonl").unlink()
    pack = load_pack(tmp_path)
    assert [ref.id for ref in pack.rows] == ["p2", "p10"]
    assert [broken.name for broken in pack.broken] == ["line-2", "line-2-of-part10"]  # names are unique


@pytest.mark.parametrize(
    "rows", ["../wages.csv", "[own.csv, ../wages.csv]", "{tmp}/wages.csv", "a/../../wages.csv"]
)
def test_a_table_outside_of_the_pack_is_not_opened(tmp_path: Path, rows: str) -> None:
    (tmp_path / "wages.csv").write_text("clerk,wage\nIda,3100\n")
    manifest = f"id: x\nversion: 1\nrows: {rows.replace('{tmp}', str(tmp_path))}\n"
    own = {"own.csv": "question,answer\nHow many?,3\n"}

    pack = load_pack(write_pack(tmp_path / "pack", b"", manifest, own))

    (problem,) = (problem.text(tmp_path) for problem in pack.all_problems())
    assert problem.startswith("pack/manifest.yaml:3: rows ")
    assert "is not a table beside the manifest" in problem
    assert "clerk" not in problem


def test_a_row_file_that_changes_under_the_session_is_noticed(tmp_path: Path) -> None:
    pack = loaded(tmp_path, healthy("multiple_choice", "a"), healthy("multiple_choice", "b"))
    write_pack(tmp_path, [healthy("multiple_choice", "b"), healthy("multiple_choice", "a")])

    with pytest.raises(ConfigError, match=r"tasks\.jsonl:1: the row 'a' is not what it was") as caught:
        pack.task(pack.rows[0])
    assert "\n  hint: leave row files alone while a session runs" in str(caught.value)


def test_a_row_file_that_is_gone_is_noticed(tmp_path: Path) -> None:
    pack = loaded(tmp_path, healthy("multiple_choice"))
    (tmp_path / "tasks.jsonl").unlink()

    with pytest.raises(
        ConfigError, match=r"tasks\.jsonl: the file cannot be read: No such file or directory$"
    ):
        pack.task(pack.rows[0])


def test_lines_without_end_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"a\n" + b"b" * 35 + b"\n" + b"c" * 10 + b"\n" + b"d" * 11)
    digest = hashlib.sha256()

    lines = list(row_lines(path, digest, 10))

    assert [(line.number, line.offset, line.length, line.raw) for line in lines] == [
        (1, 0, 2, b"a\n"),
        (2, 2, 36, None),
        (3, 38, 11, b"c" * 10 + b"\n"),
        (4, 49, 11, None),
    ]
    assert digest.hexdigest() == hashlib.sha256(path.read_bytes()).hexdigest()
    faults = RowFaults(2)
    assert decode_row(StrictJSON(), None, faults) is None
    assert faults.errors == [Fault(2, "row: the line is longer than 64 MiB")]


def test_the_hash_covers_manifest_rows_and_files_but_not_line_ends(tmp_path: Path) -> None:
    def pack_hash() -> str:
        return load_pack(tmp_path).hash

    write_pack(tmp_path, [healthy("multiple_choice")], files={"assets/a/b.txt": "x", "hidden/c.txt": "y"})
    first = pack_hash()
    (tmp_path / "README.md").write_text("of no matter")
    rows = (tmp_path / "tasks.jsonl").read_bytes()
    (tmp_path / "tasks.jsonl").write_bytes(rows.replace(b"\n", b"\r\n"))
    assert pack_hash() == first

    seen = {first}
    for path, text in (
        ("manifest.yaml", MANIFEST.replace("1", "2")),
        ("tasks.jsonl", json.dumps(row("multiple_choice", {"eval.answer": "A"}))),
        ("assets/a/b.txt", "z"),
        ("hidden/c.txt", "z"),
        ("hidden/d.txt", ""),
    ):
        (tmp_path / path).write_text(text)
        seen.add(pack_hash())
    (tmp_path / "hidden" / "d.txt").chmod(0o755)
    seen.add(pack_hash())
    assert len(seen) == 7


def test_groups_are_short_values_that_rows_share(tmp_path: Path) -> None:
    rows = [
        row(
            "multiple_choice",
            {
                "metadata": {
                    "subject": ("algebra", "law")[number % 2],
                    "level": number % 3,
                    "hard": number == 0,
                    "row_index": number,
                    "url": f"https://example.org/{number}",
                    "note": "x" * 81,
                    "tags": ["a"],
                    "share": 0.5,
                }
            },
            f"r{number}",
        )
        for number in range(80)
    ]

    pack = loaded(tmp_path, *rows)

    assert pack.rows[0].groups == (("subject", "algebra"), ("level", "0"), ("hard", "true"))
    assert pack.rows[79].groups == (("subject", "law"), ("level", "1"), ("hard", "false"))
    assert pack.rows[1].groups is pack.rows[7].groups  # held once


def test_rows_take_little_memory(tmp_path: Path) -> None:
    count = 10_000
    template = json.dumps(
        row("multiple_choice", {"metadata": {"subject": "algebra", "row": 7}}, "demo-pack/N")
    )
    write_pack(tmp_path, [template.replace("/N", f"/{number}") for number in range(count)])
    gc.collect()

    tracemalloc.start()
    pack = load_pack(tmp_path)
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(pack.rows) == count
    assert kept < 400 * count  # bytes; measured 275
    assert most < 600 * count  # measured 365


@pytest.mark.skipif(not SHARED.is_dir(), reason="the packs beside the project are not there")
@pytest.mark.parametrize(
    ("name", "rows"),
    [("audit-repo-patch", 1), ("audit-terminal-task", 4), ("mmlu-abstract-algebra-mini", 10)],
)
def test_real_packs_load(name: str, rows: int) -> None:
    assert is_pack(SHARED / name)

    pack = load_pack(SHARED / name)

    assert list(pack.all_problems()) == []
    assert pack.warnings == ()
    assert len(pack.rows) == rows
    for ref in pack.rows:
        task = pack.task(ref)
        assert task.id == ref.id
        pack.files.plan(task.assets)
        plan_checker_files(pack.files, task)
