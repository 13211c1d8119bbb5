"""`docs/options.md` says what the declaration of the options says."""

from __future__ import annotations

import re

from options_page import PAGE, page

from pytest_helmbench.options.declarations import OPTIONS


def test_the_page_is_made_of_the_declaration() -> None:
    assert PAGE.read_text("utf-8") == page(), "write it anew: python tests/support/options_page.py"


def test_every_option_has_a_row_with_its_flag_its_key_and_what_it_is_for() -> None:
    rows = [row for row in PAGE.read_text("utf-8").splitlines() if row.startswith("| `")]

    assert len(rows) == len(OPTIONS) == len({option.key for option in OPTIONS})
    for option, row in zip(OPTIONS, rows, strict=True):
        assert f"`{option.key}`" in row
        assert option.text.replace("`", "") in re.sub(r"[`\\]", "", row)
        assert (f"`{option.flag}" in row) is (option.use != "ini")
