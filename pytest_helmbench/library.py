"""The benchmarks of a session: found once, loaded once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.engine.jobs import Loaded
from pytest_helmbench.engine.packs import LoadedPack
from pytest_helmbench.engine.targets import resolve_targets
from pytest_helmbench.engine.trees import LoadedTree
from pytest_helmbench.formats.pack import load_pack
from pytest_helmbench.formats.pack_places import is_pack
from pytest_helmbench.formats.places import benchmark_root
from pytest_helmbench.formats.scenario_tree import load_benchmark
from pytest_helmbench.settings import PackRules, Settings

__all__ = ["Library"]


class Library:
    """Loads benchmarks on first use.

    Args:
        settings: Of the session.
        environ: Where keys are looked up.
    """

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._roots: dict[Path, Path | None] = {}
        self._loaded: dict[Path, Loaded] = {}

    @property
    def loaded(self) -> tuple[Loaded, ...]:
        """Every benchmark that was loaded, in order."""
        return tuple(self._loaded.values())

    def of_file(self, path: Path) -> Loaded | None:
        """Return the benchmark that a file belongs to, or None."""
        folder = path.parent
        if folder not in self._roots:
            self._roots[folder] = benchmark_root(folder)
        root = self._roots[folder]
        return None if root is None else self.load(root)

    def load(self, root: Path) -> Loaded:
        """Return the benchmark at a folder.

        Raises:
            HelmbenchError: Its models.yml or an id in it cannot be used, or the folder cannot be read.
        """
        if root not in self._loaded:
            self._loaded[root] = self._read(root)
        return self._loaded[root]

    def _read(self, root: Path) -> Loaded:
        targets = resolve_targets(root, self._settings, self._environ)
        if is_pack(root):
            return LoadedPack(load_pack(root), targets, parity=self._settings.pack_rules is PackRules.PARITY)
        return LoadedTree(load_benchmark(root), targets)
