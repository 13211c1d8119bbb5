"""Harbor task folders: which folders are packs of them, how a task.toml is read, and the task that it makes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from task_folders import SEPARATE, task_toml, write_task

from pytest_helmbench.benchmarks.packs.families.family import check_of
from pytest_helmbench.benchmarks.packs.families.task_folder.check import (
    Artifact,
    BoxNeeds,
    Collect,
    FolderTask,
    HealthCheck,
    filled_env,
)
from pytest_helmbench.benchmarks.packs.format.pack_loader import Pack, load_pack
from pytest_helmbench.benchmarks.packs.places import is_pack, task_files_of
from pytest_helmbench.benchmarks.places import benchmark_root, benchmarks_below
from pytest_helmbench.files.toml_text import TomlText

_IMAGE = "docker.io/library/python:3.12-slim"


def _pack(root: Path, toml: str | None = None, **files: str | None) -> Pack:
    """Load a pack of one task."""
    named = {name.replace("__", "/").replace("_", "."): text for name, text in files.items()}
    write_task(root / "tasks" / "one", toml, named)
    return load_pack(root / "tasks")


def _task(root: Path, toml: str, **files: str | None) -> FolderTask:
    pack = _pack(root, toml, **files)
    assert [problem.text() for problem in pack.all_problems()] == []
    return check_of(pack.task(pack.rows[0]), FolderTask)


@pytest.mark.parametrize(
    ("folders", "root"),
    [
        (["a/task.toml"], "."),
        (["a/task.toml", "b/task.toml", "c/task.toml", "scripts/x"], "."),
        (["a/task.toml", "b/instruction.md"], "."),  # its task.toml is missing, and an item says so
        (["a/task.toml", "tests/test_app.py"], "a"),
        (["a/task.toml", "src/app.py", "tests/test_app.py"], "a"),
        (["a/task.toml", "b/task.toml", "src/app.py", "tests/test_app.py"], "a"),
        (["a/task.toml", ".git/HEAD", "__pycache__/x", "venv/x"], "."),
        (["b/instruction.md", "c/instruction.md"], None),
        (["a/tests/test.sh"], None),
    ],
)
def test_a_folder_of_mostly_task_folders_is_one_pack(
    tmp_path: Path, folders: list[str], root: str | None
) -> None:
    place = tmp_path / "some" / "tasks"
    for name in ["../other/one/x", "../other/two/x", *folders]:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("")

    found = None if root is None else place / root
    assert benchmark_root(place / "a" / "tests") == found
    assert is_pack(place) is (root == ".")
    assert is_pack(place / "a") is (root == "a")
    below = benchmarks_below(tmp_path)
    assert (found in below) is (root is not None)
    assert len(below) == (0 if root is None else folders.count("b/task.toml") + 1 if root == "a" else 1)


def test_what_lies_in_a_task_or_in_a_pack_is_part_of_that(tmp_path: Path) -> None:
    inner = write_task(tmp_path / "tasks" / "one" / "environment" / "inner")
    write_task(tmp_path / "tasks" / "one")
    assert benchmark_root(inner) == tmp_path / "tasks"
    (tmp_path / "tasks" / "manifest.yaml").write_text("id: x\nversion: 1\n")
    (tmp_path / "tasks" / "tasks.jsonl").write_text("")
    assert benchmark_root(inner) == tmp_path / "tasks"
    assert task_files_of(tmp_path / "tasks") == []


def test_rows_are_the_folders_in_natural_order(tmp_path: Path) -> None:
    for name in ("t10", "t9"):
        write_task(tmp_path / "tasks" / name, task_toml(metadata='author = "me"\nlevel = 3\nurl = "x"'))
    write_task(tmp_path / "tasks" / "t1", task_toml(metadata='author = "you"'))

    pack = load_pack(tmp_path / "tasks")

    assert (pack.id, pack.manifest.version) == ("tasks", 1)
    assert [row.id for row in pack.rows] == ["t1", "t9", "t10"]
    assert [row.path for row in pack.rows] == [
        tmp_path / "tasks" / name / "task.toml" for name in ("t1", "t9", "t10")
    ]
    assert pack.rows[1].groups == (("difficulty", "easy"), ("author", "me"), ("level", "3"), ("url", "x"))
    alone = load_pack(write_task(tmp_path / "alone"))
    task = alone.task(alone.rows[0])
    assert (alone.id, task.id, check_of(task, FolderTask).folder) == ("alone", "alone", ".")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Do it.\n\nNow.\n", "Do it.\n\nNow."),
        ("<!-- harbor-canary GUID 1 -->\n# CANARY 2\n\n\nDo it.\n# canary\n", "Do it.\n# canary"),
        ("# Title\n<!-- canary -->\n", "# Title\n<!-- canary -->"),
        ("\ufeffDo it.\r\n", "Do it."),
    ],
)
def test_lines_that_mark_test_data_are_not_shown(tmp_path: Path, text: str, asked: str) -> None:
    pack = _pack(tmp_path, instruction_md=text)
    assert pack.task(pack.rows[0]).public() == {"instruction": asked}


def test_a_hash_covers_all_files_of_a_task(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "tasks" / "one")
    write_task(tmp_path / "tasks" / "two")
    seen = set()

    def note() -> None:
        pack = load_pack(tmp_path / "tasks")
        digest = check_of(pack.task(pack.rows[0]), FolderTask).digest
        seen.add((pack.hash, digest, pack.rows[0].content))
        assert pack.rows[1].content == two

    two = load_pack(tmp_path / "tasks").rows[1].content
    note()
    note()
    assert len(seen) == 1
    (folder / "tests" / "data").write_text("a")
    note()
    (folder / "tests" / "data").chmod(0o755)
    note()
    (folder / "tests" / "data").rename(folder / "tests" / "date")
    note()
    (folder / "environment").mkdir()
    (folder / "environment" / "link").symlink_to("a")
    note()
    (folder / "environment" / "link").unlink()
    (folder / "environment" / "link").symlink_to("b")
    note()
    assert len(seen) == 6
    assert [len({*values}) for values in zip(*seen, strict=True)] == [6, 6, 6]


def test_everything_of_a_task_is_compiled(tmp_path: Path) -> None:
    toml = task_toml(
        root='artifacts = ["/app/a", {source = "b", destination = "c", exclude = ["*.o"]}]',
        agent='user = "worker"',
        verifier="timeout_sec = 30\nuser = 1000\nenv = {KEY = '${KEY}', B = '${B:-b}'}\n"
        '[[verifier.collect]]\ncommand = "x"\n[[verifier.collect]]\ncommand = "y"\ntimeout_sec = 5\nuser = "root"',
        environment='cpus = 0.5\nmemory_mb = 64\nnetwork_mode = "no-network"\nenv = {A = "1"}\n'
        'build_timeout_sec = 5\n[environment.healthcheck]\ncommand = "true"\nretries = 1\nstart_period_sec = 0',
        more="[solution]\nenv = {S = '${T}'}",
    )
    health = HealthCheck("true", 5.0, 30.0, 0.0, 5.0, 1)
    env = (("A", "1"),)
    box = BoxNeeds(_IMAGE, None, None, False, 5.0, 0.5, 64, "/app", env, network=False, health=health)
    task = _task(tmp_path, toml)
    assert task == FolderTask(
        folder="one",
        digest=task.digest,
        agent=box,
        verifier=box,
        separate=False,
        artifacts=(Artifact("/app/a"), Artifact("b", ("*.o",))),
        collect=(Collect("x", 60.0, None), Collect("y", 5.0, "root")),
        agent_user="worker",
        verifier_user="1000",
        agent_timeout_s=60.0,
        verifier_timeout_s=30.0,
        verifier_env=(("KEY", "${KEY}"), ("B", "${B:-b}")),
        solution_env=(("S", "${T}"),),
        solution="solution/solve.sh",
    )
    assert (task.agent.cpus, task.agent.memory_mb, task.boxes) == (0.5, 64, (box,))
    assert task.lost_variables({}) == ["KEY"]
    assert task.lost_variables({"KEY": ""}) == []
    assert filled_env([("V", "${A}-${B:-x}-$C")], {"A": "1"}) == (("V", "1-x-$C"),)
    plain = _task(tmp_path / "2", task_toml(), solution__solve_sh=None)
    assert (plain.agent.cpus, plain.agent.memory_mb, plain.agent.network) == (2.0, 4096, True)
    assert (plain.verifier_timeout_s, plain.solution) == (600.0, None)


_OWN = '[verifier.environment]\ndocker_image = "own"\ncpus = 1'
_DOCKERFILE = "FROM scratch\n"


@pytest.mark.parametrize(
    ("verifier", "files", "expected"),
    [
        ("", {"tests__Dockerfile": _DOCKERFILE}, None),
        ('environment_mode = "shared"', {}, None),
        ('environment_mode = "separate"', {}, (_IMAGE, None, False)),
        (
            'environment_mode = "separate"',
            {"tests__Dockerfile": _DOCKERFILE, "tests__test_sh": None},
            (None, "tests", True),
        ),
        (_OWN, {"tests__Dockerfile": _DOCKERFILE}, ("own", None, True)),
        ("[verifier.environment]\ncpus = 1", {"tests__Dockerfile": _DOCKERFILE}, (None, "tests", True)),
        ("[verifier.environment]\ncpus = 1", {}, (_IMAGE, None, False)),
    ],
)
def test_a_separate_verifier_has_an_image_of_its_own_or_one_from_the_tests_or_the_agents(
    tmp_path: Path, verifier: str, files: dict[str, str | None], expected: tuple[object, ...] | None
) -> None:
    task = _task(tmp_path, task_toml(root=SEPARATE, verifier=verifier), **files)
    box = task.verifier
    assert task.separate is (expected is not None)
    assert ((box.image, box.build, box.brings_tests) if task.separate else None) == expected
    assert box.cpus == (1 if "cpus" in verifier else 2)


def test_an_image_is_named_or_built_and_loose_files_go_with_one_that_is_named(tmp_path: Path) -> None:
    loose = _task(tmp_path / "1", task_toml(), environment__data_csv="1\n")
    assert (loose.agent.build, loose.agent.loose) == (None, "environment")
    toml = task_toml().replace(f'docker_image = "{_IMAGE}"', "")
    built = _task(tmp_path / "2", toml, environment__Dockerfile=_DOCKERFILE)
    assert (built.agent.image, built.agent.build, built.agent.loose) == (None, "environment", None)


@pytest.mark.parametrize(
    ("toml", "asks"),
    [
        ({}, (True, True)),
        ({"environment": "allow_internet = false"}, (False, False)),
        ({"environment": 'allow_internet = false\nnetwork_mode = "public"'}, (True, True)),
        ({"agent": 'network_mode = "no-network"'}, (False, True)),
        (
            {"environment": 'network_mode = "no-network"', "verifier": 'network_mode = "public"'},
            (False, True),
        ),
        ({"verifier": '[verifier.environment]\nnetwork_mode = "no-network"'}, (True, False)),
    ],
)
def test_phases_go_before_environments_where_networks_are_asked_for(
    tmp_path: Path, toml: dict[str, str], asks: tuple[bool, bool]
) -> None:
    toml = {**toml, "verifier": 'environment_mode = "separate"\n' + toml.get("verifier", "")}
    task = _task(tmp_path, task_toml(**toml))
    assert (task.agent.network, task.verifier.network) == asks


def test_no_box_is_given_more_processors_than_there_are(tmp_path: Path) -> None:
    box = _task(tmp_path, task_toml(environment="cpus = 1e6")).agent
    assert (box.asked_cpus, box.cpus) == (1e6, os.cpu_count())


def test_old_keys_are_read(tmp_path: Path) -> None:
    toml = task_toml(environment='memory = "2G"\nstorage = "10g"').replace("schema_version", "version")
    assert _task(tmp_path, toml).agent.memory_mb == 2048
    assert _task(tmp_path / "2", task_toml(environment='memory = "512M"')).agent.memory_mb == 512


@pytest.mark.parametrize(
    ("toml", "line", "message"),
    [
        ({"environment": 'cpus = "two"'}, 18, "environment.cpus: this is text, not a number"),
        ({"environment": "cpus = nan"}, 18, "environment.cpus: this is NaN, not a number"),
        (
            {"environment": "memory_mb = 0.5"},
            18,
            "environment.memory_mb: this is a number, not a whole number",
        ),
        ({"environment": "cpus = true"}, 18, "environment.cpus: this is true or false, not a number"),
        ({"environment": "cpus = 0"}, 18, "environment.cpus: 0 is not a number above 0"),
        (
            {"environment": "memory_mb = 1.5"},
            18,
            "environment.memory_mb: this is a number, not a whole number",
        ),
        (
            {"environment": '[verifier.environment]\ndocker_image = "--help"'},
            19,
            "verifier.environment.docker_image: '--help' is not a name of an image",
        ),
        ({"environment": "env = {A = 1}"}, 18, "environment.env.A: this is a number, not text"),
        (
            {"environment": '[environment.env]\nA = "a"\nB = 1'},
            20,
            "environment.env.B: this is a number, not text",
        ),
        (
            {"environment": 'memory = "2 apples"'},
            18,
            "environment.memory: '2 apples' is not a size such as 2G or 512M",
        ),
        ({"environment": "gpu_types = 2026-01-01"}, 18, "environment.gpu_types: this is text, not a list"),
        (
            {"environment": 'network_mode = "none"'},
            18,
            "environment.network_mode: 'none' is not public or no-network or allowlist",
        ),
        ({"agent": "user = []"}, 10, "agent.user: this is a list, not text or a whole number"),
        ({"agent": "timeout_sec = -1"}, None, ""),  # twice
        ({"verifier": "timeout_sec = inf"}, 13, "verifier.timeout_sec: this is Infinity, not a number"),
        (
            {"verifier": '[[verifier.collect]]\ncommand = "a"\n[[verifier.collect]]'},
            15,
            "verifier.collect[1].command: this is missing",
        ),
        (
            {"verifier": 'environment_mode = "shared"\n[verifier.environment]\ncpus = 1'},
            13,
            "verifier.environment_mode: there is a verifier.environment, which is not shared",
        ),
        ({"root": 'artifacts = "/app"'}, 2, "artifacts: this is text, not a list"),
        (
            {"root": 'artifacts = [\n"/app/../etc"]'},
            2,
            "artifacts[0]: '/app/../etc' is not a path without '..'",
        ),
        ({"root": 'artifacts = [{source = ""}]'}, 2, "artifacts[0].source: '' is not a path without '..'"),
        ({"root": "artifacts = [1]"}, 2, "artifacts[0]: this is a number, not text or a mapping"),
        ({"root": "metadata = 1", "metadata": ""}, None, ""),  # twice
        ({"more": '"a\\u0000b" = 1'}, None, "this holds a NUL character"),
        ({"root": "a = " + "[" * 200 + "]" * 200}, None, "this is nested too deeply"),
        ({"root": "x = " + "9" * 5000}, None, ""),
        ({"root": "[x"}, 2, "this is not valid TOML: expected ']' at the end of a table declaration"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_line(
    tmp_path: Path, toml: dict[str, str], line: int | None, message: str
) -> None:
    pack = _pack(tmp_path, task_toml(**toml))
    assert not pack.rows
    (row,) = pack.broken
    assert (row.name, row.path) == ("one", tmp_path / "tasks" / "one" / "task.toml")
    if message:
        assert [(problem.line, problem.message) for problem in row.problems] == [(line, message)]
    else:
        assert row.problems


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"task_toml": None}, "this is missing"),
        ({"instruction_md": None}, "instruction.md: this is missing"),
        ({"instruction_md": "<!-- canary -->\n \n"}, "instruction.md: this is empty"),
        ({"tests__test_sh": None}, "tests/test.sh: this is missing"),
    ],
)
def test_files_that_are_missing_are_errors_of_their_row(
    tmp_path: Path, files: dict[str, str | None], message: str
) -> None:
    write_task(tmp_path / "tasks" / "zwei")
    pack = _pack(tmp_path, None, **files)
    assert [row.id for row in pack.rows] == ["zwei"]
    assert [(row.name, [one.message for one in row.problems]) for row in pack.broken] == [("one", [message])]


def test_all_that_is_wrong_with_a_folder_is_named_at_once_in_the_order_of_lines(tmp_path: Path) -> None:
    toml = task_toml(
        root='artifacts = ["../a"]', agent="usr = 1\nuser = []", environment="memory_mb = 0.5\ncpu = 1"
    )
    (row,) = _pack(tmp_path, toml, instruction_md=None).broken
    assert [(one.line, one.message.partition(":")[0]) for one in row.problems] == [
        (2, "artifacts[0]"),
        (11, "agent.user"),
        (19, "environment.memory_mb"),
        (1, "instruction.md"),
    ]


def test_links_stay_in_their_folder(tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_text("x")
    for name, target in {
        "in": "test.sh",
        "out": str(outside),
        "up": "../../../secret",
        "loop": "loop",
    }.items():
        folder = write_task(tmp_path / "tasks" / name)
        (folder / "tests" / "link").symlink_to(target)
    for name in ("task.toml", "instruction.md"):
        folder = write_task(tmp_path / "tasks" / name.partition(".")[0], files={name: None})
        (folder / name).symlink_to(outside)
    (tmp_path / "tasks" / "whole").symlink_to(write_task(tmp_path / "elsewhere" / "x"))

    pack = load_pack(tmp_path / "tasks")

    assert [row.id for row in pack.rows] == ["in", "loop"]
    found = {row.name: [problem.message for problem in row.problems] for row in pack.broken}
    assert found.keys() == {"out", "up", "task", "instruction", "whole"}
    assert found["up"] == ["the folder holds 'tests/link', a link that leads out of it"]
    assert found["whole"] == ["the folder is a symbolic link"]


@pytest.mark.parametrize(
    ("toml", "warnings"),
    [
        (
            {"environment": "memroy_mb = 1"},
            [(18, "environment.memroy_mb is no key: did you mean memory_mb?")],
        ),
        ({"more": "[enviroment]\ncpus = 1"}, [(19, "enviroment is no key: did you mean environment?")]),
        ({"environment": "colour = 1", "root": "xyz = {}"}, []),
        ({"environment": "cpus = 1\ncpu = 2"}, [(19, "environment.cpu is no key: did you mean cpus?")]),
        (
            {
                "verifier": '[[verifier.collect]]\ncommand = "a"\n[[verifier.collect]]\ncommand = "b"\ntimeout = 1'
            },
            [(17, "verifier.collect[1].timeout is no key: did you mean timeout_sec?")],
        ),
    ],
)
def test_keys_that_resemble_another_are_warnings(
    tmp_path: Path, toml: dict[str, str], warnings: list[tuple[int, str]]
) -> None:
    pack = _pack(tmp_path, task_toml(**toml))
    assert len(pack.rows) == 1
    assert [(one.line, one.message) for one in pack.warnings] == warnings


@pytest.mark.parametrize(
    ("toml", "files", "needs"),
    [
        ({"root": 'steps = [{name = "a"}]'}, {"instruction_md": None, "tests__test_sh": None}, "steps"),
        ({}, {"environment__docker-compose_yaml": "x"}, "compose"),
        ({"environment": 'mcp_servers = [{name = "a"}]\nskills_dir = "/s"'}, {}, "mcp_servers, skills_dir"),
        ({"environment": 'os = "Windows"'}, {"tests__test_sh": None}, "Windows"),
        ({"environment": "gpus = 1"}, {}, "GPUs"),
        ({"environment": 'tpu = {type = "v4", topology = "2x2"}'}, {}, "GPUs"),
        ({"agent": 'network_mode = "allowlist"\nallowed_hosts = ["a"]'}, {}, "allowlist"),
        ({"root": 'artifacts = [{source = "/a", service = "db"}]'}, {}, "other services"),
        ({}, {"tests__a_py": "open('/logs/agent/trajectory.json')"}, "trajectory.json"),
        ({"environment": 'os = "LINUX"\ngpus = 0', "root": "steps = []"}, {}, None),
        ({"root": 'artifacts = [{source = "/a", service = "main"}]'}, {}, None),
    ],
)
def test_needs_that_are_unknown_here_skip_a_row(
    tmp_path: Path, toml: dict[str, str], files: dict[str, str | None], needs: str | None
) -> None:
    pack = _pack(tmp_path, task_toml(**toml), **files)
    assert not pack.broken
    assert pack.rows[0].skip_reason == (None if needs is None else f"it needs {needs}, unknown here")


@pytest.mark.parametrize(
    ("line", "downloads"),
    [
        ("curl -LsSf https://astral.sh/uv/install.sh | sh", True),
        ("apt-get update && apt-get install -y curl", True),
        ("  apt-get -qq install curl", True),
        ("python -m pip install --quiet pytest==8", True),
        ("uvx --with pytest pytest /tests", True),
        ("git clone https://x/y", True),
        ("npm ci", True),
        ("# pip install pytest", False),
        ("curl -s http://localhost:8080/ | grep ok", False),
        ("wget -qO- http://127.0.0.1/", False),
        ("pip install --no-index /wheels/x.whl", False),
        ("command -v curl", False),
        ("echo install", False),
        ("cargo test --offline", False),
    ],
)
def test_verifiers_that_download_are_named_by_line(tmp_path: Path, line: str, downloads: bool) -> None:
    pack = _pack(tmp_path, tests__test_sh=f"#!/bin/bash\n\n{line}\n")
    assert check_of(pack.task(pack.rows[0]), FolderTask).downloads == (3 if downloads else None)
    assert pack.warnings_of(gives_network=True) == ()
    found = [problem.text(tmp_path) for problem in pack.warnings_of(gives_network=False)]
    assert found == [
        "tasks: 1 task asks for a network and gets none (--helmbench-network=task)",
        *["tasks/one/tests/test.sh:3: the verifier downloads; --helmbench-network=task allows it"]
        * downloads,
    ]


def test_tasks_without_a_network_lack_none(tmp_path: Path) -> None:
    toml = task_toml(environment='network_mode = "no-network"')
    pack = _pack(tmp_path, toml, tests__test_sh="pip install x\n")
    assert pack.warnings_of(gives_network=False) == ()


def test_what_stands_beside_task_folders_is_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_task(tmp_path / "tasks" / name)
    (tmp_path / "tasks" / "scripts").mkdir()
    (tmp_path / "tasks" / "test_tasks.py").write_text("")
    (warning,) = load_pack(tmp_path / "tasks").warnings
    assert warning.message == "pytest runs nothing in scripts, test_tasks.py: this is a folder of tasks"


def test_lines_of_toml_are_found_by_key() -> None:
    text = """# a = 0
a = 1
'b' . "c" = 2
text = \"\"\"
a = 5
[x]
\"\"\"
[t . u]
k = [
  {x = 1},
]
[[list]]
x = 1
[[list]]
[list.in]
y = 2
"""
    toml = TomlText(text)
    places = [
        "a",
        "b.c",
        "text",
        "x",
        "t.u",
        "t.u.k",
        "t.u.k[0].x",
        "list[0].x",
        "list[1]",
        "list[1].in.y",
        "list[1].z",
    ]
    assert [toml.line(place) for place in places] == [2, 3, 4, None, 8, 9, 9, 13, 14, 16, 14]
    assert json.dumps(toml.data["list"]) == '[{"x": 1}, {"in": {"y": 2}}]'
