"""A leaderboard as cells of text: what every form of it writes."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.reports.comparison_lines import p_text, points
from pytest_helmbench.reports.leaderboard.board_notes import noted
from pytest_helmbench.reports.score_lines import interval_text
from pytest_helmbench.reports.session_texts import cost_text
from pytest_helmbench.reports.tables import seconds, share
from pytest_helmbench.results.standings import Board, Pair, Standing
from pytest_helmbench.scoring.intervals import INTERVAL

__all__ = ["BoardTable", "board_table", "grid", "pair_cells", "score_text_of"]

_TEXTS = ("model", INTERVAL, "notes")


@dataclass(frozen=True, slots=True)
class BoardTable:
    """The runs of one benchmark as a table.

    Args:
        title: Name of the benchmark, with its version where there is one only.
        head: Titles of the columns; the first is `model`.
        left: Those that hold text.
        rows: As many cells each, plain text.
        winner: Row of the run that is shown to be better than all others; -1 for none.
        notes: What the numbers in the last column mean, in order from 1.
        pair_head: Titles of the pairs' columns; the first two are models with their runs.
        pairs: Cells of the pairs.
    """

    title: str
    head: tuple[str, ...]
    left: frozenset[str]
    rows: tuple[tuple[str, ...], ...]
    winner: int
    notes: tuple[str, ...]
    pair_head: tuple[str, ...]
    pairs: tuple[tuple[str, ...], ...]


def board_table(board: Board) -> BoardTable:
    """Return the table of a benchmark."""
    notes, marks = noted(board)
    own_scale = any(_own_total(one) for one in board.standings)
    middle = ("own total",) if own_scale else ()
    head = (
        *("model", "run", "score", INTERVAL, *middle, "place"),
        *("cost USD", "tokens/s", "median time", "95 % within", "notes"),
    )
    rows = tuple(
        _cells(one, numbers, own_scale=own_scale) for one, numbers in zip(board.standings, marks, strict=True)
    )
    winner = -1 if board.winner is None else board.standings.index(board.winner)
    versions = {one.detail.summary.version for one in board.standings}
    title = f"{board.benchmark} {versions.pop()}".strip() if len(versions) == 1 else board.benchmark
    return BoardTable(
        title=title,
        head=head,
        left=frozenset((*_TEXTS, "own total")),
        rows=rows,
        winner=winner,
        notes=tuple(notes),
        pair_head=("run", "other run", "difference (points)", "p (Holm)", "changed", "which is better"),
        pairs=tuple(map(pair_cells, board.pairs)),
    )


def _cells(one: Standing, notes: Sequence[int], *, own_scale: bool) -> tuple[str, ...]:
    speed = one.speed
    rate = speed.tokens_per_second
    return (
        one.detail.summary.model,
        one.ref.name.removeprefix("run "),
        score_text_of(one),
        "-" if one.score is None else interval_text(one.score.total),
        *((_own_total(one) or "-",) if own_scale else ()),
        "-" if one.ranks is None else _places(one.ranks),
        cost_text(one.counts.known_cost_usd, one.counts.unknown_costs),
        "-" if rate is None else f"{rate:.1f}",
        seconds(speed.median_ms),
        seconds(speed.p95_ms),
        ", ".join(map(str, notes)),
    )


def score_text_of(one: Standing) -> str:
    """Return a score, with the raw one beside it where it is capped."""
    if one.score is None:
        return "-"
    raw = f" (capped from {share(one.score.raw)})" if one.score.capped else ""
    return f"{share(one.score.total.score)}{raw}"


def _own_total(one: Standing) -> str:
    section = None if one.words is None else one.words.section
    return "" if section is None else section.value


def _places(ranks: tuple[int, int]) -> str:
    best, worst = ranks
    return str(best) if best == worst else f"{best}–{worst}"


def pair_cells(pair: Pair) -> tuple[str, ...]:
    """Return both runs, the difference in points, p, what changed and which is better."""
    names = (
        f"{pair.first.model} ({pair.first.name})",
        f"{pair.second.model} ({pair.second.name})",
    )
    found = pair.found
    if found is None or pair.p_adjusted is None:
        return (*names, "-", "-", "-", f"not compared: {pair.reason}")
    if pair.better is not None:
        word = pair.better.model if pair.first.model != pair.second.model else pair.better.name
    elif found.cannot_tell:
        count = f"only {found.changed}" if found.changed else "no"
        words = f"{pair.unit} differs" if found.changed in (0, 1) else f"{pair.unit}s differ"
        word = f"not told apart: {count} {words}"
    else:
        word = "not told apart"
    changed = f"{found.changed} of {found.units} {pair.unit}{'s' * (found.units != 1)}"
    return (
        *names,
        points(found.difference),
        p_text(pair.p_adjusted).removeprefix("p ").removeprefix("= "),
        changed,
        word,
    )


def grid(found: Sequence[Board]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return models × benchmarks: the titles, and of each model its score with interval in every benchmark.

    There is no mean over benchmarks: their scores do not measure the same.
    """
    models = dict.fromkeys(one.detail.summary.model for board in found for one in board.standings)
    rows = []
    for model in sorted(models):
        cells = []
        for board in found:
            own = [one for one in board.standings if one.detail.summary.model == model]
            cells.append("; ".join(map(_in_grid, own)) or "-")
        rows.append((model, *cells))
    return ("model", *(board.benchmark for board in found)), tuple(rows)


def _in_grid(one: Standing) -> str:
    if one.score is None or one.score.score is None:
        return "-"
    total = _own_total(one)
    return f"{score_text_of(one)} ({interval_text(one.score.total)}{f'; {total}' if total else ''})"
