"""Keys that a server repeats are cut out of its answers, in every encoding; all else stays as it came."""

from __future__ import annotations

import base64
import html
import json
import time
from collections.abc import Callable
from urllib.parse import quote

import pytest

from pytest_helmbench.gateway.echoes import Echoes

_KEY = 'sk-a/b+c=D"e\\f-0123456789'


def _event(**delta: object) -> bytes:
    chunk = {"choices": [{"index": 0, "delta": delta}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _whole(message: object, **more: object) -> bytes:
    return json.dumps({"choices": [{"message": message, **more}]}).encode()


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
        html.escape(_KEY),
        html.escape(html.escape(_KEY)),
        _KEY.replace("/", "&sol;").replace("+", "&plus;").replace("=", "&equals;"),
        *("".join(form % ord(one) for one in _KEY) for form in ("&#%d;", "&#x%X;", "&#%05d;", "=%02X")),
        *("".join(form % ord(one) for one in _KEY) for form in ("\\x%02x", "\\u{%x}", "\\%03o", "\\\\x%02X")),
        *(gap.join(_KEY) for gap in ("\u200b", "\\u200b", "\n", "\\r\\n", "%0A")),
        _KEY.upper(),
        _KEY.lower(),
        _KEY.encode().hex(),
        _KEY.encode().hex().upper(),
    ],
)
def test_a_key_is_cut_out_however_it_is_escaped(written: str) -> None:
    cut = Echoes((_KEY,)).without(f'{{"a": "before {written} behind"}}'.encode())
    assert b"23456789" not in cut.replace(b"\\u0000", b"").replace(b"\0", b"")
    assert cut.startswith(b'{"a": "before [key]')
    assert cut.endswith(b' behind"}')


@pytest.mark.parametrize("before", ["", "k", "ke", "Bearer "])
@pytest.mark.parametrize("coded", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_key_in_base64_leaves_three_characters_of_it_at_most(
    before: str, coded: Callable[[bytes], bytes]
) -> None:
    key = "sk-or-v1-0123456789abcdef"
    cut = Echoes((key,)).without(coded(f"{before}{key}!".encode()))
    assert b"[key]" in cut
    assert len(cut) <= len("[key]") + 4 * (len(before) // 3 + 2)


@pytest.mark.parametrize(
    "answer",
    [
        _event(content="a sk-a/b+c=") + _event(content=_KEY[9:] + " b") + b"data: [DONE]\n\n",
        b"".join(_event(content=one) for one in f"a {_KEY} b"),
        b": ping\n\n" + _event(reasoning=_KEY[:9]) + b"event: x\n" + _event(reasoning=_KEY[9:]),
        _event(tool_calls=[{"function": {"arguments": _KEY[:9]}}])
        + _event(tool_calls=[{"function": {"arguments": _KEY[9:]}}]),
        _whole({"content": [{"type": "text", "text": "a " + _KEY[:9]}, {"text": _KEY[9:] + " b"}]}),
        _whole({"content": [f"a {_KEY[:9]}", _KEY[9:]]}),
        _whole({"content": "x"}, logprobs={"content": [{"token": one} for one in _KEY]}),
        json.dumps({"output": [{"content": [{"text": _KEY[:9]}, {"text": _KEY[9:]}]}]}).encode(),
        _whole({"content": [{"text": quote(_KEY)[:9]}, {"text": quote(_KEY)[9:]}]}),
    ],
)
def test_a_key_is_cut_out_of_texts_that_are_put_together(answer: bytes) -> None:
    echoes = Echoes((_KEY,))
    assert echoes.without(answer) == answer
    cut = echoes.without_pieces(answer)
    assert b"[key]" in cut
    assert not any(one in cut.decode() for one in ("0123", "6789", '"0"', '"9"', "D%22"))
    assert cut.count(b"\n\n") == answer.count(b"\n\n")
    assert echoes.without_pieces(cut) == cut
    if b"\n\n" not in answer:
        json.loads(cut)


@pytest.mark.parametrize(
    "answer",
    [
        _event(content="sk-a/b") + _event(content="+c and so on") + b"data: {broken\n\n",
        _whole({"content": [{"text": "sk-a/b"}, {"text": 1.50}, {"text": "\u00e9"}]}),
        _whole({"content": "x", "tool_calls": [{"id": _KEY[:9], "name": _KEY[9:]}]}),
        b'data: {"a": [1, 2.50]}\r\n\r\n',
        b'{"content": [' * 1_000,
        b'{"content": ' + b"[" * 100_000,
    ],
)
def test_texts_without_a_key_stay_byte_for_byte(answer: bytes) -> None:
    assert Echoes((_KEY,)).without_pieces(answer) == answer


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
