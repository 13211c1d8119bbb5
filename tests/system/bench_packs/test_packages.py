"""npm packages of Bench Packs: installed by npm without scripts, found by both kinds of pack, missed with a hint."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_pack_folders import pack_place, write_bench_pack_folder
from bench_pack_sessions import ASKS, run_packs, write_asking_pack
from bridges import BOUNDS, Item, outcomes, real_node
from engines import missing
from npm_registry import NpmRegistry, write_package
from provider import Provider
from trees import clear_environment, rows

from pytest_helmbench.benchmarks.bench_packs.node.bridge import Bridge
from pytest_helmbench.benchmarks.bench_packs.packages import package_needs, packages_folder
from pytest_helmbench.cli.main import main
from pytest_helmbench.core.granted import Granted
from pytest_helmbench.sandbox.box import Unavailable
from pytest_helmbench.sandbox.fence import find_fence

_SAYS = {"A": "async () => result({ note: says })"}
_HEADS = {True: 'import { says } from "zod";', False: 'const { says } = require("zod");'}
_LATE = {
    True: "async () => result({ note: (await import('zod')).says })",
    False: "async () => result({ note: require('zod').says })",
}
_HINT = (
    "`helmbench check {} --install` installs the `dependencies` of the pack's package.json (needs npm); or ship them in"
    " the pack's node_modules"
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder."""
    clear_environment(monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _ran(root: Path, packages: Path | None, *, permission: bool = True) -> Any:
    async def go() -> Any:
        fence = await find_fence(Granted("auto")) if permission else None
        assert not isinstance(fence, Unavailable)
        place = replace(pack_place(root, root.parent / f"work-{root.name}"), packages=packages)
        bridge = Bridge(real_node(), place, fence=fence, bounds=BOUNDS)
        try:
            (outcome,) = await outcomes(bridge, [Item("A")])
        finally:
            await bridge.close()
            if fence is not None:
                await fence.close()
        return outcome

    return asyncio.run(go())


def _files(folder: Path) -> Mapping[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_npm_installs_what_a_pack_needs_runs_no_script_and_leaves_the_pack_alone(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("npm") is None:
        missing("there is no npm")
    root = write_bench_pack_folder(tmp_path / "pack", _SAYS, es_module=True, head=_HEADS[True])
    (root / "package.json").write_text(
        '{"type": "module", "dependencies": {"@small/tool": "^3.0.0", "odd": "file:../odd"},'
        ' "scripts": {"preinstall": "touch ran"}}'
    )
    before = _files(root)
    files = {"index.js": "exports.says = 'from npm';"}
    ran = tmp_path / "ran"
    scripts = dict.fromkeys(("preinstall", "install", "postinstall"), f"touch '{ran}'")
    packages = dict.fromkeys(("zod", "@small/tool", "smol-toml"), files)
    with NpmRegistry(packages, scripts) as registry:
        monkeypatch.setenv("npm_config_registry", registry.url)
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
        # The stand-in says 3.24.9 of everything, and smol-toml is wanted below 2.
        assert main(["check", "--install", str(root)]) == 2
        said = capsys.readouterr().err
        assert "npm has installed nothing (exit code 1):" in said
        assert "No matching version found for smol-toml@^1.3.4" in said
        assert "hint: can npm reach its registry, and does it have these versions?" in said
        assert not list(cache.rglob("node_modules"))
        text = (root / "package.json").read_text()
        (root / "package.json").write_text(text.replace('"odd"', '"smol-toml": "*", "odd"'))
        before = _files(root)
        assert main(["check", "--install", str(root / "benchlocal.pack.json")]) == 0
        folder = packages_folder(package_needs(root), os.environ)
        left_out = "left out: odd (file:../odd): only packages of a registry are installed; bundle it with the pack\n"
        listed = "@small/tool@^3.0.0, smol-toml@*, zod@^3.24.1"
        assert capsys.readouterr().out.startswith(f"installed: {listed}\n  in {folder}\n{left_out}")
        asked = len(registry.asked)
        assert main(["check", "--install", str(root)]) == 0
        assert len(registry.asked) == asked
    again = f"installed before: {listed}\n  in {folder} (remove it to install anew)\n"
    assert capsys.readouterr().out.startswith(again + left_out)
    assert not ran.exists()
    assert _files(root) == before
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name]
    assert _ran(root, folder)["note"] == "from npm"


@pytest.mark.parametrize("permission", [True, False])
@pytest.mark.parametrize("es_module", [False, True])
def test_installed_packages_are_found_behind_the_packs_own(
    tmp_path: Path, es_module: bool, permission: bool
) -> None:
    root = write_bench_pack_folder(tmp_path / "pack", _SAYS, es_module=es_module, head=_HEADS[es_module])
    cached = tmp_path / "cached"
    write_package(cached, "zod", says="installed")
    (tmp_path / "link").symlink_to(cached)

    assert _ran(root, tmp_path / "link", permission=permission)["note"] == "installed"
    write_package(root, "zod", says="its own")
    assert _ran(root, cached, permission=permission)["note"] == "its own"


@pytest.mark.parametrize("es_module", [False, True])
def test_a_missing_package_is_an_error_with_the_command_as_its_hint(
    pytester: pytest.Pytester, provider: Provider, cache: Path, es_module: bool
) -> None:
    assert not cache.exists()
    write_asking_pack(pytester.path / "early", {"a": ASKS}, es_module=es_module, head=_HEADS[es_module])
    late = {"a": _LATE[es_module], "b": "async () => { await ask('hi'); return result(); }"}
    write_asking_pack(pytester.path / "late", late, es_module=es_module, manifest={"id": "late"})

    result = run_packs(pytester, url=provider.url, paths=("early", "late"))

    result.assert_outcomes(passed=1, errors=2)
    said = result.stdout.str()
    for name in ("early", "late"):
        assert f"hint: {_HINT.format(pytester.path / name)}" in said
    assert rows(pytester.path / "helmbench.db", "SELECT code, outcome, reason FROM results ORDER BY 1") == [
        ("a", "error", "threw"),
        ("b", "passed", None),
    ]
