"""Steps of cases: what happened while a case was worked on, read from a results file."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.core.outcome import Event
from pytest_helmbench.store.reading import has_table, reading

__all__ = ["case_steps"]

_STEPS = """
    SELECT results.code, results.repetition, events.type, events.payload, events.at
    FROM events JOIN results ON results.id = events.result_id
    WHERE results.run_id = ? ORDER BY events.id
"""


def case_steps(path: Path, run_id: int) -> Mapping[tuple[str, int], tuple[Event, ...]]:
    """Return the steps of the cases of a run by code and repetition; cases without any are left out.

    Raises:
        StoreError: The file is missing or no results file.
    """
    found: defaultdict[tuple[str, int], list[Event]] = defaultdict(list)
    with reading(path) as conn:
        if has_table(conn, "events"):
            for code, repetition, kind, payload, at in conn.execute(_STEPS, (run_id,)):
                found[code, repetition].append(Event(kind, json.loads(payload), at))
    return {key: tuple(events) for key, events in found.items()}
