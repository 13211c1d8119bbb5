"""The benchmark of each run: its name, its kind, where it lies, and the cases that it has lost since."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.plan_rows import unpacked
from pytest_helmbench.store.read.connection import reading

_HOME = "~/"


@dataclass(frozen=True, slots=True)
class BenchmarkKey:
    """The name, kind and place that identify a benchmark in a results file.

    Args:
        kind: Of the benchmark; empty where it is unknown.
        place: Where it lies, see `place_of`; None where the file does not say.
    """

    name: str
    kind: str = ""
    place: str | None = None

    @property
    def text(self) -> str:
        """For people: its name, and where it lies."""
        return self.name if self.place is None else f"{self.name} ({self.place})"


def place_of(root: Path, db: Path) -> str:
    """Return where a benchmark lies, so that a moved checkout says the same and holds no user's name.

    Relative to the folder of the results file; from the home folder (`~/`) where only that, or what lies above it,
    has both of them in it; and absolute where they have nothing in common.
    """
    root, folder, home = root.resolve(), db.absolute().parent.resolve(), _home()
    shared = _shared(root, folder)
    if home is None or not root.is_relative_to(home):
        return root.as_posix() if shared is None else Path(os.path.relpath(root, folder)).as_posix()
    if shared is not None and shared.is_relative_to(home):
        return Path(os.path.relpath(root, folder)).as_posix()
    return f"{_HOME}{root.relative_to(home).as_posix()}"  # from above, the way goes by the name of the user


def folder_of(place: str, db: Path) -> Path:
    """Return the folder that a place is beside a results file of here; see `place_of`."""
    home = _home()
    if place.startswith(_HOME) and home is not None:
        return home / place.removeprefix(_HOME)
    return db.absolute().parent / place


def seen_from(key: BenchmarkKey, db: Path, other: Path) -> BenchmarkKey:
    """Return the key that a benchmark of one results file has in another; the same where it does not lie here."""
    if key.place is None or db.absolute().parent == other.absolute().parent:
        return key
    folder = folder_of(key.place, db)
    return BenchmarkKey(key.name, key.kind, place_of(folder, other)) if _is_there(folder) else key


def names_of(keys: Iterable[BenchmarkKey]) -> Mapping[BenchmarkKey, str]:
    """Return the names of benchmarks for people, with the place where several have the same name."""
    found = dict.fromkeys(keys)
    often = Counter(key.name for key in found)
    return {key: key.name if often[key.name] == 1 else key.text for key in found}


def is_gone(key: BenchmarkKey, db: Path) -> bool:
    """Return whether there is nothing where a results file says that a benchmark lies."""
    return key.place is not None and not _is_there(folder_of(key.place, db))


def _is_there(folder: Path) -> bool:
    try:
        return folder.exists()
    except OSError:
        return False


def _home() -> Path | None:
    """Return the user's home folder; None where he has none of his own."""
    try:
        found = Path.home()
    except RuntimeError:
        return None
    return found.resolve() if found.is_absolute() and found.parent != found else None


def _shared(root: Path, folder: Path) -> Path | None:
    """Return the deepest folder that has both in it; None where that is all of a disk, or they are on two."""
    try:
        found = Path(os.path.commonpath((root, folder)))
    except ValueError:
        return None
    return None if found.parent == found else found


_SIZES = """
    SELECT run.id, plans.defined FROM evaluation_runs AS this
    JOIN benchmarks AS mine ON mine.id = this.benchmark_id
    JOIN evaluation_runs AS run ON run.id = this.id OR run.id < this.id AND run.session_id != this.session_id
    JOIN plans ON plans.run_id = run.id AND plans.defined IS NOT NULL
    JOIN benchmarks AS its ON its.id = run.benchmark_id
    WHERE this.id = ? AND its.name = mine.name AND its.kind = mine.kind
        AND coalesce(run.benchmark_place, '') = coalesce(this.benchmark_place, '')
    ORDER BY run.id DESC LIMIT 2
"""


@dataclass(frozen=True, slots=True)
class LostCases:
    """The cases that a benchmark has lost since it was run before.

    Args:
        cases: It has now.
        before: The run before.
        cases_before: It had then.
        gone: Codes of those that it has no longer, in the order of then.
    """

    cases: int
    before: int
    cases_before: int
    gone: tuple[str, ...]


def lost_cases(path: Path, run_id: int) -> LostCases | None:
    """Return the cases that the benchmark of a run has lost since the last session that ran it; None for none."""
    with reading(path) as conn:
        sizes = conn.execute(_SIZES, (run_id,)).fetchall()
    if len(sizes) < 2 or sizes[0][0] != run_id:
        return None
    (_, now), (last, before) = sizes
    codes, codes_before = unpacked(now), unpacked(before)
    if len(codes) >= len(codes_before):
        return None
    known = set(codes)
    gone = tuple(code for code in codes_before if code not in known)
    return LostCases(len(codes), last, len(codes_before), gone)
