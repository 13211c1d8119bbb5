"""The npm packages that a Bench Pack needs, installed into a folder of the user without running a script of theirs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.files.strict_json import a_mapping

_PACKAGE_FILE = "package.json"
_LONGEST_S = 600.0
_SHOWN = 1_500
# What Bench Protocol's own host brings, by the ranges that it names.
_HOST_CONTRACT = {"smol-toml": "^1.3.4", "zod": "^3.24.1"}
_OURS = frozenset(("@benchlocal/core", "@benchlocal/sdk"))
_NAME = re.compile(r"(?:@[A-Za-z0-9~-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~-][A-Za-z0-9._~-]*")
# A range of versions, a tag, or another package of a registry: nothing that npm would fetch by git, URL or path.
_WANTED = re.compile(r"(?:npm:(?:@[\w.~-]+/)?[\w.~-]+@)?[\w.~^<>=|*+ -]*", re.ASCII)
_MISSING = re.compile(r"Cannot find (?:package|module) '([^'\s]+)'")
_INSTALL = ("install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-bin-links", "--omit=dev")
# npm starts another npm for some dependencies of dependencies, which knows the environment alone.
_ENVIRONMENT = {"npm_config_ignore_scripts": "true", "npm_config_global": "false"}


class NotInstalledError(HelmbenchError):
    """The packages could not be installed: why, and a hint on a line of its own."""


@dataclass(frozen=True, slots=True)
class PackageNeeds:
    """What a pack needs from npm.

    Args:
        wanted: Name and range of versions of each package of a registry, by name.
        left_out: Name and source of each dependency that stands in no registry, by name.
    """

    wanted: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """16 hex digits; packs that need the same share what is installed."""
        return sha256(json.dumps(self.wanted).encode()).hexdigest()[:16]


def package_needs(root: Path) -> PackageNeeds:
    """Return the `dependencies` of a pack's `package.json`, and what the protocol's host brings beside them.

    Our own `@benchlocal` modules are not among them.

    Args:
        root: The pack's folder; it need not have the file.

    Raises:
        NotInstalledError: The file cannot be read.
    """
    path = root / _PACKAGE_FILE
    try:
        data: JsonValue = json.loads(path.read_bytes()) if path.is_file() else {}
    except (OSError, ValueError, RecursionError) as error:
        raise NotInstalledError(f"{path}: cannot be read: {excerpt(str(error))}") from error
    wanted, left_out = dict(_HOST_CONTRACT), {}
    for name, version in a_mapping(a_mapping(data).get("dependencies")).items():
        if name in _OURS:
            continue
        if isinstance(version, str) and _WANTED.fullmatch(version) and _NAME.fullmatch(name):
            wanted[name] = version
        else:
            wanted.pop(name, None)
            left_out[name] = str(version)
    return PackageNeeds(tuple(sorted(wanted.items())), tuple(sorted(left_out.items())))


def packages_folder(needs: PackageNeeds, environ: Mapping[str, str]) -> Path:
    """Return the folder of the user whose `node_modules` holds what is needed, installed or not."""
    cache = Path(environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():
        cache = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return cache / "helmbench" / "bench-packs" / needs.key


def installed_packages(root: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the folder with the packages that were installed for a pack; None where none were."""
    try:
        folder = packages_folder(package_needs(root), environ)
    except NotInstalledError:
        return None  # Node reads the file too, and says what it makes of it
    return folder if (folder / "node_modules").is_dir() else None


def package_hint(message: str, root: Path) -> str:
    """Return what helps where Node could not find a package; empty when its words are about something else."""
    found = _MISSING.search(message)
    name = "/".join(found[1].split("/")[: 2 if found[1].startswith("@") else 1]) if found else ""
    if not _NAME.fullmatch(name):
        return ""
    return (
        f"`helmbench check {shlex.quote(str(root))} --install` installs the `dependencies` of the pack's"
        f" {_PACKAGE_FILE} (needs npm); or ship them in the pack's node_modules"
    )


def install_packages(root: Path, environ: Mapping[str, str]) -> list[str]:
    """Install what a pack needs, unless that was done before; return what was done. Nothing is written into the pack.

    Args:
        root: The pack's folder.
        environ: That npm runs in; asked for `PATH` and the user's cache folder too.

    Raises:
        NotInstalledError: The pack's `package.json` cannot be read, there is no npm, or it fails.
    """
    needs = package_needs(root)
    folder = packages_folder(needs, environ)
    before = (folder / "node_modules").is_dir()
    if not before:
        try:
            _install(needs, folder, environ)
        except OSError as error:
            raise NotInstalledError(f"{folder}: {excerpt(str(error))}\n  hint: is it writable?") from error
    listed = ", ".join(f"{name}@{version}" for name, version in needs.wanted)
    return [
        f"{'installed before' if before else 'installed'}: {excerpt(listed, _SHOWN)}",
        f"  in {folder}{' (remove it to install anew)' if before else ''}",
        *(
            f"left out: {excerpt(name, 80)} ({excerpt(source, 120)}): only packages of a registry are installed;"
            " bundle it with the pack"
            for name, source in needs.left_out
        ),
    ]


def _install(needs: PackageNeeds, folder: Path, environ: Mapping[str, str]) -> None:
    """Install beside the folder and move the whole there: what it holds is complete."""
    npm = shutil.which("npm", path=environ.get("PATH", os.defpath))
    if npm is None:
        raise NotInstalledError(
            "there is no `npm` on PATH\n  hint: it comes with Node.js, from https://nodejs.org or your system's"
            " packages; or ship the packages in the pack's node_modules"
        )
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with TemporaryDirectory(dir=folder.parent, prefix=".making-") as made:
        making = Path(made, folder.name)
        making.mkdir()
        asked = {"private": True, "dependencies": dict(needs.wanted)}
        (making / _PACKAGE_FILE).write_text(json.dumps(asked, indent=2), encoding="utf-8")
        code = None
        try:
            done = subprocess.run(
                [npm, *_INSTALL],
                cwd=making,
                env={**environ, **_ENVIRONMENT},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_LONGEST_S,
                check=False,
            )
            said, code = excerpt(done.stdout.decode("utf-8", "replace"), _SHOWN), done.returncode
        except subprocess.TimeoutExpired:
            said = f"npm did not finish within {_LONGEST_S:g} s"
        if code != 0 or not (making / "node_modules").is_dir():
            raise NotInstalledError(
                f"npm has installed nothing (exit code {code}):\n{said}\n"
                "  hint: can npm reach its registry, and does it have these versions?"
            )
        try:
            making.rename(folder)
        except OSError:
            if not (folder / "node_modules").is_dir():  # else another process was faster, with the same
                raise
