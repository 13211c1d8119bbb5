"""A run without a benchmark behind it, and cases of it, written through a store."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from pytest_helmbench.benchmarks.scenario_trees.tree import ScenarioTree
from pytest_helmbench.core.outcome import AttemptRecord, Outcome, ResultRecord, Usage, Verdict
from pytest_helmbench.store.write.run_rows import RunRecord
from pytest_helmbench.store.write.writer import Store

AT = "2026-07-04T12:00:00+00:00"


def open_run(store: Store) -> int:
    """Open a run and return its id."""
    tree = ScenarioTree(Path(), "demo", "1", "", "ab" * 32, (), (), {}, None, {}, {}, (), {})
    (run_id,) = store.open_runs(
        str(uuid4()), [RunRecord(tree, "test/good", "test", None, "whole", 1, None, {}, "0.1.0", AT)]
    )
    return run_id


def record_case(store: Store, run_id: int, number: int, body: bytes = b"reply") -> None:
    """Record an answered call and its verdict."""
    code, key, sent = f"CASE-{number}", f"key-{number}", f"request-{number}"
    usage = Usage(1, 1, cost_usd=0.1)
    store.record_attempt(
        AttemptRecord(
            *(run_id, code, 1, "", "case", 1, 1, 200, "stop", None, 1.0, usage, "good"),
            *(sent, sent.encode(), body, "reply", key, False, AT, AT),
        )
    )
    outcome = Outcome(Verdict.PASSED, score=1.0, reply_key=key)
    store.record_result(ResultRecord(run_id, code, code, "category_match", 1, 0, 0, False, outcome))
