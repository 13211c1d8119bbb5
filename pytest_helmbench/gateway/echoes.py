"""Keys that a server repeats: cut out of its answers as they arrive, however they are escaped, encoded or split."""

from __future__ import annotations

import base64
import html.entities
import re
from collections.abc import Iterable, Iterator

from pytest_helmbench.gateway.split_texts import is_split, with_joined

__all__ = ["Echoes"]

_SHORTEST = 12  # shorter keys are placeholders such as `EMPTY`, which replies may well contain
_SHOWN = b"[key]"
# Between the characters: those of UTF-16 and UTF-32, breaks of lines, and characters without a width, as bytes or as
# escapes; bounded, so that no answer takes long.
_GAP = rb"(?:[\x00\s]|\xe2\x80[\x8b-\x8f]|\\{1,8}(?:u0000|u20(?:0[b-f])|[nrt])|%(?:25){0,4}(?:00|0a|0d|20))"
_GAPS = _GAP + rb"{0,3}"
_ENTITIES: dict[str, list[str]] = {}
for _name, _meant in html.entities.html5.items():
    _ENTITIES.setdefault(_meant, []).append(_name.rstrip(";"))


class Echoes:
    """Finds keys in bytes, and cuts them out.

    They are found as they are, in other case, escaped as in JSON (also twice), HTML or source code, percent-encoded,
    with gaps of no width, in UTF-16, UTF-32, base64 or hexadecimal, and in pieces: the events of a stream, the parts
    of a message, tokens. Who knows a key can write it in a way that is none of these.

    Args:
        keys: In every form in which they are sent.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        long = [key for key in keys if len(key) >= _SHORTEST]
        forms = [b"%s(?i:%s)" % (_first(key[0]), _GAPS + _GAPS.join(map(_written, key[1:]))) for key in long]
        self._pattern = re.compile(b"|".join(forms)) if forms else None
        self._encoded = tuple(dict.fromkeys(form for key in long for form in _encoded(key.encode())))

    def without(self, received: bytes) -> bytes:
        """Return an answer without the keys; what is around them can be decoded as before."""
        if self._pattern is None:
            return received
        for form in self._encoded:
            if form in received:
                received = received.replace(form, _SHOWN)
        return self._pattern.sub(_shown, received)

    def without_pieces(self, received: bytes) -> bytes:
        """Return a whole answer without the keys that its texts make when they are put together."""
        if self._pattern is None or not is_split(received):
            return received
        return with_joined(received, self._spans)

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return where keys stand in a text."""
        if self._pattern is None:
            return []
        seen = text.encode("ascii", "replace")  # as many bytes as characters; keys are ASCII
        return [found.span() for found in self._pattern.finditer(seen)]


def _escapes(character: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the ways to write a character of a key, which is ASCII: the first byte, and a pattern of what follows."""
    number = ord(character)
    code = b"%02x" % number
    backslash = rb"\\{0,7}(?:u00%s|u\{0{0,4}%s\}|x%s|0?%03o)" % (code, code, code, number)
    yield b"\\", backslash + (rb"|\\{0,7}%s" % re.escape(character.encode()) if character in '/"\\' else b"")
    yield b"%", rb"(?:25){0,4}%s" % code
    yield b"=", code
    names = b"|".join(name.encode() for name in _ENTITIES.get(character, ()))
    yield (
        b"&",
        rb"(?:amp;){0,2}(?:#(?:0{0,4}%d|x0{0,4}%s)%s);?" % (number, code, b"|" + names if names else b""),
    )


def _written(character: str) -> bytes:
    """Return a pattern of the ways to write a character."""
    plain = re.escape(character.encode())
    ways = [re.escape(first) + b"(?:" + rest + b")" for first, rest in _escapes(character)]
    return b"(?:" + b"|".join([plain, *ways]) + b")"


def _first(character: str) -> bytes:
    """Return the same in a form that begins with a set of bytes: those are looked for ten times as fast."""
    plain = b"".join(re.escape(one.encode()) for one in dict.fromkeys((character.lower(), character.upper())))
    ways = [rb"(?<=%s)(?i:%s)" % (re.escape(first), rest) for first, rest in _escapes(character)]
    return rb"[%s\\%%=&](?:(?<=[%s])|%s)" % (plain, plain, b"|".join(ways))


def _encoded(key: bytes) -> Iterator[bytes]:
    """Yield the parts of codings that are the same whatever stands around the key."""
    yield key.hex().encode()
    yield key.hex().upper().encode()
    for before in range(3):
        coded = base64.b64encode(b"\x00" * before + key)
        # Characters that hold bits of what is beside the key are left.
        inner = coded[-(-before * 8 // 6) : (before + len(key)) * 8 // 6]
        yield inner
        yield inner.translate(bytes.maketrans(b"+/", b"-_"))
        yield inner.replace(b"/", b"\\/")


def _shown(found: re.Match[bytes]) -> bytes:
    width = 4 if b"\x00\x00\x00" in found[0] else 2 if b"\x00" in found[0] else 1
    return (b"\x00" * (width - 1)).join(_SHOWN[place : place + 1] for place in range(len(_SHOWN)))
