"""The schemas of our own outputs; what a file does not say of a column of an export follows from its type."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_helmbench.reports.exports import export_schema
from pytest_helmbench.reports.json_report import own_schema, part_of, schema_of


def test_what_the_file_says_of_a_column_stays() -> None:
    place = ("$defs", "result", "properties")
    said, whole = part_of(own_schema("export"), *place), part_of(export_schema(), *place)

    assert {name: whole[name] for name in said} == said


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (int | None, {"type": ["integer", "null"]}),
        (float | None, {"type": ["number", "null"]}),
    ],
)
def test_the_type_of_a_column_is_its_schema(kind: object, schema: Any) -> None:
    assert schema_of(kind) == schema


def test_a_part_that_is_not_an_object_is_named() -> None:
    with pytest.raises(TypeError, match="title is not an object"):
        part_of({"title": "a"}, "title")
