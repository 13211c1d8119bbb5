"""Keys that a server repeats: cut out of its answers as they arrive, however they are escaped or encoded."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["Echoes"]

_SHORTEST = 12  # shorter keys are placeholders such as `EMPTY`, which replies may well contain
_SHOWN = b"[key]"
# Between the characters of UTF-16 and UTF-32, as bytes or as escapes; bounded, so that no answer takes long.
_GAP = rb"(?:\x00|\\{1,8}u0000|%(?:25){0,4}00){0,3}"


class Echoes:
    """Finds keys in bytes: as they are, escaped as in JSON (also twice), percent-encoded, in UTF-16 or UTF-32.

    Args:
        keys: In every form in which they are sent.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        forms = [_GAP.join(map(_forms, key)) for key in keys if len(key) >= _SHORTEST]
        self._pattern = re.compile(b"|".join(forms)) if forms else None

    def without(self, received: bytes) -> bytes:
        """Return an answer without the keys; what is around them can be decoded as before."""
        return received if self._pattern is None else self._pattern.sub(_shown, received)


def _forms(character: str) -> bytes:
    """Return a pattern of the ways to write a character of a key, which is ASCII."""
    code = f"{ord(character):02x}".encode()
    code = b"".join(b"[%s%s]" % (one, one.upper()) for one in (code[:1], code[1:]))
    plain = re.escape(character.encode())
    escaped = rb"\\{0,8}" + plain if character in '/"\\' else plain
    return rb"(?:%s|\\{1,8}u00%s|%%(?:25){0,4}%s)" % (escaped, code, code)


def _shown(found: re.Match[bytes]) -> bytes:
    width = 4 if b"\x00\x00\x00" in found[0] else 2 if b"\x00" in found[0] else 1
    return (b"\x00" * (width - 1)).join(_SHOWN[place : place + 1] for place in range(len(_SHOWN)))
