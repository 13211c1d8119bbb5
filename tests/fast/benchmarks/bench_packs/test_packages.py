"""What a Bench Pack needs from npm, where it is looked for, and what is said where it is missing."""

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
    packages_folder,
)
from pytest_helmbench.cli.main import main
from pytest_helmbench.core.problem import UnreadableBenchmarkError

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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "this is no JSON that can be read: Expecting property name enclosed in double quotes"),
        ("[]", "dependencies: this is no object"),
        ('{"dependencies": []}', "dependencies: this is no object"),
        ('{"dependencies": {"zod": 3}}', "dependencies: the version of 'zod' is no text"),
        ('{"dependencies": {"../zod": "3"}}', "dependencies: '../zod' is no name of a package"),
        ('{"dependencies": {"": "3"}}', "dependencies: '' is no name of a package"),
    ],
)
def test_an_odd_package_file_is_named_and_keeps_nobody_from_running(
    tmp_path: Path, content: str, message: str
) -> None:
    (_pack(tmp_path) / "package.json").write_text(content)

    with pytest.raises(UnreadableBenchmarkError) as caught:
        package_needs(tmp_path)

    (problem,) = caught.value.problems
    assert problem.path == tmp_path / "package.json"
    assert problem.message.startswith(message)
    assert problem.hint == 'name each package with a range of versions, such as "zod": "^3.24.1"'
    assert installed_packages(tmp_path, {}) is None


def test_the_hint_names_the_command_that_helps(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    root = _pack(tmp_path / "my pack", {"@a/b": "1"})
    command = f"`helmbench check '{root}' --install`"
    installs = f"{command} installs it for you (needs npm); or ship it in the pack's node_modules"
    bundle = (
        "bundle it or ship it in the pack's node_modules; or name it in the `dependencies` of the pack's package.json,"
        f" then {command}"
    )

    def hint(words: str) -> str:
        return package_hint(words, root, environ)

    assert hint("Error: Cannot find module 'zod' Require stack: - /pack/index.js") == installs
    assert hint("Error: Cannot find package '@a/b' imported from /pack/index.mjs") == installs
    assert hint("Error: Cannot find module '@a/b/sub/path.js'") == installs
    assert hint("Error: Cannot find package 'left-pad' imported from /pack/index.mjs") == bundle
    assert hint("Error: Cannot find module './lib/x.js' Require stack:") == ""
    assert hint("Error: Cannot find module '/pack/lib/x.js' imported from /pack/index.js") == ""
    assert hint("Error: cannot find the way") == ""
    (packages_folder(package_needs(root), environ) / "node_modules").mkdir(parents=True)
    assert hint("Error: Cannot find module 'zod'") == bundle  # to install again would not help
    (root / "package.json").write_text("{")
    assert hint("Error: Cannot find module 'zod'") == bundle


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
