"""The generated lists of `docs/options.md` agree with the options, the commands and the schema."""

from __future__ import annotations

import contextlib
import re
import sqlite3

import click
from options_page import PAGE, TABLES, page

from pytest_helmbench.cli.main import helmbench
from pytest_helmbench.options.declarations import OPTIONS
from pytest_helmbench.store.schema import create_tables


def test_the_page_is_made_of_its_sources() -> None:
    assert PAGE.read_text("utf-8") == page(), "write it anew: python tests/support/options_page.py"


def test_every_option_has_a_row_with_its_name_and_its_meaning() -> None:
    part = page().partition("<!-- made: options -->")[2].partition("<!-- /made -->")[0]
    rows = [row for row in part.splitlines() if row.startswith("* `")]

    assert len(rows) == len(OPTIONS) == len({option.key for option in OPTIONS})
    for option, row in zip(OPTIONS, rows, strict=True):
        assert f"`{option.flag if option.use != 'ini' else option.key}" in row
        assert option.text.replace("`", "") in re.sub(r"[`\\]", "", row)
        assert option.key == option.flag[2:].replace("-", "_")  # the page says so of all


def test_every_command_has_a_row() -> None:
    part = page().partition("<!-- made: commands -->")[2].partition("<!-- /made -->")[0]
    assert [
        name
        for name in helmbench.list_commands(click.Context(helmbench))
        if f"* `helmbench {name}" not in part
    ] == []


def test_every_table_has_a_row() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as conn:
        create_tables(conn)
        named = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        assert {name for (name,) in conn.execute(named) if not name.startswith("_")} == set(TABLES)
