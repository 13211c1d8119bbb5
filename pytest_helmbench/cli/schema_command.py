"""`helmbench schema`: the JSON Schema of a kind of file."""

from __future__ import annotations

import click

from pytest_helmbench.benchmarks.bench_packs.format.manifest_schema import BENCH_PACK_SCHEMA
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.known_types import SCENARIO_SCHEMA
from pytest_helmbench.benchmarks.scenario_trees.format.tree_schemas import (
    BENCHMARK,
    COMPONENT,
    CRITERIA,
    SCORING,
)
from pytest_helmbench.cli.output import (
    no_db_option,
    say_json,
)
from pytest_helmbench.files.models_file import MODELS_SCHEMA
from pytest_helmbench.reports.formats import SCHEMAS, report_schema

__all__ = ["command"]

_SCHEMAS = {
    schema.name: schema
    for schema in (BENCH_PACK_SCHEMA, BENCHMARK, COMPONENT, CRITERIA, MODELS_SCHEMA, SCENARIO_SCHEMA, SCORING)
}


@click.command("schema")
@click.argument("name", type=click.Choice([*_SCHEMAS, *SCHEMAS]), metavar="NAME")
@no_db_option
def command(name: str) -> None:
    """Print the JSON Schema of a kind of file, for editors and scripts."""
    say_json(_SCHEMAS[name].document() if name in _SCHEMAS else report_schema(name))
