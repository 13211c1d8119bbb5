"""Every message about a broken manifest or row: what an author reads, word for word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from packs import GONE, MANIFEST, healthy, row, write_pack

from pytest_helmbench.benchmarks.packs.families.registry import family_named
from pytest_helmbench.benchmarks.packs.families.text.text_family import TextFamily
from pytest_helmbench.benchmarks.packs.format.pack_loader import Pack, load_pack
from pytest_helmbench.benchmarks.packs.task import ConfigError, UnreadablePackError
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.problem import Problem

FILES = {"assets/a.txt": "a", "hidden/b.txt": "b"}


def problems_of(root: Path) -> tuple[Pack | None, list[str]]:
    """Return the pack and its problems as people read them; None for a pack that cannot be read at all."""
    try:
        pack = load_pack(root)
    except UnreadablePackError as error:
        return None, shown(root, error.problems)
    return pack, shown(root, tuple(pack.all_problems()))


def shown(root: Path, problems: tuple[Problem, ...]) -> list[str]:
    return [problem.text(root) for problem in problems]


ROWS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("multiple_choice", {"id": GONE}, ["id: this is missing\n  hint: every row has an id of its own"]),
    ("multiple_choice", {"id": "  "}, ["id: this is blank text\n  hint: every row has an id of its own"]),
    ("multiple_choice", {"id": 7}, ["id: this is a number, not text\n  hint: every row has an id of its own"]),
    ("multiple_choice", {"family": GONE}, [
        "family: this is missing, and the manifest has no default\n  hint: "
        "write one of multiple_choice, short_answer, free_response, code_completion, repo_patch, "
        "terminal_task, or give the manifest a defaults.family",
    ]),
    ("multiple_choice", {"family": 3}, ["family: this is a number, not the name of a family"]),
    ("multiple_choice", {"input": None}, [
        "input: this is empty (null), not an object\n  hint: leave the key out when there is nothing to say",
    ]),
    ("multiple_choice", {"input.question": GONE}, ["input.question: this is missing\n  hint: the family needs it"]),
    ("multiple_choice", {"input.question": ""}, ["input.question: this is blank text"]),
    ("multiple_choice", {"input.question": 5}, ["input.question: this is a number, not text"]),
    ("multiple_choice", {"input.qestion": "x"}, [
        "input: unknown key 'qestion'\n  hint: did you mean 'question'? known keys: question, choices, messages",
    ]),
    ("multiple_choice", {"input.choices": []}, ["input.choices: the list is empty"]),
    ("multiple_choice", {"input.choices": "abc"}, ["input.choices: this is text, not a list of texts"]),
    ("multiple_choice", {"input.choices": [f"c{number}" for number in range(27)]}, [
        "input.choices: there are 27 choices\n  hint: a choice is a letter: at most 26",
    ]),
    ("multiple_choice", {"eval.answer": None}, ["eval.answer: this is empty (null)\n  hint: the family needs it"]),
    ("multiple_choice", {"eval.answer": 3}, [
        "eval.answer: this names no choice\n  hint: "
        "a zero-based index, a letter or the text of a choice: A to C, 0 to 2",
    ]),
    ("multiple_choice", {"eval.answer": True}, [
        "eval.answer: this is true or false, not a letter, a text or an index",
    ]),
    ("multiple_choice", {"eval.answer": ["A", 99]}, [
        "eval.answer: entry 2 names no choice\n  hint: "
        "a zero-based index, a letter or the text of a choice: A to C, 0 to 2",
    ]),
    ("short_answer", {"eval.accepted_answers": ["8", True]}, [
        "eval.accepted_answers: entry 2 is true or false, not text or a number\n  hint: write it as text",
    ]),
    ("multiple_choice", {"eval.anwser": "B"}, [
        "eval: unknown key 'anwser'\n  hint: did you mean 'answer'? the only key: answer",
    ]),
    ("short_answer", {"input.context": ["x"]}, ["input.context: this is a list, not text or an object"]),
    ("short_answer", {"input.messages": [{"role": "user", "content": "Hi."}, {"role": "tool", "content": "x"}]}, [
        "input.messages: entry 2 is not a message\n  hint: "
        'write {"role": …, "content": a text}, with a role of system, user, assistant',
    ]),
    ("short_answer", {"eval.accepted_answers": [10 ** 4000]}, [
        "eval.accepted_answers: entry 1 is a number of thousands of digits\n  hint: write it as text",
    ]),
    ("short_answer", {"eval.accepted_answers": "8"}, ["eval.accepted_answers: this is text, not a list"]),
    ("short_answer", {"eval.tolerance": -1}, [
        "eval.tolerance: the number is out of range\n  hint: write a number that is 0 or more",
    ]),
    ("short_answer", {"eval.tolerance": "1"}, ["eval.tolerance: this is text, not a number"]),
    ("free_response", {"eval.rubric": {"type": "judge", "accepted_answers": ["x"]}}, [
        "eval.rubric.type: the type is not known\n  hint: the only type is 'contains_any'",
    ]),
    ("free_response", {"eval.rubric": {"rejected_answers": ["x"]}}, [
        "eval.rubric.accepted_answers: this is missing\n  hint: a rubric needs it",
    ]),
    ("free_response", {"eval.rubric.min_token_f1": 1.5}, [
        "eval.rubric.min_token_f1: the number is out of range\n  hint: write a number from 0 to 1",
    ]),
    ("free_response", {"eval.reference_answer": ["x"]}, [
        "eval.reference_answer: this is a list, not text\n  hint: "
        "or name a file below the eval root: {\"path\": \"…\"}",
    ]),
    ("code_completion", {"eval.tests": "assert 1"}, [
        "eval.tests: this is text, not an object\n  hint: write {\"source\": \"inline\", \"code\": \"…\"}",
    ]),
    ("code_completion", {"eval.tests": {"source": "file", "path": "x"}}, [
        "eval.tests: unknown key 'path'\n  hint: known keys: source, code, command",
        "eval.tests.source: the source 'file' is not known\n  hint: the only source is 'inline'",
        "eval.tests.code: this is missing",
    ]),
    ("code_completion", {"eval.tests.source": GONE}, [
        "eval.tests.source: this is missing\n  hint: the only source is 'inline'",
    ]),
    ("code_completion", {"eval.reference_solution": 3}, [
        "eval.reference_solution: this is a number, not text or an object\n  hint: "
        "or name a file below the eval root: {\"path\": \"…\"}",
    ]),
    ("code_completion", {"eval.reference_solution": {"path": "../secret.py"}}, [
        "eval.reference_solution.path: the path leads out by '..'\n  hint: "
        "write a relative POSIX path without '.', '..' and backslashes",
    ]),
    ("code_completion", {"eval.reference_solution": {"path": "secret.py"}}, [
        "eval.reference_solution.path: the file that it names does not exist\n  hint: "
        "it is read relative to the eval root, 'hidden'",
    ]),
    ("repo_patch", {"input.base_commit": "--upload-pack=x"}, [
        "input.base_commit: '--upload-pack=x' is not the name of a commit\n  hint: write the hash of the commit",
    ]),
    ("repo_patch", {"environment": {"image": "--privileged"}}, [
        "environment.image '--privileged' is not a name of an image\n  hint: write name, name:tag or name@digest",
    ]),
    ("repo_patch", {"environment": {"image": "x\n-v"}}, [
        "environment.image 'x\\n-v' is not a name of an image\n  hint: write name, name:tag or name@digest",
    ]),
    ("terminal_task", {"environment.image": "-v/:/host"}, [
        "environment.image '-v/:/host' is not a name of an image\n  hint: write name, name:tag or name@digest",
    ]),
    ("repo_patch", {"input.hints": 3}, ["input.hints: this is a number, not text or a list of texts"]),
    ("repo_patch", {"eval.tests.timeout_seconds": 0}, [
        "eval.tests.timeout_seconds: 0 is not a time\n  hint: write a number of seconds above 0",
    ]),
    ("repo_patch", {"eval.candidate_policy": []}, ["eval.candidate_policy: this is a list, not an object"]),
    ("repo_patch", {"eval.tests.candidate_policy": {"allow_paths": ["lib/"]}}, [
        "eval.candidate_policy: eval.tests.candidate_policy says something else\n  hint: keep one of them",
    ]),
    ("repo_patch", {"environment": GONE}, [
        "environment.image: there is neither an image nor a repository\n  hint: "
        "name an image, or give environment.repository the path of a git bundle",
    ]),
    ("repo_patch", {"input.artifact_path": ".git/fix.diff"}, [
        "input.artifact_path: '.git/fix.diff' cannot hold a patch: it lies in git's own folder\n  hint: "
        "write a relative POSIX path in the repository",
    ]),
    ("repo_patch", {"environment": {"repository": "repo.bundle"}}, [
        "environment.repository: 'assets/repo.bundle' does not exist\n  hint: "
        "it is read relative to the public root, 'assets'",
    ]),
    ("repo_patch", {"environment": {"repository": "/srv/repo"}}, [
        "environment.repository '/srv/repo' is not relative\n  hint: write a path below the public root",
    ]),
    ("terminal_task", {"eval.checker": "make test"}, [
        "eval.checker: this is text, not an object\n  hint: "
        "write {\"command\": […]}, or {\"source\": \"pytest\", \"path\": \"…\"}",
    ]),
    ("terminal_task", {"eval.checker": {}}, [
        "eval.checker: there is neither 'command' nor 'path'\n  hint: "
        "write {\"command\": […]}, or {\"source\": \"pytest\", \"path\": \"…\"}",
    ]),
    ("terminal_task", {"eval.checker": {"source": "pytst", "path": "tests"}}, [
        "eval.checker.source: the source 'pytst' is not known\n  hint: "
        "did you mean 'pytest'? known sources: pytest, script",
    ]),
    ("terminal_task", {"eval.checker": {"source": "pytest", "path": "../tests"}}, [
        "eval.checker.path: the path leads out by '..'\n  hint: write a relative POSIX path below the eval root",
    ]),
    ("terminal_task", {"eval.checker": {"source": "pytest", "path": "tests"}}, [
        "eval.checker.path: 'hidden/tests' does not exist\n  hint: it is read relative to the eval root, 'hidden'",
    ]),
    ("terminal_task", {"eval.checker": {"command": "a\x00b"}}, [
        "eval.checker.command: the command holds a NUL character",
    ]),
    ("terminal_task", {"eval.checker.timeout_seconds": -3}, [
        "eval.checker.timeout_seconds: -3 is not a time\n  hint: write a number of seconds above 0",
    ]),
    ("terminal_task", {"eval.needed_commands": ["chroot", "mount"]}, [
        "eval.needed_commands: 'mount' is not a command that is known here\n  hint: "
        "the only dangerous command that a row may ask for is 'chroot'",
    ]),
    ("terminal_task", {"eval.test_files": [{"path": "a", "mount": "/etc/passwd"}]}, [
        "eval.test_files[0].mount: the mount '/etc/passwd' is not relative\n  hint: "
        "write a relative POSIX path without '.', '..' and backslashes",
        "eval.test_files[0].path: 'hidden/a' does not exist\n  hint: it is read relative to the eval root, 'hidden'",
    ]),
    ("terminal_task", {"environment": {"materialize_workdir_from_image": True}}, [
        "environment.materialize_workdir_from_image: there is no image to copy from\n  hint: "
        "name one in environment.image",
    ]),
    ("terminal_task", {"environment": {"materialize_workdir_from_image": "yes"}}, [
        "environment.materialize_workdir_from_image is 'yes', not true or false\n  hint: write true or false",
    ]),
    ("terminal_task", {"assets": {}}, ["assets: this is an object, not a list of objects"]),
    ("terminal_task", {"assets": [{"path": "/etc/passwd"}]}, [
        "assets[0].path: the path '/etc/passwd' is not relative\n  hint: "
        "write a relative POSIX path without '.', '..' and backslashes",
    ]),
    ("terminal_task", {"assets": [{"path": "a/../b"}]}, [
        "assets[0].path: the path 'a/../b' leads out by '..'\n  hint: "
        "write a relative POSIX path without '.', '..' and backslashes",
    ]),
    ("terminal_task", {"assets": [{"path": "a\\b"}]}, [
        "assets[0].path: the path 'a\\\\b' holds a backslash\n  hint: "
        "write a relative POSIX path without '.', '..' and backslashes",
    ]),
    ("terminal_task", {"assets": [{"path": "a\x00b"}]}, [
        "assets[0].path: the path 'a\\x00b' holds a control character\n  hint: "
        "write a relative POSIX path without '.', '..' and backslashes",
    ]),
    ("terminal_task", {"assets": [{"path": "./a"}]}, [
        "assets[0].path: the path './a' has a part '.'\n  hint: "
        "write a relative POSIX path without '.', '..' and backslashes",
    ]),
    ("terminal_task", {"assets": [{"path": "a//b"}]}, [
        "assets[0].path: the path 'a//b' has an empty part\n  hint: "
        "write a relative POSIX path without '.', '..' and backslashes",
    ]),
    ("terminal_task", {"assets": [{"path": ""}]}, [
        "assets[0].path: the path '' is empty\n  hint: write a relative POSIX path without '.', '..' and backslashes",
    ]),
    ("terminal_task", {"assets": [{"path": "a.txt", "mount": "eval/x"}]}, [
        "assets[0].mount: the mount 'eval/x' lies under the reserved folder 'eval/'\n  hint: choose another folder",
    ]),
    ("terminal_task", {"assets": [{"path": "a.txt", "mount": "Data"}, {"path": "a.txt", "mount": "data/x"}]}, [
        "assets[1].mount: it overlaps with that of assets[0]\n  hint: "
        "two mounts must not be equal or lie in each other, also where case does not count",
    ]),
    ("terminal_task", {"assets": [{"path": "a.txt", "mount": "..／x"}, {"path": "a.txt", "mount": "C:/x"}]}, [
        "assets[0].mount: the mount '..／x' looks like another path once its characters are normalised\n  hint: "
        "write a relative POSIX path without '.', '..' and backslashes",
        "assets[1].mount: the mount 'C:/x' is not relative\n  hint: "
        "write a relative POSIX path without '.', '..' and backslashes",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("family", "changes", "expected"), ROWS, ids=[f"{number}-{item[0]}" for number, item in enumerate(ROWS)]
)
def test_a_broken_row_says_what_is_wrong(
    tmp_path: Path, family: str, changes: dict[str, Any], expected: list[str]
) -> None:
    write_pack(tmp_path, [row(family, changes), healthy(family, "other")], files=FILES)

    pack, found = problems_of(tmp_path)

    assert found == [f"tasks.jsonl:1: {message}" for message in expected]
    assert pack is not None
    assert [ref.id for ref in pack.rows] == ["other"]  # a broken row never stops the others
    assert [broken.line for broken in pack.broken] == [1]


_OBJECT_HINT = "\n  hint: every line is one JSON object of its own"
LINES: list[tuple[bytes, str, list[str]]] = [
    (b'{"id": }', "line-2", ['row: this is not valid JSON: expecting value (column 8)' + _OBJECT_HINT]),
    (b'{"id": "a"', "line-2", ["row: this is not valid JSON: expecting ',' delimiter (column 11)" + _OBJECT_HINT]),
    (b'{"id": "a"} {}', "line-2", ['row: this is not valid JSON: extra data (column 13)' + _OBJECT_HINT]),
    (b'{"id": "a"}\r{"id": "b"}', "line-2",
        ["row: this is not valid JSON: extra data (column 13)\n  hint: save the file with LF line ends"]),
    (b'[' * 200 + b']' * 200, "line-2", ['row: this is not valid JSON: it is nested too deeply' + _OBJECT_HINT]),
    (b'[' * 100000, "line-2", ['row: this is not valid JSON: it is nested too deeply' + _OBJECT_HINT]),
    (b'{"a": ' + b'9' * 5000 + b'}', "line-2",
        ['row: this is not valid JSON: a number in it is too long' + _OBJECT_HINT]),
    (b'[1]', "line-2", ["row: this is a list, not an object\n  hint: every line is one JSON object"]),
    (b'null', "line-2", ["row: this is empty (null), not an object\n  hint: every line is one JSON object"]),
    (b'\xff{"id": "a"}', "line-2",
        ["row: byte 0xff (column 1) is not UTF-8\n  hint: save the file with the encoding UTF-8"]),
    (b'{"id": "a", "id": "b", "family": "x"}', "b", ["id: the key stands here twice\n  hint: keep one of them"]),
    (b'{"id": "a", "family": "x", "eval": {"state": {"k-9f": 1, "k-9f": 2}}}', "a",
        ["eval.state: a key stands twice in it\n  hint: keep one of them"]),
    (b'{"id": "a", "family": "x", "eval": {"answer": [NaN, -Infinity, 1e999]}}', "a",
        ['eval.answer: the number is not finite\n  hint: JSON knows no NaN and no Infinity'] * 3),
    (b'{"id": "a", "family": "x", "metadata": {"n": -1e999}}', "a",
        ["metadata.n: the number is not finite\n  hint: JSON knows no NaN and no Infinity"]),
    (b'{"id": "a\\ud800", "family": "x"}', "line-2",
        [
            "id: the text holds half a character (a lone surrogate)\n  hint: write the character itself, or both "
            "halves of the \\u pair",
        ],
    ),
    (b'{"id": "ok", "family": "x"}', "line-2",
        ["id: 'ok' is the id of another row (first in line 1)\n  hint: rename one of them"]),
]  # fmt: skip


@pytest.mark.parametrize(("line", "name", "expected"), LINES, ids=range(len(LINES)))
def test_a_line_that_is_no_row_is_an_item_of_its_own(
    tmp_path: Path, line: bytes, name: str, expected: list[str]
) -> None:
    good = json.dumps(healthy("multiple_choice", "ok")).encode()
    write_pack(tmp_path, b"\n".join((good, line, b"", good.replace(b'"ok"', b'"last"'))))

    pack, found = problems_of(tmp_path)

    assert found == [f"tasks.jsonl:2: {message}" for message in expected]
    assert pack is not None
    assert [broken.name for broken in pack.broken] == [name]
    assert [(ref.id, ref.line) for ref in pack.rows] == [("ok", 1), ("last", 4)]


MANIFESTS: list[tuple[str, list[str]]] = [
    ("", [" the file is empty, not a mapping\n  hint: write lines such as 'id: my-pack'"]),
    ("id: x\nversion: 1: 2\n", [
        "2: this is not valid YAML: mapping values are not allowed in this context\n  hint: "
        "put a text with ': ', '#', '*' or a bracket between single quotes",
    ]),
    ("id: !!python/object:os.system x\nversion: 1\n", [
        "1: this is not valid YAML: the tag 'tag:yaml.org,2002:python/object:os.system' is not allowed\n  hint: "
        "remove the tag",
    ]),
    ("version: 1\n", ["1: there is no 'id'\n  hint: write a name such as 'id: my-pack', a number in quotes"]),
    ("id: '  '\nversion: 1\n", [
        "1: id '  ' has the wrong form\n  hint: write a name such as 'id: my-pack', a number in quotes",
    ]),
    ("id: 7\nversion: 1\n", ["1: id is 7, not text\n  hint: write a name such as 'id: my-pack', a number in quotes"]),
    ("id: demo\nversion: true\n", [
        "2: version is true, not a whole number\n  hint: the version counts up, without quotes: 1, 2, 3",
    ]),
    ("id: demo\nversion: '1'\n", [
        "2: version is '1', not a whole number\n  hint: the version counts up, without quotes: 1, 2, 3",
    ]),
    ("id: demo\nversion: 1.5\n", [
        "2: version is 1.5, not a whole number\n  hint: the version counts up, without quotes: 1, 2, 3",
    ]),
    (MANIFEST + 'id: demo\n', ["3: the key 'id' stands here twice (first in line 1)\n  hint: keep one of them"]),
    (MANIFEST + 'defaults: x\n', ["3: defaults is 'x', not a mapping\n  hint: write a mapping"]),
    (MANIFEST + 'defaults:\n  family: 5\n', ["4: defaults.family is 5, not text\n  hint: name the family of the rows"]),
    (MANIFEST + 'defaults:\n  environment:\n    timeout_seconds: -1\n    image: 5\n', [
        "5: defaults.environment.timeout_seconds is -1, out of range\n  hint: write a number of seconds above 0",
        "6: defaults.environment.image is 5, not text\n  hint: write name, name:tag or name@digest",
    ]),
    (MANIFEST + 'defaults:\n  environment:\n    image: -x\n', [
        "5: defaults.environment.image '-x' is not a name of an image\n  hint: write name, name:tag or name@digest",
    ]),
    (MANIFEST + 'asset_roots:\n  public: ../x\n  eval: /hidden\n', [
        "4: asset_roots.public '../x' leads out by '..'\n  hint: write a relative POSIX path such as 'assets/'",
        "5: asset_roots.eval '/hidden' is not relative\n  hint: write a relative POSIX path such as 'assets/'",
    ]),
    (MANIFEST + "asset_roots:\n  public: .\n  eval: ''\n", [
        "4: asset_roots.public '.' has a part '.'\n  hint: write a relative POSIX path such as 'assets/'",
        "5: asset_roots.eval '' is empty\n  hint: write a relative POSIX path such as 'assets/'",
    ]),
    (MANIFEST + "asset_roots:\n  public: 'a\\b'\n  eval: 5\n", [
        "4: asset_roots.public 'a\\\\b' holds a backslash\n  hint: write a relative POSIX path such as 'assets/'",
        "5: asset_roots.eval is 5, not text\n  hint: write a relative POSIX path such as 'assets/'",
    ]),
    (MANIFEST + 'asset_roots:\n  public: data\n  eval: Data/hidden\n', [
        "5: asset_roots: the public root 'data' and the eval root 'Data/hidden' overlap\n  hint: "
        "a model would see the evaluator's files: keep them apart",
    ]),
    (MANIFEST + "asset_defaults:\n  read_only: 'yes'\n", [
        "4: asset_defaults.read_only is 'yes', not true or false\n  hint: write true or false",
    ]),
    (MANIFEST + "schema_version: '2.0'\n", [
        "3: schema_version: '2.0' is another format of packs, which is not read here",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("manifest", "expected"), MANIFESTS, ids=range(len(MANIFESTS)))
def test_a_broken_manifest_says_what_is_wrong(tmp_path: Path, manifest: str, expected: list[str]) -> None:
    write_pack(tmp_path, [healthy("multiple_choice")], manifest)

    pack, found = problems_of(tmp_path)

    assert found == [f"manifest.yaml:{message}" for message in expected]
    assert pack is None or pack.rows == ()  # nothing runs under a manifest that may mean something else


JSON_MANIFESTS = [
    ('{"id": "demo",\n "version": }', "2: this is not valid JSON: expecting value (column 13)"),
    ('{"id": "demo",\n "version": 1,\n "version": 2}',
        "2: version: the key stands here twice\n  hint: keep one of them"),
    ('{"id": "demo",\n "version": "1"}',
        "2: version is '1', not a whole number\n  hint: the version counts up, without quotes: 1, 2, 3"),
    ('{"id": "demo", "version": 1,\n "asset_defaults": {\n  "read_only": 1}}',
        "3: asset_defaults.read_only is 1, not true or false\n  hint: write true or false"),
]  # fmt: skip


@pytest.mark.parametrize(("manifest", "expected"), JSON_MANIFESTS, ids=range(len(JSON_MANIFESTS)))
def test_a_broken_json_manifest_names_the_line(tmp_path: Path, manifest: str, expected: str) -> None:
    write_pack(tmp_path, [healthy("multiple_choice")])
    (tmp_path / "manifest.yaml").rename(tmp_path / "manifest.json")
    (tmp_path / "manifest.json").write_text(manifest)

    assert problems_of(tmp_path)[1] == [f"manifest.json:{expected}"]


def test_all_problems_of_a_pack_come_in_one_pass(tmp_path: Path) -> None:
    rows: list[dict[str, Any] | str] = [
        row("multiple_choice", {"eval.answer": 9, "input.qestion": "x", "metadata": 3}, "a"),
        "no json",
        row("terminal_task", {"eval.checker": GONE, "assets": [{"path": "../x", "mount": "eval/y"}]}, "b"),
        healthy("short_answer", "c"),
    ]
    write_pack(tmp_path, rows, "id: ''\nversion: x\ndefaults:\n  family: []\n")

    pack, found = problems_of(tmp_path)

    assert [line.splitlines()[0] for line in found] == [
        "manifest.yaml:1: id '' has the wrong form",
        "manifest.yaml:2: version is 'x', not a whole number",
        "manifest.yaml:4: defaults.family is a list, not text",
        "tasks.jsonl:1: metadata: this is a number, not an object",
        "tasks.jsonl:1: input: unknown key 'qestion'",
        "tasks.jsonl:2: row: this is not valid JSON: expecting value (column 1)",
        "tasks.jsonl:3: eval.checker: this is missing",
        "tasks.jsonl:3: assets[0].path: the path '../x' leads out by '..'",
        "tasks.jsonl:3: assets[0].mount: the mount 'eval/y' lies under the reserved folder 'eval/'",
    ]
    assert pack is not None
    assert [broken.name for broken in pack.broken] == ["a", "line-2", "b"]


FOLDERS = [
    pytest.param(
        {"manifest.yaml": None},
        [".: there is no manifest\n  hint: a pack has a manifest.yaml with 'id' and 'version'"],
        id="no manifest",
    ),
    pytest.param(
        {"tasks.jsonl": None},
        [
            "manifest.yaml: rows: there is no *.jsonl beside the manifest"
            "\n  hint: write one JSON object per line into tasks.jsonl"
        ],
        id="no rows",
    ),
    pytest.param(
        {"manifest.json": "{}"},
        ["manifest.json: manifest: there is manifest.yaml as well\n  hint: keep one of them"],
        id="two manifests",
    ),
]


@pytest.mark.parametrize(("changes", "expected"), FOLDERS)
def test_a_folder_that_is_not_whole(
    tmp_path: Path, changes: dict[str, str | None], expected: list[str]
) -> None:
    write_pack(tmp_path, [healthy("multiple_choice")])
    for name, text in changes.items():
        if text is None:
            (tmp_path / name).unlink()
        else:
            (tmp_path / name).write_text(text)

    assert problems_of(tmp_path)[1] == expected


@pytest.mark.parametrize("name", ["manifest.yaml", "tasks.jsonl"])
def test_links_are_not_read(tmp_path: Path, name: str) -> None:
    write_pack(tmp_path, [healthy("multiple_choice")])
    (tmp_path / name).rename(tmp_path / "elsewhere")
    (tmp_path / name).symlink_to("elsewhere")

    pack, found = problems_of(tmp_path)

    what = "manifest" if name == "manifest.yaml" else "rows"
    assert found == [f"{name}: {what}: the file is a symbolic link\n  hint: copy the file to its place"]
    assert pack is not None
    assert pack.rows == ()


WARNINGS: list[tuple[str, dict[str, Any], str, str]] = [
    (MANIFEST + 'defualts: {}\n', {}, "manifest.yaml:3: unknown key 'defualts'", "did you mean 'defaults'?"),
    (MANIFEST + 'asset_roots:\n  pubic: x\n', {}, "manifest.yaml:4: unknown key 'pubic' in asset_roots", "'public'?"),
    (MANIFEST + 'defaults:\n  environment:\n    imge: x\n', {},
        "manifest.yaml:5: unknown key 'imge' in defaults.environment", "did you mean 'image'?"),
    (MANIFEST, {"metdata": {}}, "tasks.jsonl:1: row: unknown key 'metdata'", "did you mean 'metadata'?"),
    (MANIFEST, {"environment": {"timeout_second": 3}}, "tasks.jsonl:1: unknown key 'timeout_second' in environment",
        "did you mean 'timeout_seconds'?"),
    (MANIFEST, {"assets": [{"path": "a.txt", "mode": 3, "monut": "b"}]},
        "tasks.jsonl:1: assets[0]: unknown key 'monut'", "did you mean 'mount'?"),
    (MANIFEST, {"assets": [{"path": "a.txt"}]},
        "tasks.jsonl:1: assets: a multiple_choice row shows no files to the model", ""),
]  # fmt: skip


@pytest.mark.parametrize(("manifest", "changes", "message", "hint"), WARNINGS, ids=range(len(WARNINGS)))
def test_what_is_odd_but_usable_is_a_warning(
    tmp_path: Path, manifest: str, changes: dict[str, Any], message: str, hint: str
) -> None:
    write_pack(tmp_path, [row("multiple_choice", changes)], manifest, FILES)

    pack = load_pack(tmp_path)

    found = {problem.text(tmp_path).splitlines()[0]: problem.hint for problem in pack.warnings}
    assert message in found
    assert hint in found[message]
    assert len(pack.rows) == 1


def test_the_same_warning_in_many_rows_is_told_once(tmp_path: Path) -> None:
    write_pack(tmp_path, [row("multiple_choice", {"metdata": {}}, f"r{number}") for number in range(1500)])

    warnings = shown(tmp_path, load_pack(tmp_path).warnings)

    assert [text.splitlines()[0] for text in warnings] == [
        "tasks.jsonl:1: row: unknown key 'metdata' (and in 1,499 more rows)"
    ]


def test_errors_of_packs_are_config_errors_and_value_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no manifest"):
        load_pack(tmp_path)
    assert issubclass(ConfigError, ValueError)


_SECRET = "zq9-secret"
LEAKS: list[tuple[str, dict[str, Any]]] = [
    ("multiple_choice", {"eval.answer": [_SECRET, 99]}),
    ("multiple_choice", {"eval.answer": {_SECRET: _SECRET}}),
    ("short_answer", {"eval.accepted_answers": [_SECRET, [_SECRET]], "eval.tolerance": _SECRET}),
    ("free_response", {"eval.rubric": {"type": _SECRET, "accepted_answers": [[_SECRET]]}}),
    ("free_response", {"eval.reference_answer": [_SECRET]}),
    ("code_completion", {"eval.canonical_solution": {"source": _SECRET, "code": 5}}),
    ("code_completion", {"eval.canonical_solution": {"path": f'../{_SECRET}'}}),
    ("code_completion", {"eval.canonical_solution": {"path": _SECRET, "mount": f'/{_SECRET}'}}),
    ("repo_patch", {"eval.gold_patch": {"source": _SECRET, "patch": [_SECRET]}}),
    ("terminal_task", {"eval.expected_state": {"path": f'{_SECRET}/x'}}),
]  # fmt: skip


@pytest.mark.parametrize(("family", "changes"), LEAKS, ids=range(len(LEAKS)))
def test_no_message_shows_a_hidden_value(tmp_path: Path, family: str, changes: dict[str, Any]) -> None:
    write_pack(tmp_path, [row(family, changes)])

    pack, found = problems_of(tmp_path)

    assert found
    assert pack is not None
    assert _SECRET not in "\n".join([*found, *shown(tmp_path, pack.warnings), repr(pack)])


@pytest.mark.parametrize("identity", ["two\nlines", "nul\0", "carriage\rreturn"])
def test_an_id_that_would_break_a_list_of_ids_is_refused(tmp_path: Path, identity: str) -> None:
    pack = load_pack(write_pack(tmp_path, [row("multiple_choice", {"id": identity})]))
    (problem,) = pack.broken[0].problems
    assert problem.message == f"id: {identity!r} holds a line break or NUL"
    assert problem.hint == "ids stand in node ids and lists, one per line"


def test_a_script_that_is_a_folder_is_found_before_anybody_is_paid(tmp_path: Path) -> None:
    checker = {"eval.checker": {"source": "script", "path": "check"}}
    manifest = "id: demo\nversion: 1\nasset_roots: {eval: hidden}\n"
    write_pack(tmp_path, [row("terminal_task", checker)], manifest, {"hidden/check/run.sh": "exit 0\n"})
    _, found = problems_of(tmp_path)
    assert "eval.checker.path: this is a folder, and a script is a file" in "\n".join(found)


@pytest.mark.parametrize(
    "answer", ["(B).", "*B*", "Choice: [B", "Option B:", "Second!", "answer - B", "B. second", "2"]
)
def test_a_row_is_broken_exactly_where_its_rule_could_not_judge(tmp_path: Path, answer: str) -> None:
    changes = {"input.choices": ["first", "second"], "eval.answer": answer}
    pack = load_pack(write_pack(tmp_path, [row("multiple_choice", changes)]))

    family = family_named("multiple_choice")
    assert isinstance(family, TextFamily)
    question: JsonObject = {"question": "Which one?", "choices": ["first", "second"]}
    try:
        judged = family.finding(question, {"answer": answer}, "B", parity=False).passed
    except ConfigError:
        judged = False
    assert judged == (not pack.broken)
