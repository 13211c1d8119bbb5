"""Components as paired experiments, and cases over their repetitions, as sentences and Markdown tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_helmbench.reports.comparison_lines import p_text, points
from pytest_helmbench.reports.markup import folded, pipe_table, plain
from pytest_helmbench.reports.tables import share
from pytest_helmbench.scoring.paired_conditions import PairedCondition
from pytest_helmbench.scoring.repetition_rates import RepetitionRates

__all__ = [
    "PAIRED_HEAD",
    "PAIRED_NOTE",
    "lost_sentences",
    "paired_rows",
    "paired_table",
    "repetitions_sentence",
    "repetitions_table",
]

_MOST = 20
"""Components shown, the surest losses first."""
PAIRED_HEAD = ("component", "compared with", "pairs", "change (points)", "changed", "p (Holm)")
"""Titles of the columns of `paired_rows`; the first two hold text."""

PAIRED_NOTE = (
    "The mean credit of cases with a component, minus that of the same cases without it, or with the mildest one."
    " The test is that of docs/statistics.md, over perturbations (for perturbations: over conditions and user"
    " contexts), one-sided for a loss, corrected over all components of an axis."
)
"""How `paired_rows` are read."""


def lost_sentences(found: Sequence[PairedCondition]) -> list[str]:
    """Return one sentence per component that has lost points, and not by chance."""
    return [
        f"adding {one.code} lost {points(-one.change).lstrip('+')} points on these cases ({_pairs(one.pairs)} with"
        f" {one.base or 'the same without it'}, {p_text(one.p_adjusted)})"
        for one in found
        if one.lost
    ]


def paired_rows(found: Sequence[PairedCondition]) -> list[tuple[str, ...]]:
    """Return what every component did to the cases that have it, the surest losses first."""
    return [
        (
            one.code,
            one.base or "without",
            str(one.pairs),
            points(one.change),
            f"{one.changed} of {one.units}",
            p_text(one.p_adjusted),
        )
        for one in sorted(found, key=lambda one: one.p_adjusted)
    ]


def paired_table(found: Sequence[PairedCondition], most: int) -> Iterator[str]:
    """Yield what every component did to the cases that have it.

    Args:
        found: Of the run.
        most: Rows shown.
    """
    if not found:
        return
    yield from (f"- {plain(sentence)}" for sentence in lost_sentences(found))
    if any(one.lost for one in found):
        yield ""
    rows = paired_rows(found)
    lines = pipe_table(PAIRED_HEAD, rows, left=PAIRED_HEAD[:2], most=min(most, _MOST))
    yield from folded(
        "What conditions, user contexts and perturbations did to the same cases", [*lines, "", PAIRED_NOTE]
    )


def repetitions_sentence(found: RepetitionRates) -> str:
    """Return `pass@3 91.2 %, pass^3 78.4 %; 12 of 660 cases are flaky (passed in some repetitions only)`."""
    most = len(found.pass_at)
    return (
        f"pass@{most} {share(found.pass_at[-1])}, pass^{most} {share(found.pass_hat[-1])};"
        f" {len(found.flaky)} of {found.cases} cases are flaky (passed in some repetitions only)"
    )


def repetitions_table(found: RepetitionRates | None, most: int) -> Iterator[str]:
    """Yield pass@k and pass^k, and the flaky cases.

    Args:
        found: None for a run without repetitions.
        most: Flaky cases shown.
    """
    if found is None:
        return
    yield f"Over repetitions: {repetitions_sentence(found)}."
    yield ""
    head = ("k", "pass@k: one of k passes", "pass^k: all k pass")
    rows = [
        (str(k), share(at), share(hat))
        for k, (at, hat) in enumerate(zip(found.pass_at, found.pass_hat, strict=True), start=1)
    ]
    lines = [*pipe_table(head, rows, left=(), most=len(rows)), ""]
    cases = [(plain(one.code), f"{one.passed} of {one.repetitions}") for one in found.flaky]
    if cases:
        lines += pipe_table(("flaky case", "passed"), cases, left=("flaky case",), most=min(most, _MOST))
    yield from folded("pass@k, pass^k and flaky cases", lines)


def _pairs(count: int) -> str:
    return f"{count} pair{'' if count == 1 else 's'}"
