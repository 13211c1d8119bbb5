"""A leaderboard for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_helmbench.reports.leaderboard.board_cells import BoardTable, board_table, grid
from pytest_helmbench.reports.leaderboard.board_notes import PAIRS_NOTE, pair_sentence
from pytest_helmbench.reports.markup import code_span, pipe_table, plain
from pytest_helmbench.reports.tables import table
from pytest_helmbench.results.standings import Board

__all__ = ["MOST_PAIRS", "board_lines", "board_markdown", "surest_first"]

MOST_PAIRS = 30
"""So many pairs are shown; the JSON form has all."""


def surest_first(board: Board, shown: BoardTable) -> Sequence[tuple[str, ...]]:
    """Return the pairs of a leaderboard, those that are told apart first."""
    order = sorted(
        range(len(board.pairs)),
        key=lambda number: (
            2.0 if (p := board.pairs[number].p_adjusted) is None else p,
            number,
        ),
    )
    return [shown.pairs[number] for number in order]


def board_lines(found: Sequence[Board]) -> Iterator[str]:
    """Yield a leaderboard as lines of plain text."""
    if len(found) > 1:
        head, rows = grid(found)
        yield from table(head, rows, left=head)
        yield ""
    for board in found:
        shown = board_table(board)
        yield shown.title
        yield from table(shown.head, shown.rows, left=shown.left)
        yield from (f"  {number}: {note}" for number, note in enumerate(shown.notes, 1))
        yield from _pair_lines(board, shown)
        yield ""
    if any(board.pairs for board in found):
        yield PAIRS_NOTE


def _pair_lines(board: Board, shown: BoardTable) -> Iterator[str]:
    if said := pair_sentence(board):
        yield f"  {said}"
    if shown.pairs:
        pairs = surest_first(board, shown)
        left = (*shown.pair_head[:2], *shown.pair_head[4:])
        yield from (f"  {line}" for line in table(shown.pair_head, pairs[:MOST_PAIRS], left=left))
        if len(pairs) > MOST_PAIRS:
            yield f"  … and {len(pairs) - MOST_PAIRS} more pairs (--json has all)"


def board_markdown(found: Sequence[Board]) -> str:
    """Return a leaderboard as Markdown that pastes into a README or a pull request."""
    return "\n".join(_markdown(found)) + "\n"


def _markdown(found: Sequence[Board]) -> Iterator[str]:
    yield "## Leaderboard"
    yield ""
    if len(found) > 1:
        head, rows = grid(found)
        cells = [(code_span(row[0]), *map(plain, row[1:])) for row in rows]
        yield from pipe_table([head[0], *map(plain, head[1:])], cells, left=("model",), most=len(cells))
        yield ""
    for board in found:
        shown = board_table(board)
        yield f"### {plain(shown.title)}"
        yield ""
        yield from _rows(shown)
        yield ""
        yield from _notes(board, shown)
    if any(board.pairs for board in found):
        yield PAIRS_NOTE


def _rows(shown: BoardTable) -> Sequence[str]:
    rows = []
    for number, (model, *cells) in enumerate(shown.rows):
        name = code_span(model)
        rows.append((f"**{name}**" if number == shown.winner else name, *map(plain, cells)))
    return pipe_table(shown.head, rows, left=shown.left, most=len(rows))


def _notes(board: Board, shown: BoardTable) -> Iterator[str]:
    for number, note in enumerate(shown.notes, 1):
        yield f"{number}. {plain(note)}"
    if shown.notes:
        yield ""
    if said := pair_sentence(board):
        yield said
        yield ""
    if shown.pairs:
        rows = [
            (code_span(one), code_span(other), *map(plain, cells))
            for one, other, *cells in surest_first(board, shown)
        ]
        yield from pipe_table(shown.pair_head, rows[:MOST_PAIRS], left=shown.pair_head[:2], most=MOST_PAIRS)
        if len(rows) > MOST_PAIRS:
            yield f"\n… and {len(rows) - MOST_PAIRS} more pairs (`helmbench leaderboard --json` has all)"
        yield ""
