"""Response schemas: the wire form, strict mode, and rules that no reply could meet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.tree import ScenarioTree

FIT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "response": {"type": "string"},
        "category": {"type": "string"},
        "user": {
            "type": "object",
            "properties": {"age": {"type": "integer"}},
            "required": ["age"],
            "additionalProperties": False,
        },
        "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
        "maybe": {"anyOf": [{"type": "integer", "enum": [1, 2]}, {"type": "null"}]},
        "flag": {"type": "boolean"},
    },
    "required": ["response", "category", "user", "items", "maybe", "flag"],
    "additionalProperties": False,
    "$defs": {"item": {"type": "string", "enum": ["A", "B"]}},
}


def load(root: Path, schema: object, evaluation: str = "  expected: X\n") -> ScenarioTree:
    folder = root / "scenarios" / "P1-B1-S1"
    folder.mkdir(parents=True)
    (folder / "S1.md").write_text(f"---\nevaluation:\n{evaluation}---\n\nx\n")
    (folder / "S1.json").write_text(json.dumps(schema))
    (folder / "perturbations.md").write_text("# PT1\n\nx\n")
    return load_tree(root)


def wire(benchmark: ScenarioTree) -> Any:
    assert dict(benchmark.problems) == {}
    found = next(iter(benchmark.scenarios.values())).response_format
    assert found is not None
    return found


def messages(benchmark: ScenarioTree) -> list[str]:
    return [problem.message for items in benchmark.problems.values() for problem in items]


def test_a_bare_schema_is_wrapped_under_the_scenarios_code_in_strict_mode(tmp_path: Path) -> None:
    benchmark = load(tmp_path, FIT)
    found = wire(benchmark)
    assert found == {
        "type": "json_schema",
        "json_schema": {"name": "P1-B1-S1", "strict": True, "schema": FIT},
    }
    assert list(found["json_schema"]["schema"]["properties"]) == list(FIT["properties"])
    assert benchmark.warnings == ()


def test_an_envelope_is_kept_with_its_name_and_its_own_strict(tmp_path: Path) -> None:
    inner = {"name": "answer", "description": "d", "strict": False, "schema": {"type": "object"}}
    benchmark = load(tmp_path, {"type": "json_schema", "json_schema": inner})
    assert wire(benchmark)["json_schema"] == inner
    assert benchmark.warnings == ()


@pytest.mark.parametrize(
    ("part", "hint"),
    [
        ({"type": "object", "properties": {"x": {}}, "additionalProperties": False}, 'add "x" to "required"'),
        ({"type": "object", "properties": {}}, 'add "additionalProperties": false'),
        ({"type": ["object", "null"], "properties": {}}, 'add "additionalProperties": false'),
        ({"type": "array", "items": {"type": "object"}}, 'add "additionalProperties": false'),
        ({"anyOf": [{"type": "object"}, {"type": "null"}]}, 'add "additionalProperties": false'),
    ],
)
def test_a_schema_unfit_at_any_depth_is_sent_unstrict_with_a_warning(
    tmp_path: Path, part: dict[str, Any], hint: str
) -> None:
    schema = {**FIT, "properties": {**FIT["properties"], "user": part}}
    benchmark = load(tmp_path, {"type": "json_schema", "json_schema": {"strict": True, "schema": schema}})
    assert wire(benchmark)["json_schema"]["strict"] is False
    assert wire(benchmark)["json_schema"]["name"] == "P1-B1-S1"
    (warning,) = benchmark.warnings
    assert warning.path.name == "S1.json"
    assert warning.message.startswith(
        "the schema is sent with strict: false, for strict mode is not met at properties.user"
    )
    assert warning.hint == hint


def test_a_root_that_is_no_object_is_unfit(tmp_path: Path) -> None:
    benchmark = load(tmp_path, {"type": "string"})
    assert benchmark.warnings[0].hint == 'make the root an object: "type": "object"'


@pytest.mark.parametrize(
    "evaluation",
    [
        "  expected: anything\n",
        "  field: user.age\n  expected: 2\n",
        "  field: user.age\n  expected: 2.0\n",
        "  field: items.0\n  expected: B\n",
        "  field: maybe\n  expected: 2\n",
        "  field: flag\n  expected: True\n",
        "  type: list_includes\n  field: items\n  required: [B, A]\n",
    ],
)
def test_a_rule_that_some_reply_can_meet_is_healthy(tmp_path: Path, evaluation: str) -> None:
    assert messages(load(tmp_path, FIT, evaluation)) == []


@pytest.mark.parametrize(
    ("evaluation", "message"),
    [
        ("  field: user.aeg\n  expected: 2\n", "the response schema has no field 'aeg'"),
        ("  field: user.age\n  expected: 2.5\n", "no reply can hold '2.5' in 'user.age', which is integer"),
        (
            "  field: items.0\n  expected: C\n",
            "no reply can hold 'C' in 'items.0': the response schema does not list it",
        ),
        ("  field: flag\n  expected: perhaps\n", "no reply can hold 'perhaps' in 'flag', which is boolean"),
        ("  field: user\n  expected: x\n", "category_match cannot compare the field 'user', which is object"),
        (
            "  type: tag_threshold\n  field: user.age\n  expected: [A]\n",
            "tag_threshold needs a list, but the field 'user.age' is integer",
        ),
        (
            "  type: tag_threshold\n  field: items\n  expected: [A, a]\n",
            "no reply can hold 'a' in 'items': the response schema does not list it",
        ),
    ],
)
def test_a_rule_that_no_reply_can_meet_is_an_error(tmp_path: Path, evaluation: str, message: str) -> None:
    assert messages(load(tmp_path, FIT, evaluation)) == [message]


@pytest.mark.parametrize("schema", [{"type": "object"}, {}, {"$ref": "#/$defs/x", "$defs": {"x": {}}}])
def test_a_schema_without_properties_is_not_held_against_a_rule(
    tmp_path: Path, schema: dict[str, Any]
) -> None:
    assert messages(load(tmp_path, schema, "  field: any.thing\n  expected: X\n")) == []


def test_a_schema_nested_too_deeply_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "scenarios" / "P1-B1-S1"
    load(tmp_path, FIT)
    (folder / "S1.json").write_text('{"not":' * 100_000 + "{}" + "}" * 100_000)
    assert messages(load_tree(tmp_path)) == ["the response schema is nested too deeply to be read"]


_NOWHERE = "https://example.invalid/other.json"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"$dynamicRef": f"{_NOWHERE}#x"}, f"$dynamicRef '{_NOWHERE}#x' leads nowhere in this file"),
        ({"unevaluatedProperties": {"$ref": _NOWHERE}}, f"$ref '{_NOWHERE}' leads nowhere in this file"),
        (
            {"properties": {**FIT["properties"], "a": {"$id": _NOWHERE, "$ref": "#/$defs/item"}}},
            "$id inside of a schema: references in it would lead elsewhere",
        ),
    ],
)
def test_no_keyword_leads_out_of_the_file(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    found = messages(load(tmp_path, {**FIT, **changed}))
    assert [message for message in found if message == said] == [said], found
