"""Codings of answers: in whatever parts they come, they decode to the same, and to no more than the bound."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest

from pytest_helmbench.gateway.content_codings import TooMuchError, UnreadableError, decoder_of

_TEXT = b'{"reply": "' + random.Random(7).randbytes(3000).hex().encode() + b"x" * 600_000 + b'"}'
_BOUND = 2**20


def _raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def _cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def _decoded(coding: str, parts: Iterator[bytes], bound: int = _BOUND) -> bytes:
    decoder = decoder_of(coding, bound)
    assert decoder is not None
    return b"".join(piece for part in parts for piece in decoder.pieces(part))


def _id(value: object) -> str:
    """Return what a value is called in a test's name: bytes of gzip bear the time at which they were made."""
    return str(value) if isinstance(value, str | int) else "body"


@pytest.mark.parametrize("size", [1, 7, 1000, 10**6])
@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(_TEXT)),
        ("x-gzip", gzip.compress(_TEXT)),
        ("GZip", b"".join(gzip.compress(part) for part in _cut(_TEXT, 50_000))),
        ("gzip", gzip.compress(_TEXT) + bytes(20)),
        ("gzip", gzip.compress(_TEXT) + b"no member"),
        ("gzip", gzip.compress(_TEXT[:9]) + bytes(3) + gzip.compress(_TEXT[9:])),
        ("deflate", zlib.compress(_TEXT)),
        ("deflate", zlib.compress(_TEXT) + b"behind"),
        ("deflate", _raw(_TEXT)),
        ("deflate", zlib.compress(_TEXT, 0)),
        (" gzip,deflate , identity", zlib.compress(gzip.compress(_TEXT))),
        ("gzip, gzip", gzip.compress(gzip.compress(_TEXT[:99]) + gzip.compress(_TEXT[99:]))),
    ],
    ids=_id,
)
def test_bodies_decode_to_the_same_in_whatever_parts_they_come(coding: str, body: bytes, size: int) -> None:
    assert _decoded(coding, _cut(body, size)) == _TEXT


@pytest.mark.parametrize("coding", ["", "identity", "Identity, none", " , "])
def test_what_is_not_coded_needs_no_decoder(coding: str) -> None:
    assert decoder_of(coding, _BOUND) is None


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, br", "compress", ", ".join(["gzip"] * 6)])
def test_other_codings_are_refused(coding: str) -> None:
    with pytest.raises(UnreadableError):
        decoder_of(coding, _BOUND)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", _TEXT),
        ("deflate", b"\xff" + _TEXT),
        ("gzip", gzip.compress(_TEXT)[:-8] + bytes(8)),
        ("gzip", gzip.compress(_TEXT) + b"\x1f\x8bno member"),
        ("gzip, gzip", gzip.compress(_TEXT)),
    ],
    ids=_id,
)
def test_what_is_damaged_is_said_to_be(coding: str, body: bytes) -> None:
    with pytest.raises(UnreadableError):
        _decoded(coding, iter([body]))


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(bytes(100 * _BOUND))),
        ("deflate", zlib.compress(bytes(100 * _BOUND))),
        ("gzip, gzip", gzip.compress(gzip.compress(bytes(100 * _BOUND)))),
        ("gzip, gzip", gzip.compress(gzip.compress(b"") + bytes(100 * _BOUND))),  # zeros behind a member
        ("gzip, gzip", gzip.compress(gzip.compress(b"") * 60_000)),  # many members without a byte
        ("gzip", gzip.compress(b"") * 60_000),
    ],
    ids=_id,
)
def test_no_body_grows_beyond_the_bound(coding: str, body: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TooMuchError):
            _decoded(coding, iter([body]))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * _BOUND


def test_a_body_of_just_the_bound_is_read() -> None:
    assert len(_decoded("gzip", iter([gzip.compress(bytes(_BOUND))]))) == _BOUND
