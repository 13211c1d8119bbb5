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
from pytest_helmbench.files.strict_json import a_mapping
from pytest_helmbench.files.validation import FormatSchema, shipped_schema

SCHEMAS = (BENCH_PACK_SCHEMA, BENCHMARK, COMPONENT, CRITERIA, MODELS_SCHEMA, SCENARIO_SCHEMA, SCORING)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_the_shipped_schemas_are_valid_and_handed_out_fresh(schema: FormatSchema) -> None:
    Draft202012Validator.check_schema(schema.document())
    schema.document().clear()
    assert schema.document()["title"]


def test_a_part_of_a_schema_is_found_by_its_name() -> None:
    assert COMPONENT.part("weighted") == a_mapping(COMPONENT.document()["$defs"])["weighted"]
    assert COMPONENT.part(None) == COMPONENT.document()
    with pytest.raises(KeyError):
        COMPONENT.part("nothing")


def test_a_schema_stands_beside_the_module_that_reads_its_format() -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        shipped_schema("nothing", "pytest_helmbench.files.models_file").document()
    assert MODELS_SCHEMA.document()["title"] == "models.yml"
    assert BENCHMARK.keys() == ("name", "version", "description")
