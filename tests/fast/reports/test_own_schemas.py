"""The schemas of our own outputs."""

from __future__ import annotations

from pytest_helmbench.reports.exports import RESULT_FIELDS
from pytest_helmbench.reports.json_report import own_schema


def test_the_schema_of_an_export_has_every_column_of_a_result() -> None:
    definitions = own_schema("export")["$defs"]
    assert isinstance(definitions, dict)
    result = definitions["result"]
    assert isinstance(result, dict)
    assert isinstance(result["properties"], dict)
    assert set(RESULT_FIELDS) <= result["properties"].keys()
