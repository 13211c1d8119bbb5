"""The report for programs, as the schema `report` says: fractions as numbers, unknown as null."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from importlib.resources import files
from typing import TYPE_CHECKING

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.outcome import Parse
from pytest_helmbench.core.scrub import quoted_json
from pytest_helmbench.reports.cards import evaluation_record, run_record, transcript_record
from pytest_helmbench.reports.panel_tables import panel_record
from pytest_helmbench.reports.run_cautions import cautions
from pytest_helmbench.reports.standings_tables import standings_record
from pytest_helmbench.results.comparison_records import comparison_records
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.results.standings import ReportedRuns
from pytest_helmbench.scoring.breakdown import RowShare
from pytest_helmbench.scoring.intervals import Interval
from pytest_helmbench.scoring.run_score import RunScore, Score
from pytest_helmbench.store.read.costs import CostRow
from pytest_helmbench.store.read.results import ResultRow

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

REPORT_FORMAT = "helmbench-report/1"
_FAILURE = (
    *("code", "repetition", "family", "reason", "score"),
    *("severity", "difficulty", "neutral", "reply_hash"),
)
_SCORE = (
    *("rerun", "bounds", "coverage", "pass_rate", "weight", "unweighted"),
    *("planned_rows", "judged_rows", "passed_rows"),
)
_INTERVAL = ("df", "units", "effective_units", "effective_cases")


def json_report(found: ReportedRuns, *, with_text: bool = False) -> str:
    """Return some runs with their numbers as one JSON object; ASCII, so that no terminal or parser minds replies.

    `with_text` adds prompts, replies and the judge's words of failures.
    """
    document = {
        "format": REPORT_FORMAT,
        "runs": [_run(report, with_text=with_text) for report in found.runs],
        "standings": [standings_record(board) for board in found.boards],
    }
    return quoted_json(json.dumps(document, indent=1)) + "\n"


def score_record(score: RunScore, titles: Mapping[str, str]) -> dict[str, object]:
    """Return the score of a run with its parts, and their titles by code, in JSON types."""

    def part(found: Score) -> dict[str, object]:
        return {"code": found.code, "title": titles.get(found.code), **_score(found)}

    return {
        **_score(score.total),
        "capped": _plain(score.capped),
        "repetition_sd": score.repetition_sd,
        "neutral_rows": score.neutral_rows,
        "sample": None
        if score.sample is None
        else {name: getattr(score.sample, name) for name in ("rule", "seed", "cases", "of")},
        "corrected": _plain(score.corrected),
        "corrected_points": _plain(score.corrected_points),
        "warnings": list(score.warnings),
        "floors": [{**_record(floor), "state": floor.state.value} for floor in score.floors],
        "pillars": [part(found) for found in score.pillars],
        "behaviours": [part(found) for found in score.behaviours],
        "groups": [part(found) for found in score.groups],
    }


def _run(report: RunReport, *, with_text: bool) -> dict[str, object]:
    counts = report.counts
    words = report.words
    constants = report.constants
    return {
        "run": run_record(report.detail),
        "warnings": list(cautions(report)),
        "score": None if report.score is None else score_record(report.score, report.titles),
        "pack_score": None if words is None else words.own_score(with_text=with_text),
        "beside": {
            **_record(report.breakdown),
            "flags_everything": _plain(constants.flags_everything),
            "flags_nothing": _plain(constants.flags_nothing),
        },
        "comparisons": [] if report.comparison is None else comparison_records(report.comparison),
        "repetitions": _plain(report.repetitions),
        "judging": {
            "judge": report.judge or None,
            "judges": list(report.judges),
            "agreement": panel_record(report.panel),
            "judgements": report.judgements,
            "form_faults": counts.form_faults,
            "json_strict": counts.parses[Parse.STRICT],
            "json_recovered": counts.parses[Parse.RECOVERED],
            "no_answer": counts.unstated,
            "neutral_wrong": counts.neutral_wrong,
        },
        "failures": [_failure(failure, report, with_text=with_text) for failure in report.failures],
        "outcomes": [
            {"outcome": outcome, "reason": reason, "cases": count}
            for (outcome, reason), count in sorted(
                report.detail.outcomes.items(), key=lambda e: (e[0][0], e[0][1] or "")
            )
        ],
        "not_run": report.not_run,
        "costs": [_cost(cost) for cost in report.costs],
        "speed": _plain(report.speed),
    }


def _score(score: Score) -> dict[str, object]:
    interval = score.interval
    return {
        "score": _plain(score.score),
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "clusters": score.clusters,
        "interval": None if interval is None else _interval(interval),
        **{name: _plain(getattr(score, name)) for name in _SCORE},
    }


def _interval(found: Interval) -> dict[str, object]:
    return {
        "low": found.low,
        "high": found.high,
        "level": 0.95,
        "target": found.target,
        "n": found.trials,
        **{name: getattr(found, name) for name in _INTERVAL},
    }


def _plain(value: object) -> object:
    """Return a value in JSON types: a fraction as a number, a dataclass as an object of its fields."""
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return _record(value) if is_dataclass(value) and not isinstance(value, type) else value


def _record(value: DataclassInstance) -> dict[str, object]:
    names = [field.name for field in fields(value)]
    if isinstance(value, RowShare):
        names = ["plain", "weighted", *names]
    return {name: _plain(getattr(value, name)) for name in names}


def _failure(row: ResultRow, report: RunReport, *, with_text: bool) -> dict[str, object]:
    record: dict[str, object] = {name: getattr(row, name) for name in _FAILURE}
    record["points_lost"] = float(100 * report.losses.of(row))
    record["evaluations"] = [evaluation_record(item, with_text=with_text) for item in row.evaluations]
    if row.words is not None:
        record |= report.columns.cells(row.words, with_text=with_text)
    return record | (transcript_record(row) if with_text else {})


def _cost(row: CostRow) -> dict[str, object]:
    record = {name: value for name, value in _record(row).items() if name not in ("run_id", "model")}
    return {**record, "cost_usd": row.cost_usd}


def own_schema(name: str) -> dict[str, JsonValue]:
    """Return the JSON Schema of one of our outputs, from `NAME.json`: `export` or `report`."""
    loaded: dict[str, JsonValue] = json.loads(files(__package__).joinpath(f"{name}.json").read_text("utf-8"))
    return loaded
