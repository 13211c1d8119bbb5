"""Keys that a server repeats are cut out of its answers, in every encoding; all else stays as it came."""

from __future__ import annotations

import json
import time
from urllib.parse import quote

import pytest

from pytest_helmbench.gateway.echoes import Echoes

_KEY = 'sk-a/b+c=D"e\\f-0123456789'


def _all_escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


@pytest.mark.parametrize(
    "written",
    [
        _KEY,
        json.dumps(_KEY)[1:-1],
        json.dumps(json.dumps(_KEY)[1:-1])[1:-1],
        _KEY.replace("/", "\\/"),
        _KEY.replace("+", "\\u002b"),
        _KEY.replace("+", "\\u002B").replace("/", "\\u002f"),
        _all_escaped(_KEY),
        json.dumps(_all_escaped(_KEY))[1:-1],
        quote(_KEY),
        quote(_KEY, safe="").replace("%2F", "%2f").replace("%2B", "%2b"),
        quote(quote(_KEY, safe=""), safe=""),
        "".join(f"%{ord(character):02X}" for character in _KEY),
        json.dumps("\0".join(_KEY))[1:-1],
    ],
)
def test_a_key_is_cut_out_however_it_is_escaped(written: str) -> None:
    cut = Echoes((_KEY,)).without(f'{{"a": "before {written} behind"}}'.encode())
    assert b"23456789" not in cut.replace(b"\\u0000", b"").replace(b"\0", b"")
    assert cut.startswith(b'{"a": "before [key]')
    assert cut.endswith(b' behind"}')


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-16", "utf-32"])
@pytest.mark.parametrize("key", [_KEY, _all_escaped(_KEY)], ids=["plain", "escaped"])
def test_a_key_is_cut_out_of_wide_encodings_which_can_be_decoded_still(encoding: str, key: str) -> None:
    cut = Echoes((_KEY,)).without(f'{{"ä": "{key}"}}'.encode(encoding)).decode(encoding)
    assert "123456789" not in cut
    if key == _KEY:
        assert cut == '{"ä": "[key]"}'


@pytest.mark.parametrize("text", ["sk-a/b", "EMPTY", "100 % of \\u00e4", "\0\0\0", json.dumps({"a": "\n"})])
def test_all_else_stays_as_it_came(text: str) -> None:
    assert Echoes((_KEY, "EMPTY")).without(text.encode()) == text.encode()
    assert Echoes(()).without(text.encode()) == text.encode()


@pytest.mark.parametrize("piece", [b"\\", b"%25", b"sk-a", b"\\u0000", b"s\0\0\0", b"plain words\\n"])
def test_no_answer_takes_long(piece: bytes) -> None:
    received = piece * (2**20 // len(piece))
    started = time.process_time()
    assert Echoes((_KEY,)).without(received) == received
    assert time.process_time() - started < 2.0
