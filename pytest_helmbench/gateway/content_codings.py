"""Codings of answers (`Content-Encoding`): gzip and deflate, several at once, decoded as they arrive and bounded."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

__all__ = ["ACCEPTED", "Decoder", "TooMuchError", "UnreadableError", "decoder_of"]

ACCEPTED = "gzip, deflate"
"""What requests ask for."""

_PIECE_BYTES = 256 * 2**10
_MOST_CODINGS = 5
_NO_CODING = frozenset({"", "identity", "none"})
_GZIP, _ZLIB, _RAW = zlib.MAX_WBITS + 16, zlib.MAX_WBITS, -zlib.MAX_WBITS


class UnreadableError(Exception):
    """Bytes that are not of the coding that the answer names, or a coding that is not known."""


class TooMuchError(Exception):
    """A body that is too large."""


class _Inflated(Protocol):
    """What `zlib.decompressobj` returns; it has no public name."""

    @property
    def eof(self) -> bool: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


class _Deflate:
    """One body; as RFC 9110 has it, in the form of zlib, or bare as some servers write it."""

    def __init__(self) -> None:
        self._stream: _Inflated | None = None

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield what data decode to; nothing follows the end."""
        if not data:
            return
        if self._stream is None:
            # No bare one begins like this: it would be a stored block with bits set that mean nothing.
            self._stream = zlib.decompressobj(_ZLIB if data[0] & 0x0F == zlib.DEFLATED else _RAW)
        if not self._stream.eof:
            yield from _inflated(self._stream, data)


class _Gzip:
    """Members one after the other (RFC 1952); zeros and what is no member behind them are passed over."""

    def __init__(self) -> None:
        self._stream: _Inflated = zlib.decompressobj(_GZIP)
        self._over = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield what data decode to."""
        while data and not self._over:
            if self._stream.eof:
                data = data.lstrip(b"\0")
                self._over = data[:1] not in (b"", b"\x1f")
                if self._over or not data:
                    return
                self._stream = zlib.decompressobj(_GZIP)
            yield from _inflated(self._stream, data)
            data = self._stream.unused_data


def _inflated(stream: _Inflated, data: bytes) -> Iterator[bytes]:
    """Yield what data decode to up to the end of a stream."""
    full = True
    while (data or full) and not stream.eof:
        try:
            piece = stream.decompress(data, _PIECE_BYTES)
        except zlib.error as error:
            raise UnreadableError(str(error)) from None
        full = len(piece) == _PIECE_BYTES  # then there may be more of what was taken already
        data = stream.unconsumed_tail
        if piece:
            yield piece


_KNOWN: Mapping[str, type[_Deflate | _Gzip]] = {"deflate": _Deflate, "gzip": _Gzip, "x-gzip": _Gzip}


class Decoder:
    """Decodes one body.

    Args:
        codings: The first was applied first.
        bound: Most bytes that are taken, and that any of them may give.
    """

    def __init__(self, codings: Sequence[type[_Deflate | _Gzip]], bound: int) -> None:
        self._steps = [coding() for coding in reversed(codings)]
        self._passed = [0] * (len(codings) + 1)
        self._bound = bound

    def pieces(self, data: bytes, step: int = 0) -> Iterator[bytes]:
        """Yield what data decode to.

        Raises:
            UnreadableError: They are not of the coding.
            TooMuchError: They are more than the bound, or decode to more.
        """
        self._passed[step] += len(data)
        if self._passed[step] > self._bound:
            raise TooMuchError
        if step == len(self._steps):
            yield data
            return
        for piece in self._steps[step].pieces(data):
            yield from self.pieces(piece, step + 1)


def decoder_of(stated: str, bound: int) -> Decoder | None:
    """Return what decodes a body; None where it is coded in no way.

    Args:
        stated: `Content-Encoding`, of several headers with commas between.
        bound: Most bytes that the body may have.

    Raises:
        UnreadableError: A coding is not known.
    """
    codings = _codings(stated)
    return Decoder(codings, bound) if codings else None


@lru_cache(64)
def _codings(stated: str) -> Sequence[type[_Deflate | _Gzip]]:
    names = [name for part in stated.lower().split(",") if (name := part.strip()) not in _NO_CODING]
    if len(names) > _MOST_CODINGS or not _KNOWN.keys() >= set(names):
        raise UnreadableError(stated)
    return [_KNOWN[name] for name in names]
