"""The benchmarks of a session: found once, loaded once, each by its kind."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path

from pytest_helmbench.benchmarks.kind import Adopter, KindPlaces, Loaded, Loader, RunFollower, SessionValues
from pytest_helmbench.benchmarks.places import benchmark_root, benchmarks_below
from pytest_helmbench.benchmarks.registry import (
    all_places,
    authoring_at,
    kind_of,
    meant_places,
    places_named,
    places_of,
)
from pytest_helmbench.core.outline import RowOutline
from pytest_helmbench.core.problem import Problem, UnreadableBenchmarkError
from pytest_helmbench.core.sample import Sample
from pytest_helmbench.core.scrub import HiddenValues, secrets_of
from pytest_helmbench.engine.job import RunIds
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.run.selecting import sample_of
from pytest_helmbench.run.targets import resolve_targets
from pytest_helmbench.store.write.writer import Store


class Library:
    """Loads benchmarks on first use; a kind is imported when a benchmark of it is met."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], note: Callable[[str], None]) -> None:
        self._settings = settings
        self._note = note
        self._environ = environ
        self._roots: dict[Path, tuple[Path, Path] | None] = {}
        self._collected_from: dict[Path, Path] = {}
        self._loaded: dict[Path, Loaded] = {}
        self._unreadable: dict[Path, UnreadableBenchmarkError] = {}
        self._loaders: dict[str, Loader] = {}
        self._loader_of: dict[Path, Loader] = {}
        self._loop: LoopThread | None = None
        self._samples: dict[Path, Sample | None] = {}
        self.named: list[Path] = []
        """The paths that the session runs, from the root."""

    @property
    def hidden(self) -> HiddenValues:
        """Values of the environment that are not stored."""
        settings = self._settings
        named = (settings.api_key_env, settings.marking_api_key_env)
        return secrets_of(self._environ, [one.value for one in named if one is not None])

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

    def of_file(self, path: Path, *, named: bool = False) -> Loaded | None:
        """Return the benchmark that a file belongs to, or None.

        A file that the command line names may be one itself.

        None as well where links lead to the benchmark, and the same file was met by another path: it runs once.
        """
        folder = path if named else path.parent
        if folder not in self._roots:
            found = benchmark_root(folder)
            self._roots[folder] = None if found is None else (found, found.resolve())
        place = self._roots[folder]
        if place is None:
            return None
        root, resolved = place
        if self._collected_from.setdefault(resolved / path.relative_to(root), root) != root:
            return None
        return self.load(root)

    def count(self, roots: Collection[Path]) -> int:
        """Return how many cases with models the benchmarks at some folders have."""
        return sum(loaded.count() * len(loaded.targets) for loaded in self.loaded if loaded.root in roots)

    @property
    def named_for_nothing(self) -> Iterator[Path]:
        """The named folders with neither a benchmark nor a Python file in them."""
        known = [*self._loaded, *self._unreadable]
        for path in self.named:
            is_used = any(root.is_relative_to(path) or path.is_relative_to(root) for root in known)
            if path.is_dir() and not is_used and next(path.rglob("*.py"), None) is None:
                yield path

    def cases_now(self, root: Path, name: str, paired: Collection[Path]) -> Collection[str] | None:
        """Return the cases that the benchmark at a folder, else one of its name, defines; None where unknown.

        That other one is not among those that are paired already.
        """
        others = (one for one in self.loaded if one.root not in paired and one.outline.name == name)
        found = self._loaded.get(root) or next(others, None)
        if root in self._unreadable or (found is not None and found.count() and not [*found.files]):
            return None  # pytest alone knows all hand-written tests
        return () if found is None else defined_cases(found)

    def load(self, root: Path) -> Loaded:
        """Return the benchmark at a folder.

        Raises:
            HelmbenchError: Its models.yml or an id in it cannot be used, or the folder cannot be read.
        """
        if root in self._unreadable:
            raise self._unreadable[root]  # some kinds take their time to fail
        if root not in self._loaded:
            try:
                self._loaded[root] = self._read(root)
            except UnreadableBenchmarkError as error:
                self._unreadable[root] = error
                raise
        return self._loaded[root]

    def sample(self, loaded: Loaded) -> Sample | None:
        """Return the sample of a benchmark; see `sample_of`.

        Raises:
            SampleError: It cannot be drawn.
        """
        if loaded.root not in self._samples:
            self._samples[loaded.root] = sample_of(loaded, self._settings)
        return self._samples[loaded.root]

    @property
    def drawn(self) -> Iterator[tuple[str, Sample]]:
        """The samples that were drawn, with the names of their benchmarks."""
        for loaded in self.loaded:
            sample = self._samples.get(loaded.root)
            if sample is not None:
                yield loaded.outline.name, sample

    @property
    def samples(self) -> Mapping[Path, Sample | None]:
        """The samples of the benchmarks that were loaded, by folder.

        Raises:
            SampleError: One cannot be drawn.
        """
        return {loaded.root: self.sample(loaded) for loaded in self.loaded}

    def adopt(self, outline: RowOutline) -> Loaded:
        """Return cases that pytest itself has collected, as a benchmark among the others.

        The root of their outline stands below the folder whose models.yml counts.

        Raises:
            HelmbenchError: The models.yml or an id in it cannot be used.
        """
        root = outline.root
        known = self._loaded.get(root)
        targets = (
            resolve_targets(root.parent, self._settings, self._environ) if known is None else known.targets
        )
        loader = self._loader(places_named(outline.kind))
        if not isinstance(loader, Adopter):
            raise TypeError(f"{outline.kind}: pytest does not collect its cases")
        self._loader_of[root] = loader
        self._loaded[root] = loader.adopt(outline, targets)
        return self._loaded[root]

    def _read(self, root: Path) -> Loaded:
        targets = resolve_targets(root, self._settings, self._environ)
        places = places_of(root)
        if places is None:
            raise UnreadableBenchmarkError((Problem(root, None, "it is not a benchmark of a known kind"),))
        self._loader_of[root] = loader = self._loader(places)
        return loader.load(root, targets)

    def _loader(self, places: KindPlaces) -> Loader:
        if places.name not in self._loaders:
            session = SessionValues(self._settings, self._environ, lambda: self.loop, self._note)
            self._loaders[places.name] = kind_of(places).open(session)
        return self._loaders[places.name]

    def note_starts(self, store: Store, run_ids: RunIds) -> None:
        """Tell the kinds that follow runs that these are open."""
        for follower in self._followers():
            follower.note_starts(store, run_ids)

    def store_totals(self, store: Store, run_ids: RunIds) -> None:
        """Tell the kinds that follow runs that nothing more comes; what was recorded is on disk by now."""
        for follower in self._followers():
            follower.store_totals(store, run_ids)

    def end(self) -> None:
        """Close what a session has left open that never ran, or was broken off."""
        if self._loop is not None and self._loop.alive:
            self._loop.run_last(self.close())
            self._loop.close()

    async def close(self) -> None:
        """Remove what was made for the cases of its benchmarks."""
        async with AsyncExitStack() as stack:  # one that cannot be ended keeps no other from its end
            for loader in self._loaders.values():
                stack.push_async_callback(loader.close)

    def _followers(self) -> Iterator[RunFollower]:
        for loader in self._loaders.values():
            if isinstance(loader, RunFollower):
                yield loader


def defined_cases(loaded: Loaded, healthy: Iterable[str] | None = None) -> tuple[str, ...]:
    """Return the cases that the files of a benchmark define: the healthy ones, which may be known, and broken ones."""
    if healthy is None:
        healthy = (job.code for file in loaded.files for job in loaded.jobs(file, "", 1))
    broken = (case.code for name, _ in loaded.broken for case in loaded.broken_cases(name))
    return tuple(dict.fromkeys((*healthy, *broken)))


def fetched(word: str) -> str:
    """Return a word of the command line with a path in place of an address, whose benchmark is fetched.

    Raises:
        HelmbenchError: It cannot be fetched.
    """
    address, colons, item = word.partition("::")
    for places in all_places():
        start, module = places.fetch
        if start and address.startswith(start):
            return f"{import_module(module).fetched(address)}{colons}{item}"
    return word


def intended_folder(path: Path) -> Path | None:
    """Return the folder at a path, or around a file, that was meant as a benchmark but is none, nor holds any."""
    place = Path(os.path.abspath(path))  # noqa: PTH100 - keeps links
    folder = place.parent if place.is_file() else place
    if not folder.is_dir() or benchmark_root(place) is not None or meant_places(folder) is None:
        return None
    return None if any(benchmarks_below(folder)) else folder


def unreadable_benchmark_text(name: str, folder: Path, settings: Settings) -> str:
    """Return the problems of a folder that was meant as a benchmark, line by line.

    Args:
        name: As the user has named it.
    """
    library = Library(settings, os.environ, lambda _sentence: None)
    session = SessionValues(settings, os.environ, lambda: library.loop, lambda _sentence: None)
    try:
        found = authoring_at(folder).check(folder, session).errors
    except UnreadableBenchmarkError as error:
        found = error.problems
    problems = [problem.text() for problem in found] or [
        f"  hint: `helmbench check {shlex.quote(name)}` says what is wrong"
    ]
    return "\n".join((f"{name}: this was meant as a benchmark, but cannot be read as one", *problems))
