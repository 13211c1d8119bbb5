"""free_response, published rule, letter for letter.

Where it is unfair it stays so: it exists to compare with published numbers. Patterns are possessive where that changes
no verdict, so that a hostile reply costs no more than its length.

Source:
    Benchmark packs, parity rules.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from pytest_helmbench.benchmarks.packs.families.free_response.row import FreeRow
from pytest_helmbench.benchmarks.packs.families.text.finding import AnswerFinding, shown
from pytest_helmbench.benchmarks.packs.families.text.published import holds, normalised

_TOKEN = re.compile(r"[a-z0-9]+")
_STOP_WORDS = """
a an and are as at be because been before being by did do does due for from how if in into is it its no not of on
or over that the their this through to was were what when where which who whom whose why with you your
"""


def parity_free(row: FreeRow, reply: str) -> AnswerFinding:
    """Judge a free_response reply by the published rule."""
    folded = normalised(reply, united_states=True)
    accepted, rejected = _first_contained(folded, row.accepted), _first_contained(folded, row.rejected)
    accepted_f1, best_accepted = _best_f1(reply, row.accepted)
    rejected_f1, best_rejected = _best_f1(reply, row.rejected)
    strategy = None if accepted is None else "contained"
    if accepted is None and best_accepted is not None and accepted_f1 >= row.min_token_f1:
        accepted, strategy = best_accepted, "token_f1"
    if rejected is None and rejected_f1 >= row.min_token_f1 and rejected_f1 >= accepted_f1:
        rejected = best_rejected
    return AnswerFinding(
        passed=accepted is not None and rejected is None,
        strategy=strategy,
        matched=accepted,
        rejected=rejected,
        accepted_f1=accepted_f1,
        rejected_f1=rejected_f1,
        statement=shown(reply),
        reason=None if reply.strip() else "empty",
    )


def _first_contained(text: str, entries: Sequence[str]) -> int | None:
    for index, entry in enumerate(entries):
        wanted = normalised(entry, united_states=True)
        if wanted and holds(text, wanted):
            return index
    return None


def _best_f1(reply: str, entries: Sequence[str]) -> tuple[float, int | None]:
    tokens = Counter(_tokens(reply)) if entries else Counter[str]()
    best: tuple[float, int | None] = (0.0, None)
    for index, entry in enumerate(entries):
        score = _token_f1(tokens, Counter(_tokens(entry)))
        if score > best[0]:
            best = score, index
    return best


def _token_f1(tokens: Counter[str], wanted: Counter[str]) -> float:
    common = (tokens & wanted).total()
    if not common:
        return 0.0
    precision, recall = common / tokens.total(), common / wanted.total()
    return 2 * precision * recall / (precision + recall)


def _tokens(text: str) -> list[str]:
    text = text.lower().replace("u.s.", "united states")
    stop_words = _stop_words()
    return [token for token in _TOKEN.findall(text) if token not in stop_words]


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(_STOP_WORDS.split())
