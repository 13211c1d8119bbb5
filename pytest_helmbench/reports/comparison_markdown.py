"""Comparisons as Markdown that pastes into a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from pytest_helmbench.reports.comparison_lines import comparison_lines, p_text, points
from pytest_helmbench.reports.markup import plain
from pytest_helmbench.results.comparing import RunComparison
from pytest_helmbench.scoring.comparison import BehaviourChange

__all__ = ["comparison_markdown", "comparison_section"]


def comparison_markdown(comparisons: Iterable[RunComparison]) -> str:
    """Return comparisons as Markdown that pastes into a pull request."""
    return "\n".join(line for found in comparisons for line in comparison_section(found, "###")) + "\n"


def comparison_section(found: RunComparison, head: str) -> Iterator[str]:
    """Yield a comparison as a section.

    Args:
        found: Of one run.
        head: Marks of its headline.
    """
    baseline = "its baseline" if found.baseline is None else found.baseline.name
    yield f"{head} {plain(found.model)} with {plain(baseline)}: {found.verdict.value}"
    yield ""
    if found.scopes:
        yield "| | baseline | now | change (points) | 90 % | p | changed | verdict |"
        yield "|---|---:|---:|---:|---|---|---|---|"
        for scope in found.scopes:
            change = scope.change
            span = (
                "-"
                if change.low is None or change.high is None
                else f"{points(change.low)} to {points(change.high)}"
            )
            cells = (
                scope.code or "run",
                _share(scope.baseline_score),
                _share(scope.score),
                points(change.change),
                span,
                p_text(change.p),
                f"{change.changed} of {change.units}: {change.down} down, {change.up} up",
                found.verdict_of(scope).value,
            )
            yield f"| {' | '.join(cells)} |"
        yield ""
    for line in comparison_lines(found, found.model):
        yield f"- {plain(line)}"
    yield ""
    yield from _behaviours(found.behaviours)


def _behaviours(behaviours: Sequence[BehaviourChange]) -> Iterator[str]:
    if behaviours:
        yield "| behaviour | baseline | now | change (points) | pairs of replies | changed | p (Holm) | |"
        yield "|---|---:|---:|---:|---:|---:|---|---|"
        for one in behaviours:
            cells = (
                one.code,
                _share(one.baseline_score),
                _share(one.score),
                points(one.change),
                str(one.pairs),
                str(one.changed),
                p_text(one.p_adjusted),
                one.word,
            )
            yield f"| {' | '.join(cells)} |"
        yield ""


def _share(value: Fraction) -> str:
    return f"{100 * float(value):.1f} %"
