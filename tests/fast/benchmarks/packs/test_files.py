"""Files that a pack may lay out: paths, links, bounds and modes, checked before the first byte is written."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from packs import row, write_pack

from pytest_helmbench.benchmarks.packs.evidence.witnesses import lay_out
from pytest_helmbench.benchmarks.packs.families.terminal_task.place import plan_checker_files
from pytest_helmbench.benchmarks.packs.format.pack_files import MOST_BYTES, PackFiles
from pytest_helmbench.benchmarks.packs.format.pack_loader import Pack, load_pack
from pytest_helmbench.benchmarks.packs.format.path_rules import clashes, mount_fault, path_fault
from pytest_helmbench.benchmarks.packs.task import (
    Asset,
    MaterializationError,
    PathPolicyError,
    Visibility,
)
from pytest_helmbench.sandbox.workspace import Workspace

PATHS = [
    ("a", None),
    ("a/b.txt", None),
    ("folder/", None),
    ("..a/b..", None),
    ("~/x", None),
    ("日本/файл", None),
    ("", "is empty"),
    ("  ", "is empty"),
    ("/", "is not relative"),
    ("/etc/passwd", "is not relative"),
    ("//host/x", "is not relative"),
    ("C:/x", "is not relative"),
    ("c:x", "is not relative"),
    ("..", "leads out by '..'"),
    ("a/../../b", "leads out by '..'"),
    ("a/..", "leads out by '..'"),
    (".", "has a part '.'"),
    ("./a", "has a part '.'"),
    ("a/./b", "has a part '.'"),
    ("a//b", "has an empty part"),
    ("a//", "has an empty part"),
    ("a\\b", "holds a backslash"),
    ("..\\x", "holds a backslash"),
    ("a\0b", "holds a control character"),
    ("a\nb", "holds a control character"),
    ("a\x1b[31m", "holds a control character"),
    ("a\x85b", "holds a control character"),
    ("a\u2028b", "holds a control character"),
    ("a\ud800", "holds a control character"),
    ("\uff0e\uff0e/x", "looks like another path once its characters are normalised"),
    ("a/\u2025", "looks like another path once its characters are normalised"),
    ("a\uff0fb", "looks like another path once its characters are normalised"),
    ("x" * 256, "is too long"),
    ("ü" * 128, "is too long"),
    ("/".join(["x" * 200] * 30), "is too long"),
]


@pytest.mark.parametrize(("path", "fault"), PATHS, ids=range(len(PATHS)))
def test_paths_are_told_by_their_text(path: str, fault: str | None) -> None:
    assert path_fault(path) == fault


@pytest.mark.parametrize(
    "mount", ["securebench/x", "SecureBench", "eval/", "EVAL/x", "scorer/a", "ground_truth", "\uff45val/x"]
)
def test_reserved_roots_are_refused(mount: str) -> None:
    assert str(mount_fault(mount)).startswith("lies under the reserved folder '")
    assert path_fault(mount) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a", "a"),
        ("a", "a/"),
        ("a/b", "a"),
        ("a", "a/b/c"),
        ("Data", "data/x"),
        ("stra\u00dfe", "STRASSE"),
        ("caf\u00e9", "cafe\u0301/x"),
        ("\ufb01le", "file"),
        ("\U0001d400", "a"),  # a letter that is upper case only once it is normalised
    ],
)
def test_equal_and_nested_mounts_clash(first: str, second: str) -> None:
    assert len(list(clashes([first, "other", second]))) == 1
    assert len(list(clashes([second, first]))) == 1


def assets_of(root: Path, *assets: dict[str, Any]) -> Pack:
    """Return a pack of one terminal task with these assets."""
    return load_pack(write_pack(root, [row("terminal_task", {"assets": list(assets)})]))


def faults_of(pack: Pack, root: Path) -> list[str]:
    return [problem.text(root).splitlines()[0] for problem in pack.all_problems()]


def test_modes_and_empty_folders_survive(tmp_path: Path) -> None:
    source = tmp_path / "pack" / "assets" / "kit"
    (source / "empty" / "deeper").mkdir(parents=True)
    (source / "bin").mkdir()
    (source / "bin" / "run.sh").write_text("#!/bin/sh\n")
    (source / "bin" / "run.sh").chmod(0o4755)  # setuid does not survive
    (source / "notes.txt").write_bytes(b"\x00\xff" * 700_000)
    (source / "notes.txt").chmod(0o440)
    (source / "empty").chmod(0o555)
    (tmp_path / "pack" / "assets" / "one.txt").write_text("1")
    pack = assets_of(tmp_path / "pack", {"path": "kit", "mount": "tools/kit"}, {"path": "one.txt"})
    task = pack.task(pack.rows[0])
    into = tmp_path / "workspace"

    plan = pack.files.plan(task.assets)
    into.mkdir()
    lay_out(Workspace(into), plan)

    assert [(item.target, item.is_folder) for item in plan] == [
        ("tools/kit", True),
        ("tools/kit/bin", True),
        ("tools/kit/bin/run.sh", False),
        ("tools/kit/empty", True),
        ("tools/kit/empty/deeper", True),
        ("tools/kit/notes.txt", False),
        ("one.txt", False),
    ]
    assert all(item.read_only for item in plan)
    laid = into / "tools" / "kit"
    assert (laid / "notes.txt").read_bytes() == (source / "notes.txt").read_bytes()
    assert (laid / "empty" / "deeper").is_dir()
    modes = {
        name: stat.S_IMODE((laid / name).stat().st_mode) for name in ("bin/run.sh", "notes.txt", "empty")
    }
    assert modes == {"bin/run.sh": 0o755, "notes.txt": 0o440, "empty": 0o755}
    assert (into / "one.txt").read_text() == "1"
    (source / "empty").chmod(0o755)


def test_links_are_refused_wherever_they_are(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("k")
    root = tmp_path / "pack"
    assets = root / "assets"
    (assets / "folder" / "sub").mkdir(parents=True)
    (assets / "folder" / "sub" / "link").symlink_to(tmp_path / "secret" / "key")
    (assets / "out").symlink_to(tmp_path / "secret")
    (assets / "inside").symlink_to("folder")

    pack = assets_of(root, *({"path": path} for path in ("folder", "out", "out/key", "inside/sub")))

    link = "is or passes a symbolic link"
    assert faults_of(pack, root) == [
        "tasks.jsonl:1: assets[0].path: 'assets/folder' holds 'sub/link', a symbolic link",
        f"tasks.jsonl:1: assets[1].path: 'assets/out' {link}",
        f"tasks.jsonl:1: assets[2].path: 'assets/out' {link}",
        f"tasks.jsonl:1: assets[3].path: 'assets/inside' {link}",
        "tasks.jsonl:1: assets[2].mount: it overlaps with that of assets[1]",
    ]
    assert pack.broken[0].problems[0].hint == (
        "a pack holds only plain readable files and folders: copy what a link points at to its place"
    )


def test_a_root_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.txt").write_text("a")
    root = write_pack(tmp_path / "pack", [row("terminal_task", {"assets": [{"path": "a.txt"}]})])
    (root / "assets").symlink_to(tmp_path / "elsewhere")

    assert faults_of(load_pack(root), root) == [
        "tasks.jsonl:1: assets[0].path: 'assets' is or passes a symbolic link"
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_is_no_file_and_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "assets" / "x").mkdir(parents=True)
    os.mkfifo(tmp_path / "assets" / "x" / "pipe")

    pack = assets_of(tmp_path, {"path": "x"})

    assert faults_of(pack, tmp_path) == [
        "tasks.jsonl:1: assets[0].path: 'assets/x' holds 'pipe', which is neither a file nor a folder"
    ]


def test_names_with_control_characters_are_refused(tmp_path: Path) -> None:
    (tmp_path / "assets" / "x").mkdir(parents=True)
    (tmp_path / "assets" / "x" / "a\x1b[2Jb").write_text("")

    pack = assets_of(tmp_path, {"path": "x"})

    assert faults_of(pack, tmp_path) == [
        "tasks.jsonl:1: assets[0].path: 'assets/x' holds 'a\\x1b[2Jb', whose name is not a plain name"
    ]


def test_what_a_row_lays_out_is_bounded(tmp_path: Path) -> None:
    twice = [{"path": "many", "mount": "x"}, {"path": "many", "mount": "y"}]
    rows = [
        row("terminal_task", {"assets": twice[:1]}, "fits"),
        row("terminal_task", {"assets": twice}, "two"),
        row("terminal_task", {"assets": [{"path": "big"}]}, "big"),
    ]
    root = write_pack(tmp_path, rows)
    many = root / "assets" / "many"
    many.mkdir(parents=True)
    for number in range(10_000):
        (many / str(number)).touch()
    with (root / "assets" / "big").open("wb") as file:
        file.truncate(MOST_BYTES + 1)

    pack = load_pack(root)

    what = "holds more than 20,000 files or 2,147,483,648 bytes"
    assert [ref.id for ref in pack.rows] == ["fits"]
    assert faults_of(pack, tmp_path) == [
        f"tasks.jsonl:2: assets: all of it together {what}",
        f"tasks.jsonl:3: assets[0].path: 'assets/big' {what}",
    ]
    with pytest.raises(
        MaterializationError, match=f"^what is laid out {what}\n  hint: a row lays out its files"
    ):
        pack.files.plan((asset("many", "x"), asset("many", "y")))


def asset(path: str, mount: str | None = None) -> Asset:
    return Asset(path, mount or path, True, Path("x"), Visibility.PUBLIC)


PLANS: list[tuple[Asset, type[MaterializationError], str]] = [
    (asset("link"), PathPolicyError, "the path 'link' is or passes a symbolic link"),
    (asset("holder"), PathPolicyError, "the path 'holder' holds 'holder/link', a symbolic link"),
    (asset("none"), MaterializationError, "the file 'none' does not exist"),
]


@pytest.mark.parametrize(("file", "kind", "message"), PLANS, ids=range(len(PLANS)))
def test_planning_looks_at_the_files_once_more(
    tmp_path: Path, file: Asset, kind: type[MaterializationError], message: str
) -> None:
    (tmp_path / "assets" / "holder").mkdir(parents=True)
    (tmp_path / "assets" / "a.txt").write_text("a")
    (tmp_path / "assets" / "link").symlink_to("a.txt")
    (tmp_path / "assets" / "holder" / "link").symlink_to("../a.txt")

    with pytest.raises(MaterializationError) as caught:
        PackFiles(tmp_path, "assets", "hidden").plan((file,))

    assert type(caught.value) is kind
    assert str(caught.value) == message


def test_the_evaluators_folder_is_the_checkers_folder_with_the_evaluation_inputs(tmp_path: Path) -> None:
    changes = {
        "eval.checker": {"source": "pytest", "path": "kit"},
        "eval.test_files": [{"path": "more", "mount": "tests/more"}],
        "eval.run_tests": {"path": "run.sh", "mount": "bin/run.sh", "read_only": False},
        "eval.expected_state": {"path": "state.json"},
    }
    files = {"kit/tests/test_x.py": "", "kit/data.txt": "", "more/a.py": "", "run.sh": "", "state.json": "{}"}
    root = write_pack(
        tmp_path,
        [row("terminal_task", changes)],
        files={f"hidden/{name}": text for name, text in files.items()},
    )
    pack = load_pack(root)

    plan = plan_checker_files(pack.files, pack.task(pack.rows[0]))
    assert plan.entry == "."
    laid = sorted(item.target for item in plan.files if not item.is_folder)
    assert laid == ["bin/run.sh", "data.txt", "tests/more/a.py", "tests/test_x.py"]  # no hidden state
    shown = [item.target for item in plan.inputs if not item.is_folder]
    assert sorted(shown) == [
        f"securebench/evaluation_inputs/{name}" for name in ("bin/run.sh", "tests/more/a.py")
    ]
    assert {item.target: item.read_only for item in plan.files}["bin/run.sh"] is False


@pytest.mark.parametrize(
    ("checker", "hidden", "laid"),
    [
        ({"source": "pytest", "path": "deep/check.py"}, None, ["check.py"]),
        (
            {"source": "script", "path": "deep/check.py"},
            None,
            ["check.py", "state.json", "tests/data/x", "tests/t.py"],
        ),
        (
            {"source": "script", "path": "deep/check.py"},
            "deep/state.json",
            ["check.py", "tests/data/x", "tests/t.py"],
        ),
        ({"source": "script", "path": "deep/check.py"}, "deep/tests", ["check.py", "state.json"]),
        ({"source": "script", "path": "check.py"}, "deep", ["check.py"]),
    ],
)
def test_a_script_comes_with_its_folder_and_without_hidden_files(
    tmp_path: Path, checker: dict[str, str], hidden: str | None, laid: list[str]
) -> None:
    changes = {"eval.checker": checker, **({"eval.expected_state": {"path": hidden}} if hidden else {})}
    names = ("check.py", "deep/check.py", "deep/state.json", "deep/tests/t.py", "deep/tests/data/x")
    files = {f"hidden/{name}": "x" for name in names}
    pack = load_pack(write_pack(tmp_path, [row("terminal_task", changes)], files=files))

    plan = plan_checker_files(pack.files, pack.task(pack.rows[0]))

    assert plan.entry == "check.py"
    assert sorted(item.target for item in plan.files if not item.is_folder) == laid


def test_a_file_of_the_scripts_folder_may_be_named_as_an_input_too(tmp_path: Path) -> None:
    changes = {
        "eval.checker": {"source": "script", "path": "deep/check.sh"},
        "eval.test_files": {"path": "deep/tests", "mount": "tests"},
        "eval.run_tests": {"path": "deep/check.sh", "mount": "securebench/evaluation_inputs/run.sh"},
    }
    files = {"hidden/deep/check.sh": "x", "hidden/deep/tests/t.py": ""}
    pack = load_pack(write_pack(tmp_path, [row("terminal_task", changes)], files=files))

    plan = plan_checker_files(pack.files, pack.task(pack.rows[0]))

    shown = sorted(item.target.removeprefix("securebench/evaluation_inputs/") for item in plan.inputs)
    assert shown == ["run.sh", "tests", "tests/t.py"]


def test_evaluation_inputs_do_not_replace_the_checker(tmp_path: Path) -> None:
    changes = {
        "eval.checker": {"source": "pytest", "path": "kit"},
        "eval.test_files": {"path": "evil.py", "mount": "test_x.py"},
    }
    pack = load_pack(
        write_pack(
            tmp_path,
            [row("terminal_task", changes)],
            files={"hidden/kit/test_x.py": "", "hidden/evil.py": ""},
        )
    )

    with pytest.raises(PathPolicyError, match=r"^'test_x\.py' is mounted over a file of the checker$"):
        plan_checker_files(pack.files, pack.task(pack.rows[0]))
