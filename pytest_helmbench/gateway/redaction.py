"""Redaction: removes keys that a server repeats in its answers."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator

_SHORTEST_KEY = 12  # shorter ones are placeholders such as `EMPTY`, which replies may well contain
_REPLACEMENT = b"[key]"
_ESCAPES = tuple(b"%s%d" % (mark, high) for mark in (b"\\u00", b"%") for high in range(2, 8))
"""Beginnings of escaped ASCII. An escaped key has one, or a backslash before one of its characters."""


class KeyRedactor:
    """Removes keys from bytes: plain, escaped as in JSON, percent-encoded, and in base64.

    It cannot find a key that a server writes in another way.

    Args:
        keys: In every form in which requests carry them.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        long = [key for key in keys if len(key) >= _SHORTEST_KEY]
        self._plain = tuple(dict.fromkeys(form for key in long for form in _written(key)))
        own = (b"\\" + one.encode() for one in '/"\\' if any(one in key for key in long))
        self._marks = (*_ESCAPES, *own)
        self._escaped = re.compile(b"|".join(b"".join(map(_escaped, key)) for key in long)) if long else None

    def redact(self, received: bytes) -> bytes:
        """Return an answer without the keys; the bytes around them can be decoded as before."""
        for form in self._plain:
            if form in received:
                received = received.replace(form, _REPLACEMENT)
        if self._escaped is not None and any(map(received.__contains__, self._marks)):
            received = self._escaped.sub(_REPLACEMENT, received)
        return received


def _written(key: str) -> Iterator[bytes]:
    """Yield a key as it is, and the part of its base64 that does not depend on the bytes around it."""
    yield key.encode()
    for before in range(3):
        coded = base64.b64encode(b"\x00" * before + key.encode())
        # Characters that also hold bits of the neighbours stay.
        inner = coded[-(-before * 8 // 6) : (before + len(key)) * 8 // 6]
        yield inner
        yield inner.translate(bytes.maketrans(b"+/", b"-_"))
        yield inner.replace(b"/", b"\\/")


def _escaped(character: str) -> bytes:
    """Return a pattern of the ways in which JSON (once or twice) and URLs write a character of a key."""
    plain, code = re.escape(character.encode()), b"%02x" % ord(character)
    slashes = rb"\\{0,3}" if character in '/"\\' else b""
    return rb"(?:%s%s|(?i:\\{1,3}u00%s|%%(?:25)?%s))" % (slashes, plain, code, code)
