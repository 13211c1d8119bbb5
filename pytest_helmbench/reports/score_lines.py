"""Scores as text: percentages with their interval, coverage, and notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_helmbench.reports.tables import count_text, share, table
from pytest_helmbench.run.selecting import sample_text
from pytest_helmbench.scoring.intervals import INTERVAL
from pytest_helmbench.scoring.judge_agreement import CorrectedRate
from pytest_helmbench.scoring.reruns import RepetitionRates, Rerun
from pytest_helmbench.scoring.run_score import FloorState, RunScore, Score
from pytest_helmbench.scoring.thresholds import breach_text

SCORE_HEAD = ("score", INTERVAL, "right", "coverage", "evaluations")
PART_INDENTS = {"pillar": "  ", "behaviour": "    ", "group": "  "}


def interval_text(score: Score) -> str:
    """Return `61.0 – 82.4 %`, with a word of caution where it rests on few clusters; `-` for none."""
    interval = score.interval
    if interval is None:
        return "-"
    caution = f" (only {count_text(score.clusters, score.cluster)})" if score.few_clusters else ""
    return f"{100 * interval.low:.1f} – {100 * interval.high:.1f} %{caution}"


def score_lines(scores: Mapping[str, RunScore], *, behaviours: bool, width: int | None = None) -> list[str]:
    """Return the table of scores by the name of the run, with its notes.

    Args:
        behaviours: Add a line per behaviour, or per group of a pack.
    """
    notes = [
        f"{name}: {note}"
        for name, run in scores.items()
        for note in (*score_doubts(run), *score_notes(run))
        if note not in run.warnings
    ]
    notes += dict.fromkeys(warning for run in scores.values() for warning in run.warnings)
    rows: list[tuple[str, ...]] = []
    for name, run in scores.items():
        rows.append((name, *score_cells(run.total)))
        for kind, part in run.parts:
            if behaviours or not (kind == "behaviour" or "=" in part.code):
                rows.append((f"{PART_INDENTS[kind]}{part.code}", *score_cells(part)))
    spare = [(title,) for title in SCORE_HEAD[:1:-1]]
    return [*table(("", *SCORE_HEAD), rows, left=("",), width=width, spare=spare), *notes]


def corrected_text(found: CorrectedRate | None, what: str = "pass rate") -> str:
    """Return the judge's pass rate, or its share of points, as judged and as labels correct it."""
    if found is None:
        return "the judge's labels correct nothing yet: label some of both verdicts"
    span = f"{100 * found.low:.1f} – {share(found.high)}"
    return (
        f"{what} of the judge's verdicts {share(found.raw)} as judged;"
        f" {share(found.corrected)} ({span}) corrected by {found.labels} labels;"
        f" the judge was right on {100 * found.right_passes:.0f} % of its passes and"
        f" {100 * found.right_fails:.0f} % of its fails"
    )


def corrections(score: RunScore) -> Iterable[str]:
    """Yield how labels correct the judge of a run."""
    if score.labelled:
        yield corrected_text(score.corrected)
    if score.points_labelled:
        yield corrected_text(score.corrected_points, "share of points")


def rerun_text(found: Rerun) -> str:
    """Return how far the score moves when the same cases run again."""
    is_own = found.from_run is None
    source = f"{found.repetitions} repetitions" if is_own else f"from run {found.from_run}"
    if not found.sd:
        return f"no verdict changed {f'in {source}' if is_own else f'({source})'}"
    flips = ""
    if found.flip_rate is not None:
        flips = f"; identical calls disagree in {share(found.flip_rate)} of pairs"
    return f"re-run variation: ± {100 * found.again:.1f} points (95 %; {source}{flips})"


def repetitions_sentence(found: RepetitionRates) -> str:
    """Return `pass@3 91.2 %, pass^3 78.4 %; 12 of 660 cases are flaky (passed in some repetitions only)`."""
    most = len(found.pass_at)
    return (
        f"pass@{most} {share(found.pass_at[-1])}, pass^{most} {share(found.pass_hat[-1])};"
        f" {len(found.flaky)} of {found.cases} cases are flaky (passed in some repetitions only)"
    )


def score_cells(score: Score) -> tuple[str, ...]:
    """Return the cells below `SCORE_HEAD`."""
    judged = f"{score.judged_rows}/{score.planned_rows}"
    return share(score.score), interval_text(score), share(score.pass_rate), share(score.coverage), judged


def score_doubts(score: RunScore) -> list[str]:
    """Return the notes that change the meaning of a score."""
    notes = []
    total = score.total
    if score.sample is not None and score.sample.cases < score.sample.of:
        notes.append(f"of a sample, {sample_text(score.sample)}: the interval counts the cases left out")
    notes += _partial(total, beyond_chance=True)
    if score.breached:
        notes.append(breach_text(score))
    missing = [floor.pillar for floor in score.floors if floor.state is FloorState.NOT_EVALUATED]
    if missing:
        notes.append(f"safety floor not evaluated: {', '.join(missing)}")
    if score.may_be_capped:
        notes.append("a safety floor may or may not be met: it lies inside the interval of its pillar")
    return [*notes, *score.warnings]


def _partial(total: Score, *, beyond_chance: bool) -> list[str]:
    """Return that not all was judged, where that moves the score more, or less, than chance does."""
    bounds, interval = total.bounds, total.interval
    if total.score is None or total.coverage is None or total.coverage == 1 or bounds is None:
        return []
    within = interval is not None and interval.low <= bounds.low and bounds.high <= interval.high
    text = f"partial: the score lies between {share(bounds.low)} and {share(bounds.high)} once all cases are judged"
    return [] if within is beyond_chance else [text]


def score_notes(score: RunScore) -> list[str]:
    """Return the notes on a score beside `score_doubts`."""
    total = score.total
    notes = _partial(total, beyond_chance=False)
    unweighted = [part.code for part in score.behaviours if part.unweighted]
    if unweighted:
        notes.append(f"without severities, each case counts 1: {', '.join(unweighted)}")
    if total.rerun is not None:
        notes.append(rerun_text(total.rerun))
    notes += corrections(score)
    if score.neutral_rows:
        notes.append(f"{count_text(score.neutral_rows, 'neutral evaluation')} (severity 0) in no score")
    return notes
