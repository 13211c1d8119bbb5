"""The benchmarks of a session: found once, loaded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_helmbench.benchmarks.bench_packs.places import is_bench_pack
from pytest_helmbench.benchmarks.packs.places import is_pack
from pytest_helmbench.benchmarks.places import benchmark_root
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.jobs import LoadedTree
from pytest_helmbench.core.problem import Problem, UnreadableBenchmarkError
from pytest_helmbench.core.row_outline import RowOutline
from pytest_helmbench.engine.job import Loaded, RunIds
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.session.settings import Settings
from pytest_helmbench.session.targets import resolve_targets

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.bench_packs.loading import BenchPackLoader
    from pytest_helmbench.benchmarks.packs.loading import PackLoader
    from pytest_helmbench.benchmarks.python_tests.jobs import HandWritten
    from pytest_helmbench.store.writer import Store

__all__ = ["Library"]


class Library:
    """Loads benchmarks on first use.

    Args:
        settings: Of the session.
        environ: Where keys are looked up.
        note: Says something in the summary.
    """

    def __init__(self, settings: Settings, environ: Mapping[str, str], note: Callable[[str], None]) -> None:
        self._settings = settings
        self._note = note
        self._environ = environ
        self._roots: dict[Path, Path | None] = {}
        self._loaded: dict[Path, Loaded] = {}
        self._unreadable: dict[Path, UnreadableBenchmarkError] = {}
        self._pack_loader: PackLoader | None = None
        self._bench_pack_loader: BenchPackLoader | None = None
        self._tests: HandWritten | None = None
        self._loop: LoopThread | None = None

    @property
    def loop(self) -> LoopThread:
        """The event loop of this process; started when it is needed first."""
        if self._loop is None:
            self._loop = LoopThread()
        return self._loop

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
        if root in self._unreadable:
            raise self._unreadable[root]  # a Bench Pack may take its time to fail
        if root not in self._loaded:
            try:
                self._loaded[root] = self._read(root)
            except UnreadableBenchmarkError as error:
                self._unreadable[root] = error
                raise
        return self._loaded[root]

    def hand_written(self, outline: RowOutline) -> HandWritten:
        """Return the hand-written tests of the session, as a benchmark among the others.

        Args:
            outline: See `HandWritten.outline`.

        Raises:
            HelmbenchError: The models.yml in rootdir or an id in it cannot be used.
        """
        if self._tests is None:
            from pytest_helmbench.benchmarks.python_tests.jobs import HandWritten  # noqa: PLC0415 - few sessions have any

            targets = resolve_targets(outline.root.parent, self._settings, self._environ)
            self._tests = HandWritten(outline, targets)
            self._loaded[outline.root] = self._tests
        self._tests.outline = outline
        return self._tests

    def _read(self, root: Path) -> Loaded:
        targets = resolve_targets(root, self._settings, self._environ)
        if is_bench_pack(root):
            return self._hosts().load(root, targets)
        if is_pack(root):
            return self._packs().load(root, targets)
        return LoadedTree(load_tree(root), targets)

    def _packs(self) -> PackLoader:
        if self._pack_loader is None:
            from pytest_helmbench.benchmarks.packs.loading import PackLoader  # noqa: PLC0415 - trees do without

            self._pack_loader = PackLoader(self._settings, self._note)
        return self._pack_loader

    def _hosts(self) -> BenchPackLoader:
        if self._bench_pack_loader is None:
            from pytest_helmbench.benchmarks.bench_packs.loading import BenchPackLoader  # noqa: PLC0415 - only Bench Packs need it

            self._bench_pack_loader = BenchPackLoader(self._settings, self._environ, self.loop, self._note)
        return self._bench_pack_loader

    async def self_check(self, loaded: Loaded, code: str) -> tuple[Sequence[Problem], str | None]:
        """Return what is wrong with a row of a pack, or why it could not be checked.

        Raises:
            ConfigError: The row cannot be read.
        """
        return await self._packs().self_check(loaded, code)

    def note_starts(self, store: Store, run_ids: RunIds) -> None:
        """Put on record that the runs of Bench Packs have started."""
        if self._bench_pack_loader is not None:
            self._bench_pack_loader.note_starts(store, run_ids)

    def store_totals(self, store: Store, run_ids: RunIds) -> None:
        """Put on record what Bench Packs make of their runs; what was recorded is on disk by now."""
        if self._bench_pack_loader is not None:
            self._bench_pack_loader.store_totals(store, run_ids)

    def write_runs(self, run_ids: RunIds) -> None:
        """Write the runs of Bench Packs as the BenchLocal app stores them, where that is asked for."""
        if self._bench_pack_loader is not None:
            self._bench_pack_loader.write_runs(run_ids)

    def end(self) -> None:
        """Close what a session has left open that never ran, or was broken off."""
        if self._loop is not None and self._loop.alive:
            self._loop.run(self.close())
            self._loop.close()

    async def close(self) -> None:
        """Remove what was made for the cases of its benchmarks."""
        if self._pack_loader is not None:
            await self._pack_loader.close()
        if self._bench_pack_loader is not None:
            await self._bench_pack_loader.close()
        if self._tests is not None:
            await self._tests.close()
