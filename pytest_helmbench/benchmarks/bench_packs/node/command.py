"""The command of a Node process for a Bench Pack: arguments, what it sees, environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.node.node import Node
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.sandbox import inside as sandbox_inside
from pytest_helmbench.sandbox.fence import Fence, View, program_files
from pytest_helmbench.sandbox.local import host_python

__all__ = ["BridgePlace", "PackCommand"]

_INSIDE = Path(__file__).resolve().with_name("inside")
_LAUNCHER = Path(sandbox_inside.__file__).with_name("launch.py")
_PASSED_ON = ("PATH", "TZ", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT")
_NO_PROXY = "127.0.0.1,localhost,::1"


@dataclass(frozen=True, slots=True)
class BridgePlace:
    """Where a pack is and may write. All paths are absolute.

    Args:
        root: The pack's folder.
        entry: The module that it names.
        home: Where its processes start, with their temporary files; it exists, and goes with the session.
        data_dir: Its own, kept, and there once it runs; `cache_dir` and `runs_dir` likewise.
        cache_dir: See `data_dir`.
        runs_dir: See `data_dir`.
        packages: Where `helmbench packs install` has put what it needs from npm; None where nothing was installed.
    """

    root: Path
    entry: Path
    data_dir: Path
    cache_dir: Path
    runs_dir: Path
    home: Path
    packages: Path | None = None


@dataclass(frozen=True, slots=True)
class PackCommand:
    """A pack, and how it is run.

    Args:
        node: The Node.js that runs it.
        place: The folders that it may read and write.
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

    @property
    def packages(self) -> str | None:
        """The folder whose `node_modules` holds installed packages, without links; None for none."""
        return None if self.place.packages is None else os.path.realpath(self.place.packages)

    def argv(self, argument: str) -> tuple[str, ...]:
        """Return program and arguments; `argument` says where the process finds its wire."""
        node = (self.node.path, "--no-warnings", str(_INSIDE / "main.cjs"), argument)
        if not self.reaped:
            return node
        return (str(host_python()), "-ISE", str(_LAUNCHER), f"reap={os.getpid()}", self.folder, *node)

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """Return the whole environment: no key of a provider is in it, and no home with more of them."""
        passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return {
            "LANG": "C.UTF-8",
            **passed,
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP", "HOME", "USERPROFILE"), self.folder),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), _NO_PROXY),
            "NODE_PATH": os.pathsep.join(self._module_folders()),
            **extra,
        }

    def _module_folders(self) -> tuple[str, ...]:
        ours = str(_INSIDE / "modules")
        return (ours,) if self.packages is None else (ours, str(Path(self.packages, "node_modules")))

    def view(self, wire: Mapping[str, str]) -> View:
        """Return what the process sees in the fence: the pack, our modules, its packages, and where it may write.

        Args:
            wire: More of its environment.
        """
        place = self.place
        # Both names of the folder: files are opened by the one that the pack was told.
        reads = (place.root, Path(os.path.realpath(place.root)), _INSIDE, *program_files(self.node.path))
        if self.packages is not None:
            reads = (*reads, Path(self.packages))
        folders = (place.data_dir, place.cache_dir, place.runs_dir, place.home)
        writes = {Path(name) for path in folders for name in (path, os.path.realpath(path))}
        return View(self.folder, self.environment(wire), tuple(dict.fromkeys(reads)), tuple(sorted(writes)))
