"""Runs as a Parquet table, for pandas, polars, DuckDB and the like."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from io import BytesIO
from types import UnionType
from typing import get_args, get_type_hints

from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.reports.exports.exported import MAIN, Exported, ExportError, ExportWish
from pytest_helmbench.reports.exports.flat_rows import column_names, flat_rows
from pytest_helmbench.results.recorded_results import RecordedRun
from pytest_helmbench.store.result_queries import EvaluationRow, ResultRow

__all__ = ["parquet_export"]

_TIMES = frozenset({"started_at", "completed_at"})


def parquet_export(runs: Sequence[RecordedRun], wish: ExportWish, /) -> Exported:
    """Return one row per evaluation, the columns of the CSV export with their types; unknown is null.

    Times are timestamps in UTC. A column of a single kind has the type of its values.

    Raises:
        ExportError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ExportError(
            "Parquet is written by pyarrow, which is not installed\n"
            "  hint: pip install 'pytest-helmbench[parquet]'"
        ) from error
    arrow = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
    names = column_names(runs, with_text=wish.with_text)
    rows = list(flat_rows(runs, with_text=wish.with_text))
    known = _known_types()
    columns = []
    for name in names:
        values = [_value(name, row.get(name)) for row in rows]
        found = known.get(name) or next((type(value) for value in values if value is not None), str)
        kind = pa.timestamp("us", tz="UTC") if name in _TIMES else arrow.get(found, pa.string())
        columns.append(pa.array(values, type=kind))
    stream = BytesIO()
    parquet.write_table(pa.Table.from_arrays(columns, names=list(names)), stream, compression="zstd")
    return {MAIN: stream.getvalue()}


def _known_types() -> dict[str, type]:
    hints = {"run": int, **get_type_hints(ResultRow), **get_type_hints(EvaluationRow)}
    return {name: found for name, hint in hints.items() if (found := _plain(hint)) is not None}


def _plain(hint: object) -> type | None:
    """Return the type of a column; None for what is no column's."""
    options = (
        [kind for kind in get_args(hint) if kind is not type(None)] if isinstance(hint, UnionType) else [hint]
    )
    found = options[0] if len(options) == 1 else None
    return found if isinstance(found, type) and found in (int, float, bool, str) else None


def _value(name: str, value: object) -> object:
    if isinstance(value, str):
        return datetime.fromisoformat(value) if name in _TIMES else scrub(value)
    return value
