"""The table `plans`: planned cases of a run, those that its benchmark defines, broken ones, and its sample."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from pytest_helmbench.core.case import BrokenCase
from pytest_helmbench.core.outcome import NO_MODEL_CALL
from pytest_helmbench.core.sample import Sample
from pytest_helmbench.store.table_rows import as_json, safe_text

IS_CASE = f"NOT (outcome = 'skipped' AND reason IS '{NO_MODEL_CALL}')"
"""Condition on a row of `results`: it is a case of its run, and not a test that asked no model."""


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


def write_broken(conn: sqlite3.Connection, run_id: int, cases: Iterable[BrokenCase]) -> None:
    """Keep what is broken now in the benchmark of a run, in place of what was broken when it began."""
    conn.execute("UPDATE plans SET broken = ? WHERE run_id = ?", (as_json(broken_rows(cases)), run_id))


def broken_rows(cases: Iterable[BrokenCase]) -> list[list[str | int]]:
    """Return broken cases as lists, in JSON types."""
    return [[safe_text(case.code), case.severity, case.difficulty, case.evaluations] for case in cases]


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
    codes = _cell(conn, run_id, "codes")
    return [] if codes is None else unpacked(codes)


def defined_cases(conn: sqlite3.Connection, run_id: int) -> frozenset[str]:
    """Return the cases that the files of a run's benchmark defined; none where that is not known."""
    codes = _cell(conn, run_id, "defined")
    return frozenset(() if codes is None else unpacked(codes))


def broken_cases(conn: sqlite3.Connection, run_id: int) -> tuple[BrokenCase, ...]:
    """Return the cases of a run that cannot run."""
    return tuple(BrokenCase(*case) for case in json.loads(_cell(conn, run_id, "broken") or "[]"))


def sample_of(conn: sqlite3.Connection, run_id: int) -> Sample | None:
    """Return the sample that the cases of a run are; None for all."""
    text = _cell(conn, run_id, "sample")
    if text is None:
        return None
    kept = json.loads(text)
    weights = {code: Fraction(weight) for code, weight in kept.pop("weights").items()}
    return Sample(**kept, weights=weights)


def _cell(conn: sqlite3.Connection, run_id: int, column: str) -> Any:
    """Return a column of the plan of a run; None without a plan."""
    plan = conn.execute(f"SELECT {column} FROM plans WHERE run_id = ?", (run_id,)).fetchone()
    return None if plan is None else plan[0]
