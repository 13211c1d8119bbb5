"""The score of a pack: the share of its rows that passed, in all, by family and by group of metadata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.intervals import rows_interval
from pytest_helmbench.scoring.rows import Row
from pytest_helmbench.scoring.run_score import RunScore, Score, run_score


@dataclass(frozen=True, slots=True)
class PackVerdict:
    """One row × repetition that a run has planned, judged or not.

    Args:
        repetition: From 1.
        passed: None when unjudged.
        groups: Names of what it counts in: its family, `subject=algebra`.
        cluster: What it stands or falls with; None for a row by itself.
        weight: See `Row.weight`.
    """

    row: str
    repetition: int
    passed: bool | None
    groups: tuple[str, ...]
    cluster: str | None = None
    weight: Fraction = Fraction(1)


def pack_score(verdicts: Iterable[PackVerdict]) -> RunScore:
    """Return the share passed of a run, with its families and groups in natural order.

    Every row counts 1. The 95 % interval is Wilson's with as many trials as there are judged rows: repetitions
    of a row do not narrow it. Where rows have clusters, these represent the perturbations of one behaviour.

    Args:
        verdicts: Every row × repetition that the run has planned, in any order.
    """
    planned = tuple(verdicts)
    members: defaultdict[str, list[PackVerdict]] = defaultdict(list)
    for verdict in planned:
        for group in verdict.groups:
            members[group].append(verdict)
    # A group that holds everything says nothing that the whole does not.
    names = sorted((name for name in members if len(members[name]) < len(planned)), key=natural_key)
    clustered = any(verdict.cluster is not None for verdict in planned)
    whole = run_score(map(pack_row, planned))
    return replace(
        whole,
        total=_share(whole.total, "", clustered=clustered),
        pillars=(),
        behaviours=(),
        groups=tuple(
            _share(run_score(map(pack_row, members[name])).total, name, clustered=clustered) for name in names
        ),
    )


def _share(score: Score, code: str, *, clustered: bool) -> Score:
    interval = score.interval
    if score.score is not None and interval is not None and not clustered:
        interval = rows_interval(float(score.score), score.clusters, interval.effective_units)
    cluster = "cluster" if clustered else "case"
    return replace(score, code=code, cluster=cluster, unweighted=False, interval=interval)


def pack_row(verdict: PackVerdict) -> Row:
    """Return a verdict as the formula of a tree takes it: one behaviour without severities."""
    return Row(
        pillar="pack",
        behaviour="pack",
        scenario="row",
        condition=verdict.row,
        user_context=None,
        perturbation=verdict.row if verdict.cluster is None else f"in {verdict.cluster}",
        criterion="",
        repetition=verdict.repetition,
        severity=0,
        difficulty=0,
        weighted=False,
        passed=verdict.passed,
        credit=None if verdict.passed is None else Fraction(int(verdict.passed)),
        weight=verdict.weight,
    )
