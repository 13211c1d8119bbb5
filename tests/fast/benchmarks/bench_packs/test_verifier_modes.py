"""The values of `--helmbench-verifier`, and what a verifier's folder says of its start."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.bench_packs.verifiers.choices import Choice, Choices, Mode, parse_choices
from pytest_helmbench.benchmarks.bench_packs.verifiers.commands import ServerCommand, find_command
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.users_word import UsersWord

_WANTED = "it takes [ID=]docker, [ID=]podman, [ID=]process or [ID=]URL, for example http://127.0.0.1:4010"
_URL_WANTED = "give scheme, host, port and perhaps a path"


@pytest.mark.parametrize(
    ("text", "name", "choice"),
    [
        ("docker", None, Choice(Mode.DOCKER)),
        ("a=podman", "a", Choice(Mode.PODMAN)),
        (" a = process ", "a", Choice(Mode.PROCESS)),
        ("http://127.0.0.1:4010/", None, Choice(Mode.URL, "http://127.0.0.1:4010")),
        ("a=https://host.test/v=1/", "a", Choice(Mode.URL, "https://host.test/v=1")),
        ("http://[::1]:80/x=y", None, Choice(Mode.URL, "http://[::1]:80/x=y")),
    ],
)
def test_a_value_names_a_mode_for_every_verifier_or_for_one(
    text: str, name: str | None, choice: Choice
) -> None:
    choices = parse_choices(UsersWord((text,)))
    assert choices == (Choices(choice) if name is None else Choices(None, {name: choice}))
    assert choices.of("a") == choice
    assert choices.of("b") == (choice if name is None else None)


def test_the_value_for_one_verifier_wins_and_none_leaves_it_to_the_manifest() -> None:
    choices = parse_choices(UsersWord(("docker", "a=process")))
    assert (choices.of("a"), choices.of("b")) == (Choice(Mode.PROCESS), Choice(Mode.DOCKER))
    assert parse_choices(UsersWord(())).of("a") is None


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["dokcer"], f"--helmbench-verifier is 'dokcer'\n  hint: {_WANTED}"),
        ([""], f"--helmbench-verifier is ''\n  hint: {_WANTED}"),
        (["=docker"], f"--helmbench-verifier is '=docker'\n  hint: {_WANTED}"),
        (["a=url"], f"--helmbench-verifier is 'a=url'\n  hint: {_WANTED}"),
        (["ftp://x\x1b"], f"--helmbench-verifier is 'ftp://x\\\\x1b'\n  hint: {_WANTED}"),
        (
            ["http://"],
            f"--helmbench-verifier is 'http://': no server can be at this URL\n  hint: {_URL_WANTED}",
        ),
        (
            ["http://x:99999"],
            f"--helmbench-verifier is 'http://x:99999': no server can be at this URL\n  hint: {_URL_WANTED}",
        ),
        (
            ["a=http://x y"],
            f"--helmbench-verifier is 'a=http://x y': no server can be at this URL\n  hint: {_URL_WANTED}",
        ),
        (
            ["http://me:secret@x"],
            "--helmbench-verifier is 'http://…@x': a URL with a user name or password is not taken\n"
            f"  hint: {_URL_WANTED}",
        ),
        (
            ["http://x?y"],
            "--helmbench-verifier is 'http://x?y': a URL with a query or fragment is not taken\n"
            f"  hint: {_URL_WANTED}",
        ),
        (
            ["docker", "podman"],
            "--helmbench-verifier is given twice for every verifier\n  hint: leave one of them out",
        ),
        (
            ["a=docker", "a=http://x"],
            "--helmbench-verifier is given twice for verifier 'a'\n  hint: leave one of them out",
        ),
    ],
)
def test_what_means_nothing_is_said_with_a_hint(texts: list[str], message: str) -> None:
    with pytest.raises(HelmbenchError) as caught:
        parse_choices(UsersWord(tuple(texts)))
    assert str(caught.value) == message


def _folder(base: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    return base


def _start(line: str) -> str:
    return json.dumps({"scripts": {"start": line}})


@pytest.mark.parametrize(
    ("files", "language", "arguments"),
    [
        ({"server.mjs": ""}, "node", ["{}/server.mjs"]),
        ({"index.mjs": "", "server.py": ""}, "node", ["{}/index.mjs"]),
        ({"server.py": ""}, "python", ["{}/server.py"]),
        # What a folder says of itself comes before what files are called.
        (
            {
                "package.json": _start("PORT=1 node --no-warnings src/up.js --quick"),
                "src/up.js": "",
                "server.py": "",
            },
            "node",
            ["--no-warnings", "{}/src/up.js", "--quick"],
        ),
        (
            {
                "Dockerfile": 'FROM x\nCMD ["python3", "-u", "/app/check.py", "4"]\n',
                "check.py": "",
                "server.mjs": "",
            },
            "python",
            ["-u", "{}/check.py", "4"],
        ),
        (
            {
                "Dockerfile": 'FROM x\nENTRYPOINT ["node", \\\n  "/opt/verification/server.mjs"]\n',
                "server.mjs": "",
            },
            "node",
            ["{}/server.mjs"],
        ),
        (
            {
                "Dockerfile": "from a\nCMD node a.js\nFROM b\nENTRYPOINT exec python3.12\nCMD lib/b.py\n",
                "lib/b.py": "",
                "a.js": "",
            },
            "python",
            ["{}/lib/b.py"],
        ),
        # A command that this machine cannot run as it stands leaves it to the names.
        ({"package.json": _start("tsc && node x.js"), "x.js": "", "server.js": ""}, "node", ["{}/server.js"]),
        ({"package.json": _start("node dist/x.js"), "server.js": ""}, "node", ["{}/server.js"]),
        ({"package.json": _start("node 'x"), "server.js": ""}, "node", ["{}/server.js"]),
        ({"package.json": "[" * 100_000, "server.js": ""}, "node", ["{}/server.js"]),
        ({"Dockerfile": 'CMD ["python", "-m", "server"]', "server.py": ""}, "python", ["{}/server.py"]),
        ({"Dockerfile": "CMD gunicorn app:app", "server.py": ""}, "python", ["{}/server.py"]),
    ],
)
def test_a_server_is_started_as_its_folder_says(
    tmp_path: Path, files: dict[str, str], language: str, arguments: list[str]
) -> None:
    folder = _folder(tmp_path, files)
    found = find_command(folder)
    assert found is not None
    assert found.language == language
    assert found.arguments == tuple(word.format(folder) for word in arguments)
    assert found.argv("/bin/node")[0] == ("/bin/node" if language == "node" else sys.executable)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"main.go": ""},
        {"package.json": _start("node ../outside.js")},
        {"package.json": _start("node -e 1")},
        {"Dockerfile": "CMD node\nENTRYPOINT node --inspect"},
    ],
)
def test_a_folder_that_names_no_server_of_its_own_has_none(tmp_path: Path, files: dict[str, str]) -> None:
    (tmp_path / "outside.js").write_text("")
    (tmp_path / "in").mkdir()
    assert find_command(_folder(tmp_path / "in", files)) is None


def test_a_command_says_where_it_was_found(tmp_path: Path) -> None:
    _folder(tmp_path, {"server.py": ""})
    path = str(tmp_path / "server.py")
    assert find_command(tmp_path) == ServerCommand("python", (path,), "server.py")
