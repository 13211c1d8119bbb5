"""A leaderboard as LaTeX tables that need no package."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.reports.leaderboard.board_cells import BoardTable, board_table, grid
from pytest_helmbench.reports.leaderboard.board_notes import PAIRS_NOTE, pair_sentence
from pytest_helmbench.results.standings import Board

__all__ = ["board_latex", "escaped"]

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "[": "{[}",  # behind the end of a row it would be read as an option, and so would a star
    "]": "{]}",
    "*": "{*}",
    "−": "$-$",
    "–": "--",
    "…": r"\ldots{}",
    "×": r"$\times$",
}
_LETTERS = frozenset(map(chr, range(0xA1, 0x180))) - frozenset("ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ")
"""Latin letters with accents that LaTeX itself knows; the others stop it where no encoding but its own is chosen."""

_LIGATURES = re.compile("(?<=[-'`?!,<>])(?=[-'`,<>])")


def escaped(text: str) -> str:
    """Return any text for a LaTeX document: it shows as it is and does nothing; what LaTeX lacks is told by number."""
    pieces = _LIGATURES.split(" ".join(scrub(text).split()))
    return "{}".join("".join(map(_character, piece)) for piece in pieces)


def _character(one: str) -> str:
    if one in _SPECIAL:
        return _SPECIAL[one]
    return one if one.isascii() or (one.isalpha() and one in _LETTERS) else f"(U+{ord(one):04X})"


def board_latex(found: Sequence[Board]) -> str:
    """Return a leaderboard as LaTeX, a `tabular` per benchmark."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Sequence[Board]) -> Iterator[str]:
    yield "% Made by helmbench leaderboard --latex. It needs no package."
    if len(found) > 1:
        head, rows = grid(found)
        yield from _tabular(head, [[*map(escaped, row)] for row in rows], frozenset(head))
    for board in found:
        shown = board_table(board)
        yield ""
        yield rf"\subsection*{{{escaped(shown.title)}}}"
        yield from _tabular(shown.head, [*_rows(shown)], shown.left)
        for number, note in enumerate(shown.notes, 1):
            yield rf"\par\noindent {number}: {escaped(note)}"
        if said := pair_sentence(board):
            yield rf"\par\noindent {escaped(said)}"
        if shown.pairs:
            pairs = [[*map(escaped, row)] for row in shown.pairs]
            yield from _tabular(
                shown.pair_head, pairs, frozenset((*shown.pair_head[:2], *shown.pair_head[4:]))
            )
    if any(board.pairs for board in found):
        yield rf"\par\noindent {escaped(PAIRS_NOTE)}"


def _rows(shown: BoardTable) -> Iterator[list[str]]:
    for number, (model, *cells) in enumerate(shown.rows):
        name = escaped(model)
        yield [rf"\textbf{{{name}}}" if number == shown.winner else name, *map(escaped, cells)]


def _tabular(head: Sequence[str], rows: Sequence[Sequence[str]], left: frozenset[str]) -> Iterator[str]:
    columns = "".join("l" if name in left else "r" for name in head)
    yield rf"\begin{{tabular}}{{{columns}}}"
    yield r"\hline"
    yield rf"{' & '.join(map(escaped, head))} \\"
    yield r"\hline"
    yield from (rf"{' & '.join(row)} \\" for row in rows)
    yield r"\hline"
    yield r"\end{tabular}"
