"""Answers that list several: whether a sentence has all that they list, or they stand within a longer list."""

from __future__ import annotations

import re
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.short_answer.accepted import Accepted
from pytest_helmbench.benchmarks.packs.families.short_answer.listed import said_as_list, without_asides
from pytest_helmbench.benchmarks.packs.families.short_answer.named_values import asks_for_order, holds_all
from pytest_helmbench.benchmarks.packs.families.short_answer.people import said_names
from pytest_helmbench.benchmarks.packs.families.short_answer.row import ShortRow
from pytest_helmbench.benchmarks.packs.families.text.wording import sentences, whole_places

__all__ = ["has_people", "is_part_of_list", "outer_sentences"]

_MOST_PLACES = 50
_OWN_CLAUSE = re.compile(r";\s|:\s|,\s(?=(?:which|where|who)\s|[a-z]{2,}(?:ed|ing)\s)")
"""Where a clause begins that names its own values: `a state in the Pyrenees, bordered by France and Spain`."""


def has_people(statement: str, answer: Accepted, row: ShortRow) -> bool:
    """Return whether a sentence has all people that an answer lists, in whatever form, and no others."""
    said = said_names(statement, answer.written, row.question)
    return bool(said) and any(
        holds_all(without_asides(part, answer.text), said, row.question)
        for part in outer_sentences(statement)
    )


def is_part_of_list(text: str, answer: Accepted, row: ShortRow) -> bool:
    """Return whether a folded statement has an answer that lists several only within a longer list."""
    if not answer.members or asks_for_order(row.question):
        return False
    return any(whole_places(text, answer.text)) and said_as_list(text, answer.members) is None


def outer_sentences(statement: str) -> list[str]:
    """Return a statement, its first sentence and its last one, and what the last clause of each says on its own."""
    parts = [*islice(sentences(statement), _MOST_PLACES)]
    outer = [statement, parts[0], parts[-1]] if parts else [statement]
    return outer + [clauses[-1] for part in outer[1:] if len(clauses := _OWN_CLAUSE.split(part)) > 1]
