"""The size of a benchmark when a run began: all that its files defined, so that what has vanished is told."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.benchmark_places import benchmarks_of_runs
from pytest_helmbench.store.plans import unpacked
from pytest_helmbench.store.reading import reading

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
