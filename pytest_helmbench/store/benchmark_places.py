"""The benchmark of each run: the same by its name, its kind, and where it lies; and what it has lost since."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.plans import unpacked
from pytest_helmbench.store.reading import reading

_HOME = "~/"
_RUNS = """
    SELECT runs.id, benchmarks.name, benchmarks.kind, runs.benchmark_place
    FROM evaluation_runs AS runs JOIN benchmarks ON benchmarks.id = runs.benchmark_id
"""


@dataclass(frozen=True, slots=True)
class BenchmarkKey:
    """What names a benchmark in a results file.

    Args:
        name: Of the benchmark.
        kind: Of the benchmark; empty where nobody knows.
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
    """Return where a benchmark lies, so that a moved checkout says the same and nobody's name is in it.

    Relative to the folder of the results file; from the home folder (`~/`) where only that, or what lies above it,
    has both of them in it; and absolute where they have nothing in common.

    Args:
        root: Folder of the benchmark.
        db: The results file.
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
    """Return what names a benchmark of a results file in another one; the same where it does not lie here."""
    if key.place is None or db.absolute().parent == other.absolute().parent:
        return key
    folder = folder_of(key.place, db)
    return BenchmarkKey(key.name, key.kind, place_of(folder, other)) if _is_there(folder) else key


def names_of(keys: Iterable[BenchmarkKey]) -> Mapping[BenchmarkKey, str]:
    """Return what people call some benchmarks: by name, and by place where several have that."""
    found = dict.fromkeys(keys)
    often = Counter(key.name for key in found)
    return {key: key.name if often[key.name] == 1 else key.text for key in found}


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


def benchmarks_of_runs(
    conn: sqlite3.Connection, db: Path, new: Iterable[BenchmarkKey] = ()
) -> Mapping[int, BenchmarkKey]:
    """Return the benchmark of each run of a results file: runs of the same one have the same.

    It is the same where name, kind and place are. A benchmark that was moved takes its runs along: those of a folder
    that is no more belong to the only one of that name and kind that is there and was first run later.

    Args:
        conn: To the file.
        db: The file.
        new: Benchmarks that are about to be run.
    """
    found = {
        run_id: BenchmarkKey(name, kind, place or None) for run_id, name, kind, place in conn.execute(_RUNS)
    }
    known: defaultdict[BenchmarkKey, list[int]] = defaultdict(list)
    for run_id, key in found.items():
        known[key].append(run_id)
    for key in new:
        known[key].append(max(found, default=0) + 1)
    alike: defaultdict[tuple[str, str], list[BenchmarkKey]] = defaultdict(list)
    for key in known:
        alike[key.name, key.kind].append(key)
    moved: dict[BenchmarkKey, BenchmarkKey] = {}
    for keys in alike.values():
        moved |= _moved(keys, known, db) if len(keys) > 1 else {}
    return {run_id: moved.get(key, key) for run_id, key in found.items()}


def _moved(
    keys: Iterable[BenchmarkKey], runs: Mapping[BenchmarkKey, list[int]], db: Path
) -> Mapping[BenchmarkKey, BenchmarkKey]:
    """Return what became of benchmarks of one name and kind that are no more where they were."""
    placed = {key: _is_there(folder_of(key.place, db)) for key in keys if key.place is not None}
    moved = {}
    for key in (key for key, is_there in placed.items() if not is_there):
        heirs = [
            other for other, is_there in placed.items() if is_there and min(runs[other]) > max(runs[key])
        ]
        if len(heirs) == 1:
            moved[key] = heirs[0]
    return moved


_SIZE = "SELECT codes FROM benchmark_sizes WHERE run_id = ?"
_EARLIER = """
    SELECT run.id FROM benchmark_sizes JOIN evaluation_runs AS run ON run.id = benchmark_sizes.run_id
    JOIN evaluation_runs AS this ON this.id = ?
    WHERE run.id < this.id AND run.session_id != this.session_id ORDER BY run.id DESC
"""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A benchmark that has fewer cases than when it was run before.

    Args:
        cases: It has now.
        before: The run before.
        cases_before: It had then.
        gone: Codes of those that are no more, in the order of then.
    """

    cases: int
    before: int
    cases_before: int
    gone: tuple[str, ...]


def shrunk_since(path: Path, run_id: int) -> Shrunk | None:
    """Return what the benchmark of a run has lost since the last session that ran it; None for nothing.

    Raises:
        StoreError: The file is no results file.
    """
    with reading(path) as conn:
        now = conn.execute(_SIZE, (run_id,)).fetchone()
        keys = benchmarks_of_runs(conn, path)
        earlier = conn.execute(_EARLIER, (run_id,))
        last = next((found for (found,) in earlier if keys[found] == keys[run_id]), None)
        if now is None or last is None:
            return None
        (before,) = conn.execute(_SIZE, (last,)).fetchone()
    codes, codes_before = unpacked(now[0]), unpacked(before)
    if len(codes) >= len(codes_before):
        return None
    known = set(codes)
    gone = tuple(code for code in codes_before if code not in known)
    return Shrunk(len(codes), last, len(codes_before), gone)
