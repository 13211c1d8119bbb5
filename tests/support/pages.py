"""HTML reports read back: what stands in the page, and what in its compressed blocks."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from typing import Any

__all__ = ["blocks_of", "cells_of", "shown_text"]

_BLOCK = re.compile(r'<script type="application/gzip" id="([^"]+)">([^<]*)</script>')


def blocks_of(page: str) -> dict[str, Any]:
    """Return the blocks of a page by id, unpacked."""
    return {name: json.loads(gzip.decompress(base64.b64decode(data))) for name, data in _BLOCK.findall(page)}


def cells_of(page: str, name: str, run: str = "0") -> list[Any]:
    """Return a column of a run."""
    block = blocks_of(page)[f"c{run}"]
    column = block["c"][name]
    if "s" in column:
        return [column["s"]] * block["n"]
    return [column["d"][index] for index in column["i"]] if "d" in column else list(column["v"])


def shown_text(page: str) -> str:
    """Return what a reader sees without JavaScript, on one line."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())
