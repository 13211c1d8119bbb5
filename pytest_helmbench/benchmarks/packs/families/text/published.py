"""The published rules of the text families on reading a reply, applied by `--helmbench-pack-rules=parity`.

Where they are unfair they stay so: they exist to compare with published numbers. Patterns are possessive where that
changes no verdict, so that a hostile reply costs no more than its length.

Source:
    Benchmark packs, parity rules.
"""

from __future__ import annotations

import re

_EDGE = " \t\r\n\"'`.,;:"


def normalised(text: str, *, united_states: bool = False) -> str:
    """Return a text as two texts are compared."""
    text = text.strip().lower()
    if united_states:
        text = text.replace("u.s.", "united states")
    return " ".join(text.split()).strip(_EDGE)


def focused_text(reply: str, cue: re.Pattern[str]) -> str:
    """Return the last line that is not blank, or what follows its first cue."""
    lines = reply.strip().splitlines()
    last = lines[-1].strip() if lines else ""
    found = cue.search(last)
    return last if found is None else found[1].strip()


def holds(text: str, part: str) -> bool:
    """Return whether a text holds another as whole words."""
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) is not None
