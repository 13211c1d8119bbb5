"""The table `plans`: planned cases of a run, those that its benchmark defines, broken ones, and its sample."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable
from fractions import Fraction

from pytest_helmbench.core.case import BrokenCase
from pytest_helmbench.core.outcome import NO_MODEL_CALL
from pytest_helmbench.core.sample import Sample
from pytest_helmbench.store.table_rows import as_json, safe_text

IS_CASE = f"NOT (outcome = 'skipped' AND reason IS '{NO_MODEL_CALL}')"
"""Condition on a row of `results`: it is a case of its run, and no test that asked no model."""


def packed(lines: Iterable[str]) -> bytes:
    """Return lines compressed."""
    return zlib.compress("\n".join(lines).encode("utf-8", "replace"))


def unpacked(data: bytes) -> list[str]:
    """Return the lines of `packed`; none for nothing."""
    return list(filter(None, zlib.decompress(data).decode().split("\n")))


def write_plan(conn: sqlite3.Connection, run_id: int, codes: Iterable[str]) -> tuple[str, ...]:
    """Add cases to the plan of a run, new or not, and return all that it has planned now."""
    planned = tuple(dict.fromkeys((*planned_codes(conn, run_id), *codes)))
    conn.execute(
        "INSERT INTO plans (run_id, codes) VALUES (?, ?) ON CONFLICT DO UPDATE SET codes = excluded.codes",
        (run_id, packed(planned)),
    )
    return planned


def write_size(conn: sqlite3.Connection, run_id: int, codes: tuple[str, ...]) -> None:
    """Keep the cases that the benchmark of a run defines; nothing where it is unknown them."""
    if codes:
        conn.execute("UPDATE plans SET defined = ? WHERE run_id = ?", (packed(codes), run_id))


def write_broken(conn: sqlite3.Connection, run_id: int, cases: Iterable[BrokenCase]) -> None:
    """Keep what is broken now in the benchmark of a run, in place of what was broken when it began."""
    conn.execute("UPDATE plans SET broken = ? WHERE run_id = ?", (broken_json(cases), run_id))


def broken_json(cases: Iterable[BrokenCase]) -> str:
    """Return broken cases as lists in JSON."""
    return as_json(
        [[safe_text(case.code), case.severity, case.difficulty, case.evaluations] for case in cases]
    )


def write_sample(conn: sqlite3.Connection, run_id: int, sample: Sample | None) -> None:
    """Keep the sample of a run; a run that goes on keeps what it had, too."""
    if sample is None:
        return
    before = sample_of(conn, run_id)
    weights = {**before.weights, **sample.weights} if before else sample.weights
    kept = {
        "rule": sample.rule,
        "seed": sample.seed,
        "of": sample.of,
        "weights": {code: str(weight) for code, weight in weights.items()},
    }
    conn.execute("UPDATE plans SET sample = ? WHERE run_id = ?", (as_json(kept), run_id))


def planned_codes(conn: sqlite3.Connection, run_id: int) -> list[str]:
    """Return the cases that a run has planned; none without a plan."""
    plan = conn.execute("SELECT codes FROM plans WHERE run_id = ?", (run_id,)).fetchone()
    return [] if plan is None else unpacked(plan[0])


def broken_cases(conn: sqlite3.Connection, run_id: int) -> tuple[BrokenCase, ...]:
    """Return the cases of a run that cannot run."""
    found = conn.execute("SELECT broken FROM plans WHERE run_id = ?", (run_id,)).fetchone()
    return () if found is None else tuple(BrokenCase(*case) for case in json.loads(found[0]))


def sample_of(conn: sqlite3.Connection, run_id: int) -> Sample | None:
    """Return the sample that the cases of a run are; None for all."""
    found = conn.execute("SELECT sample FROM plans WHERE run_id = ?", (run_id,)).fetchone()
    if found is None or found[0] is None:
        return None
    kept = json.loads(found[0])
    weights = {code: Fraction(weight) for code, weight in kept.pop("weights").items()}
    return Sample(**kept, weights=weights)
