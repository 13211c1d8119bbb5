"""The table `comparisons`: how runs stood to their baselines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Cell
from pytest_helmbench.store.database_file import writing
from pytest_helmbench.store.read.connection import reading
from pytest_helmbench.store.table_rows import (
    as_json,
    columns_of,
    from_row,
    insert_into,
    named_rows,
    safe_text,
)


def earlier_detectable(path: Path, benchmark_hash: str) -> tuple[float, ...]:
    """Return what earlier comparisons of whole runs of a content could have found."""
    with reading(path) as conn:
        return tuple(found for (found,) in conn.execute(_DETECTABLE, (benchmark_hash,)))


_LISTS = ("newly_failing", "newly_passing", "gone", "behaviours")
_DETECTABLE = """
    SELECT comparisons.detectable FROM comparisons
    JOIN evaluation_runs ON evaluation_runs.id = comparisons.run_id
    WHERE comparisons.scope = '' AND comparisons.detectable IS NOT NULL AND comparisons.common >= 0.9
        AND evaluation_runs.benchmark_hash = ?
    ORDER BY comparisons.id
"""


@dataclass(frozen=True, slots=True)
class StoredComparison:
    """One row of `comparisons`; lists as the JSON form of a comparison has them."""

    model: str
    baseline_run: str | None
    scope: str
    score: float | None
    baseline_score: float | None
    change: float | None
    low: float | None
    high: float | None
    p: float | None
    p_two_sided: float | None
    max_drop: float | None
    unit: str | None
    units: int | None
    changed: int | None
    down: int | None
    up: int | None
    least_p: float | None
    cases_compared: int
    cases_left_out: int
    cases_not_selected: int
    newly_failing: tuple[Mapping[str, JsonValue], ...]
    newly_passing: tuple[Mapping[str, JsonValue], ...]
    gone: tuple[str, ...]
    common: float | None
    detectable: float | None
    verdict: str
    reason: str
    behaviours: tuple[Mapping[str, JsonValue], ...]


def stored_comparisons(path: Path, run_id: int) -> tuple[StoredComparison, ...]:
    """Return how the session of a run has held it, and named parts of it, against its baseline; empty without one."""
    with reading(path) as conn:
        found = conn.execute("SELECT * FROM comparisons WHERE run_id = ? ORDER BY id", (run_id,))
        return tuple(
            from_row(StoredComparison, row, **{name: tuple(json.loads(str(row[name]))) for name in _LISTS})
            for row in named_rows(found)
        )


def write_comparisons(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write comparisons; those of the same runs that a session has made before (a resumed one) are replaced.

    Args:
        path: Results file, which this process does not write.
        rows: By column; lists become JSON.

    Raises:
        StoreError: They cannot be written.
    """
    with writing(path) as conn:
        columns = columns_of(conn, "comparisons")
        for run_id in {row["run_id"] for row in rows}:
            conn.execute("DELETE FROM comparisons WHERE run_id = ?", (run_id,))
        for row in rows:
            cells = {name: _cell(value) for name, value in row.items() if name in columns}
            conn.execute(insert_into("comparisons", cells), cells)


def _cell(value: object) -> Cell:
    if isinstance(value, str):
        return safe_text(value)
    if value is None or isinstance(value, int | float):
        return value
    return as_json(value)
