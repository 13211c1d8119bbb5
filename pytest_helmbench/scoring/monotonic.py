"""Monotonicity: whether harsher perturbations are caught more often, tested scenario by scenario."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.exact_tests import holm, sign_test
from pytest_helmbench.scoring.rows import Row

__all__ = ["Curve", "Inversion", "SeverityRate", "detection_curves"]

_ALPHA = Fraction(1, 20)


@dataclass(frozen=True, slots=True)
class SeverityRate:
    """How many of the judged rows of one base severity passed."""

    severity: int
    caught: int
    judged: int

    @property
    def rate(self) -> Fraction:
        """In [0, 1]."""
        return Fraction(self.caught, self.judged)


@dataclass(frozen=True, slots=True)
class Inversion:
    """A harsher perturbation that is caught less often than a milder one, beyond chance.

    Args:
        harsher: `PT7`.
        milder: `PT2`.
        gap: Severity points between them.
        harsher_caught: Rows passed, of `rows`.
        milder_caught: Rows passed, of `rows`.
        rows: Judged for both: same condition, user context, criterion and repetition.
        p_value: Adjusted for all pairs of the scenario.
    """

    harsher: str
    milder: str
    gap: int
    harsher_caught: int
    milder_caught: int
    rows: int
    p_value: Fraction


@dataclass(frozen=True, slots=True)
class Curve:
    """Detection by severity in one scenario.

    Args:
        scenario: `P1-B2-S1`.
        rates: By base severity, mildest first, each with a judged row.
        inversions: Those that an exact test confirms, the surest first.
        unconfirmed: Further pairs whose harsher side was caught less often, which may be chance.
    """

    scenario: str
    rates: tuple[SeverityRate, ...]
    inversions: tuple[Inversion, ...]
    unconfirmed: int


@dataclass(frozen=True, slots=True)
class _Cell:
    """The judged rows of one perturbation under one condition and user context.

    Args:
        base: Of all of them.
        rows: Criterion and repetition of each, in order.
        passed: Whether it passed, in the same order.
    """

    base: int
    rows: tuple[tuple[str, int], ...]
    passed: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class _Kind:
    """Perturbations with the same severity and the same verdicts, which every comparison treats alike."""

    codes: tuple[str, ...]
    cells: Mapping[tuple[str, str], _Cell]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two kinds compared where both were judged; `ups` are cells with more caught when harsher."""

    harsher: _Kind
    milder: _Kind
    gap: int
    harsher_caught: int
    milder_caught: int
    rows: int
    ups: int
    downs: int

    @property
    def inverted(self) -> bool:
        return self.harsher_caught < self.milder_caught

    @property
    def signs(self) -> tuple[int, int]:
        return self.ups, self.downs

    @property
    def count(self) -> int:
        """Pairs of perturbations that this stands for."""
        return len(self.harsher.codes) * len(self.milder.codes)

    def inversions(self, p_value: Fraction) -> Iterator[Inversion]:
        for harsher, milder in product(self.harsher.codes, self.milder.codes):
            yield Inversion(
                harsher=harsher,
                milder=milder,
                gap=self.gap,
                harsher_caught=self.harsher_caught,
                milder_caught=self.milder_caught,
                rows=self.rows,
                p_value=p_value,
            )


def detection_curves(rows: Iterable[Row]) -> tuple[Curve, ...]:
    """Return one curve per scenario with judged rows of severity above 0, in natural order.

    Two perturbations are compared over condition × user context (what repetitions and criteria say within
    one such cell counts as one pair) by an exact two-sided sign test, corrected by Holm over all pairs of the
    scenario that differ in severity.

    Source:
        Scenario trees, section 6.
    """
    by_scenario: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.passed is not None and row.severity > 0:
            by_scenario[row.scenario].append(row)
    return tuple(_curve(code, by_scenario[code]) for code in sorted(by_scenario, key=natural_key))


def _curve(scenario: str, rows: Sequence[Row]) -> Curve:
    pairs = _pairs(_kinds(rows))
    chances = {signs: sign_test(*signs) for signs in {pair.signs for pair in pairs}}
    tests: Counter[Fraction] = Counter()
    for pair in pairs:
        tests[chances[pair.signs]] += pair.count
    adjusted = holm(tests)
    inverted = [pair for pair in pairs if pair.inverted]
    inversions = [
        found
        for pair in inverted
        if pair.downs > pair.ups and adjusted[chances[pair.signs]] < _ALPHA
        for found in pair.inversions(adjusted[chances[pair.signs]])
    ]
    return Curve(
        scenario=scenario,
        rates=_rates(rows),
        inversions=tuple(
            sorted(inversions, key=lambda i: (i.p_value, natural_key(i.harsher), natural_key(i.milder)))
        ),
        unconfirmed=sum(pair.count for pair in inverted) - len(inversions),
    )


def _rates(rows: Iterable[Row]) -> tuple[SeverityRate, ...]:
    verdicts: defaultdict[int, list[bool]] = defaultdict(list)
    for row in rows:
        verdicts[row.severity].append(bool(row.passed))
    return tuple(
        SeverityRate(severity, sum(verdicts[severity]), len(verdicts[severity]))
        for severity in sorted(verdicts)
    )


def _kinds(rows: Iterable[Row]) -> list[_Kind]:
    cells: defaultdict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        cells[row.perturbation, row.condition or "", row.user_context or ""].append(row)
    patterns: defaultdict[str, list[tuple[tuple[str, str], _Cell]]] = defaultdict(list)
    for place in sorted(cells):
        patterns[place[0]].append((place[1:], _cell(cells[place])))
    codes: defaultdict[tuple[tuple[tuple[str, str], _Cell], ...], list[str]] = defaultdict(list)
    for code in sorted(patterns, key=natural_key):
        codes[tuple(patterns[code])].append(code)
    return [_Kind(tuple(same), dict(pattern)) for pattern, same in codes.items()]


def _cell(rows: Sequence[Row]) -> _Cell:
    ordered = sorted(rows, key=lambda row: (row.criterion, row.repetition)) if len(rows) > 1 else rows
    return _Cell(
        base=ordered[0].severity,
        rows=tuple((row.criterion, row.repetition) for row in ordered),
        passed=tuple(bool(row.passed) for row in ordered),
    )


def _pairs(kinds: Iterable[_Kind]) -> list[_Pair]:
    """Return every two kinds that share a cell and differ in severity."""
    compared = (_pair(one, other) for one, other in combinations(kinds, 2))
    return [pair for pair in compared if pair is not None]


def _pair(one: _Kind, other: _Kind) -> _Pair | None:
    shared = [(cell, other.cells[place]) for place, cell in one.cells.items() if place in other.cells]
    gap = shared[0][0].base - shared[0][1].base if shared else 0
    if gap == 0:
        return None
    if gap < 0:
        return _pair(other, one)
    ups = downs = harsher_caught = milder_caught = rows = 0
    for harsher, milder in shared:
        up, down, both = _matched(harsher, milder)
        ups += up > down
        downs += up < down
        harsher_caught += up
        milder_caught += down
        rows += both
    return _Pair(one, other, gap, harsher_caught, milder_caught, rows, ups, downs)


def _matched(harsher: _Cell, milder: _Cell) -> tuple[int, int, int]:
    """Return what was caught on either side, and of how many, where a row was judged on both."""
    if harsher.rows == milder.rows:
        return sum(harsher.passed), sum(milder.passed), len(harsher.rows)
    passed = dict(zip(milder.rows, milder.passed, strict=True))
    both = [(up, passed[row]) for row, up in zip(harsher.rows, harsher.passed, strict=True) if row in passed]
    return sum(up for up, _ in both), sum(down for _, down in both), len(both)
