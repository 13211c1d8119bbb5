"""Steps of cases: what happened while a case was worked on, read from a results file."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.core.outcome import Event
from pytest_helmbench.store.reading import reading

_STEPS = """
    SELECT results.code, results.repetition, events.type, events.payload, events.at
    FROM events JOIN results ON results.id = events.result_id
    WHERE results.run_id = :run_id AND (:code IS NULL OR results.code = :code) ORDER BY events.id
"""


def case_steps(
    path: Path, run_id: int, code: str | None = None
) -> Mapping[tuple[str, int], tuple[Event, ...]]:
    """Return the steps of the cases of a run by code and repetition; cases without any are left out.

    Args:
        path: Results file.
        run_id: `evaluation_runs.id`.
        code: Only this case.

    Raises:
        StoreError: The file is missing or no results file.
    """
    found: defaultdict[tuple[str, int], list[Event]] = defaultdict(list)
    asked = {"run_id": run_id, "code": code}
    with reading(path) as conn:
        for of_case, repetition, kind, payload, at in conn.execute(_STEPS, asked):
            found[of_case, repetition].append(Event(kind, json.loads(payload), at))
    return {key: tuple(events) for key, events in found.items()}
