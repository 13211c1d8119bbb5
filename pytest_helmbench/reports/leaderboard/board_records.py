"""A leaderboard for programs: JSON, and a line per run as CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict
from io import StringIO

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.reports.exports.csv_export import spreadsheet_cell
from pytest_helmbench.reports.json_report import score_record
from pytest_helmbench.reports.leaderboard.board_notes import board_notes
from pytest_helmbench.reports.own_schemas import own_schema
from pytest_helmbench.reports.readable_json import readable_json
from pytest_helmbench.results.standings import Board, Pair, Standing

__all__ = ["BOARD_FORMAT", "board_csv", "board_json", "board_schema"]

BOARD_FORMAT = "helmbench-leaderboard/1"

_SCORE = ("score", "low", "high", "raw", "capped", "coverage", "pass_rate", "judged_rows", "planned_rows")
_RUN = ("version", "status", "scope", "started_at")


def board_json(found: Sequence[Board]) -> str:
    """Return a leaderboard as JSON: fractions in [0, 1], unknown as null, costs in USD, times in milliseconds."""
    document = {
        "format": BOARD_FORMAT,
        "benchmarks": [
            {
                "benchmark": board.benchmark,
                "runs": [_record(one, board) for one in board.standings],
                "pairs": [_pair(pair) for pair in board.pairs],
            }
            for board in found
        ],
    }
    return readable_json(document, indent=1) + "\n"


def board_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema of `board_json`."""
    return own_schema("leaderboard")


def board_csv(found: Sequence[Board]) -> str:
    """Return one line per run; lists are joined by spaces (runs) or semicolons (notes), unknown is empty.

    A text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    rows = [
        {"benchmark": board.benchmark, **_record(one, board)} for board in found for one in board.standings
    ]
    names = list(rows[0]) if rows else []
    writer.writerow(names)
    for row in rows:
        writer.writerow([spreadsheet_cell(_flat(row[name], name)) for name in names])
    return stream.getvalue()


def _flat(value: object, name: str) -> object:
    if isinstance(value, list):
        return ("; " if name == "notes" else " ").join(map(str, value))
    return value


def _record(one: Standing, board: Board) -> dict[str, object]:
    run, ref = one.detail.summary, one.ref
    score = None if one.score is None else score_record(one.score, {})
    own = None if one.words is None else one.words.own_score(with_text=False)
    beaten = [
        pair.second if pair.better == pair.first else pair.first for pair in board.pairs if pair.better == ref
    ]
    unknown = one.counts.unknown_costs
    return {
        "run": ref.run_id,
        "database": ref.path.name,
        "model": run.model,
        **{name: getattr(run, name) for name in _RUN},
        "benchmark_hash": one.detail.benchmark_hash,
        **{name: None if score is None else score[name] for name in _SCORE},
        "best_place": None if one.ranks is None else one.ranks[0],
        "worst_place": None if one.ranks is None else one.ranks[1],
        "better_than": [other.run_id for other in beaten],
        "own_total": None if own is None else own.get("total"),
        "own_unit": None if own is None else own.get("unit"),
        "cost_usd": None if unknown else one.counts.known_cost_usd,
        "known_cost_usd": one.counts.known_cost_usd,
        **asdict(one.speed),
        "imported_from": one.imported_from or None,
        "judges": list(one.judges),
        "passed_over": list(one.passed_over),
        "notes": list(board_notes(one, board)),
    }


def _pair(pair: Pair) -> dict[str, object]:
    found = pair.found
    return {
        "first": {"run": pair.first.run_id, "model": pair.first.model},
        "second": {"run": pair.second.run_id, "model": pair.second.model},
        "difference": None if found is None else float(found.difference),
        "p": None if found is None else found.p,
        "p_adjusted": pair.p_adjusted,
        "better": None if pair.better is None else pair.better.run_id,
        "cases": pair.cases,
        "unit": pair.unit or None,
        "units": None if found is None else found.units,
        "changed": None if found is None else found.changed,
        "reason": pair.reason,
    }
