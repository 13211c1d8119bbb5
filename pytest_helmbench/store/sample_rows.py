"""The samples that runs were drawn as: rule, seed, and what each planned case stands for."""

from __future__ import annotations

import sqlite3
import zlib
from dataclasses import replace
from fractions import Fraction

from pytest_helmbench.core.sample import Sample
from pytest_helmbench.store.reading import has_table

__all__ = ["CREATE_SAMPLES", "read_sample", "write_sample"]

CREATE_SAMPLES = """CREATE TABLE samples (
    run_id INTEGER PRIMARY KEY REFERENCES evaluation_runs (id),
    rule TEXT NOT NULL,
    seed INTEGER NOT NULL,
    cases INTEGER NOT NULL,
    of_cases INTEGER NOT NULL,
    weights BLOB NOT NULL
)"""


def write_sample(conn: sqlite3.Connection, run_id: int, sample: Sample | None) -> None:
    """Keep the sample of a run; a run that goes on keeps what it had, too."""
    if sample is None:
        return
    before = read_sample(conn, run_id)
    if before is not None:
        sample = replace(sample, weights={**before.weights, **sample.weights})
    lines = "\n".join(f"{weight} {code}" for code, weight in sample.weights.items())
    conn.execute(
        "INSERT OR REPLACE INTO samples (run_id, rule, seed, cases, of_cases, weights) VALUES (?, ?, ?, ?, ?, ?)",
        (
            run_id,
            sample.rule,
            sample.seed,
            sample.cases,
            sample.of,
            zlib.compress(lines.encode("utf-8", "replace")),
        ),
    )


def read_sample(conn: sqlite3.Connection, run_id: int) -> Sample | None:
    """Return the sample that a run was drawn as; None for a run of all that was selected."""
    if not has_table(conn, "samples"):
        return None
    found = conn.execute(
        "SELECT rule, seed, of_cases, weights FROM samples WHERE run_id = ?", (run_id,)
    ).fetchone()
    if found is None:
        return None
    rule, seed, of_cases, packed = found
    lines = (line.partition(" ") for line in zlib.decompress(packed).decode().split("\n") if line)
    return Sample(rule, seed, of_cases, {code: Fraction(weight) for weight, _, code in lines})
