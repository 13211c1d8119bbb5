"""The drop that a comparison can find, told before the run from what is on record. A rough guide."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from pathlib import Path

from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.results.compared_runs import ComparedRun, RunRef
from pytest_helmbench.results.comparing import compare_runs
from pytest_helmbench.results.stored_scores import planned_rows, scored_run
from pytest_helmbench.scoring.changes import LEAST_CHANGED, detectable_drop, inner_square
from pytest_helmbench.store.comparison_rows import earlier_detectable
from pytest_helmbench.store.plans import load_facts
from pytest_helmbench.store.run_queries import configured_alike, run_detail

__all__ = ["Detectable", "detectable_before", "too_few_units"]


@dataclass(frozen=True, slots=True)
class Detectable:
    """A drop that is found four times of five.

    Args:
        drop: In [0, 1].
        source: What it was taken from, for people.
    """

    drop: float
    source: str


def detectable_before(own: Path, baseline: ComparedRun, benchmark_hash: str) -> Detectable | None:
    """Return what drop below a baseline can be found; None where nothing on record tells.

    The first of these that there is: earlier comparisons on this content, another run of the baseline's configuration,
    the baseline's repetitions, the spread of cases inside its perturbations; else the number of its cases.

    Args:
        own: The session's results file.
        baseline: With its replies.
        benchmark_hash: Of the content that is about to be asked.

    Raises:
        StoreError: A file cannot be read.
    """
    known = earlier_detectable(own, benchmark_hash) if own.exists() else ()
    if known:
        plural = "s" if len(known) > 1 else ""
        drop = sqrt(sum(found**2 for found in known) / len(known))
        return Detectable(drop, f"from {len(known)} earlier comparison{plural}")
    if not baseline.settings:
        return None  # a baseline file has neither severities nor settings
    ref = baseline.ref
    again = _run_again(baseline)
    facts = load_facts(ref.path, ref.run_id)
    if facts is None:
        return None
    if again is not None:
        found = compare_runs(facts, baseline, again)
        if found.scopes and found.scopes[0].detectable is not None:
            return Detectable(found.scopes[0].detectable, f"from {ref.name} and {again.ref.name}")
    scored = scored_run(ref.path, ref.run_id)
    total = None if scored is None or scored.score is None else scored.score.total
    if total is None:
        return None
    if total.rerun is not None and total.rerun.sd:
        return Detectable(detectable_drop(2 * total.rerun.sd**2), f"from the repetitions of {ref.name}")
    if total.interval is None or total.score is None:
        return None
    weights = (
        {} if facts.scoring is None else {code: float(one) for code, one in facts.scoring.weights.items()}
    )
    spread = inner_square(planned_rows(facts), weights)
    if spread is not None:
        return Detectable(detectable_drop(spread), f"an upper guess from the cases of {ref.name}")
    # Nothing is known of the model itself: as if each case were a yes/no draw of its own.
    share = float(total.score)
    square = 2 * share * (1 - share) / total.interval.effective_cases
    return Detectable(detectable_drop(square), "an upper guess from one run") if square else None


def too_few_units(codes: Iterable[str]) -> str:
    """Return that a selection has too few perturbations for anything to be shown; empty where it has enough."""
    units = set()
    for code in codes:
        parts = CaseCode.parse(code)
        if parts is None or parts.perturbation is None:
            return ""  # rows of a pack
        units.add((parts.pillar, parts.behaviour, parts.scenario, parts.perturbation))
        if len(units) >= LEAST_CHANGED:
            return ""
    plural = "" if len(units) == 1 else "s"
    return (
        f"cannot show a regression of the run: {len(units)} perturbation{plural}, {LEAST_CHANGED} are needed"
    )


def _run_again(baseline: ComparedRun) -> ComparedRun | None:
    """Return the newest other complete run of the baseline's configuration."""
    ref = baseline.ref
    for run_id, _ in configured_alike(ref.path, ref.run_id):
        detail = run_detail(ref.path, run_id)
        return None if detail is None else ComparedRun.stored(RunRef.of(ref.path, detail.summary, ref.path))
    return None
