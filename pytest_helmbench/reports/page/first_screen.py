"""The first screen of a page: runs side by side, and where points of the score are lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor, log10
from pathlib import Path
from typing import NamedTuple

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.reports.headline import figure
from pytest_helmbench.reports.page.columns import Messages, message_line
from pytest_helmbench.reports.page.plots import ROUND, ForestRow, forest, free_level, log_ticks, ticks_of
from pytest_helmbench.reports.run_cautions import constant_doubt, doubts, flagging
from pytest_helmbench.reports.standings_tables import StandingsTable, standings_table
from pytest_helmbench.reports.tables import listed, points_lost, seconds, share
from pytest_helmbench.results.losses import CaseRepetition
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.results.standings import Board
from pytest_helmbench.scoring.intervals import INTERVAL
from pytest_helmbench.scoring.thresholds import breach_text

_MOST_PLOTTED = 12
_CASES = 5
_DISC, _DOTS = 19, 620
"""Width of a mark and of its axis, in pixels; a wider axis has more room between marks."""
_FIRST = ("run", "model", "score", INTERVAL, "right")
_INSTEAD = frozenset(("coverage", "evaluations", "cost USD", "median time"))
"""Columns of other reports that a page says in fewer: `not judged`, `USD`, `time`."""
_OF_ONE = frozenset(("verdict", "own total"))


WorstCase = tuple[str, int, str, str, str]
"""Code and repetition of a case, its message, the points lost, and what stands beside them."""


def _lost_cases(reports: Sequence[RunReport], messages: Messages) -> list[WorstCase]:
    """Return the worst cases, the points of the score that they lost on average, and in how many runs."""
    sums: defaultdict[CaseRepetition, Fraction] = defaultdict(Fraction)
    for report in reports:
        for case, lost in report.losses.cases.items():
            sums[case] += lost / len(reports)
    wrong = Counter((row.code, row.repetition) for report in reports for row in report.failures)
    found = sorted(sums, key=lambda case: (-sums[case], natural_key(case[0]), case[1]))
    benchmark = reports[0].detail.benchmark if reports else ""
    return [
        (
            *case,
            message_line(messages, benchmark, *case),
            points_lost(sums[case]),
            f"{wrong[case]} of {len(reports)} runs",
        )
        for case in found[:_CASES]
    ]


class BoardRow(NamedTuple):
    """A run, numbered from the best on, or a constant answer with the number 0."""

    number: int
    cells: tuple[str, ...]
    is_best: bool = False


class PageBoard(NamedTuple):
    """The runs of one benchmark: columns in which they differ (`alike` has the others), and the parts of the page."""

    id: int
    table: StandingsTable
    head: tuple[str, ...]
    alike: str
    rows: tuple[BoardRow, ...]
    said: tuple[str, ...]
    names: tuple[str, ...]
    plotted: tuple[RunReport, ...]
    doubts: tuple[str, ...]
    worst: list[WorstCase]


def page_board(
    board: Board, names: Mapping[tuple[Path, int], str], number: int, messages: Messages
) -> PageBoard:
    """Return the runs of a benchmark, a board with a number; names are those of their sections."""
    table = standings_table(board)
    reports = tuple(one.report for one in board.standings)
    found = dict(zip(table.head, zip(*table.rows, strict=True), strict=True))
    columns = {name: found.pop(name) for name in _FIRST}
    columns |= {
        "not judged": tuple(f"{one.detail.total_tests - one.counts.judged:,}" for one in reports),
        "USD": found["cost USD"],
        "time": tuple(seconds(one.speed.median_ms) for one in reports),
    }
    columns |= {name: cells for name, cells in found.items() if name not in _INSTEAD}
    columns["status"] = tuple(cell.removesuffix(", whole") for cell in columns["status"])
    intervals, cautions = zip(*(cell.partition(" (")[::2] for cell in columns[INTERVAL]), strict=True)
    if len({*cautions}) == 1:
        columns |= {INTERVAL: intervals, "interval": tuple(caution.rstrip(")") for caution in cautions)}
    paid = any(report.counts.known_cost_usd for report in reports)
    always = {*_FIRST, "not judged", "time", *(["USD"] if paid else []), *_OF_ONE}
    kept = [name for name, cells in columns.items() if name in always or len({*cells}) > 1]
    alike = (
        f"{name} {cells[0]}"
        for name, cells in columns.items()
        if name not in kept and cells[0] not in ("", "-")
    )
    rows = [
        BoardRow(place, cells, place == table.winner + 1)
        for place, cells in enumerate(zip(*(columns[name] for name in kept), strict=True), 1)
    ]
    return PageBoard(
        number,
        table,
        tuple(kept),
        ", ".join(alike),
        tuple(_with_constants(rows, kept, board)),
        tuple(_said(board)),
        tuple(names[one.ref.path, one.ref.run_id] for one in board.standings),
        tuple(report for report in reports if report.score is not None)[:_MOST_PLOTTED],
        tuple(_doubts(reports)),
        _lost_cases(reports, messages),
    )


def _with_constants(rows: Sequence[BoardRow], head: Sequence[str], board: Board) -> Sequence[BoardRow]:
    """Return the rows of a table of runs with those of the constant answers in their places."""
    scores = (None if one.score is None else one.score.score for one in board.standings)
    found = [(-1 if score is None else score, row) for score, row in zip(scores, rows, strict=True)]
    for name, value in flagging(board.reference.report):
        shown = {"model": f"({name.replace('flagging', 'flags')})", "score": share(value)}
        found.append((value, BoardRow(0, tuple(shown.get(column, "") for column in head))))
    return [row for _, row in sorted(found, key=lambda one: -one[0])]


def _said(board: Board) -> Iterator[str]:
    first = board.standings[0]
    if first.score is None or first.score.score is None:
        yield "No run has a score"
        return
    cap = f", {breach_text(first.score)}" if first.score.breached else ""
    yield f"{_place(board)}{first.detail.model} {figure(first.score.total)}{cap}"
    for name, value in flagging(board.reference.report)[:1]:
        better = [one.detail.model for one in board.standings if one.score and not constant_doubt(one.report)]
        who = "every run" if len(better) == len(board.standings) else listed(better) or "no run"
        yield f"Shown to be better than {name} ({share(value)}): {who}."


def _place(board: Board) -> str:
    """Return what the first run of a board is called: best where that is shown, else highest, or tied."""
    if board.winner is not None:
        return "Best, shown to be better than every other: "
    shown = [share(one.score.score) for one in board.standings if one.score and one.score.score is not None]
    if len(shown) < 2 or shown[0] == share(0):
        return ""
    return f"Tied with {shown.count(shown[0]) - 1} more: " if shown.count(shown[0]) > 1 else "Highest: "


def _doubts(reports: Sequence[RunReport]) -> Iterator[str]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for report in reports:
        for sentence in doubts(report):
            if sentence != constant_doubt(report):
                found[sentence].append(report.detail.model)
    for sentence, models in found.items():
        names = "all runs" if len(models) == len(reports) else listed(models)
        yield f"{names}: {sentence}" if len(reports) > 1 else sentence


class DotPlot(NamedTuple):
    """Parts × runs on an axis from `low` to 100 per cent, with its ticks; `more` parts are left out."""

    rows: tuple[ForestRow, ...]
    low: float
    ticks: tuple[float, ...]
    more: int


def dot_plot(reports: Sequence[RunReport]) -> DotPlot:
    """Return the scores of runs by part: the hardest pillar first, below it its behaviours likewise."""
    found, more = forest(reports)
    rows = [row for row in found if row.marks]
    means = {row.code: sum(mark.at for mark in row.marks) / len(row.marks) for row in rows}
    above = {row.code: means[row.code] for row in rows if row.axis == "pillar"}
    rows.sort(
        key=lambda row: (above.get(row.code.partition("-")[0], 0), row.axis != "pillar", means[row.code])
    )
    low = min(80.0, 10.0 * floor(min((mark.at for row in rows for mark in row.marks), default=0) / 10))
    return DotPlot(tuple(_levelled(row, low) for row in rows), low, tuple(ticks_of(low, 100)), more)


def _levelled(row: ForestRow, low: float) -> ForestRow:
    """Return a row whose marks do not overlap."""
    taken: list[list[tuple[float, float]]] = []
    marks = []
    for mark in row.marks:
        left = _DOTS * (mark.at - low) / (100 - low)
        marks.append(mark._replace(level=free_level(taken, left, left + _DISC)))
    return row._replace(marks=tuple(marks), levels=len(taken))


class CostPlot(NamedTuple):
    """Runs in a field of 700 × 310: number, x, y, y of the name, and name; ticks have a place and a value."""

    points: tuple[tuple[int, float, float, float, str], ...]
    x_ticks: tuple[tuple[float, float], ...]
    y_ticks: tuple[tuple[float, float], ...]


def cost_plot(reports: Sequence[RunReport]) -> CostPlot | None:
    """Return cost and score of runs of one benchmark; None where fewer than three, or no two costs, are known."""
    known = [
        (number, report.counts.known_cost_usd, 100 * float(report.score.score), report.detail.model)
        for number, report in enumerate(reports, 1)
        if report.score and report.score.score is not None and not report.counts.unknown_costs
    ]
    costs = {cost for _, cost, _, _ in known}
    paid = costs - {0}
    if len(known) < 3 or len(costs) < 2:
        return None
    low = max(one for one in ROUND if one < 0.95 * min(paid))
    high = min(one for one in ROUND if one > 1.05 * max(paid))
    left = 60 if paid == costs else 130
    bottom = min(80.0, 10.0 * floor(min(score for _, _, score, _ in known) / 10))

    def x_of(cost: float) -> float:
        return round(left + (490 - left) * log10(cost / low) / log10(high / low), 1) if cost else 70.0

    def y_of(score: float) -> float:
        return round(260 - 240 * (score - bottom) / (100 - bottom), 1)

    points = []
    free_y = 20.0
    for number, cost, score, name in known:
        name_y = max(free_y, y_of(score))
        points.append((number, x_of(cost), y_of(score), name_y, name))
        free_y = name_y + 17
    ticks = [*([0.0] if paid != costs else []), *log_ticks(low, high)]
    return CostPlot(
        tuple(points),
        tuple((x_of(cost), cost) for cost in ticks),
        tuple((y_of(tick), tick) for tick in ticks_of(bottom, 100)),
    )
