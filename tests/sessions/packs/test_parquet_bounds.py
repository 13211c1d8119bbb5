"""Parquet files of a few kilobytes that hold far more than memory: refused before a row of them is an object."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_helmbench.benchmarks.packs.format.row_files import TableError, open_table

_OPEN = """
import re, sys
from pathlib import Path
from pytest_helmbench.benchmarks.packs.format.row_files import TableError, open_table
try:
    open_table(Path(sys.argv[1]))
except TableError as error:
    status = Path("/proc/self/status")
    peak = re.search("VmHWM:(.*)kB", status.read_text())[1] if status.exists() else "0"
    print(str(error).partition("\\n")[0], peak, sep="\\n")
"""
_LONG = "Lorem " * 200_000
_QA: Mapping[str, object] = {"prompt": "Which?", "target": "B"}


def _texts(value: object, rows: int) -> Callable[[Any], Any]:
    return lambda arrow: arrow.table(
        {**{key: [cell] * rows for key, cell in _QA.items()}, "passage": [value] * rows}
    )


def _pairs(arrow: Any) -> Any:
    kind = arrow.map_(arrow.string(), arrow.string())
    return _texts(None, 400)(arrow).set_column(2, "passage", arrow.array([[("a", _LONG)]] * 400, kind))


def _list(arrow: Any) -> Any:
    nothing = arrow.nulls(35_000_000, arrow.int8())
    return _texts(None, 1)(arrow).set_column(
        2, "passage", arrow.ListArray.from_arrays([0, len(nothing)], nothing)
    )


_BOMBS: Mapping[
    str, tuple[Callable[[Any], Any], int]
] = {  # a table, and how many times it stands in the file
    "texts": (_texts(_LONG, 300), 4),
    "one row": (_texts([_LONG] * 1_000, 1), 1),
    "lists": (_texts([_LONG] * 5, 60), 4),
    "objects": (_texts({"of": {"it": _LONG}}, 300), 4),
    "pairs": (_pairs, 3),
    "rows": (_texts("short", 500_000), 5),
    "one list": (_list, 5),
}


def _write(path: Path, table: Any, times: int, **options: Any) -> Path:
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    with parquet.ParquetWriter(path, table.schema, compression="zstd", **options) as writer:
        for _ in range(times):
            writer.write_table(table)
    return path


@pytest.mark.parametrize("bomb", _BOMBS)
def test_what_a_small_file_holds_is_weighed_before_it_is_read(tmp_path: Path, bomb: str) -> None:
    arrow = pytest.importorskip("pyarrow")
    table, times = _BOMBS[bomb]
    path = _write(tmp_path / "qa.parquet", table(arrow), times)
    assert path.stat().st_size < 400_000

    said, peak = subprocess.run(
        (sys.executable, "-c", _OPEN, path), capture_output=True, check=True, text=True
    ).stdout.splitlines()

    assert "at most 2,000,000 rows and 1,073,741,824 bytes are read" in said
    assert int(peak) < 300_000  # kilobytes


def test_pages_without_dictionaries_are_refused_by_what_their_metadata_says(tmp_path: Path) -> None:
    table = _texts(_LONG, 300)(pytest.importorskip("pyarrow"))
    path = _write(tmp_path / "qa.parquet", table, 4, use_dictionary=False)

    with pytest.raises(TableError, match=r"it holds 1,200 rows of 1,[0-9,]+ bytes; at most"):
        open_table(path)


def test_a_table_with_long_texts_is_read_as_it_stands(tmp_path: Path) -> None:
    table = _texts([_LONG, None, "short"], 20)(pytest.importorskip("pyarrow"))
    path = _write(tmp_path / "qa.parquet", table, 3)

    rows = [record.row for record in open_table(path).records]

    assert rows == [{**_QA, "passage": [_LONG, None, "short"]}] * 60


def test_a_damaged_page_is_named(tmp_path: Path) -> None:
    path = _write(tmp_path / "qa.parquet", _texts("short", 500)(pytest.importorskip("pyarrow")), 1)
    whole = path.read_bytes()
    path.write_bytes(whole[:8] + bytes(byte ^ 255 for byte in whole[8:60]) + whole[60:])

    with pytest.raises(TableError, match="this Parquet file cannot be read"):
        open_table(path)
