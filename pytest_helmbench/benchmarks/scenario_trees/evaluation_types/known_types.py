"""The table of evaluation types, and the schema of frontmatter that follows."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.combined_types import (
    RULES_OF_TURNS,
    combined_types,
    conversation_type,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    OF_TURNS,
    EvaluationType,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_types import FIELD_TYPES, JSON_PATH
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.judged_types import RUBRIC, SQE
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.measured_types import MEASURED_TYPES
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.python_type import PYTHON
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.text_types import LENGTH, TEXT_TYPES
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.tool_calls import TOOL_CALLS
from pytest_helmbench.benchmarks.scenario_trees.format.side_files import PROMPT_FRONTMATTER
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.strict_json import a_mapping, a_text
from pytest_helmbench.files.validation import FormatSchema
from pytest_helmbench.files.yaml_text import Document

_TYPES_BY_NAME = {
    one.name: one
    for one in (
        *FIELD_TYPES,
        SQE,
        *TEXT_TYPES,
        JSON_PATH,
        LENGTH,
        *MEASURED_TYPES,
        TOOL_CALLS,
        RUBRIC,
        PYTHON,
    )
}
_TYPES_BY_NAME.update({one.name: one for one in combined_types(_TYPES_BY_NAME)})
EVALUATION_TYPES: Mapping[str, EvaluationType] = _TYPES_BY_NAME
"""By name, in the order in which messages list them. The first is meant where frontmatter names none."""
_TYPES = tuple(EVALUATION_TYPES.values())
SCENARIO_SCHEMA = FormatSchema("scenario", lambda: frontmatter_schema(_TYPES))
"""The schema of the frontmatter of `S1.md` and `MCSQE.md`."""


def evaluation_type_of(document: Document) -> EvaluationType | None:
    """Return the type that frontmatter asks for; None where it asks for none that is known."""
    evaluation = document.mapping().get("evaluation", {})
    if not isinstance(evaluation, dict):
        return None
    first, own = _TYPES[0], evaluation.keys() - OF_TURNS
    if "type" in evaluation:
        found = EVALUATION_TYPES.get(a_text(evaluation["type"]) or "")
    else:
        found = first if own <= {*first.keys, "polarity"} else None  # else a type may be meant
    if own == evaluation.keys():
        return found
    main = found if own or "category" in document.mapping() else None
    return conversation_type(main, EVALUATION_TYPES)


def frontmatter_schema(types: tuple[EvaluationType, ...]) -> dict[str, JsonValue]:
    """Return the JSON Schema of a prompt file's frontmatter.

    Args:
        types: The evaluation types that it may ask for; the first where it names none.
    """
    whole = PROMPT_FRONTMATTER.document()
    properties = dict(a_mapping(whole["properties"]))
    keys = {key: dict(schema) for kind in types for key, schema in kind.keys.items()}
    of_rule: dict[str, JsonValue] = {
        "type": {"enum": [kind.name for kind in types]},
        **keys,
        "polarity": {"enum": ["by_severity"]},
    }
    rule: dict[str, JsonValue] = {
        **a_mapping(properties["evaluation"]),
        "properties": of_rule,
        "additionalProperties": False,
        "allOf": [_branch(kind, keys, named=kind is not types[0]) for kind in types],
    }
    properties["evaluation"] = {**rule, "properties": {**of_rule, **RULES_OF_TURNS}}
    return {**whole, "properties": properties, "$defs": {"rule": {**rule, "required": ["type"]}}}


def _branch(kind: EvaluationType, keys: Mapping[str, JsonObject], *, named: bool) -> JsonValue:
    """Return what holds for one type: its keys, and none of the others', whose titles and descriptions say why.

    Args:
        named: Whether it must be named to be meant.
    """
    condition: dict[str, JsonValue] = {"properties": {"type": {"const": kind.name}}}
    if named:
        condition["required"] = ["type"]
    asked: dict[str, JsonValue] = {}
    idle = {
        "title": f"means nothing for the type {kind.name}",
        "description": "remove the key, or change the type",
    }
    for key in keys:
        if key in kind.narrowed:
            asked[key] = dict(kind.narrowed[key])
        elif key not in kind.keys:
            asked[key] = {"not": {}, **idle}
    then: dict[str, JsonValue] = {"required": list(kind.needed)} if kind.needed else {}
    return {"if": condition, "then": {**then, "properties": asked}}
