"""Runs side by side, benchmark by benchmark: their order by score, and which pairs differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.results.comparing import (
    LEAST_COMMON,
    ComparedRun,
    PlannedCase,
    RunRef,
    behaviour_weights,
    common_share,
    pair_cases,
    planned_cases,
    unit_of,
)
from pytest_helmbench.results.differences import Difference
from pytest_helmbench.results.differences import differing_settings as settings_apart
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.scoring.changes import holm_adjusted
from pytest_helmbench.scoring.comparison import (
    PairDifference,
    better_one,
    pair_difference,
    unit_changes,
)
from pytest_helmbench.scoring.run_score import RunScore
from pytest_helmbench.store.read.runs import RunDetail
from pytest_helmbench.store.read.score_facts import RunFacts, load_facts

MOST_COMPARED = 24
"""With more runs of one benchmark none are compared two by two: 276 pairs are all that a reader takes in."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A run as it stands beside others."""

    report: RunReport
    ref: RunRef

    @property
    def detail(self) -> RunDetail:
        """The run."""
        return self.report.detail

    @property
    def score(self) -> RunScore | None:
        """None where it has none."""
        return self.report.score

    @property
    def imported_from(self) -> str:
        """The other tool that has run it, with its version; empty for runs of ours."""
        found = self.detail.settings.get("imported_from")
        return found if isinstance(found, str) else ""

    @property
    def judges(self) -> tuple[str, ...]:
        """The marking models that have judged some of it."""
        return self.report.judges if "judge" in self.report.counts.calls else ()


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs on the cases that both have judged.

    Args:
        first: The one that stands higher.
        found: Its difference, first minus second; None where they were not compared.
        p_adjusted: By Holm over all compared pairs of the benchmark.
        better: The one that is shown to be better; None where no difference is shown.
        unit: `perturbation`, `cluster` or `row`.
        reason: Why they were not compared; empty where they were.
    """

    first: RunRef
    second: RunRef
    found: PairDifference | None = None
    p_adjusted: float | None = None
    better: RunRef | None = None
    cases: int = 0
    unit: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Board:
    """The runs of one benchmark.

    Args:
        benchmark: Its name, and its place where several have that.
        standings: The best score first, those without a score last.
        pairs: Every two of them, in that order; empty for one run, and for more than `MOST_COMPARED`.
        reference: The run whose content and settings most others share: what differs is said about the others.
    """

    benchmark: str
    standings: tuple[Standing, ...]
    pairs: tuple[Pair, ...]
    reference: Standing

    @property
    def winner(self) -> Standing | None:
        """The run that is shown to be better than every other; None where none is."""
        first, *others = self.standings
        beaten = sum(pair.better == first.ref for pair in self.pairs)
        is_shown = others and beaten == len(others) and first.score is not None and not first.score.capped
        return first if is_shown else None


@dataclass(frozen=True, slots=True)
class ReportedRuns:
    """The runs that a report shows in any format, in order, and the same runs by benchmark, side by side."""

    runs: tuple[RunReport, ...]
    boards: tuple[Board, ...]

    @classmethod
    def of(cls, reports: Iterable[RunReport], own: Path | None = None) -> ReportedRuns:
        """Return some runs with all pairs compared; see `boards`."""
        runs = tuple(reports)
        return cls(runs, boards(runs, own))


def boards(reports: Iterable[RunReport], own: Path | None = None) -> tuple[Board, ...]:
    """Return some runs by benchmark, in natural order of its name, with all pairs compared.

    Runs of several files are of one benchmark by its name, unless one of the files has several of that name.

    Args:
        own: The file whose runs are called by number alone; that of each run itself unless given.
    """
    given = [
        Standing(report, RunRef.of(report.path, report.detail, own or report.path)) for report in reports
    ]
    by_name: defaultdict[str, list[Standing]] = defaultdict(list)
    keys = {(standing.ref.path, standing.detail.key) for standing in given}
    counts = Counter((path, key.name) for path, key in keys)
    several = {name for (_, name), count in counts.items() if count > 1}
    for standing in given:
        key = standing.ref.benchmark
        by_name[key.text if key.name in several else key.name].append(standing)
    return tuple(_board(name, by_name[name]) for name in sorted(by_name, key=natural_key))


def _board(name: str, members: Sequence[Standing]) -> Board:
    ordered = sorted(members, key=_place)
    pairs = _pairs(ordered) if len(ordered) <= MOST_COMPARED else ()
    return Board(name, tuple(ordered), pairs, _reference(ordered))


def _place(standing: Standing) -> tuple[object, ...]:
    score = None if standing.score is None else standing.score.score
    run = standing.detail
    known = (1, Fraction(0)) if score is None else (0, -score)
    return (*known, natural_key(run.model), str(standing.ref.path), run.id)


def _reference(members: Sequence[Standing]) -> Standing:
    def unlike(standing: Standing) -> int:
        return sum(len(tuple(differing_settings(standing, other))) for other in members)

    return min(
        members, key=lambda standing: (bool(standing.imported_from), unlike(standing), -standing.ref.run_id)
    )


def differing_settings(first: Standing, second: Standing) -> Iterator[Difference]:
    """Yield what two runs do not have in common that can change an answer or a verdict: name and both values."""
    if first.judges != second.judges:
        yield "judge", " and ".join(first.judges) or None, " and ".join(second.judges) or None
    if first.imported_from != second.imported_from:
        yield "tool", first.imported_from or None, second.imported_from or None
        return  # what it calls its settings is not what we call ours
    judged = bool(first.judges or second.judges)
    for name, *values in settings_apart(first.detail, second.detail):
        if name not in ("judge", "pytest-helmbench") and (judged or not name.startswith("judge")):
            yield name, values[0], values[1]


@dataclass(frozen=True, slots=True)
class _Side:
    """A run with its facts and replies, as pairs compare it."""

    facts: RunFacts
    planned: Sequence[PlannedCase]
    compared: ComparedRun


def _pairs(members: Sequence[Standing]) -> tuple[Pair, ...]:
    sides = {standing.ref: _side(standing) for standing in members} if len(members) > 1 else {}
    found = [
        _pair(sides[first.ref], sides[second.ref], first, second)
        for first, second in combinations(members, 2)
    ]
    tested = [pair.found.p for pair in found if pair.found is not None]
    adjusted = iter(holm_adjusted(tested))
    return tuple(_decided(pair, next(adjusted)) if pair.found is not None else pair for pair in found)


def _side(standing: Standing) -> _Side | None:
    facts = load_facts(standing.ref.path, standing.ref.run_id) if standing.score is not None else None
    compared = None if facts is None else ComparedRun.stored(standing.ref)
    return None if facts is None or compared is None else _Side(facts, planned_cases(facts), compared)


def _pair(first: _Side | None, second: _Side | None, higher: Standing, lower: Standing) -> Pair:
    empty = Pair(higher.ref, lower.ref)
    if first is None or second is None:
        named = higher if first is None else lower
        return replace(empty, reason=f"{named.ref.name} has no score")
    if higher.judges != lower.judges:
        return replace(empty, reason="other judges")
    paired = pair_cases(first.planned, first.compared, second.compared)
    weights = behaviour_weights(first.facts, first.planned)
    if not any(weights[case.behaviour] for case in paired.cases):
        return replace(empty, reason="no case in common")
    # A run of some cases would have all of its points in common with a run of all.
    others = behaviour_weights(second.facts, second.planned)
    shares = (
        common_share(first.planned, paired, weights),
        common_share(second.planned, paired, others),
    )
    least = min(share for share in shares if share is not None)
    if least < LEAST_COMMON:
        return replace(empty, reason=f"only {float(100 * least):.0f} % of the points are in both")
    unit = unit_of(first.facts)
    changes = unit_changes(paired.cases, weights, unit)
    # The first one is the candidate, so gains are its own.
    return replace(empty, found=pair_difference(changes), cases=len(paired.cases), unit=unit)


def _decided(pair: Pair, p_adjusted: float) -> Pair:
    assert pair.found is not None
    sign = better_one(pair.found.difference, p_adjusted)
    better = {1: pair.first, -1: pair.second}.get(sign)
    return replace(pair, p_adjusted=p_adjusted, better=better)
