"""`helmbench schema`: the JSON Schema of a kind of file."""

from __future__ import annotations

import click

from pytest_helmbench.cli.output import (
    no_db_option,
    say_json,
)
from pytest_helmbench.files.schemas import SCHEMA_NAMES, schema
from pytest_helmbench.reports.formats import SCHEMAS, report_schema

__all__ = ["command"]


@click.command("schema")
@click.argument("name", type=click.Choice([*SCHEMA_NAMES, *SCHEMAS]), metavar="NAME")
@no_db_option
def command(name: str) -> None:
    """Print the JSON Schema of a kind of file, for editors and scripts."""
    say_json(schema(name) if name in SCHEMA_NAMES else report_schema(name))
