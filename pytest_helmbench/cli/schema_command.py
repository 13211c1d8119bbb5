"""`helmbench schema`: the JSON Schema of a kind of file."""

from __future__ import annotations

import click

from pytest_helmbench.benchmarks.kind import SchemaOwner
from pytest_helmbench.benchmarks.registry import all_places, authoring_of
from pytest_helmbench.cli.output import no_db_option, say_json
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.files.anchors_file import ANCHORS_SCHEMA
from pytest_helmbench.files.models_file import MODELS_SCHEMA
from pytest_helmbench.reports.formats import SCHEMAS

__all__ = ["command"]

_OF_FILES = {schema.name: schema for schema in (ANCHORS_SCHEMA, MODELS_SCHEMA)}
_OF_KINDS = {name: places for places in all_places() for name in places.schemas}


@click.command("schema")
@click.argument("name", type=click.Choice(sorted({*_OF_KINDS, *_OF_FILES, *SCHEMAS})), metavar="NAME")
@no_db_option
def command(name: str) -> None:
    """Print the JSON Schema of a kind of file, for editors and scripts."""
    say_json(_schema(name))


def _schema(name: str) -> JsonObject:
    if name in _OF_FILES:
        return _OF_FILES[name].document()
    if name in SCHEMAS:
        return SCHEMAS[name]()
    owner = authoring_of(_OF_KINDS[name])
    if not isinstance(owner, SchemaOwner):
        raise TypeError(f"{_OF_KINDS[name].name}: it names a schema and has none")
    return owner.schema(name)
