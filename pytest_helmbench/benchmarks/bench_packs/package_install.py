"""npm packages of a Bench Pack are installed into a folder of the user, and no script of theirs is run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_helmbench.benchmarks.bench_packs.packages import PackageNeeds, package_needs, packages_folder
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt

__all__ = ["InstalledPackages", "NotInstalledError", "install_packages", "left_out_line", "npm_install"]

_LONGEST_S = 600.0
_SHOWN = 1_500
_FLAGS = (
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--no-bin-links",
    "--no-update-notifier",
    "--omit=dev",
)
# npm starts another npm for some dependencies of dependencies, which knows the environment alone.
_ENVIRONMENT = {"npm_config_ignore_scripts": "true", "npm_config_global": "false"}


class NotInstalledError(HelmbenchError):
    """The packages could not be installed: why, and a hint on a line of its own."""


@dataclass(frozen=True, slots=True)
class InstalledPackages:
    """What is installed for a pack.

    Args:
        needs: What was asked for.
        folder: Where it is.
        versions: By name.
        before: It was there already, and npm was not asked.
    """

    needs: PackageNeeds
    folder: Path
    versions: Mapping[str, str]
    before: bool


def install_packages(root: Path, environ: Mapping[str, str]) -> InstalledPackages:
    """Install what a pack needs, unless that was done before. Nothing is written into the pack.

    Args:
        root: The pack's folder.
        environ: That npm runs in; asked for `PATH` and the user's cache folder too.

    Raises:
        UnreadableBenchmarkError: The pack's `package.json` cannot be read.
        NotInstalledError: There is no npm, or it fails.
    """
    needs = package_needs(root)
    folder = packages_folder(needs, environ)
    before = (folder / "node_modules").is_dir()
    if not before:
        npm = _npm(environ)
        try:
            _install(npm, needs, folder, environ)
        except OSError as error:
            raise NotInstalledError(f"{folder}: {excerpt(str(error))}\n  hint: is it writable?") from error
    versions = {name: _version(folder / "node_modules" / name) for name, _ in needs.wanted}
    return InstalledPackages(needs, folder, versions, before)


def left_out_line(name: str, source: str) -> str:
    """Return what is said of a dependency that stands in no registry."""
    what = f"{excerpt(name, 80)} ({excerpt(source, 120)})"
    return f"left out: {what}: only packages of a registry are installed; bundle it with the pack"


def _install(npm: str, needs: PackageNeeds, folder: Path, environ: Mapping[str, str]) -> None:
    """Install beside the folder and move the whole there: what it holds is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with TemporaryDirectory(dir=folder.parent, prefix=".making-") as made:
        making = Path(made, folder.name)
        making.mkdir()
        asked = {"private": True, "dependencies": dict(needs.wanted)}
        (making / "package.json").write_text(json.dumps(asked, indent=2), encoding="utf-8")
        _run([npm, "install", *_FLAGS], making, {**environ, **_ENVIRONMENT})
        if not (making / "node_modules").is_dir():
            raise NotInstalledError(
                f"npm has made no {making / 'node_modules'}\n  hint: does `npm install` work?"
            )
        try:
            making.rename(folder)
        except OSError:
            if not (folder / "node_modules").is_dir():  # else somebody was faster, with the same
                raise


def npm_install(folder: Path, wanted: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Install packages into an empty folder, with links to their programs; no script of theirs is run.

    Raises:
        NotInstalledError: There is no npm, or it fails.
    """
    asked = {"private": True, "dependencies": dict(wanted)}
    (folder / "package.json").write_text(json.dumps(asked, indent=2), encoding="utf-8")
    flags = [flag for flag in _FLAGS if flag != "--no-bin-links"]
    _run([_npm(environ), "install", *flags], folder, {**environ, **_ENVIRONMENT})


def _npm(environ: Mapping[str, str]) -> str:
    npm = shutil.which("npm", path=environ.get("PATH", os.defpath))
    if npm is None:
        raise NotInstalledError(
            "there is no `npm` on PATH\n  hint: it comes with Node.js, from https://nodejs.org or your system's"
            " packages; or ship the packages in the pack's node_modules"
        )
    return npm


def _run(argv: list[str], place: Path, environ: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(
            argv,
            cwd=place,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NotInstalledError(
            f"npm did not finish within {_LONGEST_S:g} s\n  hint: can it reach its registry?"
        ) from error
    if done.returncode != 0:
        said = excerpt(done.stdout.decode("utf-8", "replace"), _SHOWN)
        raise NotInstalledError(
            f"npm ended with exit code {done.returncode}:\n{said}\n  hint: can npm reach its registry, and does it"
            " have these versions?"
        )


def _version(package: Path) -> str:
    try:
        data: JsonValue = json.loads((package / "package.json").read_bytes())
    except (OSError, ValueError):
        return "?"
    version = data.get("version") if isinstance(data, dict) else None
    return excerpt(version, 60) if isinstance(version, str) else "?"
