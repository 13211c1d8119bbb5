"""Plots as numbers: where marks, bars and lines stand. The page draws them; tables say the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from math import floor, log10

from pytest_helmbench.core.codes import CaseCode, natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.reports.score_lines import interval_text
from pytest_helmbench.reports.tables import share
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.scoring.breakdown import Detection, Rate, percentile
from pytest_helmbench.scoring.run_score import Score

_BINS = 25
_FEW_ROWS = 5
_MOST_FOREST_ROWS = 150
_MOST_HEAT_ROWS = 80


@dataclass(frozen=True, slots=True)
class Mark:
    """A score on a line from 0 to 100.

    Args:
        run: Number of the run on the page, from 0.
        at: Where the score stands.
        low: End of its interval; None without one. `high` likewise.
        score: As text.
        interval: As text.
        judged: Rows judged of rows planned, as text.
    """

    run: int
    at: float
    low: float | None
    high: float | None
    score: str
    interval: str
    judged: str


@dataclass(frozen=True, slots=True)
class ForestRow:
    """A pillar, behaviour or group with its score in every run.

    Args:
        code: `P1-B2`, `P1`, or the name of a group.
        title: Empty where there is none.
        axis: What cases are filtered by: `behaviour`, `pillar` or `group`.
        marks: One per run that has judged some of it.
    """

    code: str
    title: str
    axis: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """Rows of a behaviour under a condition.

    Args:
        condition: `C1`; empty for those without one.
        passed: Judged right.
        judged: Of so many; 0 leaves the cell empty.
        before: Share of the baseline; None where nothing is compared.
    """

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
        return (
            None
            if self.before is None or not self.judged
            else Fraction(self.passed, self.judged) - self.before
        )

    @property
    def change_level(self) -> str:
        """Colour of the change: `down3` to `up3`, `even` for none."""
        change = self.change or Fraction(0)
        size = sum(abs(change) > least for least in (0, Fraction(1, 20), Fraction(1, 5)))
        return f"{'up' if change > 0 else 'down'}{size}" if size else "even"

    @property
    def is_few(self) -> bool:
        """Whether the share says little."""
        return self.judged < _FEW_ROWS

    @property
    def share(self) -> str:
        """As in all tables."""
        return share(Fraction(self.passed, self.judged))


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Behaviour × condition; `more` rows are left out."""

    conditions: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]
    more: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """How a quantity is spread.

    Args:
        bars: Left end, width and height of each, in a field of 400 × 100; of the bins with a value.
        is_log: The axis is logarithmic.
        low: Left end of the axis; `high` the right one.
        median: Half are below; `p95`, `p99` likewise.
        count: Values that are known.
        table: From, to and number of each bin with a value.
    """

    bars: tuple[tuple[float, float, float], ...]
    is_log: bool
    low: float
    high: float
    median: float
    p95: float
    p99: float
    count: int
    table: tuple[tuple[float, float, int], ...]


def forest(reports: Sequence[RunReport]) -> tuple[tuple[ForestRow, ...], int]:
    """Return a row per pillar and behaviour, or per group of a pack, with a mark per run; and how many are left out.

    Args:
        reports: Of one benchmark.
    """
    places: dict[str, tuple[str, dict[int, Score]]] = {}
    titles: dict[str, str] = {}
    for run, report in enumerate(reports):
        titles.update(report.titles)
        for axis, found in _scored_parts(report):
            places.setdefault(found.code, (axis, {}))[1][run] = found
    codes = (
        sorted(places, key=natural_key) if any(axis != "group" for axis, _ in places.values()) else [*places]
    )
    rows = [
        ForestRow(code, titles.get(code, ""), places[code][0], tuple(_marks(places[code][1])))
        for code in codes
    ]
    return tuple(rows[:_MOST_FOREST_ROWS]), max(0, len(rows) - _MOST_FOREST_ROWS)


def _scored_parts(report: RunReport) -> Iterator[tuple[str, Score]]:
    if report.score is None:
        return
    yield from (("pillar", part) for part in report.score.pillars)
    yield from (("behaviour", part) for part in report.score.behaviours)
    yield from (("group", part) for part in report.score.groups)


def _marks(scores: dict[int, Score]) -> Iterator[Mark]:
    for run, found in scores.items():
        if found.score is None:
            continue
        low, high = (None, None) if found.interval is None else (found.interval.low, found.interval.high)
        yield Mark(
            run=run,
            at=_hundredth(float(found.score)),
            low=None if low is None else _hundredth(low),
            high=None if high is None else _hundredth(high),
            score=share(found.score),
            interval=interval_text(found),
            judged=f"{found.judged_rows}/{found.planned_rows}",
        )


def _hundredth(value: float) -> float:
    return round(100 * value, 2)


def heat_map(found: Iterable[Detection], before: Iterable[Detection] = ()) -> HeatMap:
    """Return what was judged right by behaviour and condition; scenarios of a behaviour are added up.

    Args:
        found: By condition; see `Breakdown.by_condition`.
        before: Likewise of the baseline; empty where nothing is compared.
    """
    cells, earlier = _by_behaviour(found), _by_behaviour(before)
    names = sorted({name for row in cells.values() for name in row}, key=natural_key)
    behaviours = sorted(cells, key=natural_key)
    rows = tuple(
        (
            behaviour,
            tuple(
                _heat_cell(name, cells[behaviour].get(name, []), earlier[behaviour].get(name, []))
                for name in names
            ),
        )
        for behaviour in behaviours[:_MOST_HEAT_ROWS]
    )
    return HeatMap(tuple(names), rows, max(0, len(behaviours) - _MOST_HEAT_ROWS))


def _by_behaviour(found: Iterable[Detection]) -> defaultdict[str, defaultdict[str, list[Rate]]]:
    cells: defaultdict[str, defaultdict[str, list[Rate]]] = defaultdict(lambda: defaultdict(list))
    for part in found:
        code = CaseCode.parse(part.code)
        if code is not None:
            cells[f"{code.pillar}-{code.behaviour}"][code.condition or ""].append(part.right)
    return cells


def _heat_cell(condition: str, rates: Sequence[Rate], before: Sequence[Rate]) -> HeatCell:
    earlier = sum(rate.of_rows for rate in before)
    return HeatCell(
        condition,
        sum(rate.rows for rate in rates),
        sum(rate.of_rows for rate in rates),
        Fraction(sum(rate.rows for rate in before), earlier) if earlier else None,
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
        low=low,
        high=high,
        median=median,
        p95=p95,
        p99=p99,
        count=len(ordered),
        table=tuple((ends[index], ends[index + 1], count) for index, count in enumerate(counts) if count),
    )
