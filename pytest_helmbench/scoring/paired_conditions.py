"""Perturbations, conditions and user contexts as paired experiments: what adding one did to the same cases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.changes import ALPHA, holm_adjusted
from pytest_helmbench.scoring.rows import Row
from pytest_helmbench.scoring.sign_flip import sign_flip

__all__ = ["PairedCondition", "paired_conditions"]

CONDITION, CONTEXT, PERTURBATION = "condition", "user context", "perturbation"


@dataclass(frozen=True, slots=True)
class PairedCondition:
    """What a component did, compared with its base on cases that are alike in everything else.

    Args:
        axis: `condition`, `user context` or `perturbation`.
        code: `P1-B2-S1-C2`.
        base: The mildest one, `P1-B2-S1-C1`; None for the case without one.
        pairs: Cases that were judged with both.
        units: What was signed: perturbations; for a perturbation, condition × user context.
        changed: Units whose credit differs.
        change: Mean credit with it, minus that of the base, in [−1, 1].
        p: Of the hypothesis that it has cost nothing.
        p_adjusted: By Holm over all components of the same axis in the run.
    """

    axis: str
    code: str
    base: str | None
    pairs: int
    units: int
    changed: int
    change: Fraction
    p: float
    p_adjusted: float = 1.0

    @property
    def lost(self) -> bool:
        """Whether it has lost points, and not by chance."""
        return self.p_adjusted <= ALPHA and self.change < 0


@dataclass(frozen=True, slots=True)
class _Case:
    condition: str | None
    context: str | None
    perturbation: str
    severity: int
    difficulty: int
    credit: int


@dataclass(frozen=True, slots=True)
class _Scenario:
    """The judged cases of a scenario; a credit of 1 is `scale`, so that all are whole numbers."""

    code: str
    cases: Sequence[_Case]
    scale: int


@dataclass(frozen=True, slots=True)
class _Axis:
    """Which component varies, how hard it is, what has to be alike, and what is one unit."""

    name: str
    part: Callable[[_Case], str | None]
    harshness: Callable[[_Case], int]
    rest: Callable[[_Case], tuple[str | None, ...]]
    unit: Callable[[_Case], tuple[str | None, ...]]


_AXES = (
    _Axis(
        CONDITION,
        lambda case: case.condition,
        lambda case: case.difficulty,
        lambda case: (case.context, case.perturbation),
        lambda case: (case.perturbation,),
    ),
    _Axis(
        CONTEXT,
        lambda case: case.context,
        lambda case: abs(case.severity),
        lambda case: (case.condition, case.perturbation),
        lambda case: (case.perturbation,),
    ),
    _Axis(
        PERTURBATION,
        lambda case: case.perturbation,
        lambda case: abs(case.severity),
        lambda case: (case.condition, case.context),
        lambda case: (case.condition, case.context),
    ),
)


def paired_conditions(rows: Iterable[Row]) -> tuple[PairedCondition, ...]:
    """Return what every component did to the cases that have it, by axis and in natural order.

    Its base is the case without such a component where there is one, else the mildest: the lowest difficulty of
    a condition, the smallest severity of a user context or perturbation.

    Args:
        rows: Of one run, neutral ones left out; repetitions and criteria of a case are averaged.
    """
    scenarios = _scenarios(rows)
    found: list[PairedCondition] = []
    for axis in _AXES:
        known = [pair for scenario in scenarios for pair in _compared(scenario, axis)]
        adjusted = holm_adjusted(pair.p for pair in known)
        found += [replace(pair, p_adjusted=p) for pair, p in zip(known, adjusted, strict=True)]
    return tuple(found)


def _scenarios(rows: Iterable[Row]) -> Sequence[_Scenario]:
    judged: defaultdict[str, defaultdict[tuple[str | None, str | None, str], list[tuple[Row, Fraction]]]]
    judged = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.credit is not None:
            cases = judged[row.scenario]
            cases[row.condition, row.user_context, row.perturbation].append((row, row.credit))
    return [_scenario(code, judged[code]) for code in sorted(judged, key=natural_key)]


def _scenario(
    code: str, judged: Mapping[tuple[str | None, str | None, str], Sequence[tuple[Row, Fraction]]]
) -> _Scenario:
    scale = lcm(*{credit.denominator * len(own) for own in judged.values() for _, credit in own})
    cases = [
        _Case(
            *place,
            own[0][0].severity,
            own[0][0].difficulty,
            sum(credit.numerator * (scale // (credit.denominator * len(own))) for _, credit in own),
        )
        for place, own in judged.items()
    ]
    return _Scenario(code, cases, scale)


def _compared(scenario: _Scenario, axis: _Axis) -> Iterator[PairedCondition]:
    by_part: defaultdict[str | None, dict[tuple[str | None, ...], _Case]] = defaultdict(dict)
    for case in scenario.cases:
        by_part[axis.part(case)][axis.rest(case)] = case
    if len(by_part) < 2:
        return
    base = _base(by_part, axis)
    for part in sorted((part for part in by_part if part is not None), key=natural_key):
        common = by_part[part].keys() & by_part[base].keys()
        if part == base or not common:
            continue
        changes: defaultdict[tuple[str | None, ...], int] = defaultdict(int)
        for rest in common:
            case = by_part[part][rest]
            changes[axis.unit(case)] += case.credit - by_part[base][rest].credit
        yield PairedCondition(
            axis=axis.name,
            code=f"{scenario.code}-{part}",
            base=None if base is None else f"{scenario.code}-{base}",
            pairs=len(common),
            units=len(changes),
            changed=sum(bool(change) for change in changes.values()),
            change=Fraction(sum(changes.values()), scenario.scale * len(common)),
            p=sign_flip(Fraction(change, scenario.scale) for change in changes.values() if change),
        )


def _base(by_part: Mapping[str | None, Mapping[tuple[str | None, ...], _Case]], axis: _Axis) -> str | None:
    if None in by_part:
        return None
    known = [part for part in by_part if part is not None]
    harshness = {
        part: Fraction(sum(map(axis.harshness, by_part[part].values())), len(by_part[part])) for part in known
    }
    return min(sorted(known, key=natural_key), key=lambda part: harshness[part])
