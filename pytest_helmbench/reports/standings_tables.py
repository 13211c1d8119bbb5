"""Runs side by side: one table per benchmark, what their numbers rest on, and which pairs differ."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.reports.comparison_lines import p_text, points, setting_text, shown_change
from pytest_helmbench.reports.markup import code_span, folded, pipe_table, plain
from pytest_helmbench.reports.score_lines import SCORE_HEAD, score_cells
from pytest_helmbench.reports.tables import cost_text, count_text, rate, seconds
from pytest_helmbench.results.comparing import RunRef
from pytest_helmbench.results.standings import MOST_COMPARED, Board, Pair, Standing, differing_settings
from pytest_helmbench.scoring.intervals import INTERVAL
from pytest_helmbench.scoring.thresholds import breach_text

_PAIRS_SAID = 3
MOST_PAIRS = 30
"""So many pairs are shown in Markdown; the JSON form has all."""

PAIRS_NOTE = (
    "Pairwise: scores on the cases that both runs have judged, two-sided exact sign-flip test, Holm over the"
    " compared pairs of the benchmark."
)
PAIR_HEAD = ("run", "other run", "difference (points)", "p (Holm)", "changed", "which is better")
_SCOPES = {"selected": "of selected cases only", "shard": "of one shard only"}
_USUAL = {"status": "complete, whole", "coverage": "100.0 %"}
_SPEEDS = ("tokens/s", "calls in flight")
TEXT_COLUMNS = frozenset(("model", "status", INTERVAL, "verdict", "own total", "notes"))


@dataclass(frozen=True, slots=True)
class StandingsTable:
    """The runs of one benchmark as a table.

    Args:
        head: Titles of the columns; the first two are `run` and `model`.
        winner: Row of the run that is shown to be better than all others; -1 for none.
        notes: Notes that the last column refers to by number, from 1.
        said: How the runs were compared, or why they were not; empty for one run.
        pairs: Cells below `PAIR_HEAD`, those that differ first.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    winner: int
    notes: tuple[str, ...]
    said: str
    pairs: tuple[tuple[str, ...], ...]


def standings_table(board: Board) -> StandingsTable:
    """Return the table of a benchmark; columns that only say something of several runs are left out of one run's."""
    standings = board.standings
    versions = {standing.detail.version for standing in standings}
    numbers: dict[str, int] = {}
    marks = [
        ", ".join(str(numbers.setdefault(note, len(numbers) + 1)) for note in _notes(standing, board))
        for standing in standings
    ]
    counts = [standing.report.counts for standing in standings]
    columns = [
        ("run", [standing.ref.name.removeprefix("run ") for standing in standings]),
        ("model", [_named(standing, board) for standing in standings]),
        ("status", [f"{standing.detail.status}, {standing.detail.scope}" for standing in standings]),
        *zip(SCORE_HEAD, map(list, zip(*map(_score_cells, standings), strict=True)), strict=True),
        (
            "verdict",
            [
                "" if (held := standing.report.comparison) is None else held.verdict.value
                for standing in standings
            ],
        ),
        ("own total", [_own_total(standing) for standing in standings]),
        ("cost USD", [cost_text(count.known_cost_usd, count.unknown_costs) for count in counts]),
    ]
    if len(standings) > 1:
        columns += [
            ("tokens/s", [rate(standing.report.speed.tokens_per_second) for standing in standings]),
            ("calls in flight", [str(standing.report.speed.in_flight or "-") for standing in standings]),
            ("median time", [seconds(standing.report.speed.median_ms) for standing in standings]),
            ("notes", marks),
        ]
    columns = [(name, cells) for name, cells in columns if any(cells)]
    pairs = sorted(board.pairs, key=lambda pair: 2.0 if pair.p_adjusted is None else pair.p_adjusted)
    return StandingsTable(
        title=f"{board.benchmark} {versions.pop()}".strip() if len(versions) == 1 else board.benchmark,
        head=tuple(name for name, _ in columns),
        rows=tuple(zip(*(cells for _, cells in columns), strict=True)),
        winner=-1 if board.winner is None else standings.index(board.winner),
        notes=tuple(numbers) if len(standings) > 1 else (),
        said=_said(board),
        pairs=tuple(_pair_cells(pair, board) for pair in pairs),
    )


def _named(standing: Standing, board: Board) -> str:
    """Return the model; where others of the board have it too, with the settings that differ from theirs."""
    alike = [other for other in board.standings if other.detail.model == standing.detail.model]
    differing = {name: own for other in alike for name, own, _ in differing_settings(standing, other)}
    suffix = ", ".join(f"{name}={setting_text(own)}" for name, own in differing.items())
    return f"{standing.detail.model} ({suffix})" if suffix else standing.detail.model


def _score_cells(standing: Standing) -> tuple[str, ...]:
    if standing.score is None:
        return ("-",) * len(SCORE_HEAD)
    verdict = f", {breach_text(standing.score).partition(':')[0]}" if standing.score.breached else ""
    score, *others = score_cells(standing.score.total)
    return (score + verdict, *others)


def _own_total(standing: Standing) -> str:
    words = standing.report.words
    return "" if words is None or words.section is None else words.section.value


def _notes(standing: Standing, board: Board) -> Iterator[str]:
    """Yield how a run differs from most; its own cautions stand with the run."""
    run, reference = standing.detail, board.reference
    if standing.imported_from:
        yield f"imported from {standing.imported_from}"
    if run.scope in _SCOPES:
        yield _SCOPES[run.scope]
    for name, own, usual in differing_settings(standing, reference):
        if name != "tool":
            yield f"{name} {setting_text(own)} ({setting_text(usual)} in run {reference.ref.run_id})"
    counts = standing.report.counts
    if counts.replays:
        replies = f"{counts.replays} of {counts.replays + counts.calls.total()} calls"
        yield f"{replies} were answered by stored replies: they have no cost and no time of their own"


def _said(board: Board) -> str:
    if len(board.standings) < 2:
        return ""
    if not board.pairs:
        too_many = len(board.standings) > MOST_COMPARED
        return f"Not compared two by two: more than {MOST_COMPARED} runs. Name fewer." if too_many else ""
    if all(pair.found is None for pair in board.pairs):
        return (
            f"Not comparable: {board.pairs[0].reason}." if len(board.pairs) == 1 else "No pair is comparable."
        )
    differing = sum(pair.better is not None for pair in board.pairs)
    compared = sum(pair.found is not None for pair in board.pairs)
    return f"{differing} of {compared} compared pairs differ."


def pair_sentences(board: Board) -> Iterator[str]:
    """Yield whether two runs differ beyond chance, a sentence for each pair; of many pairs only how many differ."""
    if len(board.pairs) > _PAIRS_SAID or not board.pairs:
        yield from [_said(board)] * bool(board.pairs)
        return
    for pair in board.pairs:
        first, second = pair.first.model, pair.second.model
        if pair.found is None or pair.p_adjusted is None:
            yield f"{first} and {second} were not compared: {pair.reason}"
            continue
        size = f"{_pair_points(pair, board)} points, {p_text(pair.p_adjusted)}"
        if pair.better is None:
            yield f"{first} and {second} do not differ beyond chance ({size})"
        else:
            worse = second if pair.better == pair.first else first
            yield f"{pair.better.model} is better than {worse} beyond chance ({size})"


def _pair_points(pair: Pair, board: Board) -> str:
    """Return the difference of a pair: that of the two shown scores, where these are what was compared."""
    assert pair.found is not None
    scores = {one.ref: one.score.score for one in board.standings if one.score is not None}
    first, second = scores.get(pair.first), scores.get(pair.second)
    if first is None or second is None or first - second != pair.found.difference:
        return points(pair.found.difference)
    return shown_change(second, first)


def _pair_cells(pair: Pair, board: Board) -> tuple[str, ...]:
    names = (f"{pair.first.model} ({pair.first.name})", f"{pair.second.model} ({pair.second.name})")
    found = pair.found
    if found is None or pair.p_adjusted is None:
        return (*names, "-", "-", "-", f"not compared: {pair.reason}")
    if pair.better is not None:
        word = pair.better.model if pair.first.model != pair.second.model else pair.better.name
    elif found.cannot_tell:
        count = f"only {found.changed}" if found.changed else "no"
        words = f"{pair.unit} differs" if found.changed in (0, 1) else f"{pair.unit}s differ"
        word = f"no difference shown: {count} {words}"
    else:
        word = "no difference shown"
    changed = f"{found.changed} of {count_text(found.units, pair.unit)}"
    p_value = p_text(pair.p_adjusted).removeprefix("p ").removeprefix("= ")
    return (*names, _pair_points(pair, board), p_value, changed, word)


def standings_markdown(board: Board) -> Iterator[str]:
    """Yield the runs of a benchmark as Markdown, without columns that say the usual of every run."""
    shown = standings_table(board)
    columns = dict(zip(shown.head, zip(*shown.rows, strict=True), strict=True))
    left_out = {*_SPEEDS, *(name for name, usual in _USUAL.items() if {*columns.get(name, ())} == {usual})}
    left_out |= {"evaluations"} if "coverage" in left_out else set()
    head = [name for name in shown.head if name not in left_out]
    rows = []
    for number, (run, model, *cells) in enumerate(zip(*map(columns.__getitem__, head), strict=True)):
        name = code_span(model)
        rows.append((plain(run), f"**{name}**" if number == shown.winner else name, *map(plain, cells)))
    yield from (f"**{plain(shown.title)}**", "")
    yield from (*pipe_table(head, rows, left=TEXT_COLUMNS), "")
    yield from (f"{number}. {plain(note)}" for number, note in enumerate(shown.notes, 1))
    yield from [""] * bool(shown.notes)
    yield from [shown.said, ""] * bool(shown.said)
    if shown.pairs:
        pairs = [(code_span(one), code_span(other), *map(plain, cells)) for one, other, *cells in shown.pairs]
        lines = pipe_table(PAIR_HEAD, pairs, left=PAIR_HEAD[:2], most=MOST_PAIRS)
        yield from folded("Every pair", [*lines, "", PAIRS_NOTE])


def standings_record(board: Board) -> dict[str, object]:
    """Return the runs of a benchmark in JSON types: notes and pairs; their numbers stand with the runs."""
    return {
        "benchmark": board.benchmark,
        "runs": [_run_record(standing, board) for standing in board.standings],
        "pairs": [_pair_record(pair) for pair in board.pairs],
    }


def _run_record(standing: Standing, board: Board) -> dict[str, object]:
    beaten = [
        pair.second if pair.better == pair.first else pair.first
        for pair in board.pairs
        if pair.better == standing.ref
    ]
    return {
        **_side(standing.ref),
        "better_than": [other.run_id for other in beaten],
        "notes": list(_notes(standing, board)),
    }


def _pair_record(pair: Pair) -> dict[str, object]:
    found = pair.found
    return {
        "first": _side(pair.first),
        "second": _side(pair.second),
        "difference": None if found is None else float(found.difference),
        "p": None if found is None else found.p,
        "p_adjusted": pair.p_adjusted,
        "better": None if pair.better is None else pair.better.run_id,
        "cases": pair.cases,
        "unit": pair.unit or None,
        "units": None if found is None else found.units,
        "changed": None if found is None else found.changed,
        "reason": pair.reason,
    }


def _side(ref: RunRef) -> dict[str, object]:
    return {"run": ref.run_id, "database": ref.path.name, "model": ref.model}
