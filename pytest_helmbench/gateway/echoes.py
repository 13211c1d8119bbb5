"""Keys that a server repeats: cut out of its answers as they arrive."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote

_SHORTEST = 12  # shorter keys are placeholders such as `EMPTY`, which replies may well contain
_SHOWN = b"[key]"


class Echoes:
    """Finds keys in bytes, and cuts them out: plain, escaped as in JSON, percent-encoded, and in base64.

    A server that knows a key can write it in a way that is none of these.

    Args:
        keys: In every form in which they are sent.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._forms = tuple(
            dict.fromkeys(form for key in keys if len(key) >= _SHORTEST for form in _written(key))
        )

    def without(self, received: bytes) -> bytes:
        """Return an answer without the keys; what is around them can be decoded as before."""
        for form in self._forms:
            if form in received:
                received = received.replace(form, _SHOWN)
        return received


def _written(key: str) -> Iterator[bytes]:
    escaped = json.dumps(key)[1:-1]
    percent = quote(key, safe="")
    for text in (key, escaped, escaped.replace("/", "\\/"), percent, quote(key)):
        yield text.encode()
    yield percent.replace("%2F", "%2f").replace("%2B", "%2b").replace("%3D", "%3d").encode()
    for before in range(3):
        coded = base64.b64encode(b"\x00" * before + key.encode())
        # Characters that hold bits of what is beside the key are left.
        inner = coded[-(-before * 8 // 6) : (before + len(key)) * 8 // 6]
        yield inner
        yield inner.translate(bytes.maketrans(b"+/", b"-_"))
        yield inner.replace(b"/", b"\\/")
