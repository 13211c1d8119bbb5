"""A Bench Pack is built by its own script, where the user asks for it: in a sandbox, without network, on a copy."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.bench_packs.package_build import build_pack
from pytest_helmbench.benchmarks.bench_packs.package_install import NotInstalledError
from pytest_helmbench.cli.main import main

_BUILD = """
import { mkdirSync, writeFileSync, readFileSync, existsSync } from "node:fs";
import { createConnection } from "node:net";
mkdirSync("dist", { recursive: true });
writeFileSync("dist/index.js", readFileSync("src/index.ts"));
writeFileSync("stray.txt", "not taken");
const seen = existsSync("PLACE");
const socket = createConnection(PORT, "127.0.0.1");
const done = (network) => { writeFileSync("dist/seen.json", JSON.stringify({ seen, network })); process.exit(0); };
socket.on("connect", () => done(true));
socket.on("error", () => done(false));
"""


def _pack(root: Path, script: str | None, port: int = 1) -> Path:
    (root / "src").mkdir(parents=True)
    (root / "src" / "index.ts").write_text("export {}")
    (root / "benchlocal.pack.json").write_text(json.dumps({"entry": "./dist/index.js"}))
    (root / "package.json").write_text(json.dumps({"scripts": {} if script is None else {"build": script}}))
    (root / "build.mjs").write_text(_BUILD.replace("PLACE", str(root)).replace("PORT", str(port)))
    return root


def test_a_build_script_makes_the_entry_and_reaches_nothing_else(tmp_path: Path, open_port: int) -> None:
    root = _pack(tmp_path / "pack", "node build.mjs", open_port)

    said = list(build_pack(root, os.environ))

    assert said[0].startswith(f"built: 2 files in {root / 'dist'}")
    assert (root / "dist" / "index.js").read_text() == "export {}"
    assert json.loads((root / "dist" / "seen.json").read_text()) == {"seen": False, "network": False}
    assert not (root / "stray.txt").exists()


@pytest.fixture
def open_port() -> Iterator[int]:
    """A port of 127.0.0.1 at which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "there is no script 'build'"),
        ("echo no such tool; exit 3", "ended with exit code 3:\nno such tool"),
        ("true", "the build script has made no dist"),
    ],
)
def test_a_build_that_fails_says_why(tmp_path: Path, script: str | None, said: str) -> None:
    with pytest.raises(NotInstalledError, match=said.replace("'", ".")):
        list(build_pack(_pack(tmp_path / "pack", script), os.environ))


def test_a_build_names_the_scripts_that_ran_and_what_it_left_out(tmp_path: Path) -> None:
    root = _pack(tmp_path / "pack", "node build.mjs")
    package = json.loads((root / "package.json").read_text())
    package["devDependencies"] = {"own-tool": "file:../tool"}
    (root / "package.json").write_text(json.dumps(package))

    said = list(build_pack(root, os.environ))

    assert said[0].startswith("left out: own-tool (file:../tool): only packages of a registry are installed")
    assert said[1].endswith("(the script build ran in a sandbox, without network)")


@pytest.mark.parametrize(
    ("is_there", "said"),
    [(False, "the entry './index.js' does not exist"), (True, "the entry stands beside the manifest")],
)
def test_an_entry_beside_the_manifest_is_not_built(tmp_path: Path, is_there: bool, said: str) -> None:
    root = _pack(tmp_path / "pack", "node build.mjs")
    (root / "benchlocal.pack.json").write_text(json.dumps({"entry": "./index.js"}))
    if is_there:
        (root / "index.js").write_text("")
    with pytest.raises(NotInstalledError, match=said):
        list(build_pack(root, os.environ))


def test_check_says_how_to_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(_pack(tmp_path / "pack", "node build.mjs"))]) == 1
    assert "`helmbench packs install PATH --build`, in a sandbox" in capsys.readouterr().out
