"""The protocol of a kind of benchmark: whatever differs between kinds is asked here, and nowhere by a kind's name.

A kind is a folder of `benchmarks/` (or another distribution) with two modules: `places.py` says by names
of files alone where its benchmarks stand, and the one that it names, with a `KIND`, does everything else. The second
is imported when a session or a command has met such a benchmark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.options.trust import trust_hint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_helmbench.benchmarks.authoring import Checked, ReadBenchmark
    from pytest_helmbench.core.case import BrokenCase
    from pytest_helmbench.core.json_types import JsonObject
    from pytest_helmbench.core.outline import Outline, RowOutline, Scoring
    from pytest_helmbench.core.problem import Problem
    from pytest_helmbench.engine.job import CaseJob, RunIds, Target
    from pytest_helmbench.engine.loop import LoopThread
    from pytest_helmbench.gateway.permits import ModelLimits
    from pytest_helmbench.options.declarations import Options
    from pytest_helmbench.store.write.writer import Store


@dataclass(frozen=True, slots=True)
class KindPlaces:
    """Where the benchmarks of a kind stand: told by names of files, so that asking costs nothing.

    Each kind has one in its `places.py`; those of other distributions are named by an entry point of the group
    `pytest_helmbench.kinds`.

    Args:
        name: Of the kind: what the record keeps as `benchmarks.kind`.
        module: The module with its `KIND`, a `BenchmarkKind`; imported when a benchmark of the kind is met.
        authoring: The module with its `AUTHORING`, an `Authoring`; imported by the commands that need it.
        signs: Names of files or folders, one of which every benchmark of the kind has.
        is_signed_below: The folders in a benchmark may have the sign in its place.
        detect: Returns whether a folder is one.
        files: Returns the files of a benchmark that items stand in, where it is closed: collected as one thing, in
            which nothing else is looked for and no Python file is run. None for an open one, through which pytest
            walks.
        manifests: Returns the files of a folder that represent a benchmark that cannot be read.
        own_folders: Folders of an open one that hold no other benchmark.
        is_data: Python files in one are data, and never run, in sessions of anybody.
        is_outermost: Whatever lies inside is part of it, even what looks like a benchmark.
        is_meant: Returns whether a folder that is none was meant as one, so that `check` says what is wrong with it.
        record: The module with its `RECORD`, a `KindRecord`; empty where it keeps nothing on record that is its own.
        schemas: Names of the schemas of its files; its `Authoring` is a `SchemaOwner` then.
        starter: Folder beside `module` with a small working benchmark, for `helmbench init`; empty for none.
        fetch: How addresses begin, `hf:/` for example, and the module whose `fetched` makes a path of one.
        not_rescored: Why `rescore` cannot hold the replies of a run to rules of now, in a sentence with a hint; empty
            where it can.
    """

    name: str
    module: str
    authoring: str
    signs: tuple[str, ...]
    detect: Callable[[Path], bool]
    files: Callable[[Path], Sequence[Path]] | None = None
    manifests: Callable[[Path], Sequence[Path]] = lambda _root: ()
    own_folders: tuple[str, ...] = ()
    is_signed_below: bool = False
    is_data: bool = False
    is_outermost: bool = False
    is_meant: Callable[[Path], bool] = lambda _root: False
    record: str = ""
    schemas: tuple[str, ...] = ()
    starter: str = ""
    fetch: tuple[str, str] = ("", "")
    not_rescored: str = ""

    @property
    def is_closed(self) -> bool:
        """Whether nothing else is looked for in a benchmark of the kind."""
        return self.files is not None


@dataclass(frozen=True, slots=True)
class SessionValues:
    """The values that a session or a command gives to a kind.

    Args:
        environ: Where programs and keys are looked up.
        loop: Returns the event loop of the process, which is started when it is needed first.
        note: Says something in the summary.
        attacks: A check tries what must not pass, though it solves nothing.
    """

    settings: Options
    environ: Mapping[str, str]
    loop: Callable[[], LoopThread]
    note: Callable[[str], None]
    attacks: bool = False

    def trust_hint(self, root: Path) -> str:
        """Return how the user trusts a benchmark; empty where he does, so that its code counts as his own."""
        trusted = self.settings.trusted.value
        return "" if str(root.resolve()) in trusted else trust_hint(root, trusted, self.settings.ini)


class BenchmarkKind(Protocol):
    """A kind of benchmark. It keeps no state: what lasts for a session is in the `Loader` that it opens."""

    @property
    def name(self) -> str:
        """The name in its `KindPlaces`."""

    def open(self, session: SessionValues) -> Loader:
        """Return what loads the benchmarks of one session.

        Raises:
            HelmbenchError: An option of the kind cannot be used.
        """


class Authoring(Protocol):
    """The part of a kind for the commands that authors use."""

    def check(self, root: Path, session: SessionValues) -> Checked:
        """Return what is wrong with a benchmark, or with what was meant as one. No model is asked.

        Raises:
            UnreadableBenchmarkError: Nothing of it can be used.
        """

    def read(self, root: Path, session: SessionValues) -> ReadBenchmark:
        """Return a benchmark as authors read it.

        Raises:
            UnreadableBenchmarkError: Nothing of it can be used.
        """


@runtime_checkable
class SchemaOwner(Protocol):
    """An `Authoring` whose files have JSON Schemas (`helmbench schema NAME`)."""

    def schema(self, name: str) -> JsonObject:
        """Return the schema of a name in `KindPlaces.schemas`."""


class Loader(Protocol):
    """Loads the benchmarks of one kind in one session, and keeps what they share."""

    def load(self, root: Path, targets: tuple[Target, ...]) -> Loaded:
        """Return the benchmark at a folder.

        Raises:
            UnreadableBenchmarkError: Nothing of it can be used.
        """

    async def close(self) -> None:
        """Remove what was made for its cases."""


@runtime_checkable
class RunFollower(Protocol):
    """A `Loader` that follows the runs of its benchmarks."""

    def note_starts(self, store: Store, run_ids: RunIds) -> None:
        """Take note that the runs are open: they begin now."""

    def store_totals(self, store: Store, run_ids: RunIds) -> None:
        """Take note that no more results come; what was recorded is on disk by now."""


@runtime_checkable
class Adopter(Protocol):
    """A `Loader` that makes benchmarks of cases that pytest itself has collected."""

    def adopt(self, outline: RowOutline, targets: tuple[Target, ...]) -> Loaded:
        """Return the benchmark with these cases; the same one for the same folder.

        Args:
            outline: What the record keeps of the cases that are selected, once that is known.
            targets: One per model, in order.
        """


Broken: TypeAlias = "tuple[tuple[str, tuple[Problem, ...]], ...]"
"""Broken things that a file represents: what each is named by, and all that is wrong with it."""


class Loaded(Protocol):
    """A benchmark of any kind with the models it runs on."""

    @property
    def root(self) -> Path:
        """Its folder."""

    @property
    def targets(self) -> tuple[Target, ...]:
        """One per model, in order."""

    @property
    def outline(self) -> Outline:
        """The outline that the record keeps."""

    @property
    def scoring(self) -> Scoring | None:
        """Weights and floors; None for none."""

    @property
    def item_limits(self) -> Iterable[ModelLimits]:
        """Limits on how many of its cases run at a time, beyond their model's."""

    @property
    def warnings(self) -> Sequence[Problem]:
        """The warnings: odd but usable values."""

    @property
    def files(self) -> Iterable[Path]:
        """The files that healthy cases stand in; those of pytest's own modules apart."""

    @property
    def broken(self) -> Broken:
        """All that is broken in it."""

    def cases_in(self, path: Path) -> bool:
        """Return whether healthy cases stand in a file."""

    def jobs(self, path: Path, file_id: str, repeat: int, /) -> Iterator[CaseJob]:
        """Yield the jobs of a file, in natural order; nothing is composed.

        Args:
            file_id: Its node id.
            repeat: Repetitions of each case on each model.
        """

    def broken_in(self, path: Path) -> Broken:
        """Return what is broken and stands in a file, or for want of one is shown there."""

    def broken_around(self, path: Path) -> Broken:
        """Return what is broken elsewhere in that to which a file belongs.

        Asked for a file without healthy cases that the command line names: it must not run silently empty.
        """

    def broken_cases(self, name: str) -> Sequence[BrokenCase]:
        """Return what something broken would have run: at least one case, but none for what concerns all."""

    def count(self) -> int:
        """Return the number of healthy cases."""

    def scenario_of(self, code: str) -> str:
        """Return the scenario of a case: what its history and its judge calls go by."""

    def judge_calls(self, scenario: str) -> int:
        """Return the judge calls that one case of a scenario needs."""


class JudgedByItself:
    """The part of a `Loaded` whose own code judges its cases, and in which nothing is broken apart from the rest."""

    scoring = None
    broken: Broken = ()

    def broken_in(self, _path: Path) -> Broken:
        """Return nothing, and so do `broken_around` and `broken_cases`."""
        return ()

    broken_around = broken_in

    def broken_cases(self, _name: str) -> Sequence[BrokenCase]:
        return ()

    def scenario_of(self, code: str) -> str:
        """Return the code of the case."""
        return code

    def judge_calls(self, _scenario: str) -> int:
        """Return 0."""
        return 0
