"""Finding Node.js for Bench Packs: where it is, and whether it is new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.core.users_word import UsersWord

__all__ = ["LEAST_NODE", "NODE_VARIABLE", "Node", "find_node"]

LEAST_NODE = 20
"""The oldest major version that packs can count on."""

NODE_VARIABLE = "HELMBENCH_NODE"
"""Names a Node.js where no option does."""

_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)")
_WAIT_S = 20.0
_HINT = (
    f"  hint: install Node.js {LEAST_NODE} or newer from https://nodejs.org or your system's packages, "
    f"or name one with --helmbench-node or {NODE_VARIABLE}"
)


@dataclass(frozen=True, slots=True)
class Node:
    """A Node.js that can run Bench Packs.

    Args:
        path: The program, absolute.
        version: Major, minor, patch.
    """

    path: str
    version: tuple[int, int, int]


def find_node(stated: UsersWord[Path] | None, environ: Mapping[str, str]) -> Node | str:
    """Return the Node.js to use, or why there is none and what to install.

    Args:
        stated: What the option says; None for nothing.
        environ: Asked for `HELMBENCH_NODE`, then for `PATH`.
    """
    named = str(stated.value) if stated else environ.get(NODE_VARIABLE, "")
    source = "--helmbench-node" if stated else NODE_VARIABLE
    path = shutil.which(os.path.expanduser(named or "node"), path=environ.get("PATH", os.defpath))  # noqa: PTH111 - a name is no path
    if path is None:
        missing = (
            f"{source}: there is no program {excerpt(named)!r}" if named else "there is no `node` on PATH"
        )
        return _refusal(missing)
    found = _version(path)
    if isinstance(found, str):
        return _refusal(f"{path}: {found}")
    if found[0] < LEAST_NODE:
        return _refusal(f"{path} is {'.'.join(map(str, found))}")
    return Node(str(Path(path).absolute()), found)


def _refusal(why: str) -> str:
    return f"Bench Packs need Node.js {LEAST_NODE} or newer: {why}\n{_HINT}"


def _version(path: str) -> tuple[int, int, int] | str:
    """Ask the program itself; a string says why that did not work."""
    try:
        asked = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_WAIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it did not tell its version within {_WAIT_S:g} s"
    except (OSError, ValueError) as error:
        return f"it cannot be started ({excerpt(str(error))})"
    said = asked.stdout.decode("utf-8", "replace").strip()
    match = _VERSION.match(said)
    if asked.returncode != 0 or match is None:
        return f"it is no Node.js; asked for its version, it said {excerpt(said, 80)!r}"
    return int(match[1]), int(match[2]), int(match[3])
