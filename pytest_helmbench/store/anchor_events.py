"""The anchors that judges were held to, as events of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.core.anchor import AnchorVerdict, JudgeHeld
from pytest_helmbench.core.outcome import Event
from pytest_helmbench.store.reading import reading

_TYPE = "anchor"
_HELD = """
    SELECT events.payload FROM events JOIN evaluation_runs AS theirs ON theirs.id = events.run_id
    JOIN evaluation_runs AS own ON own.session_id = theirs.session_id AND own.benchmark_id = theirs.benchmark_id
    WHERE own.id = ? AND events.type = ? ORDER BY events.id
"""


def anchor_events(held: JudgeHeld, at: str) -> Iterator[Event]:
    """Yield one event per anchor of a judge, without what it has said."""
    for one in held.verdicts:
        payload = {"judge": one.judge, "anchor": one.anchor, "expected": one.expected, "passed": one.passed}
        yield Event(_TYPE, {**payload, "allowed": held.allowed}, at)


def held_in(path: Path, run_id: int) -> tuple[JudgeHeld, ...]:
    """Return how the judges of a run stood to its anchors, when its session last held them; empty where it did not.

    Raises:
        StoreError: The file is missing or no results file.
    """
    found: dict[str, dict[str, AnchorVerdict]] = {}
    allowed = 0
    with reading(path) as conn:
        for (text,) in conn.execute(_HELD, (run_id, _TYPE)):
            said = json.loads(text)
            allowed = said.pop("allowed")
            found.setdefault(said["judge"], {})[said["anchor"]] = AnchorVerdict(**said)
    return tuple(JudgeHeld(judge, tuple(own.values()), allowed) for judge, own in found.items())
