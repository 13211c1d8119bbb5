"""Codings of a body that the HTTP library leaves as they are: several at once, and the old name of gzip."""

from __future__ import annotations

import zlib

__all__ = ["decoded", "unread_coding"]

_READ_BY_LIBRARY = ("", "gzip", "deflate", "identity")
_GZIP = 16 + zlib.MAX_WBITS
_UNREADABLE = ("content-encoding", "deflate")


def decoded(body: bytes, stated: str, most: int) -> bytes:
    """Return a body without the codings that the library has left.

    Args:
        body: As the library has read it.
        stated: Value of `Content-Encoding`.
        most: Bytes that may come of it; longer ones, and what is not coded as stated, are returned as they are.
    """
    stated = stated.strip().lower()
    if stated in _READ_BY_LIBRARY:
        return body
    plain = body
    for coding in reversed([part.strip() for part in stated.split(",")]):
        if coding in ("gzip", "x-gzip"):
            reader = zlib.decompressobj(_GZIP)
        elif coding == "deflate":
            # Some send it without the head that belongs to it, which says 8 in its lower half.
            reader = zlib.decompressobj(
                zlib.MAX_WBITS if plain[:1] and plain[0] & 15 == 8 else -zlib.MAX_WBITS
            )
        elif coding == "identity":
            continue
        else:
            return body
        try:
            plain = reader.decompress(plain, most)
        except zlib.error:
            return body
        if not reader.eof:
            return body
    return plain


def unread_coding(said: str) -> bool:
    """Return whether an error of the library says that it does not know how a body is coded."""
    return any(word in said.lower() for word in _UNREADABLE)
