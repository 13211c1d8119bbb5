"""The JSON Schemas that ship with the package: valid, handed out fresh, distinguished by name."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from pytest_helmbench.benchmarks.bench_packs.format.manifest import BENCH_PACK_SCHEMA
from pytest_helmbench.benchmarks.packs.format.manifest import PACK_SCHEMA
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.known_types import SCENARIO_SCHEMA
from pytest_helmbench.benchmarks.scenario_trees.format.side_files import (
    BENCHMARK,
    COMPONENT,
    CRITERIA,
    SCORING,
)
from pytest_helmbench.files.anchors_file import ANCHORS_SCHEMA
from pytest_helmbench.files.models_file import MODELS_SCHEMA
from pytest_helmbench.files.validation import FormatSchema, validate
from pytest_helmbench.files.yaml_text import parse_yaml

SCHEMAS = (
    ANCHORS_SCHEMA,
    BENCH_PACK_SCHEMA,
    BENCHMARK,
    COMPONENT,
    CRITERIA,
    MODELS_SCHEMA,
    PACK_SCHEMA,
    SCENARIO_SCHEMA,
    SCORING,
)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_the_shipped_schemas_are_valid_and_handed_out_fresh(schema: FormatSchema) -> None:
    Draft202012Validator.check_schema(schema.document())
    schema.document().clear()
    assert schema.document()["title"]


@pytest.mark.parametrize(
    ("schema", "text", "told"),
    [
        (SCENARIO_SCHEMA, "evaluation: [type]", "evaluation is a list, not a mapping"),
        (SCENARIO_SCHEMA, "evaluation: {type: contans, field: a}", "evaluation.type is 'contans'"),
        (SCENARIO_SCHEMA, "evaluation: {type: contains, expeted: x}", "unknown key 'expeted' in evaluation"),
        (
            SCENARIO_SCHEMA,
            "evaluation: {type: sqe, path: 3}",
            "evaluation.path means nothing for the type sqe",
        ),
        (CRITERIA, "option: [A, B]\npass_values: [A]", "unknown key 'option'"),
        (SCORING, "floors: {P1-B1: high}", "floors has the key 'P1-B1'"),
        (SCORING, "weights: [1]\ncap: 3", "weights is a list, not a mapping; cap is 3, out of range"),
        (MODELS_SCHEMA, "marking_model: {ids: a/b}", "unknown key 'ids' in marking_model"),
        (MODELS_SCHEMA, "models: {id: 3}", "models is a mapping, not a list"),
        (MODELS_SCHEMA, "[{price: {input: 1}}]", "entry 1.price has no 'output'; entry 1 has no 'id'"),
        (PACK_SCHEMA, "id: a\nvershion: 1", "there is no 'version'; unknown key 'vershion'"),
        (ANCHORS_SCHEMA, "[{promt: a, reply: b, verdict: pass}]", "unknown key 'promt'"),
        (ANCHORS_SCHEMA, "[{prompt: a, reply: b, verdict: [pass]}]", "entry 1.verdict is a list, not text"),
    ],
)
def test_what_follows_from_a_wrong_value_or_key_is_no_second_problem(
    schema: FormatSchema, text: str, told: str
) -> None:
    assert "; ".join(fault.message for fault in validate(parse_yaml(text), schema)) == told
