"""Finding Node.js for Bench Packs, and the command of a process: arguments, what it sees, environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox import inside as sandbox_inside
from pytest_helmbench.sandbox.fence import Fence, FenceView, program_files
from pytest_helmbench.sandbox.local import host_python

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
_INSIDE = Path(__file__).resolve().with_name("inside")
_LAUNCHER = Path(sandbox_inside.__file__).with_name("launch.py")
_PASSED_ON = ("PATH", "TZ")
_NO_PROXY = "127.0.0.1,localhost,::1"


@dataclass(frozen=True, slots=True)
class Node:
    """A Node.js that can run Bench Packs, by its absolute path."""

    path: str


def find_node(stated: Granted[Path] | None, environ: Mapping[str, str]) -> Node | str:
    """Return the Node.js to use, or why there is none and what to install.

    Args:
        stated: What the option says; None for nothing.
        environ: Asked for `HELMBENCH_NODE`, then for `PATH`.
    """
    if sys.platform == "win32":
        return "Bench Packs need Linux or macOS"
    named = str(stated.value) if stated else environ.get(NODE_VARIABLE, "")
    source = "--helmbench-node" if stated else NODE_VARIABLE
    path = shutil.which(os.path.expanduser(named or "node"), path=environ.get("PATH", os.defpath))  # noqa: PTH111 - a name is not a path
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
    return Node(str(Path(path).absolute()))


def _refusal(why: str) -> str:
    return f"Bench Packs need Node.js {LEAST_NODE} or newer: {why}\n{_HINT}"


def _version(path: str) -> tuple[int, int, int] | str:
    """Ask the program itself; a string says why that did not work."""
    try:
        asked = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_WAIT_S, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return f"it does not tell its version ({excerpt(str(error))})"
    said = asked.stdout.decode("utf-8", "replace").strip()
    match = _VERSION.match(said)
    if asked.returncode != 0 or match is None:
        return f"it is not Node.js; asked for its version, it said {excerpt(said, 80)!r}"
    return int(match[1]), int(match[2]), int(match[3])


@dataclass(frozen=True, slots=True)
class BridgePlace:
    """Where a pack is and may write. All paths are absolute.

    Args:
        entry: The module that the manifest names.
        home: Where its processes start, with their temporary files; it exists, and goes with the session.
        data_dir: Its own, kept, and there once it runs; `cache_dir` and `runs_dir` likewise.
    """

    root: Path
    entry: Path
    data_dir: Path
    cache_dir: Path
    runs_dir: Path
    home: Path


@dataclass(frozen=True, slots=True)
class PackCommand:
    """A pack, and how it is run.

    Args:
        fence: What keeps it in; None to run it with our rights.
    """

    node: Node
    place: BridgePlace
    fence: Fence | None

    @property
    def reaped(self) -> bool:
        """Whether our launcher stands above the process: it also ends what has left the process group."""
        return sys.platform == "linux" and self.fence is None

    @property
    def folder(self) -> str:
        """Where it starts: a pack that writes files without saying where may do so here."""
        return os.path.realpath(self.place.home)

    @property
    def entry(self) -> str:
        """The module, without links: Node names it so, and allows no other name."""
        return os.path.realpath(self.place.entry)

    def argv(self, argument: str) -> tuple[str, ...]:
        """Return program and arguments; `argument` says where the process finds its wire."""
        node = (self.node.path, "--no-warnings", str(_INSIDE / "main.cjs"), argument)
        if not self.reaped:
            return node
        return (str(host_python()), "-ISE", str(_LAUNCHER), f"reap={os.getpid()}", self.folder, *node)

    def environment(self) -> dict[str, str]:
        """Return the whole environment: no key of a provider is in it, and no home with more of them."""
        passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return {
            "LANG": "C.UTF-8",
            **passed,
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP", "HOME", "USERPROFILE"), self.folder),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), _NO_PROXY),
            "NODE_PATH": str(_INSIDE / "modules"),
        }

    def view(self) -> FenceView:
        """Return what the process sees in the fence: the pack, our modules, and where it may write."""
        place = self.place
        # Both names of the folder: the pack opens files by the name in its HostContext.
        reads = (place.root, Path(os.path.realpath(place.root)), _INSIDE, *program_files(self.node.path))
        folders = (place.data_dir, place.cache_dir, place.runs_dir, place.home)
        writes = {Path(name) for path in folders for name in (path, os.path.realpath(path))}
        return FenceView(self.folder, self.environment(), tuple(dict.fromkeys(reads)), tuple(sorted(writes)))
