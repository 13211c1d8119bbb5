"""Samples of a benchmark's cases: which ones are drawn, and how many of the benchmark each of them represents.

A share or a number of cases draws whole perturbations (of packs rows, or clusters of rows): within each behaviour they
are put in order of severity and cut into bands, and one of each band is drawn, as likely as it carries points; it
represents the points of its band. `pairwise` keeps every perturbation, and of its cells (condition × user context) so
many that every two components of a scenario meet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from hashlib import blake2b
from itertools import combinations
from math import log

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.sample import Sample

PAIRWISE = "pairwise"

CaseParts = tuple[str, str, str]
"""Condition, user context and perturbation of a case; empty where it has none."""


class SampleError(HelmbenchError):
    """A sample that cannot be drawn."""


@dataclass(frozen=True, slots=True)
class SampledCase:
    """A case that may be drawn.

    Args:
        code: Of the case.
        stratum: Its behaviour; of a pack, its family.
        unit: Its perturbation, its cluster, or itself: the cases of a unit are drawn together.
        severity: Base severity (−20..20).
        scenario: Its scenario; empty for a row, which has no cell.
        cell: Its condition, user context and perturbation.
    """

    code: str
    stratum: str
    unit: str
    severity: int
    scenario: str = ""
    cell: CaseParts = ("", "", "")


def draw(cases: Iterable[SampledCase], rule: str, seed: int) -> Sample:
    """Return a sample; the same one for the same cases, rule and seed, whatever else there is.

    Each stratum keeps at least one unit, so a sample may be larger than was asked for.

    Args:
        cases: All there are, in the order of their files.
        rule: A share above 0 and at most 1 with a decimal point, a number of cases, or `pairwise`.
        seed: Any whole number.

    Raises:
        SampleError: `pairwise` of cases without components.

    Source:
        `docs/statistics.md`, a sample of the cases.
    """
    known = list(cases)
    weights: dict[str, Fraction] = {}
    if rule == PAIRWISE:
        for scenario, found in _grouped(known, lambda case: case.scenario).items():
            if not scenario:
                raise SampleError(
                    f"--helmbench-sample={rule}: {found[0].code} has no condition, user context and perturbation\n"
                    "  hint: give a share or a number of cases, for example 0.2 or 200"
                )
            weights |= _pairwise(found, seed)
    elif known:
        weights = _whole_units(known, _wanted(rule, len(known)), seed)
    in_order = {case.code: weights[case.code] for case in known if case.code in weights}
    return Sample(rule, seed, len(known), in_order)


def _wanted(rule: str, cases: int) -> Fraction:
    """Return how many cases are asked for."""
    return Fraction(int(rule)) if rule.isdigit() else Fraction(rule) * cases


def _grouped(cases: Iterable[SampledCase], key: Callable[[SampledCase], str]) -> dict[str, list[SampledCase]]:
    groups: defaultdict[str, list[SampledCase]] = defaultdict(list)
    for case in cases:
        groups[key(case)].append(case)
    return groups


def _whole_units(cases: Sequence[SampledCase], wanted: Fraction, seed: int) -> dict[str, Fraction]:
    """Return the weights of the cases of the units that are drawn."""
    strata = {
        stratum: list(_grouped(found, lambda case: case.unit).values())
        for stratum, found in _grouped(cases, lambda case: case.stratum).items()
    }
    weights: dict[str, Fraction] = {}
    for stratum, number in _allocation(strata, wanted).items():
        for band in _bands(strata[stratum], number):
            points = [_points(unit) for unit in band]
            if not any(points):
                points = [len(unit) for unit in band]  # without severities each case counts 1
            place = max(range(len(band)), key=lambda index: _order(seed, band[index][0].unit, points[index]))
            weights |= dict.fromkeys(
                (case.code for case in band[place]), Fraction(sum(points), points[place])
            )
    return weights


def _points(unit: Iterable[SampledCase]) -> int:
    return sum(abs(case.severity) for case in unit)


def _order(seed: int, name: str, points: int) -> float:
    """Return by what a unit stands in line: it is the first of several as likely as it carries points.

    Source:
        Efraimidis and Spirakis, Weighted random sampling with a reservoir (2006).
    """
    lot = (int.from_bytes(_lot(seed, name)) + 1) / (1 << 128)
    return log(lot) / points if points else -float("inf")


def _allocation(strata: Mapping[str, Sequence[Sequence[SampledCase]]], wanted: Fraction) -> dict[str, int]:
    """Return how many units of each stratum are drawn: in proportion, and at least one."""
    sizes = {stratum: sum(map(len, units)) for stratum, units in strata.items()}
    share = wanted / sum(sizes.values())
    ideal = {stratum: min(share, Fraction(1)) * len(units) for stratum, units in strata.items()}
    numbers = {stratum: max(1, int(number)) for stratum, number in ideal.items()}
    means = {stratum: Fraction(sizes[stratum], len(units)) for stratum, units in strata.items()}
    expected = sum((numbers[stratum] * means[stratum] for stratum in strata), Fraction(0))
    for stratum in sorted(strata, key=lambda name: (numbers[name] - ideal[name], name)):
        if ideal[stratum] > numbers[stratum] and expected + means[stratum] / 2 <= wanted:
            numbers[stratum] += 1
            expected += means[stratum]
    return numbers


def _bands(units: Sequence[Sequence[SampledCase]], number: int) -> Iterator[Sequence[Sequence[SampledCase]]]:
    """Yield the units in bands of neighbouring severity, whose sizes differ by one at most."""
    ordered = sorted(units, key=lambda unit: Fraction(sum(case.severity for case in unit), len(unit)))
    for band in range(number):
        yield ordered[band * len(ordered) // number : (band + 1) * len(ordered) // number]


def _lot(seed: int, name: str) -> bytes:
    """Return the lot of a name: a random number that no other name changes, so that a sample survives new cases."""
    return blake2b(f"{seed}:{name}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _pairwise(cases: Sequence[SampledCase], seed: int) -> dict[str, Fraction]:
    """Return the weights of cells of a scenario in which every pair of components that meet at all meets."""
    by_cell = {case.cell: case.code for case in cases}
    scenario = cases[0].scenario
    axes = [
        sorted({cell[axis] for cell in by_cell}, key=lambda level: _lot(seed, f"{scenario}-{level}"))
        for axis in range(3)
    ]
    drawn = dict.fromkeys(cell for cell in _covering(axes) if cell in by_cell)
    met = {pair for cell in drawn for pair in _pairs(cell)}
    # Cells that are not there (a part of the scenario was selected) leave pairs open.
    for cell in sorted(by_cell, key=lambda parts: _lot(seed, f"{scenario}-{'-'.join(parts)}")):
        if not met.issuperset(_pairs(cell)):
            drawn[cell] = None
            met.update(_pairs(cell))
    return {by_cell[cell]: Fraction(len(by_cell), len(drawn)) for cell in drawn}


def _covering(axes: Sequence[Sequence[str]]) -> Iterator[CaseParts]:
    """Yield a covering array of strength 2 over three axes, as small as there is one: a Latin square.

    The two longest axes are crossed; the third takes its levels in turn along the diagonals.
    """
    short, middle, long = sorted(range(3), key=lambda axis: len(axes[axis]))
    for row, one in enumerate(axes[middle]):
        for column, other in enumerate(axes[long]):
            levels = {
                short: axes[short][(row + column) % len(axes[short])],
                middle: one,
                long: other,
            }
            yield levels[0], levels[1], levels[2]


def _pairs(cell: CaseParts) -> Iterator[tuple[int, str, int, str]]:
    for first, second in combinations(range(3), 2):
        yield first, cell[first], second, cell[second]
