"""Statements of a short_answer reply that only repeat the question, or quote the context at length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.short_answer.accepted import Accepted
from pytest_helmbench.benchmarks.packs.families.short_answer.row import ShortRow
from pytest_helmbench.benchmarks.packs.families.text.wording import folded, sentences, words

__all__ = ["is_repeated"]

_LONGEST_QUOTE = 20
"""Words."""


def is_repeated(statement: str, row: ShortRow, accepted: Sequence[Accepted]) -> bool:
    """Return whether a statement only repeats the question, or quotes the context at length."""
    text = folded(statement)
    if any(text == answer.text for answer in accepted):
        return False
    if statement.rstrip().endswith("?") and len([*islice(sentences(statement), 2)]) == 1:
        return True
    length = len(words(text))
    question = folded(row.question)
    verb, _, rest = question.partition(" ")
    if text == question or (length > 3 and text in question):
        return not (text == rest and verb in ("do", "does", "did", "can", "could", "will", "would"))
    longest = max(len(words(answer.text)) for answer in accepted)
    if length <= max(_LONGEST_QUOTE, 2 * longest):
        return False
    return any(text in folded(context) for context in row.context)
