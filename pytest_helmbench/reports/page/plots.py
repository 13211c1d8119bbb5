"""Plots as numbers: where marks, bars and lines stand. The page draws them; tables say the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, log10
from typing import NamedTuple

from pytest_helmbench.core.codes import CaseCode, natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.reports.comparison_lines import shown_change
from pytest_helmbench.reports.run_cautions import flagging
from pytest_helmbench.reports.tables import share
from pytest_helmbench.results.gates import RunGates
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.scoring.breakdown import Detection, percentile
from pytest_helmbench.scoring.comparison import ScopeChange
from pytest_helmbench.scoring.run_score import Score
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey
from pytest_helmbench.store.read.runs import RunSummary

_CHARACTER_PX = 7.2
"""Width of a character on the page, about."""
_GAP_PX = 8
ROUND = tuple(float(f"{size}e{power}") for power in range(-9, 10) for size in (1, 2, 5))
"""Values of ticks on logarithmic axes."""
_BINS = 25
_MOST_FOREST_ROWS = 150
_MOST_HEAT_ROWS = 80
_NO_ROWS = (0, 0)


class Mark(NamedTuple):
    """The score of a run, numbered from 0, with its interval in per cent, and as text; of a level no two overlap."""

    run: int
    at: float
    low: float | None
    high: float | None
    score: str
    interval: str
    judged: str
    level: int = 0


class ForestRow(NamedTuple):
    """A pillar, behaviour or group (`axis` filters its cases) with a mark for each run that has judged some of it."""

    code: str
    title: str
    axis: str
    marks: tuple[Mark, ...]
    levels: int = 1


@dataclass(frozen=True, slots=True)
class HeatCell:
    """Rows of a behaviour under a condition, empty for none: those passed and judged, and the baseline's share."""

    condition: str
    passed: int
    judged: int
    before: Fraction | None = None

    @property
    def level(self) -> int:
        """Colour, 0 (none passed) to 9."""
        return min(9, 10 * self.passed // self.judged)

    @property
    def change(self) -> Fraction | None:
        """Candidate − baseline; None where one of them has no row."""
        if self.before is None or not self.judged:
            return None
        return Fraction(self.passed, self.judged) - self.before

    @property
    def change_level(self) -> str:
        """Colour of the change: `down3` to `up3`, `even` for none."""
        change = self.change or Fraction(0)
        size = sum(abs(change) > least for least in (0, Fraction(1, 20), Fraction(1, 5)))
        return f"{'up' if change > 0 else 'down'}{size}" if size else "even"


class HeatMap(NamedTuple):
    """Behaviour × condition; `more` rows are left out."""

    conditions: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]
    more: int


class Histogram(NamedTuple):
    """How a quantity is spread: left end, width and height of bars in a field of 400 × 100, `most` values the highest.

    Ticks are places and values, rows of the table from, to and number of each bin with a value.
    """

    bars: tuple[tuple[float, float, float], ...]
    is_log: bool
    high: float
    median: float
    p95: float
    p99: float
    known: int
    most: int
    ticks: tuple[tuple[float, float], ...]
    table: tuple[tuple[float, float, int], ...]


class Label(NamedTuple):
    """A named place in per cent of a line; texts of one level, from 0, do not overlap."""

    kind: str
    at: float
    text: str
    anchor: str
    level: int


class Strip(NamedTuple):
    """A value with its interval on a line, in per cent of it: what it has to reach above, the scale below."""

    at: float
    span: tuple[float, float] | None
    above: tuple[Label, ...]
    below: tuple[Label, ...]


def score_strip(report: RunReport, gates: RunGates, width_px: int) -> Strip:
    """Return the score of a run, which has one, on a line from 0 to 100, so wide that its texts do not overlap."""
    found = report.score
    assert found is not None
    assert found.score is not None
    above = [("score", found.score, "score")]
    above += [
        ("threshold", one.threshold.least, "threshold") for one in gates.verdicts if not one.threshold.code
    ]
    above += [("floor", one.least, f"floor of {one.pillar}") for one in found.floors]
    below = [("end", Fraction(0), ""), ("end", Fraction(1), "")]
    below.append(("constant", report.constants.all_wrong or Fraction(0), "all wrong"))
    below += [("constant", value, name.replace("flagging", "flags")) for name, value in flagging(report)]
    interval = found.total.interval
    return Strip(
        hundredth(found.score),
        None if interval is None else (hundredth(interval.low), hundredth(interval.high)),
        _placed(_named(above), width_px),
        _placed(_named(below), width_px),
    )


def change_strip(scope: ScopeChange, width_px: int) -> Strip:
    """Return the change of a score on a line around 0; see `score_strip`."""
    change = scope.change
    ends = (scope.low, scope.high)
    most = 10 * max(1, ceil(10 * max(abs(float(one)) for one in (change.change, *ends) if one is not None)))

    def place(value: float | Fraction) -> float:
        return round(50 + 5000 * float(value) / most, 2)

    above = [("score", place(change.change), f"change {shown_change(scope.baseline_score, scope.score)}")]
    if scope.drop:
        above.append(("threshold", place(-scope.drop), f"allowed −{100 * float(scope.drop):.1f}"))
    below = [("end", 0.0, f"−{most}"), ("constant", 50.0, "0 no change"), ("end", 100.0, f"+{most} points")]
    low, high = ends
    span = None if low is None or high is None else (max(0.0, place(low)), min(100.0, place(high)))
    return Strip(place(change.change), span, _placed(above, width_px), _placed(below, width_px))


def _named(marks: Iterable[tuple[str, Fraction, str]]) -> Iterator[tuple[str, float, str]]:
    """Yield one mark per place, with the names of all that stand there and the value."""
    places: dict[float, tuple[str, list[str]]] = {}
    for kind, value, name in marks:
        places.setdefault(hundredth(value), (kind, []))[1].append(name)
    for at, (kind, names) in places.items():
        value_text = f"{at:g} %" if kind == "end" else f"{at:.1f}"
        yield kind, at, ", ".join(filter(None, (*names, ""))) + (" " if any(names) else "") + value_text


def _placed(marks: Iterable[tuple[str, float, str]], width_px: int) -> tuple[Label, ...]:
    """Return marks with rows for their texts; those that come first stand nearest to the line."""
    rows: list[list[tuple[float, float]]] = []
    found = []
    for kind, at, text in marks:
        width, x = len(text) * _CHARACTER_PX, at * width_px / 100
        anchor = "start" if x < width / 2 else "end" if x + width / 2 > width_px else "middle"
        left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
        level = free_level(rows, left, left + width + _GAP_PX)
        found.append(Label(kind, at, text, anchor, level))
    return tuple(found)


def free_level(rows: list[list[tuple[float, float]]], left: float, right: float) -> int:
    """Return the first row that has room from left to right, and take it."""
    for level, taken in enumerate(rows):
        if all(right <= start or end <= left for start, end in taken):
            taken.append((left, right))
            return level
    rows.append([(left, right)])
    return len(rows) - 1


def ticks_of(low: float, high: float) -> list[float]:
    """Return three to six round numbers from low to high."""
    rough = (high - low) / 5
    unit: float = 10 ** floor(log10(rough))
    step = next(unit * size for size in (1, 2, 2.5, 5, 10) if unit * size >= rough * 0.999)
    return [step * number for number in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten from low to high; of many, the powers alone."""
    found = [one for one in ROUND if low <= one <= high]
    return found if len(found) <= 6 else [one for one in found if f"{one:e}".startswith("1")]


class Trend(NamedTuple):
    """Scores of a model on a benchmark by run, the oldest first, in a field of 400 × 100 from `low` to 100 per cent.

    Points are a run, x, and the y of its score and of the ends of its interval.
    """

    benchmark: str
    model: str
    low: float
    points: tuple[tuple[RunSummary, float, float, float, float], ...]


def trends(runs: Iterable[RunSummary]) -> list[Trend]:
    """Return the scores over time of every model with several complete runs of a version of a benchmark."""
    found: defaultdict[tuple[BenchmarkKey, str, str], list[RunSummary]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.id):
        if run.score is not None and run.status == "complete" and run.scope == "whole":
            found[run.key, run.version, run.model].append(run)
    return [_trend(alike) for alike in found.values() if len(alike) > 1]


def _trend(alike: Sequence[RunSummary]) -> Trend:
    spans = []
    for run in alike:
        score = run.score or 0.0
        ends = (score if end is None else end for end in (run.score_low, run.score_high))
        spans.append((score, *ends))
    low = min(80.0, 10.0 * floor(10 * min(map(min, spans))))
    step = 400 / (len(alike) - 1)
    points = []
    for place, (run, span) in enumerate(zip(alike, spans, strict=True)):
        score, lower, upper = (round(100 - 100 * (100 * one - low) / (100 - low), 1) for one in span)
        points.append((run, round(place * step, 1), score, lower, upper))
    return Trend(f"{alike[0].benchmark} {alike[0].version}", alike[0].model, low, tuple(points))


def forest(reports: Sequence[RunReport]) -> tuple[tuple[ForestRow, ...], int]:
    """Return a row per pillar and behaviour, or per group of a pack, with a mark per run; and how many are left out."""
    places: dict[str, tuple[str, dict[int, Score]]] = {}
    titles: dict[str, str] = {}
    for run, report in enumerate(reports):
        titles.update(report.titles)
        for axis, found in report.score.parts if report.score else ():
            places.setdefault(found.code, (axis, {}))[1][run] = found
    codes = (
        sorted(places, key=natural_key) if any(axis != "group" for axis, _ in places.values()) else [*places]
    )
    rows = [
        ForestRow(code, titles.get(code, ""), places[code][0], tuple(_marks(places[code][1])))
        for code in codes
    ]
    return tuple(rows[:_MOST_FOREST_ROWS]), max(0, len(rows) - _MOST_FOREST_ROWS)


def _marks(scores: dict[int, Score]) -> Iterator[Mark]:
    for run, found in scores.items():
        if found.score is None:
            continue
        low, high = (None, None) if found.interval is None else (found.interval.low, found.interval.high)
        star = " *" if found.few_clusters else ""
        yield Mark(
            run=run,
            at=hundredth(found.score),
            low=None if low is None else hundredth(low),
            high=None if high is None else hundredth(high),
            score=share(found.score),
            interval="-" if low is None or high is None else f"{100 * low:.1f} – {100 * high:.1f}{star}",
            judged=f"{found.judged_rows}/{found.planned_rows}",
        )


def hundredth(value: float | Fraction) -> float:
    """Return a share in per cent, as a place on a line from 0 to 100."""
    return round(100 * float(value), 2)


def heat_map(found: Iterable[Detection], before: Iterable[Detection] = ()) -> HeatMap:
    """Return what was judged right by behaviour and condition, beside the baseline's share.

    Scenarios of a behaviour are added up.
    """
    cells, earlier = _by_behaviour(found), _by_behaviour(before)
    names = sorted({name for row in cells.values() for name in row}, key=natural_key)
    behaviours = sorted(cells, key=natural_key)
    rows = tuple(
        (behaviour, tuple(_heat_cell(name, cells[behaviour], earlier[behaviour]) for name in names))
        for behaviour in behaviours[:_MOST_HEAT_ROWS]
    )
    return HeatMap(tuple(names), rows, max(0, len(behaviours) - _MOST_HEAT_ROWS))


def _by_behaviour(found: Iterable[Detection]) -> defaultdict[str, dict[str, tuple[int, int]]]:
    """Return the rows passed and judged by behaviour and condition."""
    cells: defaultdict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    for part in found:
        code = CaseCode.parse(part.code)
        if code is not None:
            row, condition = cells[f"{code.pillar}-{code.behaviour}"], code.condition or ""
            passed, judged = row.get(condition, _NO_ROWS)
            row[condition] = passed + part.right.rows, judged + part.right.of_rows
    return cells


def _heat_cell(
    condition: str, row: Mapping[str, tuple[int, int]], before: Mapping[str, tuple[int, int]]
) -> HeatCell:
    earlier, in_all = before.get(condition, _NO_ROWS)
    return HeatCell(
        condition, *row.get(condition, _NO_ROWS), before=Fraction(earlier, in_all) if in_all else None
    )


def histogram(values: Iterable[float | None]) -> Histogram | None:
    """Return how values are spread; None without two different ones.

    The axis ends at the 99th percentile, what lies beyond is in the last bin; it is logarithmic where that is more
    than ten times the median.
    """
    ordered = sorted(value for value in values if value is not None)
    if not ordered or ordered[0] == ordered[-1]:
        return None
    median, p95, p99 = (percentile(ordered, part) for part in (0.5, 0.95, 0.99))
    positive = [value for value in ordered if value > 0]
    is_log = median > 0 and p99 > 10 * median
    low = percentile(positive, 0.01) if is_log else 0.0
    high = p99 if p99 > low else ordered[-1]
    place: Callable[[float], float] = (
        (lambda value: (log10(max(value, low)) - log10(low)) / (log10(high) - log10(low)))
        if is_log
        else (lambda value: (value - low) / (high - low))
    )
    counts = [0] * _BINS
    for value in ordered:
        counts[min(_BINS - 1, max(0, floor(_BINS * place(value))))] += 1
    ends = [
        low * (high / low) ** (index / _BINS) if is_log else low + (high - low) * index / _BINS
        for index in range(_BINS + 1)
    ]
    most, width = max(counts), 400 / _BINS
    return Histogram(
        bars=tuple(
            (round(index * width, 1), round(width - 1, 1), round(100 * count / most, 1))
            for index, count in enumerate(counts)
            if count
        ),
        is_log=is_log,
        high=high,
        median=median,
        p95=p95,
        p99=p99,
        known=len(ordered),
        most=most,
        ticks=tuple(
            (round(400 * place(tick), 1), tick)
            for tick in (log_ticks(low, high) if is_log else ticks_of(low, high))
        ),
        table=tuple((ends[index], ends[index + 1], count) for index, count in enumerate(counts) if count),
    )
