"""npm packages of a Bench Pack: where they are looked for, and the message where one is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_helmbench.benchmarks.bench_packs.packages import (
    NotInstalledError,
    PackageNeeds,
    install_packages,
    installed_packages,
    package_hint,
    package_needs,
)
from pytest_helmbench.cli.main import main

_CONTRACT = (("smol-toml", "^1.3.4"), ("zod", "^3.24.1"))


def _pack(root: Path, dependencies: Any = None) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / "benchlocal.pack.json").write_text("{}")
    if dependencies is not None:
        (root / "package.json").write_text(json.dumps({"dependencies": dependencies}))
    return root


def test_a_pack_needs_its_dependencies_and_what_hosts_offer(tmp_path: Path) -> None:
    assert package_needs(_pack(tmp_path / "none")) == PackageNeeds(_CONTRACT)
    stated = {"zod": "4.1.0", "left-pad": "^1 || >=2.0.0 <3", "@a/b": "latest", "c": "npm:@d/e@~1.2"}
    ours = {"@benchlocal/sdk": "file:../sdk", "@benchlocal/core": "^0.3.0"}

    needs = package_needs(_pack(tmp_path / "some", {**stated, **ours}))

    assert dict(needs.wanted) == {**stated, "smol-toml": "^1.3.4"}
    assert needs.left_out == ()


@pytest.mark.parametrize(
    "source",
    [
        "git+https://example.com/zod.git",
        "github:a/zod",
        "a/zod",
        "file:./zod",
        "https://example.com/zod.tgz",
        "workspace:*",
        "npm:../zod",
        "./zod",
        "^3\n--x",
    ],
)
def test_what_stands_in_no_registry_is_left_out(tmp_path: Path, source: str) -> None:
    needs = package_needs(_pack(tmp_path, {"zod": source}))

    assert needs == PackageNeeds((("smol-toml", "^1.3.4"),), (("zod", source),))


def test_an_odd_package_file_is_named_and_keeps_nobody_from_running(tmp_path: Path) -> None:
    file = _pack(tmp_path, {"zod": 3, "../a": "3", "": "3"}) / "package.json"
    assert package_needs(tmp_path).left_out == (("", "3"), ("../a", "3"), ("zod", "3"))
    file.write_text("{")

    with pytest.raises(NotInstalledError, match="cannot be read: Expecting property name"):
        package_needs(tmp_path)

    assert installed_packages(tmp_path, {}) is None


def test_the_hint_names_the_command_that_helps(tmp_path: Path) -> None:
    root = _pack(tmp_path / "my pack")
    installs = (
        f"`helmbench check '{root}' --install` installs the `dependencies` of the pack's package.json (needs npm); or"
        " ship them in the pack's node_modules"
    )
    for words in (
        "module 'zod' Require stack: - /pack/index.js",
        "package '@a/b' imported from /pack/index.mjs",
    ):
        assert package_hint(f"Error: Cannot find {words}", root) == installs
    assert package_hint("Error: Cannot find module './lib/x.js' Require stack:", root) == ""
    assert package_hint("Error: cannot find the way", root) == ""


def test_without_npm_nothing_is_installed_and_the_hint_says_what_to_install(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": str(tmp_path)}

    with pytest.raises(NotInstalledError) as caught:
        install_packages(_pack(tmp_path / "pack"), environ)

    assert str(caught.value) == (
        "there is no `npm` on PATH\n  hint: it comes with Node.js, from https://nodejs.org or your system's packages;"
        " or ship the packages in the pack's node_modules"
    )
    assert not (tmp_path / "cache").exists()


def test_the_command_wants_a_bench_pack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path), "--install"]) == 2
    assert capsys.readouterr().err == (
        f"helmbench: no Bench Pack at {tmp_path}\n  hint: a Bench Pack is a folder with benchlocal.pack.json\n"
    )
