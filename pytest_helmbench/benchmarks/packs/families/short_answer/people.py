"""Names of people in another form than an accepted answer has: with middle names or initials, or the family name alone.

Two people may share what is left of a name (`John Adams`, `John Quincy Adams`), so what is found here is a guess.
"""

from __future__ import annotations

import re

from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of
from pytest_helmbench.benchmarks.packs.families.text.wording import folded

__all__ = ["asks_for_person", "is_family_name", "long_name"]

_ASKS_FOR_PERSON = re.compile(
    rf"(?<!\w){any_of('who whom whose author director composer painter inventor scientist president person')}(?!\w)",
    re.IGNORECASE,
)
_MOST_PARTS = 4
_TITLE = re.compile(
    rf"{any_of('mr mrs ms miss madame mme sir dame lord lady dr prof professor king queen president')}\.?\s"
)


def asks_for_person(question: str) -> bool:
    """Return whether a question asks who somebody is."""
    return _ASKS_FOR_PERSON.search(question) is not None


def is_family_name(statement: str, answer: str, question: str) -> bool:
    """Return whether a statement is nothing but a title and the family name of an accepted person: `Madame Curie`.

    Without a title it may be another member of the family.

    Args:
        statement: As written.
        answer: The accepted answer, as the row has it.
        question: As asked.
    """
    parts = answer.split()
    if not 2 <= len(parts) <= _MOST_PARTS or not parts[0][:1].isupper() or not asks_for_person(question):
        return False
    said = folded(statement)
    title = _TITLE.match(said)
    return title is not None and said[title.end() :] == folded(parts[-1])


def long_name(statement: str, answer: str, question: str) -> str | None:
    """Return a person's name as a statement has it, folded; None where it has it in no other form.

    Args:
        statement: As written.
        answer: The accepted answer, as the row has it.
        question: As asked.
    """
    parts = answer.split()
    if not 2 <= len(parts) <= _MOST_PARTS or _ASKS_FOR_PERSON.search(question) is None:
        return None
    if not all(part[:1].isupper() for part in parts):
        return None
    family = parts[-1]
    found = re.search(
        rf"(?<!\w){re.escape(parts[0])}(?:\s[A-ZÀ-Þ](?:\.|\w+)?){{1,3}}\s{re.escape(family)}(?!\w)", statement
    )
    return None if found is None else folded(found[0])
