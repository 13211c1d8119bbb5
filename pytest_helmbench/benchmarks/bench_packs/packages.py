"""The npm packages that a Bench Pack needs, where `helmbench packs install` puts them, and what to do without them."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import Problem, UnreadableBenchmarkError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.core.user_folders import user_cache

__all__ = [
    "PackageNeeds",
    "dependencies_of",
    "installed_packages",
    "missing_package",
    "package_hint",
    "package_needs",
    "packages_folder",
]

_PACKAGE_FILE = "package.json"
_LARGEST = 1_000_000  # bytes
# What Bench Protocol's own host brings, by the ranges that it names.
_HOST_CONTRACT = {"smol-toml": "^1.3.4", "zod": "^3.24.1"}
_OURS = frozenset(("@benchlocal/core", "@benchlocal/sdk"))
_NAME = re.compile(r"(?:@[A-Za-z0-9~-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~-][A-Za-z0-9._~-]*")
# A range of versions, a tag, or another package of a registry: nothing that npm would fetch by git, URL or path.
_WANTED = re.compile(r"(?:npm:(?:@[\w.~-]+/)?[\w.~-]+@)?[\w.~^<>=|*+ -]*", re.ASCII)
_MISSING = re.compile(r"Cannot find (?:package|module) '([^'\s]+)'")


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
        UnreadableBenchmarkError: The file cannot be read, or holds no names and versions.
    """
    path = root / _PACKAGE_FILE
    stated = _dependencies(path, "dependencies")
    odd = next((name for name in stated if not _NAME.fullmatch(name)), None)
    if odd is not None:
        raise _unreadable(path, f"dependencies: {excerpt(odd, 80)!r} is no name of a package")
    wanted, left_out = dict(_HOST_CONTRACT), {}
    for name, version in stated.items():
        if name in _OURS:
            continue
        if _WANTED.fullmatch(version):
            wanted[name] = version
        else:
            wanted.pop(name, None)
            left_out[name] = version
    return PackageNeeds(tuple(sorted(wanted.items())), tuple(sorted(left_out.items())))


def packages_folder(needs: PackageNeeds, environ: Mapping[str, str]) -> Path:
    """Return the folder of the user whose `node_modules` holds what is needed, installed or not."""
    return user_cache(environ) / "helmbench" / "bench-packs" / needs.key


def installed_packages(root: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the folder with the packages that were installed for a pack; None where none were."""
    try:
        folder = packages_folder(package_needs(root), environ)
    except UnreadableBenchmarkError:
        return None  # Node reads the file too, and says what it makes of it
    return folder if (folder / "node_modules").is_dir() else None


def missing_package(message: str) -> str | None:
    """Return the package that Node could not find, from its words; None when these are about something else."""
    found = _MISSING.search(message)
    if found is None:
        return None
    name = "/".join(found[1].split("/")[: 2 if found[1].startswith("@") else 1])
    return name if _NAME.fullmatch(name) else None


def package_hint(message: str, root: Path, environ: Mapping[str, str]) -> str:
    """Return what helps where Node could not find a package; empty when its words are about something else."""
    name = missing_package(message)
    if name is None:
        return ""
    command = f"`helmbench packs install {shlex.quote(str(root))}`"
    try:
        needs = package_needs(root)
    except UnreadableBenchmarkError:
        needs = PackageNeeds(())
    if name in dict(needs.wanted) and installed_packages(root, environ) is None:
        return f"{command} installs it for you (needs npm); or ship it in the pack's node_modules"
    return (
        "bundle it or ship it in the pack's node_modules; or name it in the `dependencies` of the pack's"
        f" {_PACKAGE_FILE}, then {command}"
    )


def dependencies_of(root: Path, *keys: str) -> PackageNeeds:
    """Return what a pack's `package.json` names under some keys, by whether it stands in a registry; nothing else.

    Raises:
        UnreadableBenchmarkError: The file cannot be read, or holds no names and versions.
    """
    wanted: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for key in keys:
        for name, text in _dependencies(root / _PACKAGE_FILE, key).items():
            known = _NAME.fullmatch(name) and _WANTED.fullmatch(text)
            (wanted if known else left_out)[name] = text
    return PackageNeeds(tuple(sorted(wanted.items())), tuple(sorted(left_out.items())))


def _dependencies(path: Path, key: str) -> Mapping[str, str]:
    if not os.path.lexists(path):
        return {}
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise _unreadable(path, f"the file has more than {_LARGEST:,} bytes")
        data: JsonValue = json.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, f"this is no JSON that can be read: {excerpt(str(error))}") from error
    stated = data.get(key, {}) if isinstance(data, dict) else None
    if not isinstance(stated, dict):
        raise _unreadable(path, f"{key}: this is no object")
    found = {}
    for name, version in stated.items():
        if not isinstance(version, str):
            raise _unreadable(path, f"{key}: the version of {excerpt(name, 80)!r} is no text")
        found[name] = version
    return found


def _unreadable(path: Path, message: str) -> UnreadableBenchmarkError:
    hint = 'name each package with a range of versions, such as "zod": "^3.24.1"'
    return UnreadableBenchmarkError((Problem(path, None, message, hint),))
