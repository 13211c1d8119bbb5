"""Texts of others in cells: what a spreadsheet would run as a formula is text."""

from __future__ import annotations

import pytest

from pytest_helmbench.reports.exports import spreadsheet_cell


@pytest.mark.parametrize(
    "sign", ["=1+1", "+1", "-1+1", "@SUM(1)", "＝1+1", "＋1", "－1", "＠SUM(1)", "|calc"]
)
@pytest.mark.parametrize("before", ["", " ", "\n", "\t", "\u00a0", "\u200b", "\ufeff", "\u3000 \n"])
def test_a_formula_is_text_whatever_stands_before_it(sign: str, before: str) -> None:
    assert spreadsheet_cell(before + sign) == f"'{before}{sign}"


@pytest.mark.parametrize("value", ["a = 1", "", " ", "x\n=1", "1-2", 7, -1.5, None])
def test_all_else_stays(value: object) -> None:
    assert spreadsheet_cell(value) == value
