"""`helmbench query`: SQL over a results file that only reads it, and sees prompts and replies only on request."""

from __future__ import annotations

import csv
import re
import sqlite3
from base64 import b64encode
from collections.abc import Mapping, Sequence
from io import StringIO
from math import isfinite
from pathlib import Path

import click

from pytest_helmbench.cli.lookup import database_of
from pytest_helmbench.cli.output import CommandError, db_option, say, say_json, say_whole
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.reports.exports import spreadsheet_cell
from pytest_helmbench.reports.tables import table
from pytest_helmbench.store.read.connection import reading
from pytest_helmbench.store.read.costs import COSTS
from pytest_helmbench.store.read.hidden_texts import UNASKED_JOIN, allow_reading

_DENIED = re.compile("not authorized|authorization denied|prohibited|vtable constructor")
_NO_FILTER = {"run_id": None, "model": None}


@click.command("query")
@click.argument("sql", required=False)
@click.option(
    "--table", "form", flag_value="table", default=True, help="Print aligned columns (the default)."
)
@click.option("--csv", "form", flag_value="csv", help="Print CSV with a line of names.")
@click.option("--json", "form", flag_value="json", help="Print a list of objects.")
@click.option(
    "--with-text",
    type=click.Choice(["none", "all"]),
    default="none",
    help="Whether prompts, replies and judge's words are read, or NULL (default: none).",
)
@db_option
def query_command(sql: str | None, form: str, with_text: str, db: Path | None) -> None:
    """Print the rows that SQL selects from the results database.

    SQL is one SELECT of SQLite over the tables and views that `docs/options.md` lists. Nothing can be written. Columns
    with texts are NULL without --with-text=all. Without SQL the command prints calls, tokens and costs by run,
    behaviour and purpose.
    """
    names, rows = _selected(database_of(db), sql, with_text=with_text == "all")
    if form == "json":
        say_json([dict(zip(names, map(_json_value, row), strict=True)) for row in rows])
    elif form == "csv":
        stream = StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([names, *(map(spreadsheet_cell, map(_json_value, row)) for row in rows)])
        say_whole(stream.getvalue().removesuffix("\n"))
    else:
        left = {name for place, name in enumerate(names) if any(isinstance(row[place], str) for row in rows)}
        cells = [["" if cell is None else str(_json_value(cell)) for cell in row] for row in rows]
        say(*table(list(map(scrub, names)), cells, left=left))


def _json_value(cell: object) -> object:
    """Return a value in a type of JSON: bytes as text, else as sqlite-utils writes them, and only finite numbers."""
    if isinstance(cell, bytes):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            return {"$base64": True, "encoded": b64encode(cell).decode()}
    return None if isinstance(cell, float) and not isfinite(cell) else cell


def _selected(path: Path, sql: str | None, *, with_text: bool) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the names of the columns that a query selects, and its rows.

    Raises:
        CommandError: It writes, is not SQL, or does not end.
        StoreError: The file is missing or not a results file.
    """
    from sqlite_utils import Database  # a third of a second, which the list of commands need not take

    with reading(path) as conn:
        database = Database(conn, recursive_triggers=False, execute_plugins=False)
        views = [view.name for view in database.views if with_text or not UNASKED_JOIN.search(view.schema)]
        columns = {name: list(database[name].columns_dict) for name in (*database.table_names(), *views)}
        if sql is not None:  # the default query is ours
            if not with_text and UNASKED_JOIN.search(sql):
                hint = "join with ON, or add --with-text=all"
                raise CommandError(f"USING and NATURAL cannot be used while texts are hidden\n  hint: {hint}")
            allow_reading(conn, columns, with_text=with_text)
        try:
            cursor = database.execute(COSTS if sql is None else sql, _NO_FILTER if sql is None else None)
            rows = cursor.fetchall()
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise CommandError(_refusal(str(error), sql or "", columns)) from error
    if cursor.description is None:
        raise CommandError("the SQL selects nothing\n  hint: begin with SELECT or WITH")
    names = [name for name, *_ in cursor.description]
    earlier = [names[:place].count(name) for place, name in enumerate(names)]
    # `id`, `id_2`, as sqlite-utils has it
    return [f"{name}_{n + 1}" if n else name for name, n in zip(names, earlier, strict=True)], rows


def _refusal(problem: str, sql: str, columns: Mapping[str, Sequence[str]]) -> str:
    """Return in one sentence why a query cannot be answered, and a hint."""
    if _DENIED.search(problem):
        return "query only reads tables and views\n  hint: give one SELECT, without PRAGMA and ATTACH"
    if "one statement" in problem:
        return "the SQL is more than one statement\n  hint: give one SELECT"
    if problem == "interrupted":
        return "the query takes too long\n  hint: add a WHERE, for example on run_id"
    words = set(re.findall(r"\w+", sql))
    named = [f"{name} has {', '.join(columns[name])}" for name in columns if name in words]
    if named and "no such column" in problem:
        return f"{problem}\n  hint: {'; '.join(named)}"
    return f"{problem}\n  hint: tables and views: {', '.join(columns)}"
