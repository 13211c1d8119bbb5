"""A Bench Pack's build script, run where the user asks for it: in a sandbox, without network, on a copy."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from pytest_helmbench.benchmarks.bench_packs.format.pack_folder import link_out, path_fault
from pytest_helmbench.benchmarks.bench_packs.package_install import (
    NotInstalledError,
    left_out_line,
    npm_install,
)
from pytest_helmbench.benchmarks.bench_packs.packages import dependencies_of
from pytest_helmbench.benchmarks.bench_packs.places import MANIFEST
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.core.users_word import NOT_ALLOWED
from pytest_helmbench.sandbox.box import BoxSpec, Command, Ended, Limits, Mount, SandboxSearch, Unavailable
from pytest_helmbench.sandbox.detection import sandbox_engines
from pytest_helmbench.sandbox.workspace import EntryKind, Workspace

__all__ = ["build_pack"]

_ENGINE = "bwrap"  # it runs this machine's own node
_STEPS = ("prebuild", "build", "postbuild")
_LEFT_OUT = frozenset({".git", "node_modules"})
_MIB = 2**20
_MOST_BUILT = 256 * _MIB
_LIMITS = Limits(wall_s=600.0, cpus=2.0, memory_bytes=4096 * _MIB, pids=256, disk_bytes=1024 * _MIB)
_SHOWN = 1_500


def build_pack(root: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Run a pack's script `build` and put what it makes beside the entry into the pack; say what was done.

    The packages that it needs, `devDependencies` too, are installed for it without running their scripts. The script
    sees a copy of the pack, these packages, this machine's programs, and no network.

    Args:
        root: The pack's folder.
        environ: That npm runs in.

    Raises:
        NotInstalledError: There is no such script, no sandbox, or the script fails.
        UnreadableBenchmarkError: The pack's `package.json` cannot be read.
        SandboxError: The sandbox failed.
    """
    scripts = _object(_read(root / "package.json").get("scripts"))
    steps = {name: text for name in _STEPS if isinstance(text := scripts.get(name), str)}
    if not isinstance(scripts.get("build"), str):
        raise NotInstalledError(
            f"{root / 'package.json'}: there is no script 'build'\n  hint: ask its author how the pack is built"
        )
    place = _built_folder(root)
    if (link := link_out(root)) is not None:
        raise NotInstalledError(f"{link}: a link leads out of the pack\n  hint: remove it")
    with TemporaryDirectory(prefix="helmbench-build-") as made:
        packages = Path(made, "packages")
        needs = dependencies_of(root, "dependencies", "devDependencies")
        for name, source in needs.left_out:
            yield left_out_line(name, source)
        if needs.wanted:
            packages.mkdir()
            npm_install(packages, dict(needs.wanted), environ)
        count = asyncio.run(_build(root, list(steps.values()), place, packages / "node_modules"))
    ran = f"script{'' if len(steps) == 1 else 's'} {', '.join(steps)}"
    yield f"built: {count} files in {root / place} (the {ran} ran in a sandbox, without network)"


def _built_folder(root: Path) -> str:
    """Return the folder of the pack, `dist` mostly, that its entry lies in."""
    entry = _read(root / MANIFEST).get("entry")
    if not isinstance(entry, str) or path_fault(entry) is not None:
        raise NotInstalledError(
            f"{root / MANIFEST}: entry names no file of the pack\n  hint: `helmbench check` tells"
        )
    parts = PurePosixPath(os.path.normpath(entry)).parts
    if len(parts) < 2 and not (root / entry).is_file():
        raise NotInstalledError(
            f"{root / MANIFEST}: the entry {excerpt(entry, 80)!r} does not exist, and what a build makes beside"
            " the manifest is not taken\n  hint: let the script write into a folder such as dist, and name that entry"
        )
    if len(parts) < 2:
        raise NotInstalledError(
            f"{root / MANIFEST}: the entry stands beside the manifest: nothing is built\n  hint: --build is not needed"
        )
    return parts[0]


async def _build(root: Path, steps: list[str], place: str, packages: Path) -> int:
    kind = next(kind for kind in sandbox_engines() if kind.name == _ENGINE)
    engine = await kind.find(SandboxSearch(NOT_ALLOWED, ()))
    if isinstance(engine, Unavailable):
        raise NotInstalledError(f"{engine.reason}\n  hint: a build script runs in bubblewrap, or not at all")
    workspace = engine.new_workspace()
    try:
        mounts = _filled(workspace, root, packages)
        path = "/workspace/node_modules/.bin:/usr/local/bin:/usr/bin:/bin"
        env = (("HOME", "/tmp"), ("PATH", path), ("npm_config_offline", "true"))
        spec = BoxSpec(workspace=workspace, mounts=mounts, env=env, limits=_LIMITS, label="build")
        async with await engine.open(spec) as box:
            for step in steps:
                _check(step, await box.run(Command(("/bin/sh", "-c", step))))
        return _take(workspace, place, root)
    finally:
        workspace.close()
        await engine.close()


def _filled(workspace: Workspace, root: Path, packages: Path) -> tuple[Mount, ...]:
    """Copy the pack, and return what else the script sees."""
    for source in sorted(root.iterdir()):
        if source.name not in _LEFT_OUT:
            workspace.put_tree(source, source.name)
    return (Mount(packages, "/workspace/node_modules"),) if packages.is_dir() else ()


def _check(step: str, ended: Ended) -> None:
    if ended.exit_code != 0:
        said = excerpt((ended.stdout + ended.stderr).decode("utf-8", "replace"), _SHOWN)
        how = ended.reason or f"ended with exit code {ended.exit_code}"
        raise NotInstalledError(
            f"the build script {excerpt(step, 80)!r} {how}:\n{said}\n  hint: it has no network, and of this machine's"
            " files only programs"
        )


def _take(workspace: Workspace, place: str, root: Path) -> int:
    """Copy what stands in a folder of the workspace into the pack, plain files alone; return how many."""
    left, taken = _MOST_BUILT, []
    for entry in workspace.entries():
        if (
            entry.kind is EntryKind.FILE
            and entry.name.startswith(f"{place}/")
            and path_fault(entry.name) is None
        ):
            left -= entry.size_bytes
            data = workspace.get(entry.name, limit_bytes=entry.size_bytes) if left >= 0 else None
            if data is None:
                raise NotInstalledError(f"{place} has more than {_MOST_BUILT:,} bytes\n  hint: bundle less")
            taken.append((entry.name, data))
    if not taken:
        raise NotInstalledError(
            f"the build script has made no {place}\n  hint: does the manifest name the entry right?"
        )
    if (root / place).exists():
        shutil.rmtree(root / place)
    for name, data in taken:
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return len(taken)


def _read(path: Path) -> JsonObject:
    try:
        data: JsonValue = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise NotInstalledError(f"{path}: {excerpt(str(error))}\n  hint: is it a Bench Pack?") from error
    return _object(data)


def _object(data: JsonValue) -> JsonObject:
    return data if isinstance(data, dict) else {}
