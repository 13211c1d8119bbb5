"""Rows of SQL tables by the names of their columns: written from values, read back into values.

No statement here lists columns by hand: a value is written to, or read from, those columns of `schema` that its fields
are named like. Values that SQLite cannot hold are replaced.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from functools import cache
from math import isfinite
from typing import Any, ClassVar, Protocol, TypeVar

from pytest_helmbench.core.outcome import Cell
from pytest_helmbench.core.scrub import without_tokens


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


_Value = TypeVar("_Value", bound=_Dataclass)
_LARGEST = 2**63 - 1


class SqlTable:
    """A table as it stands in one file."""

    def __init__(self, conn: sqlite3.Connection, name: str) -> None:
        self.name = name
        self._conn = conn
        self.columns = columns_of(conn, name)
        self._shared: dict[type, tuple[str, ...]] = {}

    def cells(self, *values: _Dataclass) -> dict[str, Cell]:
        """Return the fields of dataclasses that are named like a column and fit into one; later values win.

        Texts become safe, members of an enumeration their values, numbers that fit no column NULL.
        """
        found: dict[str, Cell] = {}
        for value in values:
            for name in self._shared.get(type(value)) or self._names(value):
                part = getattr(value, name)
                if part is None or isinstance(part, (float, bytes)):
                    found[name] = part
                elif isinstance(part, str):
                    found[name] = safe_text(part.value if isinstance(part, Enum) else part)
                elif isinstance(part, int):
                    found[name] = whole_number(int(part))
        return found

    def insert(self, rows: Sequence[Mapping[str, Cell]]) -> None:
        """Insert rows by name, all with the same columns."""
        if rows:
            self._conn.executemany(insert_into(self.name, rows[0]), rows)

    def replace(self, rows: Sequence[Mapping[str, Cell]]) -> None:
        """Give the rows of their `id` these cells, all with the same columns."""
        if rows:
            self._conn.executemany(update_of(self.name, rows[0]), rows)

    def _names(self, value: _Dataclass) -> tuple[str, ...]:
        names = tuple(name for name in value.__dataclass_fields__ if name in self.columns)
        self._shared[type(value)] = names
        return names


def columns_of(conn: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """Return the columns of a table; empty for no such table."""
    return tuple(name for (name,) in conn.execute("SELECT name FROM pragma_table_info(?)", (table,)))


def statement_tables(conn: sqlite3.Connection) -> list[str]:
    """Return the tables of kinds that keep one row per result."""
    query = (
        "SELECT tables.name FROM main.sqlite_master AS tables JOIN pragma_table_info(tables.name) AS part"
        " WHERE tables.type = 'table' AND part.name = 'result_id' AND part.pk"
    )
    return [name for (name,) in conn.execute(query)]


def insert_into(table: str, columns: Collection[str], how: str = "INSERT") -> str:
    """Return the statement that inserts a row with these columns, for a mapping by name."""
    return _insert(table, tuple(columns), how)


@cache
def _insert(table: str, columns: tuple[str, ...], how: str) -> str:
    places = ", ".join(f":{name}" for name in columns)
    return f"{how} INTO {table} ({', '.join(columns)}) VALUES ({places})"


def update_of(table: str, columns: Collection[str]) -> str:
    """Return the statement that gives the row of an `id` these columns, for a mapping by name."""
    changes = ", ".join(f"{name} = :{name}" for name in columns if name != "id")
    return f"UPDATE {table} SET {changes} WHERE id = :id"


def named_rows(cursor: sqlite3.Cursor) -> Iterator[dict[str, Cell]]:
    """Yield rows by the names that their statement gives to its columns."""
    names = [name for name, *_ in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))


def from_row(value_type: type[_Value], row: Mapping[str, Any], **given: Any) -> _Value:
    """Return a dataclass of given fields, and of the columns of the same names; a missing one leaves its default."""
    return value_type(
        **{name: row[name] for name in value_type.__dataclass_fields__ if name in row and name not in given},
        **given,
    )


def safe_text(text: str) -> str:
    """Return text without lone surrogates and NUL: the first do not encode, the second cuts SQL strings."""
    whole = text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
    return whole.replace("\0", "\ufffd")


def whole_number(value: int | None) -> int | None:
    """Return the number, or None (unknown) where a provider sent one that fits no column."""
    return value if value is None or -_LARGEST <= value <= _LARGEST else None


def as_json(value: object) -> str:
    """Return compact JSON in ASCII (so that no surrogate gets in); dataclasses become objects.

    Raises:
        TypeError: Something in it is not a JSON type.
    """
    return json.dumps(value, default=_plain, separators=(",", ":"))


def foreign_text(text: str) -> str | None:
    """Return text of a pack without the relay's tokens; NULL for nothing.

    The tokens are of no use once their item has ended, but they look like keys.
    """
    return without_tokens(safe_text(text)) if text else None


def foreign_json(value: object) -> str:
    """Return a value of a pack as JSON that SQLite can read, without the relay's tokens.

    NaN and infinity become null; a value that is nested too deeply to be written is replaced by a note.
    """
    try:
        try:
            text = json.dumps(value, default=_plain, separators=(",", ":"), allow_nan=False)
        except ValueError:
            text = as_json(_finite(value))
    except RecursionError:
        text = as_json({"lost": "nested too deeply to be kept"})
    return without_tokens(text)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is not a JSON value")
