"""Steps of a case as the page holds them: numbers and words of ours, and what was said only with texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from pytest_helmbench.core.outcome import Event
from pytest_helmbench.core.scrub import excerpt, scrub

__all__ = ["MOST_STEPS", "step_rows", "step_texts"]

MOST_STEPS = 200
"""Of a case that are on the page; `helmbench show` and the database have all."""

_MOST_CHARACTERS = 4_000
_OURS = ("role", "stop")
_WORD = re.compile(r"[a-z_]{1,20}\Z", re.ASCII)


def step_rows(events: Sequence[Event]) -> list[list[object]]:
    """Return number, seconds since the first, type and numbers of each step: nothing that anybody has said."""
    rows: list[list[object]] = [
        [number, _seconds(events[0].at, event.at), scrub(event.type), ", ".join(_facts(event.payload))]
        for number, event in enumerate(events[:MOST_STEPS], 1)
    ]
    if len(events) > MOST_STEPS:
        rows.append(["…", None, f"and {len(events) - MOST_STEPS} more", ""])
    return rows


def step_texts(events: Sequence[Event]) -> Iterator[list[str]]:
    """Yield title and text of each step that says something."""
    for number, event in enumerate(events[:MOST_STEPS], 1):
        said = {
            name: value
            for name, value in event.payload.items()
            if isinstance(value, str | list | dict) and value
        }
        for name in _OURS:
            said.pop(name, None)
        if said:
            title = " ".join((f"step {number}: {event.type}", *_facts(event.payload)[:1]))
            text = next(iter(said.values())) if len(said) == 1 else said
            shown = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, indent=1)
            yield [scrub(title), excerpt(shown, _MOST_CHARACTERS)]


def _facts(payload: Mapping[str, object]) -> list[str]:
    words = [value for name in _OURS if isinstance(value := payload.get(name), str) and _WORD.match(value)]
    return words + [
        f"{scrub(name)} {value}"
        for name, value in payload.items()
        if isinstance(value, int | float) and _WORD.match(name)
    ]


def _seconds(first: str, at: str) -> float | None:
    try:
        return round((datetime.fromisoformat(at) - datetime.fromisoformat(first)).total_seconds(), 1)
    except (ValueError, TypeError):
        return None
