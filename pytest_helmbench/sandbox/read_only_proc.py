"""A `/proc` that cannot be written: in a container nobody then reaches into the memory of another program.

Podman mounts it so when told, but the runtime cannot set the network's own sysctls afterwards, which podman has it do
by default. So podman gets the settings of this machine without these.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["ReadOnlyProc", "written_toml"]

_SETTINGS = "CONTAINERS_CONF"
_PLACES = ("/usr/share/containers", "/etc/containers")

Table = dict[str, object]


class ReadOnlyProc:
    """What makes `/proc` read-only in containers.

    Args:
        flags: Of the command line; none where it knows of none.
        folder: Where settings may be written.
    """

    def __init__(self, flags: tuple[str, ...], folder: Path) -> None:
        self.flags = flags
        self.environment: Mapping[str, str] = {}
        if flags:
            file = folder / "containers.conf"
            file.write_text(written_toml(_settings()), encoding="utf-8")
            self.environment = {_SETTINGS: str(file)}


def _settings() -> Table:
    """Return the settings of this machine's podman, without default sysctls."""
    found: Table = {}
    for file in _files():
        try:
            _merge(found, tomllib.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue  # podman has its own word on it
    _merge(found, {"containers": {"default_sysctls": []}})
    return found


def _files() -> Iterator[Path]:
    """Yield the files that podman reads, the last word last."""
    named = os.environ.get(_SETTINGS)
    if named:
        yield Path(named)
        return
    own = Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()) / "containers"
    for folder in (*map(Path, _PLACES), *((own,) if os.getuid() else ())):
        yield folder / "containers.conf"
        yield from sorted((folder / "containers.conf.d").glob("*.conf"))


def _merge(into: Table, more: Mapping[str, object]) -> None:
    for name, value in more.items():
        old = into.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            _merge(old, value)
        else:
            into[name] = value


def written_toml(table: Mapping[str, object], *above: str) -> str:
    """Return a table as TOML: texts, numbers, lists and tables, as such settings have them."""
    head = ".".join(json.dumps(name) for name in above)
    plain = {name: value for name, value in table.items() if not isinstance(value, dict)}
    lines = [f"[{head}]"] if above else []
    lines += [f"{json.dumps(name)} = {json.dumps(value, default=str)}" for name, value in plain.items()]
    below = [written_toml(value, *above, name) for name, value in table.items() if isinstance(value, dict)]
    return "\n".join([*lines, *below]) + ("" if above else "\n")
