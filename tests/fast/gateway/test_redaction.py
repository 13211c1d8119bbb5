"""Keys that a server repeats are cut out of its answers; all else stays as it came."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest

from pytest_helmbench.gateway.client import KeyRedactor

_KEY = 'sk-a/b+c=D"e\\f-0123456789'


@pytest.mark.parametrize(
    "written",
    [
        _KEY,
        json.dumps(_KEY)[1:-1],
        json.dumps(_KEY)[1:-1].replace("/", "\\/"),
        "".join(f"\\u{ord(one):04x}" for one in _KEY),
        json.dumps("".join(f"\\u{ord(one):04X}" for one in _KEY))[1:-1],
        quote(_KEY),
        quote(_KEY, safe=""),
    ],
)
def test_a_key_is_cut_out_however_it_is_escaped(written: str) -> None:
    cut = KeyRedactor((_KEY,)).redact(f'{{"a": "before {written} behind"}}'.encode())
    assert cut == b'{"a": "before [key] behind"}'


@pytest.mark.parametrize("before", ["", "k", "ke", "Bearer "])
@pytest.mark.parametrize("coded", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_key_in_base64_leaves_three_characters_of_it_at_most(
    before: str, coded: Callable[[bytes], bytes]
) -> None:
    key = "sk-or-v1-0123456789abcdef"
    cut = KeyRedactor((key,)).redact(coded(f"{before}{key}!".encode()))
    assert b"[key]" in cut
    assert len(cut) <= len("[key]") + 4 * (len(before) // 3 + 2)


@pytest.mark.parametrize("text", ["sk-a/b", "EMPTY", "100 % of \\u00e4", "\0\0\0", json.dumps({"a": "\n"})])
def test_all_else_stays_as_it_came(text: str) -> None:
    assert KeyRedactor((_KEY, "EMPTY")).redact(text.encode()) == text.encode()
    assert KeyRedactor(()).redact(text.encode()) == text.encode()
