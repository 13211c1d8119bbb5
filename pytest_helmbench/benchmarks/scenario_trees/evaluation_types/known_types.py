"""The table of evaluation types, and the schema of frontmatter that follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import EvaluationType
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_types import (
    CATEGORY_MATCH,
    LIST_INCLUDES,
    TAG_THRESHOLD,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.judged_types import RUBRIC, SQE
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_types import (
    CONTAINS,
    COST_BELOW,
    EQUALS,
    JSON_PATH,
    LATENCY_BELOW,
    LENGTH,
    NOT_CONTAINS,
    REGEX,
    combined,
)
from pytest_helmbench.benchmarks.scenario_trees.format.side_files import PROMPT_FRONTMATTER
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.strict_json import a_mapping, a_text
from pytest_helmbench.files.validation import FormatSchema
from pytest_helmbench.files.yaml_text import Document


def _known(name: str) -> EvaluationType | None:
    return EVALUATION_TYPES.get(name)


_TYPES = (
    CATEGORY_MATCH,
    LIST_INCLUDES,
    TAG_THRESHOLD,
    SQE,
    CONTAINS,
    NOT_CONTAINS,
    EQUALS,
    REGEX,
    JSON_PATH,
    LENGTH,
    LATENCY_BELOW,
    COST_BELOW,
    RUBRIC,
    combined("all", _known),
    combined("any", _known),
)

EVALUATION_TYPES: Mapping[str, EvaluationType] = MappingProxyType({kind.name: kind for kind in _TYPES})
"""By name, in the order in which they are told. The first is meant where frontmatter names none."""


def evaluation_type_of(document: Document) -> EvaluationType | None:
    """Return the type that frontmatter asks for; None where it asks for none that is known."""
    evaluation = document.mapping().get("evaluation", {})
    if not isinstance(evaluation, dict):
        return None
    if "type" in evaluation:
        return _known(a_text(evaluation["type"]) or "")
    first = _TYPES[0]
    return first if evaluation.keys() <= {*first.keys, "polarity"} else None  # else a type may be meant


def frontmatter_schema(types: tuple[EvaluationType, ...]) -> dict[str, JsonValue]:
    """Return the JSON Schema of a prompt file's frontmatter.

    Args:
        types: The evaluation types that it may ask for; the first where it names none.
    """
    whole = PROMPT_FRONTMATTER.document()
    properties = dict(a_mapping(whole["properties"]))
    keys = {key: dict(schema) for kind in types for key, schema in kind.keys.items()}
    properties["evaluation"] = {
        **a_mapping(properties["evaluation"]),
        "properties": {
            "type": {"enum": [kind.name for kind in types]},
            **keys,
            "polarity": {"enum": ["by_severity"]},
        },
        "additionalProperties": False,
        "allOf": [_branch(kind, keys, named=kind is not types[0]) for kind in types],
    }
    return {**whole, "properties": properties}


def _branch(kind: EvaluationType, keys: Mapping[str, JsonObject], *, named: bool) -> JsonValue:
    """Return what holds for one type: its keys, and none of the others'.

    Args:
        kind: The type.
        keys: Those of all types.
        named: Whether it must be named to be meant.
    """
    condition: dict[str, JsonValue] = {"properties": {"type": {"const": kind.name}}}
    if named:
        condition["required"] = ["type"]
    asked: dict[str, JsonValue] = {}
    for key in keys:
        if key in kind.narrowed:
            asked[key] = dict(kind.narrowed[key])
        elif key not in kind.keys:
            asked[key] = {"not": {}}
    then: dict[str, JsonValue] = {"required": list(kind.needed)} if kind.needed else {}
    return {"if": condition, "then": {**then, "properties": asked}}


SCENARIO_SCHEMA = FormatSchema("scenario", lambda: frontmatter_schema(_TYPES))
"""Of the frontmatter of `S1.md` and `MCSQE.md`."""
