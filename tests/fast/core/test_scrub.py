"""Foreign text made fit for people."""

from __future__ import annotations

import pytest
from growth import grows_in_proportion

from pytest_helmbench.core.scrub import excerpt, scrub


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m\x07", r"\x1b[31mred\x1b[0m\x07"),
        ("a\x9b2Jb\x7f", r"a\x9b2Jb\x7f"),
        ("over\rwritten", r"over\x0dwritten"),
        ("one\r\ntwo", "one\ntwo"),
        ("abc\u202edcba\u2066x\u2069", r"abc\u202edcba\u2066x\u2069"),
        ("half \ud83d a pair, NUL \x00", "half \ufffd a pair, NUL \ufffd"),
        ("not XML \uffff", r"not XML \uffff"),
    ],
)
def test_what_a_terminal_or_file_could_choke_on_becomes_visible(text: str, shown: str) -> None:
    assert scrub(text) == shown
    scrub(text).encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("  short \n", "short"),
        ("x" * 10, "x" * 10),
        ("x" * 11, "x" * 9 + "…"),
        ("\x1b\x1b\x1b", r"\x1b\x1b\x"[:9] + "…"),
        ("\r\n" * 9 + "late", "late"),
    ],
)
def test_an_excerpt_keeps_to_its_limit(text: str, shown: str) -> None:
    assert excerpt(text, 10) == shown


def test_an_excerpt_of_megabytes_is_quick() -> None:
    assert len(excerpt("\x1b[31m" * 1_000_000)) == 300
    assert grows_in_proportion(excerpt, lambda length: "\x1b[31m" * length, 4_000_000)
