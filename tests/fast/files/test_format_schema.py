"""The JSON Schemas that ship with the package: valid, handed out fresh, told apart by name."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from pytest_helmbench.benchmarks.bench_packs.format.manifest import BENCH_PACK_SCHEMA
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.known_types import SCENARIO_SCHEMA
from pytest_helmbench.benchmarks.scenario_trees.format.side_files import (
    BENCHMARK,
    COMPONENT,
    CRITERIA,
    SCORING,
)
from pytest_helmbench.files.models_file import MODELS_SCHEMA
from pytest_helmbench.files.validation import FormatSchema

SCHEMAS = (BENCH_PACK_SCHEMA, BENCHMARK, COMPONENT, CRITERIA, MODELS_SCHEMA, SCENARIO_SCHEMA, SCORING)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_the_shipped_schemas_are_valid_and_handed_out_fresh(schema: FormatSchema) -> None:
    Draft202012Validator.check_schema(schema.document())
    schema.document().clear()
    assert schema.document()["title"]
