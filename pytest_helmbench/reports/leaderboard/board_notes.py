"""Notes of a leaderboard: imported and incomplete runs, and those that were made otherwise than most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_helmbench.reports.score_lines import score_notes
from pytest_helmbench.reports.tables import share
from pytest_helmbench.results.standings import MOST_COMPARED, Board, Standing, differing_settings

__all__ = ["PAIRS_NOTE", "board_notes", "noted", "pair_sentence"]

PAIRS_NOTE = (
    "Pairwise: raw scores on the cases that both runs have judged, two-sided exact sign-flip test, Holm over the"
    " compared pairs of the benchmark. Place: where a run may stand by these tests, all together at 95 %."
)

_STATES = {
    "running": "still running",
    "interrupted": "interrupted",
    "partial": "not every planned case was judged",
}
_SCOPES = {
    "selected": "of selected cases only",
    "shard": "of one shard only",
    "by_outcome": "of cases selected by earlier outcomes (--lf, --sw): no score",
}


def noted(board: Board) -> tuple[Mapping[str, int], Sequence[tuple[int, ...]]]:
    """Return the notes of a leaderboard with their numbers, from 1, and those of each run in its order."""
    numbers: dict[str, int] = {}
    marks = [
        tuple(numbers.setdefault(sentence, len(numbers) + 1) for sentence in board_notes(one, board))
        for one in board.standings
    ]
    return numbers, marks


def board_notes(one: Standing, board: Board) -> Sequence[str]:
    """Return what must be known of a run, one sentence each."""
    return list(dict.fromkeys((*_origin(one), *_unlike(one, board.reference), *_numbers(one))))


def _origin(one: Standing) -> Iterator[str]:
    run = one.detail.summary
    if one.imported_from:
        yield f"imported from {one.imported_from}"
    if one.detail.rescored_from is not None:
        yield f"judged anew from the stored replies of run {one.detail.rescored_from}: nothing was asked"
    if run.status in _STATES:
        yield _STATES[run.status]
    if run.scope in _SCOPES:
        yield _SCOPES[run.scope]
    if one.passed_over:
        numbers = ", ".join(map(str, one.passed_over))
        yield f"the newest complete run of this model; not shown: run{'s' * (len(one.passed_over) > 1)} {numbers}"
    if run.model in one.judges:
        yield "judged its own replies"


def _unlike(one: Standing, reference: Standing) -> Iterator[str]:
    for name, own, usual in differing_settings(one, reference):
        if name == "content":
            yield f"other content of the benchmark ({own}; {usual} in run {reference.ref.run_id})"
        elif name == "judge":
            yield f"judged by {own or 'no model'} ({usual or 'no model'} in run {reference.ref.run_id})"
        elif name == "repeat":
            yield f"asked {own or 1} times ({usual or 1} in run {reference.ref.run_id})"
        elif name == "sampling":
            yield f"other sampling options than run {reference.ref.run_id}"
        elif name != "tool":
            yield f"the setting {name} differs from run {reference.ref.run_id}"


def _numbers(one: Standing) -> Iterator[str]:
    counts, score = one.counts, one.score
    if score is not None:
        total = score.total
        if total.coverage is not None and total.coverage < 1:
            yield f"coverage {share(total.coverage)}"
        yield from (
            note for note in score_notes(score) if note.startswith(("partial", "capped", "of a sample"))
        )
    if one.words is not None:
        yield from one.words.cautions
    if counts.replays:
        replies = f"{counts.replays} of {counts.replays + counts.calls.total()} calls"
        yield f"{replies} were answered from the record: they have no cost and no time of their own"
    if counts.estimated:
        yield f"the tokens of {counts.estimated} calls were counted here, since the provider named none"


def pair_sentence(board: Board) -> str:
    """Return how the runs of a benchmark were compared, or why they were not."""
    if len(board.standings) < 2:
        return ""
    if not board.pairs:
        return f"Not compared two by two: more than {MOST_COMPARED} runs. Name fewer."
    if all(pair.found is None for pair in board.pairs):
        return (
            f"Not comparable: {board.pairs[0].reason}." if len(board.pairs) == 1 else "No pair is comparable."
        )
    told = sum(pair.better is not None for pair in board.pairs)
    compared = sum(pair.found is not None for pair in board.pairs)
    return f"{told} of {compared} compared pairs are told apart."
